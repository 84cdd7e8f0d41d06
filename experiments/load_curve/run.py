"""Running one comparison at every value of a field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.experiments.load_curve.axis import Axis, axis_of
from gpusched_env.experiments.load_curve.capacity import SHARE
from gpusched_env.experiments.load_curve.curve import LoadCurve
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario


def compare_over(
    compare: Callable[..., Comparison],
    sweep: Axis | Mapping[str, Sequence[float]],
    scenario: Scenario | str | Path,
    *,
    share: float = SHARE,
    on_progress: Progress | None = None,
    **options: Any,
) -> LoadCurve:
    """Repeat ``compare`` at every value; an interrupt keeps what is finished.

    Args:
        compare: what runs one comparison.
        sweep: the field and its values.
        scenario: as for ``compare``.
        share: of each tenant's jobs that must be within its objective, see :meth:`LoadCurve.capacity`.
        on_progress: called with the number of finished episodes and their share of all values' episodes.
        options: of ``compare``.

    Raises:
        InputError: as from ``compare``; a field that the scenario has not, before anything runs.
        KeyboardInterrupt: before the first episode had finished.
    """
    axis = sweep if isinstance(sweep, Axis) else axis_of(sweep)
    if not 0.0 < share <= 1.0:
        raise InputError(f"share is {share:g}, must be above 0 and at most 1")
    if options.get("record", "jobs") != "jobs" or options.get("window_us") is not None:
        raise InputError("a sweep keeps jobs alone: leave record and window_us (--traces, --window-us) out")
    base = load_scenario(scenario)
    scenarios = {value: axis.at(base, value) for value in axis.values}
    for of in (scenarios[axis.values[0]], scenarios[axis.values[-1]]):
        build_problem(of)
    found: dict[float, Comparison] = {}
    finished = 0
    for number, (value, of) in enumerate(scenarios.items()):

        def tell(runs: int, part: float, before: int = finished, number: int = number) -> None:
            if on_progress is not None:
                on_progress(before + runs, (number + part) / len(scenarios))

        comparison = compare(of, **options, on_progress=tell)
        finished += len(comparison.runs)
        if comparison.runs:
            found[value] = comparison
        if comparison.interrupted:
            break
    if not found:
        raise KeyboardInterrupt
    return LoadCurve(base, axis, share, found)
