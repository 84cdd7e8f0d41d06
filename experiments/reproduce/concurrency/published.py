"""The paper's figures beside ours. Published ones are notes on its text and slides, and of its own networks."""

from __future__ import annotations

from dataclasses import dataclass

from gpusched_env.experiments.reproduce.concurrency.runs import PAPERS, Runs, Setting
from gpusched_env.experiments.reproduce.concurrency.setting import ALONE, PRIMARY, Cell, problem_of
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.hardware.timing import save_us
from gpusched_env.workload.workload import OpKind

TURNAROUND: tuple[tuple[str, str | None, str, float], ...] = (
    ("ResNet-50", "ResNet-50", "priority streams", 103.0),
    ("ResNet-50", "ResNet-50", "MPS", 78.0),
    ("ResNet-50", "ResNet-50", "time slicing", 18.0),
    ("ResNet-152", "ResNet-101", "MPS", 100.0),
    ("VGG-19", "VGG-16", "priority streams", 300.0),
    ("DenseNet-201", None, "priority streams", 75.0),
)
"""Published network, ours in its place, mechanism, and by how many percent it adds to the mean turnaround."""
LONG_US = 1000.0
LONG_SHARE = 56.63
"""Percent of ResNet-50's training time in kernels of more than a millisecond."""
SM_STATE_BYTES = 448 * 1024
"""What the authors take one SM to hold: shared memory, registers, constants."""
SM_SAVE_US = 37.0
"""Time to save it at the SM's share of the bandwidth, as printed; the arithmetic gives 39 to 40."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A published figure and ours."""

    what: str
    unit: str
    published: float
    ours: float | None
    """``None``: nothing recorded that could stand in."""
    note: str = ""

    @property
    def difference(self) -> float | None:
        """Ours minus the published one."""
        return None if self.ours is None else self.ours - self.published


def compared(runs: Runs, horizon_us: float) -> list[Compared]:
    """Every published figure that has a counterpart, and those that lack one."""
    rows = []
    for theirs, ours, mechanism, published in TURNAROUND:
        value = None
        if ours is not None:
            value = 100.0 * (runs.outcome(Setting(PAPERS.gpu, ours, PAPERS.arrivals), mechanism).slowdown - 1.0)
        note = "" if theirs == ours else "no recording" if ours is None else f"ours: {ours} beside ResNet-50"
        rows.append(Compared(f"{theirs}, {mechanism}: added to turnaround", "%", published, value, note))
    share = 100.0 * long_share(horizon_us)
    gpu = load_gpu(PAPERS.gpu)
    return [
        *rows,
        Compared(
            "ResNet-50 training: time in kernels above 1 ms", "%", LONG_SHARE, share, "the batch was chosen for it"
        ),
        Compared(
            "saving what an SM holds",
            "us",
            SM_SAVE_US,
            save_us(SM_STATE_BYTES * gpu.sms, gpu.dram_bytes_per_us),
            "all SMs at once",
        ),
    ]


def long_share(horizon_us: float) -> float:
    """Share of the primary training's kernel time in kernels of more than a millisecond."""
    problem = problem_of(Cell(PAPERS.gpu, PRIMARY, "sequential", ALONE[1]), horizon_us)
    durations = [op.device_us for op in problem.programs[0].variants[0] if op.kind is OpKind.KERNEL]
    return sum(d for d in durations if d > LONG_US) / sum(durations)
