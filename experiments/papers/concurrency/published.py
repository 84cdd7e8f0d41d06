"""The paper's figures, and ours beside them."""

from __future__ import annotations

from collections.abc import Mapping

from gpusched_env.experiments.lib.verdicts import Compared
from gpusched_env.experiments.papers.concurrency.runs import ALONE, PAPERS, ConcurrencyRun
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.hardware.timing import save_us
from gpusched_env.workload.workload import OpKind

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


def long_share() -> float:
    """Share of the paper's training's kernel time in kernels of more than a millisecond."""
    program = ConcurrencyRun(*PAPERS, ALONE[1]).problem().programs[0]
    durations = [op.device_us for op in program.variants[0] if op.kind is OpKind.KERNEL]
    return sum(d for d in durations if d > LONG_US) / sum(durations)
