"""The GPU that is measured, through CuPy, and what was measured on it: rows of a file, one kind each."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.cuda.kernels import open_cupy
from gpusched_env.experiments.lib.files import encode_rows, read_struct
from gpusched_env.versions import versions

SCHEMA: Final = "gpusched-dynamic-parallelism/1"


class Measurement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="what"):
    """A measurement; times are medians of repetitions unless a field says otherwise."""


class LaunchCallTime(Measurement, tag="call", frozen=True, kw_only=True):
    """A warp alone on the GPU whose first ``lanes`` lanes launch a child each, at once: how long the warp is held."""

    pool: int
    """Launches that may be pending (``cudaLimitDevRuntimePendingLaunchCount``)."""
    lanes: int
    first_ns: float
    """The first call of the kernel."""
    first_cycles: float
    later_ns: float
    """Time of the later calls, one after another."""
    later_cycles: float


class Burst(Measurement, tag="burst", frozen=True, kw_only=True):
    """Warps that launch children from all 32 lanes, ``rounds`` times; times count from the first warp's start."""

    pool: int
    warps: int
    block_warps: int
    """Warps of a block of the parent kernel."""
    rounds: int
    child_blocks: int
    child_threads: int
    spin_us: float
    """Time that the threads of a child wait before they end."""
    children: int
    call_us: float
    """A call of all lanes: median over warps and rounds."""
    longest_call_us: float
    issued_us: float
    """When the last call returned."""
    started_us: dict[int, float]
    """When so many children had started: the first, quarters, the last."""
    ended_us: float
    """When the last child ended."""
    resident: int
    """The most children that ran at once."""


class Pool(Measurement, tag="pool", frozen=True, kw_only=True):
    """Room for pending launches, taken before any kernel runs."""

    pool: int
    set_us: float
    """Host time of setting the limit, and of the first kernel after it."""
    bytes: int
    """Device memory that it took, against the limit set before it in the file."""


class Overflow(Measurement, tag="overflow", frozen=True, kw_only=True):
    """Launches beyond the pool's room, once, in a process of their own; beside other tries, so without times."""

    pool: int
    warps: int
    rounds: int
    spin_us: float
    """Time that a child waits before it ends."""
    requested: int
    outcome: str
    """``ended``, ``hung`` (it had to be killed), or the error that the host got."""
    ran: int
    """Children that ran, if it ended."""
    refused: dict[int, int]
    """Calls that failed, by CUDA's error code."""


class Input(Measurement, tag="input", frozen=True, kw_only=True):
    """An application on its input, and its kernels as compiled."""

    application: str
    seed: int
    kernels: int
    threads: int
    work: int
    """Serial iterations of the application."""
    turns: int
    """Turns of the flat kernels' warps: serial iterations that the lanes take together, one or more at once."""
    block: int
    threshold: int
    """The benchmark's own threshold."""
    registers: dict[str, int]
    """A thread, by kernel."""


class ApplicationTime(Measurement, tag="run", frozen=True, kw_only=True):
    """An application from its first kernel's start to its last one's end, children included; results were right."""

    application: str
    threshold: int | None
    """Threads of more work launch a child; null: the flat kernels, which have no launch in their code."""
    child_block: int | None
    """Threads a block of the children."""
    pool: int
    launches: int
    """Child kernels, those that were refused included."""
    refused: int
    """Launches that a full pool refused: the thread looped instead; median."""
    share: float
    """Share of the work in threads above the threshold, 0 to 1."""
    median_us: float
    min_us: float
    max_us: float


class SerialTime(Measurement, tag="serial", frozen=True, kw_only=True):
    """Warps of a flat kernel whose threads have about the median iteration's work, drawn from the input's threads."""

    application: str
    warps: int
    block: int
    """Threads a block; 132 SMs hold the blocks evenly."""
    turns: int
    """Serial iterations of all warps, lanes of a warp together."""
    median_us: float
    empty_us: float
    """Time of the same launch without any work."""


Rows = LaunchCallTime | Burst | Pool | Overflow | Input | ApplicationTime | SerialTime
T = TypeVar("T", bound=Measurement)


class Measurements(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that one program run measured."""

    schema: str = SCHEMA
    gpu: str
    sms: int
    clock_mhz: float
    """Highest SM clock; the GPU chose its clocks itself."""
    driver: str
    cuda: str
    """CUDA version of the driver and of the compiler (NVRTC)."""
    date: str
    versions: dict[str, str]
    repetitions: int
    rows: list[Rows] = []

    def of(self, kind: type[T]) -> list[T]:
        """The rows of one kind, in order."""
        return [row for row in self.rows if isinstance(row, kind)]

    def encoded(self) -> bytes:
        """The file's content: a line a row."""
        return encode_rows(msgspec.structs.replace(self, rows=[]), self.rows)


def read_recording(path: Path) -> Measurements:
    """A file that ``python -m gpusched_env.games.child_launches.measure.program --json`` wrote.

    Raises:
        InputError: it cannot be read, or is none.
    """
    how = "python -m gpusched_env.games.child_launches.measure.program --json FILE writes one"
    return read_struct(path, Measurements, SCHEMA, "not a measurement of dynamic parallelism", how)


def shipped_recording() -> Measurements:
    """What was measured on an H200."""
    file = resources.files("gpusched_env.data") / "measurements" / "h200" / "dynamic_parallelism.json"
    with resources.as_file(file) as path:
        return read_recording(path)


REPETITIONS: Final = 10
DEFAULT_POOL: Final = 2048
"""CUDA's own limit of pending launches."""
LARGE_POOL: Final = 1 << 18
"""More than any application here launches with one kernel."""
LAUNCHING: Final = ("-dc", "-std=c++17", "--fmad=false")
"""Options of the compiler where kernels launch others."""
_PENDING_LAUNCHES: Final = 4
"""CUDA's number of the limit ``cudaLimitDevRuntimePendingLaunchCount``."""
_WARM_UP: Final = 2
_HEAD_START_NS: Final = 300_000
"""Time that the GPU waits before timed work, so that the host has queued all of it."""


@dataclass(frozen=True, slots=True)
class RepetitionTimes:
    """Times of repetitions of a measurement."""

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

    def took(self, work: Callable[[], None], prepare: Callable[[], None] = lambda: None) -> RepetitionTimes:
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
        return RepetitionTimes(*(round(float(figure(timed)), 3) for figure in (np.median, np.min, np.max)))

    def recording(self) -> Measurements:
        """A recording without rows: what the measurements are of."""
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
