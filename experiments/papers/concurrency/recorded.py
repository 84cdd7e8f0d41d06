"""What was recorded on an H100: pairs of networks as CUDA graphs, and the mechanisms themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.graph_pairs import GraphPair, GraphPairs, recorded_pairs
from gpusched_env.experiments.lib.recorded import measurements
from gpusched_env.experiments.lib.verdicts import Check, record, table_of, table_of_numbers

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

LIMIT = 0.15
"""Largest relative error of a recorded pair's slowdown that holds."""
WIDE = 1.9
"""99th percentile over the median of a foreground from which on it is said to vary."""
MODES = ("streams", "priority streams", "time slicing", "hosts only")
HARDWARE_NOTE = """\
What the paper's figures contain besides the GPU: in one process both tasks' threads share Python's interpreter.
*Eager* launches every kernel from Python, *graph* replays CUDA graphs, with hardly any host work. MPS was not
available; plain streams hand out blocks in the same order. *Hosts only*: the training is too small to use the GPU.

Turnaround of requests and time of a training step, each over that alone."""


@dataclass(frozen=True, kw_only=True)
class PairSide(Check):
    """One side of a recorded pair of networks: its slowdown, median time together over alone."""

    mode: str
    pair: str
    side: str
    cause: str
    """What is special about the recording where the error is beyond the limit."""


def sides(runs: Mapping[GraphPairs, list[float]]) -> list[PairSide]:
    """Both sides of every recorded pair of networks that was run; ``runs``: median times (us)."""
    return [
        PairSide(
            mode=pair.mode,
            pair=f"{pair.fg} beside {pair.bg}",
            side=("foreground", "background")[side],
            simulated=simulated,
            recorded=pair.recorded[side],
            tolerance=LIMIT,
            cause=cause_of(pair, side, simulated),
        )
        for pair in recorded_pairs()
        if pair.cells()[0] in runs
        for side, simulated in enumerate(pair.simulated(runs))
    ]


def cause_of(pair: GraphPair, side: int, simulated: float) -> str:
    """What is special about a recording of a side (0: foreground) that is predicted wrong; empty if it is not."""
    recorded = pair.recorded[side]
    wide = (pair.fg_p99_us or pair.fg_p50_us) / pair.fg_p50_us
    if abs(simulated / recorded - 1.0) <= LIMIT:
        return ""
    if side == 0 and wide > WIDE:
        return f"recorded p99 {wide:.1f} times the median: it may depend on where in the other's loop replays fall"
    return "unexplained: an error of the simulator"


def sides_by_mode(sides: Sequence[PairSide]) -> Table:
    """How many sides are within the limit, by launch mode."""
    found = frame([record(side) for side in sides]).assign(size=lambda of: of.error.abs())
    found = found.sort_values(["mode", "side"], ascending=False).groupby(["mode", "side"], sort=False)
    counted = found.agg(n=("holds", "size"), held=("holds", "sum"), worst=("size", "max"))
    return table_of(
        "Sides within the limit",
        counted,
        "mode = {mode}, {side} | within = {held} of {n} | largest error = {worst:.1%}",
    )


def sides_table(sides: Sequence[PairSide], title: str = "Recorded pairs of networks") -> Table:
    columns = "pair = {pair} | mode = {mode} | side = {side} | simulated = {simulated:.2f} | recorded = {recorded:.2f}"
    columns += f" | error = {{error:+z.1%}} | within {LIMIT:.0%} = {{verdict}} | remark = {{cause}}"
    return table_of(title, sides, columns)


def on_hardware(rows: Sequence[dict[str, Any]]) -> DataFrame:
    """The mechanisms as recorded on an H100, a row a network: mean times over those alone, by task and mode.

    ``rows`` of the recording; every mode is related to the tasks alone that precede it.
    """
    shape, tasks = ["inference", "form", "batch"], ["turnaround", "training"]
    runs = frame(rows)
    runs["turnaround"], runs["training"] = (runs[f"{task}_us"].str["mean_us"] for task in ("inference", "training"))
    runs["of"] = (runs.what == "alone").cumsum()
    alone = runs.groupby("of")[[*shape, *tasks]].transform("first")
    runs[shape], runs["alone_ms"] = alone[shape], alone.turnaround / 1e3
    runs[tasks] /= alone[tasks]
    return runs.pivot(index=["of", *shape, "alone_ms"], columns="what", values=tasks)


def resnet50() -> dict[tuple[str, str], float]:
    """ResNet-50's mean turnaround over that alone where Python launches, beside its training at batch 256, by mode."""
    found = on_hardware(measurements("sharing_modes.jsonl")).turnaround
    (at,) = found.xs(("resnet50", "eager", 256), level=("inference", "form", "batch")).to_dict("records")
    return {("ResNet-50", mode): at[mode] for mode in MODES[:-1]}


def hardware_table() -> Table:
    """What was recorded of the mechanisms."""
    found = on_hardware(measurements("sharing_modes.jsonl")).droplevel("of")
    wanted = [*(("turnaround", mode) for mode in MODES), *(("training", mode) for mode in MODES[:-1])]
    shown = found[wanted].reset_index("alone_ms")
    heads = ("inference", "launches", "batch", "alone ms", *MODES, *(f"training, {mode}" for mode in MODES[:-1]))
    return table_of_numbers("The mechanisms on a real H100", heads, shown, note=HARDWARE_NOTE)
