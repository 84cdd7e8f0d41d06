"""Tables of single mechanisms, and of hosts that slow each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.verdicts import table_of
from gpusched_env.experiments.papers.concurrency.claims import percent
from gpusched_env.experiments.papers.concurrency.one_process import OneProcess, Slowdown

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
