"""What was recorded on an H100: pairs of networks as CUDA graphs, and the mechanisms themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusched_env.display.frame import frame
from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.recorded import measurements
from gpusched_env.experiments.papers.concurrency.runs import Graphs
from gpusched_env.experiments.papers.verdicts import Check, table_of

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

LIMIT = 0.15
"""Largest relative error of a recorded pair's slowdown that holds."""
HARDLY_SLOWED, WIDE = 1.02, 2.0
MODES = ("streams", "priority streams", "time slicing", "hosts only")
HARDWARE_NOTE = """\
What the paper's figures contain besides the GPU: in one process both tasks' threads share Python's interpreter.
*Eager* launches every kernel from Python, *graph* replays CUDA graphs, with hardly any host work. MPS was not
available; plain streams hand out blocks in the same order. *Hosts only*: the training is too small to use the GPU.

Turnaround of requests and time of a training step, each over that alone."""


@dataclass(frozen=True, kw_only=True)
class Side(Check):
    """One side of a recorded pair of networks: its slowdown, median time together over alone."""

    mode: str
    """``streams``: equal priority; ``priority``: the foreground is more urgent."""
    pair: str
    side: str
    cause: str
    """What is special about the recording where the error is beyond the limit."""


def sides(runs: Mapping[Graphs, list[float]]) -> list[Side]:
    """Both sides of every recorded pair of networks that was run; ``runs``: median times (us)."""
    found = []
    for row in measurements("model_pairs.jsonl"):
        if row["what"] != "pair" or (pair := Graphs((row["fg"], row["bg"]), row["mode"])) not in runs:
            continue
        for i, (side, key) in enumerate((("foreground", "fg"), ("background", "bg"))):
            simulated = runs[pair][i] / runs[Graphs((row[key],))][0]
            recorded = row[f"{key}_p50_us"] / row[f"{key}_solo_us"]
            found.append(
                Side(
                    mode=row["mode"],
                    pair=" beside ".join(pair.networks),
                    side=side,
                    simulated=simulated,
                    recorded=recorded,
                    tolerance=LIMIT,
                    cause=cause_of(row, key, simulated, recorded),
                )
            )
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


def sides_by_mode(sides: Sequence[Side]) -> Table:
    """How many sides are within the limit, by launch mode."""
    rows = []
    for mode, side in sorted({(s.mode, s.side) for s in sides}, reverse=True):
        own = [s for s in sides if (s.mode, s.side) == (mode, side)]
        held, worst = sum(s.holds for s in own), max(abs(s.error) for s in own)
        rows.append((f"{mode}, {side}", f"{held} of {len(own)}", f"{worst:.1%}"))
    return Table("Sides within the limit", ("mode", "within", "largest error"), rows)


def sides_table(sides: Sequence[Side], title: str = "Recorded pairs of networks") -> Table:
    heads = f"pair | mode | side | simulated | recorded | error | within {LIMIT:.0%} | remark"
    cells = "{pair} | {mode} | {side} | {simulated:.2f} | {recorded:.2f} | {error:+.1%} | {verdict} | {cause}"
    return table_of(title, sides, heads, cells)


def on_hardware(rows: Sequence[dict[str, Any]]) -> DataFrame:
    """The mechanisms as recorded on an H100, a row a network: mean times over those alone, by task and mode.

    ``rows`` of the recording; every mode is related to the tasks alone that precede it.
    """
    shape, tasks = ["inference", "form", "batch"], ["turnaround", "training"]
    runs = frame([{**{key: row[key] for key in (*shape, "what")}, **_means(row)} for row in rows])
    runs["of"] = (runs.what == "alone").cumsum()
    alone = runs.groupby("of")[[*shape, *tasks]].transform("first")
    runs[shape], runs["alone_ms"] = alone[shape], alone.turnaround / 1e3
    runs[tasks] /= alone[tasks]
    return runs.pivot(index=["of", *shape, "alone_ms"], columns="what", values=tasks)


def _means(row: dict[str, Any]) -> dict[str, float]:
    return {"turnaround": float(row["inference_us"]["mean_us"]), "training": float(row["training_us"]["mean_us"])}


def hardware_table() -> Table:
    """What was recorded of the mechanisms."""
    found = on_hardware(measurements("sharing_modes.jsonl"))
    wanted = [*(("turnaround", mode) for mode in MODES), *(("training", mode) for mode in MODES[:-1])]
    rows = [
        (inference, form, str(batch), f"{alone_ms:.2f}", *(NONE if v != v else f"{v:.2f}" for v in values))
        for (_, inference, form, batch, alone_ms), values in zip(found.index, found[wanted].to_numpy(), strict=True)
    ]
    heads = ("inference", "launches", "batch", "alone ms", *MODES, *(f"training, {mode}" for mode in MODES[:-1]))
    return Table("The mechanisms on a real H100", heads, rows, HARDWARE_NOTE)
