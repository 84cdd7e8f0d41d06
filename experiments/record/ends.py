"""When the blocks of libraries' kernels leave their SMs: seen by an urgent kernel that fits beside none of them.

Its blocks are as many as the GPU has SMs, last long, and need so much shared memory that an SM holds one of them alone.
So each SM gets one as soon as it has room, and the block's start says when that was.
"""

from __future__ import annotations

import functools
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from gpusched_env.errors import GpuError
from gpusched_env.experiments.record.gpu import CupyRecorder
from gpusched_env.experiments.record.library import Spec
from gpusched_env.experiments.record.rows import SKIP_REASON
from gpusched_env.workload.importers import import_trace

ENDS: Final = "ends"
REPETITIONS: Final = 9
URGENT: Final = -5
BEFORE_US: Final = 30.0
"""The time from the release to the operator."""
STARTS_US: Final = 5.0
"""The time from the flag of the operator's stream until the operator has started, the marker before it included."""
ARRIVAL_SHARE: Final = 0.1
"""When the urgent kernel comes, as a share of the operator's time: after its blocks have started, before any ends."""
TURNS_PER_US: Final = 20
"""Turns of the urgent kernel for each us that it is to last; on an H200 they take twice that."""
MOST_OTHERS: Final = 0.1
"""Share of an operator's time that other kernels than its longest may take."""
MARKER: Final = Spec(kind="compute", grid=1, block=128, smem=0, iters=20, fma=8, load=0)
"""The kernel before the operator: its end is where times count from."""


class FreedSms(NamedTuple):
    """SMs that an operator's kernel leaves."""

    kernel: str
    blocks: int
    threads: int
    shared_bytes: int
    alone_us: float
    free_us: list[float]
    """When each SM had room for the urgent kernel since the kernel before the operator ended, sorted; medians."""


def _convolution(channels: int, pixels: int, batch: int, size: int = 3) -> Callable[[], Any]:
    """A convolution of as many channels out as in; channels last, as libraries convert them."""
    torch: Any = import_module("torch")
    last = {"device": "cuda", "dtype": torch.half}
    given, weights = (
        torch.randn(*shape, **last).contiguous(memory_format=torch.channels_last)
        for shape in ((batch, channels, pixels, pixels), (channels, channels, size, size))
    )
    return functools.partial(torch.nn.functional.conv2d, given, weights, padding=size // 2)


def _linear(rows: int, features: int, to: int) -> Callable[[], Any]:
    torch: Any = import_module("torch")
    given, weights = (
        torch.randn(*shape, device="cuda", dtype=torch.half) for shape in ((rows, features), (to, features))
    )
    return functools.partial(torch.nn.functional.linear, given, weights)


OPERATORS: Final[Mapping[str, Callable[[], Callable[[], Any]]]] = {
    **{
        f"convolution{k}_{channels}_{pixels}_b{batch}": functools.partial(_convolution, channels, pixels, batch, k)
        for k, channels, pixels, batch in (
            (3, 64, 224, 16), (3, 128, 112, 16), (3, 256, 56, 16), (3, 256, 56, 32), (3, 512, 28, 16), (3, 512, 14, 32),
            (3, 512, 14, 64), (3, 192, 56, 32), (3, 384, 28, 32), (1, 1056, 28, 16), (1, 2904, 14, 16),
            (1, 528, 56, 16), (1, 1536, 28, 32), (1, 672, 56, 32),
        )
    },
    **{
        f"linear_{rows}x{features}x{to}": functools.partial(_linear, rows, features, to)
        for rows, features, to in (
            (1576, 768, 3072), (1576, 3072, 768), (3152, 1024, 4096), (3152, 4096, 1024), (6304, 768, 3072),
            (6304, 3072, 768), (784, 7392, 7392), (3136, 2904, 2904), (4096, 4096, 4096), (2048, 4096, 11008),
            (8192, 1024, 4096), (12608, 768, 2304),
        )
    },
}  # fmt: skip
"""Convolutions and products of matrices as networks have them: ``convolution<size>_<channels>_<pixels>_b<batch>`` and
``linear_<rows>x<features>x<features to>``."""


def ends_rows(watcher: CupySmWatcher, there: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows that are still missing: one an operator."""
    done = {row["operator"] for row in there}
    for name in OPERATORS:
        if name in done:
            continue
        try:
            yield {"what": ENDS, "operator": name, **watcher.freed(name)._asdict()}
        except GpuError as error:
            # One that is several kernels says nothing; the others do.
            yield {"what": SKIP_REASON, "operator": name, "error": str(error)}


class CupySmWatcher(CupyRecorder):
    """Sees SMs of the GPU at hand become free."""

    def freed(self, operator: str) -> FreedSms:
        """The SMs that one of :data:`OPERATORS` leaves.

        Raises:
            GpuError: other kernels than the longest take more than :data:`MOST_OTHERS` of its time.
        """
        torch: Any = import_module("torch")
        step = OPERATORS[operator]()
        stream = torch.cuda.ExternalStream(self._stream(0, 0).ptr)

        def launch() -> None:
            with torch.inference_mode(), torch.cuda.stream(stream):
                step()

        kernel, alone_us, others_us = self._longest(launch)
        if others_us > MOST_OTHERS * alone_us:
            raise GpuError(
                f"{operator}: kernels beside its longest take {others_us:.1f} of {alone_us + others_us:.1f} us"
            )
        runs = [self._freed(launch, alone_us) for _ in range(REPETITIONS)]
        free_us = [round(statistics.median(same), 3) for same in zip(*runs, strict=True)]
        return FreedSms(kernel.name, kernel.blocks, kernel.threads, kernel.shared_bytes, round(alone_us, 3), free_us)

    def _longest(self, launch: Callable[[], None]) -> tuple[Any, float, float]:
        """The longest kernel of what is launched, its time and that of the others, us."""
        from torch.profiler import ProfilerActivity, profile

        torch: Any = import_module("torch")
        for _ in range(REPETITIONS):
            launch()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as running:
            launch()
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "operator.json"
            running.export_chrome_trace(str(path))
            kernels = import_trace(path).kernels
        longest = max(kernels, key=lambda kernel: kernel.duration_us)
        return longest, longest.duration_us, sum(kernel.duration_us for kernel in kernels) - longest.duration_us

    def _freed(self, launch: Callable[[], None], alone_us: float) -> list[float]:
        """When the SMs had room, since the kernel before ended, sorted."""
        # Longer than the operator, so that no SM holds two of them one after the other.
        turns, smem = TURNS_PER_US * int(alone_us + 50), self.most_shared // 2 + 8192
        urgent = Spec(kind="compute", grid=self.sms, block=128, smem=smem, iters=turns, fma=8, load=0)
        self._room(1 + self.sms)
        first, second = self._stream(0, 0), self._stream(1, URGENT)

        def fill() -> None:
            self._await_flag(first, 0)
            self._launch(MARKER, first, 0)
            launch()
            self._await_flag(second, 1)
            self._launch(urgent, second, 1)

        zero = self._released(fill, {0: BEFORE_US, 1: BEFORE_US + STARTS_US + ARRIVAL_SHARE * alone_us})
        before, found = self._reported([0, 1, 1 + self.sms], zero)
        if len(set(found[:, 2].tolist())) != self.sms:
            raise GpuError("an SM has held two blocks of the urgent kernel: they do not last long enough")
        return sorted(((found[:, 0] - before[:, 1].max()) / 1e3).tolist())
