"""Kernels of libraries that stand for recorded ones: matrix products of cuBLAS, and element-wise operations of CuPy.

They are what applications run, with the libraries' own choice of blocks, registers and tensor cores; nothing but the
duration is fitted, and short ones find their numbers in the cache. Such a kernel reports nothing itself: it has a mark
before and one behind it, as a copy has, except in a graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from gpusched_env.devices.cuda.cublas import Cublas, ProductLaunch, shape_of
from gpusched_env.devices.cuda.fitting import MEASURED, NEAR, Fit, FitCache, solve_for_duration
from gpusched_env.devices.cuda.kernels import shared_numbers
from gpusched_env.devices.cuda.launching import HostClock, Launcher, call
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.tenant_program import TenantProgram
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import KernelProfile
from gpusched_env.workload.workload import OpKind

TILE: Final = 128
"""Rows and columns of a result that one block of a matrix product computes, about."""
DEPTH: Final = 64
"""Columns of the first matrix for each unit of a product's size."""
DEEPEST: Final = 256
"""Most units of a product's depth; a longer one has more tiles, in more waves: deeper matrices would be too large."""
ELEMENTS: Final = 1024
"""Elements for each unit of an element-wise operation's size."""
LINE: Final = 1 << 27
"""Elements in memory, more than caches hold; a longer operation goes over them again."""
UNIT_US: Final = {"product": 0.3, "elementwise": 0.0015}
"""Time that a unit takes, roughly (H100): where the search begins."""
STEP: Final = 2 * NEAR
"""Wanted durations are rounded to those that are so far apart, relative: the many occurrences of a kernel, each a
little longer or shorter, then take few measurements."""
NOISE: Final = 1 << 16
"""Random numbers in the matrices: with zeros a GPU takes less power, and less time."""
HALF_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class LibraryStand:
    """A launch of a library's kernel that stands for a recorded one."""

    operation: Literal["product", "elementwise"]
    tiles: int
    """Tiles of the result, as many as the recorded kernel uses SMs, about; 0 for an element-wise operation."""
    marked: bool
    """Whether marks before and behind it are part of its time: outside graphs."""
    version: int
    """Version of cuBLAS."""
    size: int = 1
    """Number of units that sets its duration: depth of the matrices, or number of elements."""

    @property
    def matrices(self) -> tuple[int, int, int]:
        """Rows and columns of a product's result, and the depth."""
        doublings = ((self.size - 1) // DEEPEST).bit_length()
        rows = math.isqrt(self.tiles)
        m = TILE * rows << (doublings + 1) // 2
        n = TILE * (self.tiles // rows) << doublings // 2
        return m, n, DEPTH * max(1, round(self.size / (1 << doublings)))

    @property
    def elements(self) -> tuple[int, int]:
        """How often an element-wise operation goes over its elements, and how many there are."""
        times = -(-self.size * ELEMENTS // LINE)
        return times, -(-self.size * ELEMENTS // times)


def library_stand(profile: KernelProfile, *, marked: bool, version: int) -> LibraryStand:
    """The shortest stand-in for a kernel, by its class.

    Args:
        profile: of the kernel.
        marked: whether marks before and behind it are part of its time.
        version: of cuBLAS.
    """
    product = profile.kernel.kind in ("compute", "mixed")
    return LibraryStand("product" if product else "elementwise", profile.sms if product else 0, marked, version)


def rounded(duration_us: float) -> float:
    """A duration as :data:`STEP` has it."""
    return math.exp(round(math.log(duration_us) / STEP) * STEP)


def occurrences(program: TenantProgram) -> Iterator[tuple[int, float, bool]]:
    """Identity and scale of every kernel that a tenant launches, and whether outside a graph."""
    for op in (op for job in program.variants for op in job):
        if op.kind is OpKind.KERNEL:
            yield op.identity, op.scale, True
        for node in op.nodes:
            if node.kind is OpKind.KERNEL:
                yield node.identity, node.scale, False


class Library:
    """Library kernels on one GPU, for the tenants of a problem that ask for them."""

    def __init__(self, cupy: Any, launcher: Launcher, clock: HostClock) -> None:
        self._cp, self._launcher, self._clock = cupy, launcher, clock
        self._cublas = Cublas(cupy)
        self._mark = call(launcher.mark, 1, 1, 0, [0])
        self._ends, self._ends_at = shared_numbers(cupy, MEASURED + 1)
        self._noise = cupy.asarray(np.random.default_rng(0).standard_normal(NOISE).astype(np.float16))
        self._given = self._taken = cupy.zeros(0, np.float16)
        self._warming = cupy.cuda.Stream(non_blocking=True)
        self._measured: dict[LibraryStand, dict[int, float]] = {}
        """Time between ends by size, us, under each stand-in's shortest."""
        self._made: dict[LibraryStand, Callable[[Any], None]] = {}
        """Launches into a stream by stand-in, of all problems."""
        self._launches: dict[tuple[int, float, bool], Callable[[Any], None]] = {}
        """Launches of this problem, by kernel, scale, and whether outside a graph."""
        self._stands: dict[int, LibraryStand] = {}
        """Stand-ins of this problem, by kernel."""
        self._shapes: dict[LibraryStand, ProductLaunch] = {}
        self._own: dict[Kernel, LibraryStand] = {}
        """The shortest stand-ins of kernels that :meth:`kernels` made."""
        self.streams: frozenset[int] = frozenset()
        """Rows of the streams of tenants whose kernels are a library's."""

    def prepare(self, problem: Problem, fits: FitCache) -> dict[int, Fit[LibraryStand]]:
        """Make what the tenants of a problem launch; nothing is on the GPU.

        Args:
            problem: whose work comes next.
            fits: what was found before.

        Returns:
            stand-ins by kernel.
        """
        asking = [p.tenant.kernels == "library" for p in problem.programs]
        self.streams = frozenset(
            row for row, stream in enumerate(problem.streams) if stream.tenant >= 0 and asking[stream.tenant]
        )
        self._cublas.forget_all()
        self._launches = {}
        gap_us = problem.gpu.timing.stream_gap_us
        found: dict[int, Fit[LibraryStand]] = {}
        for program in (p for p, asks in zip(problem.programs, asking, strict=True) if asks):
            for identity, scale, marked in occurrences(program):
                if (identity, scale, marked) in self._launches:
                    continue
                profile = problem.kernels[identity]
                first = self._first(profile, marked)
                if identity not in found:
                    found[identity] = self._fit(first, profile.duration_us, gap_us, fits)
                stand = self._fit(first, profile.duration_us * scale, gap_us, fits).stand
                if stand not in self._made:
                    self._made[stand] = self._ready(stand)
                self._launches[identity, scale, marked] = self._made[stand]
        self._stands = {identity: fit.stand for identity, fit in found.items()}
        return found

    def kernels(self, problem: Problem) -> dict[int, Kernel]:
        """The kernels that were prepared for a problem as they are launched: of the recorded name and duration, with
        the library's blocks, registers and shared memory.

        Args:
            problem: that which was prepared.

        Raises:
            GpuError: the driver does not tell their shapes.
        """
        found = {}
        for identity, stand in self._stands.items():
            if stand not in self._shapes:
                self._shapes[stand] = shape_of(self._ready(stand), self._warming)
                self._cublas.forget(self._warming)
            shape, recorded = self._shapes[stand], problem.kernels[identity]
            made = Kernel(
                name=recorded.kernel.name, grid=shape.grid, block=shape.block, registers=shape.registers,
                shared_bytes=shape.shared_bytes, duration_us=recorded.duration_us,
                kind="compute" if stand.operation == "product" else "memory",
            )  # fmt: skip
            self._own[made] = replace(stand, size=1)
            found[identity] = made
        return found

    def _first(self, profile: KernelProfile, marked: bool) -> LibraryStand:
        """The shortest stand-in for a kernel; one that is a library's already stands for itself."""
        own = self._own.get(profile.kernel)
        if own is not None:
            return replace(own, marked=marked)
        return library_stand(profile, marked=marked, version=self._cublas.version)

    def launch(self, identity: int, scale: float, stream: Any, *, marked: bool = True) -> None:
        """Put what stands for an occurrence of a kernel into a stream, without marks.

        Args:
            identity: of the kernel.
            scale: actual over profiled duration.
            stream: of CuPy.
            marked: whether marks are before and behind it.
        """
        self._launches[identity, scale, marked](stream)

    # ---- what is launched --------------------------------------------------------------------------------------------

    def _ready(self, stand: LibraryStand) -> Callable[[Any], None]:
        """A stand-in ready for launches into a stream."""
        launch = self._product(stand) if stand.operation == "product" else self._elementwise(stand)
        # The first launch compiles or loads code, which may happen neither behind a gate nor in a capture.
        launch(self._warming)
        self._warming.synchronize()
        return launch

    def _product(self, stand: LibraryStand) -> Callable[[Any], None]:
        m, n, k = stand.matrices
        given, taken = self._room(max(m, n) * k, m * n)

        def launch(stream: Any) -> None:
            self._cublas.product(m, n, k, given.data.ptr, taken.data.ptr, stream)

        return launch

    def _elementwise(self, stand: LibraryStand) -> Callable[[Any], None]:
        times, elements = stand.elements
        given, taken = (
            self._cp.lib.stride_tricks.as_strided(one, (times, elements), (0, HALF_BYTES))
            for one in self._room(elements, elements)
        )
        negative = self._cp.negative

        def launch(stream: Any) -> None:
            with stream:
                negative(given, out=taken)

        return launch

    def _room(self, given: int, taken: int) -> tuple[Any, Any]:
        """Numbers to read and to write, at least so many; nobody looks at the results, so all share them."""
        if given > self._given.size:
            rows = 1 << (-(-given // NOISE) - 1).bit_length()
            made = self._cp.zeros((rows, NOISE), np.float16)
            made[...] = self._noise
            self._given = made.reshape(-1)
        if taken > self._taken.size:
            self._taken = self._cp.zeros(1 << (taken - 1).bit_length(), np.float16)
        return self._given, self._taken

    # ---- how long it takes -------------------------------------------------------------------------------------------

    def _fit(self, first: LibraryStand, duration_us: float, gap_us: float, fits: FitCache) -> Fit[LibraryStand]:
        """The stand-in that takes so long; measured once."""
        wanted_us = rounded(duration_us)
        return fits.of(first, wanted_us, gap_us, lambda: self.fitted(first, wanted_us, gap_us))

    def fitted(self, first: LibraryStand, duration_us: float, gap_us: float) -> Fit[LibraryStand]:
        """A stand-in that takes as long as the recorded kernel, alone on the GPU, or the shortest.

        Args:
            first: the shortest.
            duration_us: of the recorded kernel.
            gap_us: between two kernels in a stream.
        """

        def measure(stand: LibraryStand) -> float:
            return self._once(stand) - gap_us

        least_us = measure(first)
        if least_us >= duration_us * (1.0 - NEAR):
            return Fit(first, least_us)
        guess = 1.0 + (duration_us - least_us) * self._size_per_us(first, duration_us + gap_us)
        return solve_for_duration(
            lambda size: replace(first, size=size), duration_us, measure, (1, least_us), round(guess)
        )

    def _size_per_us(self, first: LibraryStand, period_us: float) -> float:
        """Size that a microsecond takes, by what was measured nearest to a period."""
        known = self._measured[first]
        least_us = known[1]
        longer = [
            (abs(math.log(us / period_us)), (size - 1) / (us - least_us)) for size, us in known.items() if us > least_us
        ]
        return min(longer)[1] if longer else 1.0 / UNIT_US[first.operation]

    def _once(self, stand: LibraryStand) -> float:
        """:meth:`period_us`, measured once."""
        known = self._measured.setdefault(replace(stand, size=1), {})
        if stand.size not in known:
            known[stand.size] = self.period_us(stand)
        return known[stand.size]

    def period_us(self, stand: LibraryStand) -> float:
        """Time between the ends of launches of a stand-in that follow each other in a stream, alone, us: its duration
        and the gap between two kernels."""
        launch = self._ready(stand)
        # They wait until all are in the stream, so that the host's time is not measured.
        stream = self._clock.hold()
        for number in range(MEASURED + 1) if stand.marked else ():
            self._tell(stream, number)
            launch(stream)
            self._tell(stream, number)
        if not stand.marked:
            # What a mark takes is between the first two.
            launch(stream)
            self._tell(stream, 0)
            self._tell(stream, 1)
            for _ in range(MEASURED):
                launch(stream)
            self._tell(stream, 2)
        self._clock.release()
        stream.synchronize()
        self._cublas.forget(stream)
        ends = self._ends.astype(np.int64)
        if stand.marked:
            return float(np.median(np.diff(ends))) / 1e3
        return float(ends[2] - ends[1] - (ends[1] - ends[0])) / MEASURED / 1e3

    def _tell(self, stream: Any, number: int) -> None:
        """Put a mark into a stream."""
        self._mark.words[0] = self._ends_at + 8 * number
        self._launcher.launch(self._mark, stream.ptr)

    def close(self) -> None:
        """Give memory and cuBLAS back."""
        self._launches, self._made = {}, {}
        self._cublas.close()
        del self._given, self._taken, self._noise
