"""What a real GPU showed of the paper's networks beside their own training, beside what is simulated and published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.verdicts import Check
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
ALL_NETWORKS: Final = ", ".join(NETWORKS.values())


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
