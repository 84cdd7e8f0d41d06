"""What a real GPU showed of the paper's networks beside their own training, beside what is simulated and published."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.verdicts import Check, Finding
from gpusched_env.experiments.papers.concurrency.claims import PRIORITY, SLICING
from gpusched_env.experiments.papers.concurrency.recorded import LIMIT
from gpusched_env.experiments.papers.concurrency.shared import (
    LAUNCHERS,
    NETWORKS,
    SCHEDULERS,
    SharedRun,
    SharedSlowdown,
    mean_us,
    shared_rows,
)

RECORDED_ON: Final = "an H200"
LAUNCHED: Final = {"eager": "Python", "compiled": "compiled code"}
ERRORS: Final = 2.0
"""Standard errors by which means differ; by less they are taken to be equal."""
SHORT_NETWORKS: Final = ", ".join(NETWORKS.values())


@dataclass(frozen=True, kw_only=True)
class SharedSide(Check):
    """The slowdown of one of two tasks, mean time together over alone."""

    network: str
    launched: str
    mode: str
    task: str


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
        "limit is an error of the simulator that we cannot explain.",
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
        f"{SHORT_NETWORKS} beside their own training, recorded on {RECORDED_ON}",
        (*heads, *(f"training, {what}" for what in SCHEDULERS)),
        shown,
        "Turnaround of requests one after the other, and time of a training step, each over that alone. Time slicing "
        "has two processes, streams two threads of one. Where compiled code launches, no thread holds the lock of "
        "Python's interpreter: beside a thread that only runs Python (*lock only*) requests take as long as alone, "
        "where Python launches they hardly come through. *Hosts only*: beside a training that hardly uses the GPU. MPS "
        "could not be recorded, as no daemon may run there; plain streams hand out blocks in the same order.",
    )


@dataclass(frozen=True, slots=True)
class RecordedClaim:
    """An order of time slicing and priority streams, as the paper has it."""

    text: str
    task: str
    """``inference`` or ``training``."""
    lower: str
    higher: str
    spread: bool = False
    """It is of deviations over means; of those no error is known."""


RECORDED_CLAIMS: Final = (
    RecordedClaim("turnaround: time slicing below priority streams", "inference", SLICING, PRIORITY),
    RecordedClaim("training step: time slicing above priority streams", "training", PRIORITY, SLICING),
    RecordedClaim(
        "turnaround: less predictable under priority streams than in slices", "inference", SLICING, PRIORITY, True
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
            text = f"On {RECORDED_ON}, {launched} launches, {claim.text}"
            note = f"Simulated: {_told(ours)}" if ours else ""
            count = sum(verdict is True for verdict in each.values())
            found.append(Finding("recorded", text, holds, _told(each), count, len(each), note, holds is None))
    return found


def _told(verdicts: Mapping[str, bool | None]) -> str:
    """Which networks it is so for, and which not."""
    words = {True: "so for", False: "not for", None: "equal for"}
    named = {word: [name for name, found in verdicts.items() if found is of] for of, word in words.items()}
    return "; ".join(f"{word} {', '.join(names)}" for word, names in named.items() if names)


def magnitudes_table(
    published: Sequence[tuple[str, str, float]], simulated: Mapping[tuple[str, str], float], sides: Sequence[SharedSide]
) -> Table:
    """What mechanisms add to the turnaround, percent.

    Args:
        published: network, mechanism and what it adds.
        simulated: by network and mechanism, on the paper's GPU.
        sides: as recorded, and simulated for the same GPU.
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
            values = (side.recorded, side.simulated) if side else (math.nan, math.nan)
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
        "recorded on an H100, see below.",
    )
