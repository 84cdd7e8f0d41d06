"""The GPU that is measured, through CuPy: kernels from source, the pool of pending launches, times of work."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from importlib import resources
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.cuda.opening import open_cupy
from gpusched_env.experiments.measure.recording import Measurements, Pool
from gpusched_env.versions import versions

REPETITIONS: Final = 10
DEFAULT_POOL: Final = 2048
"""CUDA's own limit of pending launches."""
LARGE_POOL: Final = 1 << 18
"""More than any application here launches with one kernel."""
LAUNCHING: Final = ("-dc", "-std=c++17", "--fmad=false")
"""Of the compiler, where kernels launch others."""
_PENDING_LAUNCHES: Final = 4
"""``cudaLimitDevRuntimePendingLaunchCount``."""
_WARM_UP: Final = 2
_HEAD_START_NS: Final = 300_000
"""For which the GPU waits before timed work, so that the host has queued all of it."""


@dataclass(frozen=True, slots=True)
class Took:
    """Times of repetitions."""

    median_us: float
    min_us: float
    max_us: float


class MeasuringGpu:
    """The GPU that CuPy uses.

    Raises:
        InputError: there is no CuPy, or no GPU.
    """

    def __init__(self) -> None:
        self.cupy = open_cupy("measuring")
        self._hold = self.kernels(__package__, "hold.cu").get_function("hold")

    def kernels(self, package: str, file: str, options: tuple[str, ...] = LAUNCHING) -> Any:
        """The compiled module of a source file that lies in a package.

        By default kernels may launch others, and multiplications and additions stay apart, so that results equal
        NumPy's.
        """
        code = (resources.files(package) / file).read_text(encoding="utf-8")
        return self.cupy.RawModule(code=code, options=options)

    def hold(self, ns: int) -> None:
        """Queue a kernel of one thread that takes so long."""
        self._hold((1,), (1,), (ns,))

    def array(self, values: NDArray[Any]) -> Any:
        """A copy on the GPU."""
        return self.cupy.asarray(values)

    def set_pool(self, launches: int) -> Pool:
        """Make room for so many pending launches."""
        runtime = self.cupy.cuda.runtime
        self.hold(0)
        runtime.deviceSynchronize()
        free, since = runtime.memGetInfo()[0], time.perf_counter()
        runtime.deviceSetLimit(_PENDING_LAUNCHES, launches)
        self.hold(0)
        runtime.deviceSynchronize()
        took_us = 1e6 * (time.perf_counter() - since)
        if runtime.deviceGetLimit(_PENDING_LAUNCHES) != launches:
            raise RuntimeError(f"the driver did not take a limit of {launches} pending launches")
        return Pool(pool=launches, set_us=round(took_us, 1), bytes=free - runtime.memGetInfo()[0])

    def took(self, work: Callable[[], None], prepare: Callable[[], None] = lambda: None) -> Took:
        """Time of ``work``, which only queues kernels, by events around it; ``prepare`` comes before, untimed."""
        times = []
        for _ in range(_WARM_UP + REPETITIONS):
            prepare()
            start, end = self.cupy.cuda.Event(), self.cupy.cuda.Event()
            self.hold(_HEAD_START_NS)
            start.record()
            work()
            end.record()
            end.synchronize()
            times.append(1e3 * self.cupy.cuda.get_elapsed_time(start, end))
        timed = times[_WARM_UP:]
        return Took(*(round(float(figure(timed)), 3) for figure in (np.median, np.min, np.max)))

    def recording(self) -> Measurements:
        """Without rows: what the measurements are of."""
        runtime = self.cupy.cuda.runtime
        properties = runtime.getDeviceProperties(self.cupy.cuda.Device().id)
        compiler = ".".join(map(str, self.cupy.cuda.nvrtc.getVersion()))
        return Measurements(
            gpu=properties["name"].decode(),
            sms=properties["multiProcessorCount"],
            clock_mhz=self.cupy.cuda.Device().attributes["ClockRate"] / 1e3,
            driver=_driver(),
            cuda=f"driver {runtime.driverGetVersion()}, NVRTC {compiler}",
            date=date.today().isoformat(),
            versions=versions(),
            repetitions=REPETITIONS,
        )


def _driver() -> str:
    """Version of the kernel driver, where it says so."""
    import subprocess

    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def struct(fields: Mapping[str, Any]) -> NDArray[np.void]:
    """A C struct as a kernel's argument: pointers of CuPy's arrays, 32-bit integers."""
    values = tuple(value if isinstance(value, int) else value.data.ptr for value in fields.values())
    kinds = ["i4" if isinstance(value, int) else "u8" for value in fields.values()]
    return np.array(values, np.dtype(list(zip(fields, kinds, strict=True)), align=True))
