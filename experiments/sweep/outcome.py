"""What a sweep found, as a table and as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from rich.table import Table

from gpusched_env.agents.training.files import replacing
from gpusched_env.agents.training.record import Validation

OUTCOME = "sweep.json"
SHOWN = 10
"""Rows of the table."""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One trial."""

    number: int
    state: str
    """``complete``, ``pruned`` or ``failed``."""
    cost: float | None
    """Best validation cost."""
    drawn: dict[str, Any]
    """Hyper-parameters as they were drawn."""
    folder: str


def trained_cost(curve: Sequence[Validation]) -> float | None:
    """The lowest validation cost after the start; ``None`` before there is one."""
    return min((point.cost for point in curve if point.timesteps > 0), default=None)


def write_outcome(tried: Sequence[Tried], folder: Path, command: str) -> None:
    """Write ``sweep.json``."""
    content = {"command": command, "trials": sorted(tried, key=lambda trial: trial.number)}
    with replacing(folder / OUTCOME) as partial:
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def table(tried: Sequence[Tried]) -> Table:
    """The best completed trials, best first."""
    done = [(trial.cost, trial) for trial in tried if trial.state == "complete" and trial.cost is not None]
    found = Table("trial", "validation cost", "hyper-parameters", "folder", title=_counts(tried))
    for cost, trial in sorted(done, key=lambda pair: pair[0])[:SHOWN]:
        found.add_row(
            str(trial.number), f"{cost:.4g}", ", ".join(_text(*pair) for pair in trial.drawn.items()), trial.folder
        )
    return found


def _counts(tried: Sequence[Tried]) -> str:
    states = [trial.state for trial in tried]
    return ", ".join(f"{states.count(state)} {state}" for state in ("complete", "pruned", "failed"))


def _text(name: str, value: Any) -> str:
    return f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
