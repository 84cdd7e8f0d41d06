"""Which schedulers came to the same: they are shown in one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpusched_env.experiments.lib.episodes import Run


def alike(runs: Mapping[str, Sequence[Run]]) -> list[tuple[str, ...]]:
    """Groups of schedulers, in the order of their first members.

    Those of a group had the same seeds, completed the same jobs at the same times, and have the same figures, all of
    them exactly; only the number of commands that led there may differ.

    Args:
        runs: by scheduler, the finished episodes.
    """
    groups: dict[tuple[Any, ...], list[str]] = {}
    for scheduler, episodes in runs.items():
        groups.setdefault(tuple(map(_outcome, episodes)), []).append(scheduler)
    return [tuple(group) for group in groups.values()]


def _outcome(run: Run) -> tuple[Any, ...]:
    # Equal text is equal bits, and an undefined figure equals another.
    figures = {name: value for name, value in run.metrics.as_dict().items() if name != "decisions"}
    return run.seed, repr(figures), run.jobs.tobytes()
