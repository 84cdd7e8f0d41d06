"""How a synthetic kernel stands for a recorded one: what is taken over, what is found by measuring, and where it is
kept.

Fits on disk hold for GPUs of one product with the same versions of driver, CUDA, CuPy and ``synthetic.cu``. A GPU
whose clocks or power were set since wants its file deleted. A file that cannot be read or written is no error: all is
measured then.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from gpusched_env.devices.cuda.kernels import CHAINS, SOURCE
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.reading import decoded, read_bytes
from gpusched_env.scenarios.program import HostOp, JobProgram, NodeOp
from gpusched_env.workload.profile import KernelProfile
from gpusched_env.workload.workload import OpKind

ISSUE_CYCLES: Final = 4
"""Cycles from a multiply-add to one that needs it (Hopper): a chain uses a fourth of its sub-partition's slots."""
LOAD_BYTES: Final = 16
NEAR: Final = 0.005
"""A duration so close to the wanted one, relative, is near enough. With four times as much, the first that was near
enough stood, which was too short more often than too long: programs took 1 to 3 % less than recorded (H100)."""
MOST_TURNS: Final = 1 << 30
"""Most turns or loads of a stand-in."""
TRIES: Final = 16
"""Most measurements for one kernel."""
MEASURED: Final = 7
"""Launches of which a stand-in's duration is measured."""

S = TypeVar("S")
"""What stands for a recorded kernel."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """The arguments of a launch of ``synthetic.cu`` that stands for a recorded kernel."""

    blocks: int
    threads: int
    registers: int
    shared_bytes: int
    """Dynamic shared memory of a block."""
    chains: int
    """Multiply-adds of a thread that may be under way at once, of :data:`~gpusched_env.devices.cuda.kernels.CHAINS`."""
    turns: int
    """Number of turns of its loop, which sets its duration."""
    loads: int
    """Loads of every thread."""
    extra: int
    """Threads of a block that load once more."""

    def scaled(self, factor: float) -> StandIn:
        """A stand-in that takes ``factor`` times as long: it has as much more of everything that a block does."""
        return with_loads(replace(self, turns=max(1, round(self.turns * factor))), self.block_loads * factor)

    @property
    def block_loads(self) -> int:
        """Loads of a block."""
        return self.loads * self.threads + self.extra


def with_loads(stand: StandIn, block_loads: float) -> StandIn:
    """The stand-in with so many loads a block, to the nearest."""
    loads, extra = divmod(round(block_loads), stand.threads)
    return replace(stand, loads=loads, extra=extra)


def launched(programs: Iterable[JobProgram]) -> Iterator[tuple[int, float]]:
    """Identity and scale of every kernel that programs launch, in graphs too, in order."""
    for op in (op for program in programs for op in program):
        both: tuple[HostOp | NodeOp, ...] = (op, *op.nodes)
        for one in both:
            if one.kind is OpKind.KERNEL:
                yield one.identity, one.scale


def stand_for(profile: KernelProfile, gpu: GpuSpec) -> StandIn:
    """A first stand-in: shape, registers, shared memory and traffic of the kernel, and turns by a rule of thumb.

    Args:
        profile: of the kernel on the GPU.
        gpu: that GPU.
    """
    kernel, print_ = profile.kernel, profile.footprint
    residents = min(print_.blocks_per_sm, -(-kernel.blocks // gpu.sms))
    warps = residents * print_.warps / gpu.limits.sub_partitions
    waves = -(-kernel.blocks // (gpu.sms * print_.blocks_per_sm))
    turn_us = kernel.registers * ISSUE_CYCLES / gpu.clock_mhz
    stand = StandIn(
        blocks=kernel.blocks,
        threads=kernel.threads,
        registers=kernel.registers,
        shared_bytes=kernel.shared_bytes,
        chains=chains_for(profile.issue, warps),
        turns=max(1, round(profile.duration_us / waves / turn_us)),
        loads=0,
        extra=0,
    )
    return with_loads(stand, float(profile.block["dram_bytes"][0]) / LOAD_BYTES)


def chains_for(issue: float, warps: float) -> int:
    """Chains of each thread that come nearest to a share of the issue slots.

    Args:
        issue: share, 0 to 1.
        warps: resident on a sub-partition.
    """
    wanted = issue * ISSUE_CYCLES / max(warps, 1.0)
    return min(CHAINS, key=lambda chains: abs(chains - wanted))


class Fit(NamedTuple, Generic[S]):
    """A stand-in and what was measured of it."""

    stand: S
    took_us: float


def fitted(stand: StandIn, duration_us: float, measure: Callable[[StandIn], float]) -> Fit[StandIn]:
    """A stand-in that takes as long as the recorded kernel, alone on the GPU.

    Its turns are found; where the loads alone take longer than the kernel did, it has one turn and fewer loads.

    Args:
        stand: a first one (:func:`stand_for`).
        duration_us: of the recorded kernel.
        measure: duration of a stand-in, us.

    Returns:
        the nearest that was measured.
    """
    shortest = replace(stand, turns=1)
    least_us = measure(shortest)
    if least_us >= duration_us * (1.0 - NEAR):
        if least_us <= duration_us * (1.0 + NEAR) or stand.block_loads == 0:
            return Fit(shortest, least_us)
        most = shortest.block_loads
        guess = round(most * duration_us / least_us)
        return solve_for_duration(
            lambda n: with_loads(shortest, n), duration_us, measure, (0, 0.0), guess, (most, least_us)
        )
    return solve_for_duration(
        lambda turns: replace(stand, turns=turns), duration_us, measure, (1, least_us), stand.turns
    )


def solve_for_duration(
    make: Callable[[int], S],
    wanted_us: float,
    measure: Callable[[S], float],
    low: tuple[int, float],
    guess: int,
    high: tuple[int, float] | None = None,
) -> Fit[S]:
    """The stand-in of a number whose duration is wanted; durations grow with it.

    Args:
        make: of a number.
        wanted_us: duration.
        measure: duration of a stand-in, us.
        low: a number that is too low, and the duration there.
        guess: the first to try.
        high: a number that is too high, and the duration there; ``None``: it is to be found.
    """
    best, best_off = Fit(make(guess), float("inf")), float("inf")
    number = max(guess, low[0] + 1)
    for step in range(TRIES):
        stand = make(number)
        took_us = measure(stand)
        off = abs(took_us / wanted_us - 1.0)
        if off < best_off:
            best, best_off = Fit(stand, took_us), off
        if off <= NEAR:
            break
        if took_us < wanted_us:
            share = (wanted_us - low[1]) / max(took_us - low[1], 1e-9)
            further = low[0] + (number - low[0]) * min(8.0, max(1.2, 1.1 * share))
            low = number, took_us
        else:
            further = 0.0
            high = number, took_us
        if high is None:
            number = min(round(further), MOST_TURNS)
            continue
        if high[0] - low[0] <= 1:
            break
        # False position, and every third time the middle: measured durations bend.
        at = 0.5 if step % 3 == 2 else (wanted_us - low[1]) / max(high[1] - low[1], 1e-9)
        number = min(high[0] - 1, max(low[0] + 1, round(low[0] + at * (high[0] - low[0]))))
    return best


FORMAT: Final = "gpusched-fits/1"


class KeptFit(msgspec.Struct, frozen=True):
    """A fit in the file."""

    stand: dict[str, Any]
    took_us: float


class Content(msgspec.Struct):
    """The content of the file of fits."""

    format: str
    fits: dict[str, KeptFit]
    """Fits by first stand-in, wanted duration, gap, and whether blocks look for a recall."""


def cache_file(cupy: Any, product: str) -> Path | None:
    """Where the fits of a GPU are kept, in the user's cache; ``None``: nobody knows where that is.

    Args:
        cupy: the module.
        product: the GPU's name.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        base = Path(os.path.expanduser("~/.cache"))  # As it is where there is no home.
    runtime = cupy.cuda.runtime
    source = resources.files(__package__).joinpath(SOURCE).read_bytes()
    parts = [
        product, f"driver-{runtime.driverGetVersion()}", f"cuda-{runtime.runtimeGetVersion()}",
        f"cupy-{cupy.__version__}", hashlib.sha256(source).hexdigest()[:12],
    ]  # fmt: skip
    name = re.sub(r"[^\w.-]+", "-", "_".join(parts))
    return base / "gpusched" / f"{name}.json" if base.is_absolute() else None


class FitCache:
    """Fits of one GPU, in memory and, with a path, in a file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._kept = self._read()
        self._new = False

    def _read(self) -> dict[str, KeptFit]:
        """What is in the file; nothing where it is missing, damaged or of another kind."""
        with contextlib.suppress(InputError):
            if self._path is not None:
                content = decoded(read_bytes(self._path), Content, str(self._path))
                if content.format == FORMAT:
                    return content.fits
        return {}

    def of(
        self, first: S, duration_us: float, gap_us: float, measure: Callable[[], Fit[S]], *, recallable: bool = False
    ) -> Fit[S]:
        """A fit that is known, or else is measured.

        Args:
            first: a dataclass, from which the search for a stand-in begins.
            duration_us: wanted.
            gap_us: between two kernels, which is no part of it.
            measure: makes the fit.
            recallable: whether its blocks look for a recall, which takes them time.
        """
        key = json.dumps([type(first).__name__, msgspec.to_builtins(first), duration_us, gap_us, recallable])
        with contextlib.suppress(KeyError, msgspec.ValidationError):
            kept = self._kept[key]
            return Fit(msgspec.convert(kept.stand, type(first)), kept.took_us)
        fit = measure()
        self._kept[key] = KeptFit(msgspec.to_builtins(fit.stand), fit.took_us)
        self._new = True
        return fit

    def write(self) -> None:
        """Put what is new into the file, beside what other processes have put there."""
        if self._path is None or not self._new:
            return
        self._kept = {**self._read(), **self._kept}
        self._new = False
        beside = self._path.with_name(f"{self._path.name}.{uuid.uuid4().hex}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(msgspec.json.encode(Content(FORMAT, self._kept)))
            beside.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
