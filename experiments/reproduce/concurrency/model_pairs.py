"""Recorded pairs of networks as CUDA graphs: both sides' slowdowns on plain and on priority streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from gpusched_env.experiments.reproduce.recordings import measurements
from gpusched_env.experiments.validate.networks import RECORDED_ON
from gpusched_env.experiments.validate.recordings import MODEL_PAIRS, Recordings, read_model_pairs
from gpusched_env.experiments.validate.run import ValidationRun

LIMIT = 0.15
"""Largest relative error of a slowdown that holds."""
HARDLY_SLOWED = 1.02
WIDE = 2.0


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a recorded pair."""

    mode: str
    """``streams``: equal priority; ``priority``: the foreground is more urgent."""
    pair: str
    side: str
    simulated: float
    """Slowdown: median time together over alone."""
    recorded: float
    cause: str
    """What is special about the recording where the error is beyond the limit."""

    @property
    def error(self) -> float:
        """Relative, signed."""
        return self.simulated / self.recorded - 1.0

    @property
    def holds(self) -> bool:
        return abs(self.error) <= LIMIT


def sides(workers: int, on_progress: Callable[[int, float], None] | None = None) -> list[Side]:
    """Every recorded pair of shipped networks, simulated, two sides each."""
    with resources.as_file(resources.files("gpusched_env.data") / "measurements" / "h100") as folder:
        pairs = read_model_pairs(Path(folder))
    assert pairs is not None, "shipped"
    rows = {(r["fg"], r["bg"], r["mode"]): r for r in measurements(f"{MODEL_PAIRS}.jsonl") if r["what"] == "pair"}
    run = ValidationRun(Recordings(Path(folder), {}, {}, pairs, []), RECORDED_ON)
    found = []
    for prediction in run.run(workers, on_progress).model_pairs:
        pair = prediction.pair
        row = rows[pair.fg, pair.bg, pair.mode]
        name = f"{pair.fg} beside {pair.bg}"
        for side, simulated, key in (
            ("foreground", prediction.foreground, "fg"),
            ("background", prediction.background, "bg"),
        ):
            recorded = row[f"{key}_p50_us"] / row[f"{key}_solo_us"]
            found.append(Side(pair.mode, name, side, simulated, recorded, cause_of(row, key, simulated, recorded)))
    return found


def cause_of(row: dict[str, Any], key: str, simulated: float, recorded: float) -> str:
    """What is special about a recording of a side (``fg`` or ``bg``) that is predicted wrong; empty if it is not."""
    if abs(simulated / recorded - 1.0) <= LIMIT:
        return ""
    if recorded < HARDLY_SLOWED:
        other = "bg" if key == "fg" else "fg"
        slowed = row[f"{other}_p50_us"] / row[f"{other}_solo_us"]
        return f"recorded as fast as alone, though it slows the other side {slowed:.1f} times; simulated, both pay"
    if key == "fg" and row["fg_p99_us"] > WIDE * row["fg_p50_us"]:
        wide = row["fg_p99_us"] / row["fg_p50_us"]
        return f"recorded p99 {wide:.1f} times the median: it may depend on where in the other's loop replays fall"
    return "unexplained: an error of the simulator"
