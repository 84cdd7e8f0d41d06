"""The paper's figures and ours beside them, as tables and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from gpusched_env.display import palette
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.pages import drawing
from gpusched_env.experiments.lib.verdicts import Compared, Target, table_of
from gpusched_env.experiments.papers.concurrency.claims import percent
from gpusched_env.experiments.papers.concurrency.hosts import OneProcess, Slowdown
from gpusched_env.experiments.papers.concurrency.runs import ALONE, PAPERS, ConcurrencyRun
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.hardware.timing import save_us
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


def one_process_table(runs: Mapping[OneProcess, Slowdown]) -> Table:
    """The host model beside recordings of two threads of one process."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for cell, slowdown in runs.items():
        row = found.setdefault((cell.network, cell.batch), {"recorded": slowdown.recorded})
        row[cell.hosts] = slowdown.simulated
    return table_of(
        "Threads of one process: turnaround over that alone, priority streams, H100",
        [{"network": network, "batch": batch, **row} for (network, batch), row in found.items()],
        "inference = {network} | training batch = {batch} | recorded = {recorded:.2f} | hosts apart = {apart:.2f} "
        "| while at work = {at work:.2f} | and while waiting = {at work and waiting:.2f}",
        "Launched kernel by kernel, all with ResNet-50's shares: that of hosts at work is recorded beside training "
        "that hardly uses the GPU, that of waiting ones is set by the first row, and the others are predicted. "
        "VGG-16 was recorded faster beside such a training than alone.",
    )


def mechanisms_table(where: tuple[str, str, str], found: DataFrame) -> Table:
    """Figures of every mechanism in a setting: GPU, pair, arrivals."""
    gpu, pair, arrivals = where
    shown = found.assign(
        mean_ms=found.turnaround_us / 1e3, p99_ms=found.turnaround_p99_us / 1e3, added=found.slowdown.map(percent)
    )
    alone_ms = found.turnaround_us_alone.iloc[0] / 1e3
    return table_of(
        f"{pair}, {arrivals}, {gpu}: alone {alone_ms:.2f} ms",
        shown,
        "mechanism = {mechanism} | mean ms = {mean_ms:.2f} | added = {added} | p99 ms = {p99_ms:.2f} "
        "| dev/mean = {variation:.2f} | training = {training_speed:.2f} | progress = {progress:.2f} "
        "| SMs = {utilisation:.0%} | saves = {preemptions:.1f}",
    )


TURNAROUND: tuple[tuple[str, str, float], ...] = (
    ("ResNet-50", "priority streams", 103.0),
    ("ResNet-50", "MPS", 78.0),
    ("ResNet-50", "time slicing", 18.0),
    ("ResNet-152", "MPS", 100.0),
    ("VGG-19", "priority streams", 300.0),
    ("DenseNet-201", "priority streams", 75.0),
)
"""Network, mechanism, and by how many percent it adds to the mean turnaround: notes on the paper's text and slides, and
of its own networks."""
WITHIN: Final = 0.15
"""Largest relative error of a turnaround over that alone: as of recorded pairs."""
LONG_US, LONG_SHARE = 1000.0, 56.63
"""Percent of ResNet-50's training time in kernels of more than a millisecond."""
SM_STATE_BYTES = 448 * 1024
"""What the authors take one SM to hold: shared memory, registers, constants."""
SM_SAVE_US = 37.0
"""Time to save it at the SM's share of the bandwidth, as printed; the arithmetic gives 39 to 40."""


def published_figures(added: Mapping[tuple[str, str], float]) -> list[Compared]:
    """Every published figure beside ours.

    Args:
        added: what mechanisms add to the turnaround on the paper's GPU, percent, by network and mechanism.
    """
    rows = []
    for network, mechanism, published in TURNAROUND:
        note = "" if network == PAPERS[1] else "ours: the recordings' host"
        what = f"{network}, {mechanism}: added to turnaround"
        rows.append(Compared(what, "%", published, added.get((network, mechanism)), note))
    gpu = load_gpu(PAPERS[0])
    saved_us = save_us(SM_STATE_BYTES * gpu.sms, gpu.dram_bytes_per_us)
    long = "ResNet-50 training: time in kernels above 1 ms"
    return [
        *rows,
        Compared(long, "%", LONG_SHARE, 100.0 * long_share(), "the batch was chosen for it"),
        Compared("saving what an SM holds", "us", SM_SAVE_US, saved_us, "all SMs at once"),
    ]


def turnaround_targets(added: Mapping[tuple[str, str], float]) -> list[Target]:
    """Every published turnaround over that alone, as a criterion.

    Args:
        added: what mechanisms add to the turnaround on the paper's GPU, percent, by network and mechanism.
    """
    return [
        Target.of_figure(
            f"published turnaround: {network}, {mechanism}",
            1.0 + published / 100.0,
            1.0 + added[network, mechanism] / 100.0,
            WITHIN * (1.0 + published / 100.0),
        )
        for network, mechanism, published in TURNAROUND
        if (network, mechanism) in added
    ]


def long_share() -> float:
    """Share of the paper's training's kernel time in kernels of more than a millisecond."""
    program = ConcurrencyRun(*PAPERS, ALONE[1]).problem().programs[0]
    durations = [op.device_us for op in program.variants[0] if op.kind is OpKind.KERNEL]
    return sum(d for d in durations if d > LONG_US) / sum(durations)


SIZE_IN: Final = (6.5, 3.4)
LINEAR_UP_TO: Final = 10.0
"""Percent; the axis is logarithmic above."""
COLOURS: Final = tuple(palette.COLOURS[number] for number in (3, 2, 0, 4, 1, 7))


def added_svg(swept: DataFrame, judged_ms: float, published: Mapping[str, float]) -> bytes:
    """A line a mechanism as SVG, with the range over seeds; the published figures stand at the judged host speed.

    Args:
        swept: rows ``mechanism``, ``alone_ms`` (time of a request alone) and ``added`` (percent).
        judged_ms: of the judged setting.
        published: added percent by mechanism.

    Raises:
        InputError: matplotlib is not installed.
    """
    with drawing(SIZE_IN) as (figure, finished):
        axis = figure.subplots()
        axis.axvline(judged_ms, color="black", linewidth=0.6, linestyle=":")
        for (mechanism, of), colour in zip(swept.groupby("mechanism", sort=False), COLOURS, strict=False):
            by_host = of.groupby("host")
            alone_ms, added = by_host.alone_ms.mean(), by_host.added
            axis.plot(alone_ms, added.mean(), "o-", color=colour, markersize=3.0, label=mechanism)
            axis.fill_between(alone_ms, added.min(), added.max(), color=colour, alpha=0.25, linewidth=0.0)
            if mechanism in published:
                axis.plot([judged_ms], [published[mechanism]], "*", color=colour, markersize=11.0)
        axis.plot([], [], "*", color="black", markersize=9.0, label="published")
        axis.set_xscale("log")
        ticks = (4, 8, 15, 30, 60)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.set_yscale("symlog", linthresh=LINEAR_UP_TO)
        shown = (0, 5, 10, 20, 50, 100, 200, 400)
        axis.set_yticks(shown, [str(percent) for percent in shown])
        axis.set_ylim(bottom=0.0)
        axis.minorticks_off()
        axis.set_xlabel("a request alone, ms: how fast the host is")
        axis.set_ylabel("added to the turnaround, %")
        figure.legend(frameon=False, ncols=2, loc="outside upper center")
        return finished()
