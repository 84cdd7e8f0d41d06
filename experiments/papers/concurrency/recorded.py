"""What was recorded on real GPUs, beside what is simulated and what the paper says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from gpusched_env.display.frame import frame
from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.recorded import GraphPair, GraphPairs, measurements, recorded_pairs
from gpusched_env.experiments.lib.verdicts import Check, Finding, as_row, table_of, table_of_numbers
from gpusched_env.experiments.papers.concurrency.claims import PRIORITY, SLICING
from gpusched_env.experiments.papers.concurrency.runs import (
    LAUNCHERS,
    NETWORKS,
    SCHEDULERS,
    SharedRun,
    SharedSlowdown,
    mean_us,
    shared_rows,
)

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

    def named(self) -> str:
        return f"recorded pair: {self.pair}, {self.mode}, {self.side}"


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
    found = frame([as_row(side) for side in sides]).assign(size=lambda of: of.error.abs())
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


RECORDED_ON: Final = "an H200"
LAUNCHED: Final = {"eager": "Python", "compiled": "compiled code"}
ALL_NETWORKS: Final = ", ".join(NETWORKS.values())


@dataclass(frozen=True, kw_only=True)
class SharedSide(Check):
    """The slowdown of one of two tasks, mean time together over alone."""

    network: str
    launched: str
    mode: str
    task: str

    def named(self) -> str:
        return f"recorded mechanism: {self.network}, {self.launched}, {self.mode}, {self.task}"


def shared_sides(runs: Mapping[SharedRun, SharedSlowdown]) -> list[SharedSide]:
    """Both tasks of all that was simulated."""
    return [
        SharedSide(
            network=NETWORKS[cell.network],
            launched=LAUNCHED[cell.launcher],
            mode=cell.mode,
            task=task,
            simulated=getattr(found, task),
            recorded=getattr(cell.recorded(), task),
            tolerance=LIMIT,
        )
        for cell, found in runs.items()
        for task in ("turnaround", "training")
    ]


def shared_table(sides: Sequence[SharedSide]) -> Table:
    """Simulated beside recorded: both tasks of a mode in one line."""
    by_mode: dict[tuple[str, str, str], dict[str, SharedSide]] = {}
    for side in sides:
        by_mode.setdefault((side.network, side.launched, side.mode), {})[side.task] = side
    rows = [
        (
            *key,
            *(
                shown
                for side in of.values()
                for shown in (f"{side.recorded:.2f}", f"{side.simulated:.2f}", f"{side.error:+z.0%}")
            ),
        )
        for key, of in by_mode.items()
    ]
    heads = (
        "network",
        "launched by",
        "mode",
        "turnaround",
        "simulated",
        "error",
        "training step",
        "simulated",
        "error",
    )
    within = sum(side.holds for side in sides)
    return Table(
        f"The same, simulated: {within} of {len(sides)} within {LIMIT:.0%}",
        heads,
        rows,
        "Taken from the recording: how fast each task is alone, and how much hosts of threads cost each other (*hosts "
        "only*; while one waits for the GPU half of it, as for ResNet-50). All else is predicted. What is beyond the "
        "limit is unexplained: an error of the simulator, or a host that was not as fast as alone.",
    )


def recorded_table() -> Table:
    """The recording: turnarounds and training steps over those alone."""
    rows, shown = shared_rows(), []
    for network, name in NETWORKS.items():
        for launcher in LAUNCHERS:
            alone = rows[network, launcher, "alone"]

            def over(what: str, task: str, network: str = network, launcher: str = launcher) -> str:
                row = rows.get((network, launcher, what))
                alone_us = mean_us(rows[network, launcher, "alone"], task)
                return NONE if row is None else f"{mean_us(row, task) / alone_us:.2f}"

            shown.append(
                (
                    name,
                    LAUNCHED[launcher],
                    f"{mean_us(alone, 'inference') / 1e3:.2f}",
                    *(over(what, "inference") for what in (*SCHEDULERS, "hosts only", "lock only")),
                    *(over(what, "training") for what in SCHEDULERS),
                )
            )
    heads = ("network", "launched by", "alone ms", *SCHEDULERS, "hosts only", "lock only")
    return Table(
        f"{ALL_NETWORKS} beside their own training, recorded on {RECORDED_ON}",
        (*heads, *(f"training, {what}" for what in SCHEDULERS)),
        shown,
        "Turnaround of requests one after the other, and time of a training step, each over that alone. Time slicing "
        "has two processes, streams two threads of one. Where compiled code launches, no thread holds the lock of "
        "Python's interpreter: beside a thread that only runs Python (*lock only*) requests take about as long as "
        "alone, where Python launches they hardly come through. *Hosts only*: beside a training that hardly uses the "
        "GPU. MPS could not be recorded, as no daemon may run there; plain streams hand out blocks in the same order. "
        "Each row was recorded once: errors of means are known, how hosts vary from run to run is not.",
    )


def magnitudes_table(
    published: Sequence[tuple[str, str, float]],
    simulated: Mapping[tuple[str, str], float],
    sides: Sequence[SharedSide],
    elsewhere: Mapping[tuple[str, str], float],
) -> Table:
    """What mechanisms add to the turnaround, percent.

    Args:
        published: network, mechanism and what it adds.
        simulated: by network and mechanism, on the paper's GPU.
        sides: as recorded, and simulated for the same GPU.
        elsewhere: slowdowns recorded on an H100 where Python launches, by network and mode.
    """
    # Plain streams hand out blocks as MPS does.
    modes = {"MPS": "streams"}
    rows = []
    for network, mechanism, added in published:
        mode = modes.get(mechanism, mechanism)
        of = {
            side.launched: side
            for side in sides
            if (side.network, side.mode) == (network, mode) and side.task == "turnaround"
        }
        row: list[str] = [network, mechanism, f"{added:.0f}"]
        for launcher in ("eager", "compiled"):
            side = of.get(LAUNCHED[launcher])
            other = elsewhere.get((network, mode), math.nan) if launcher == "eager" else math.nan
            values = (side.recorded, side.simulated) if side else (other, math.nan)
            row += [NONE if value != value else f"{100.0 * (value - 1.0):.0f}" for value in values]
        value = simulated.get((network, mechanism), math.nan)
        rows.append((*row, NONE if value != value else f"{value:.0f}"))
    heads = ["network", "mechanism", "published, RTX 3090"]
    for launcher in ("eager", "compiled"):
        heads += [f"{RECORDED_ON[3:]}, {LAUNCHED[launcher]}", "the same simulated"]
    return Table(
        "Added to the turnaround, %",
        (*heads, "simulated, RTX 3090"),
        rows,
        "MPS stands beside plain streams, which hand out blocks in the same order but share the process. ResNet-50 was "
        "recorded on an H100, beside a training at batch 256.",
    )


BY: Final = ", launched by "
ERRORS: Final = 2.0
"""Standard errors by which means differ; by less they are taken to be equal."""


@dataclass(frozen=True, slots=True)
class RecordedClaim:
    """An order of time slicing and priority streams, as the paper has it."""

    text: str
    task: str
    """The task that it is about, ``inference`` or ``training``."""
    lower: str
    higher: str
    spread: bool = False
    """Whether the claim is of deviations over means; of those no error is known."""


RECORDED_CLAIMS: Final = (
    RecordedClaim("turnaround shorter in slices than under priority streams", "inference", SLICING, PRIORITY),
    RecordedClaim("training steps longer in slices than under priority streams", "training", PRIORITY, SLICING),
    RecordedClaim(
        "turnaround less predictable under priority streams than in slices", "inference", SLICING, PRIORITY, True
    ),
)


def rises(claim: RecordedClaim, network: str, launcher: str) -> bool | None:
    """Whether it is so in a recording; ``None``: by less than the error of means."""
    rows = shared_rows()
    low, high = (rows[network, launcher, what][f"{claim.task}_us"] for what in (claim.lower, claim.higher))
    if claim.spread:
        return bool(low["std_us"] / low["mean_us"] < high["std_us"] / high["mean_us"])
    difference = high["mean_us"] - low["mean_us"]
    error = math.hypot(*(of["std_us"] / math.sqrt(of["n"]) for of in (low, high)))
    return None if abs(difference) <= ERRORS * error else difference > 0.0


def order_by_lock(judge: Callable[[RecordedClaim, str, str], bool | None] = rises) -> str:
    """Networks with the published order of turnarounds, with the interpreter's lock and without it, as a sentence."""
    found = [
        ", ".join(name for network, name in NETWORKS.items() if judge(RECORDED_CLAIMS[0], network, launcher)) or "none"
        for launcher in LAUNCHERS
    ]
    return "turnarounds were in the published order for {} with the interpreter's lock, for {} without it".format(
        *found
    )


def simulated_rises(claim: RecordedClaim, sides: Sequence[SharedSide]) -> dict[tuple[str, str], bool]:
    """Whether it is so in simulation, by network and what launches; empty for deviations, which are not simulated."""
    task = "turnaround" if claim.task == "inference" else claim.task
    of = {(side.network, side.launched, side.mode): side.simulated for side in sides if side.task == task}
    return {
        (network, launched): value < of[network, launched, claim.higher]
        for (network, launched, mode), value in of.items()
        if mode == claim.lower and (network, launched, claim.higher) in of and not claim.spread
    }


def recorded_findings(
    sides: Sequence[SharedSide] = (), judge: Callable[[RecordedClaim, str, str], bool | None] = rises
) -> list[Finding]:
    """Every claim for both launchers: it holds, or not, if it does for all networks; else it is undecided.

    Args:
        sides: what is simulated of the same.
        judge: of a claim, a network and a launcher.
    """
    found = []
    for claim in RECORDED_CLAIMS:
        simulated = simulated_rises(claim, sides)
        for launcher, launched in LAUNCHED.items():
            each = {name: judge(claim, network, launcher) for network, name in NETWORKS.items()}
            ours = {name: simulated[name, launched] for name in each if (name, launched) in simulated}
            agreed = set(each.values())
            holds = agreed.pop() if len(agreed) == 1 else None
            text = f"{claim.text}{BY}{launched}"
            note = f"Simulated: {_told(ours)}" if ours else ""
            count = sum(verdict is True for verdict in each.values())
            found.append(Finding("recorded", text, holds, _told(each), count, len(each), note, holds is None))
    return found


def _told(verdicts: Mapping[str, bool | None]) -> str:
    """A text on the networks for which it is so, and those for which it is not."""
    words = {True: "so for", False: "not for", None: "equal for"}
    named = {word: [name for name, found in verdicts.items() if found is of] for of, word in words.items()}
    return "; ".join(f"{word} {', '.join(names)}" for word, names in named.items() if names)
