"""Recorded scenarios on the compiled device: kernels from their profile, streams of them, and their times."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.workers import Shared
from gpusched_env.experiments.validate.recordings import RecordedScenario, SyntheticKernel
from gpusched_env.hardware.occupancy import BlockFootprint, block_record, footprint
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp, JobProgram
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scenarios.tenant_program import Stream as ProgramStream
from gpusched_env.scenarios.tenant_program import TenantProgram
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.view import View
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import KernelProfile
from gpusched_env.workload.tenant import Backlog, Tenant
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

FOREVER_US = 1e9
"""What lasts longer is not simulated."""


@dataclass(frozen=True, slots=True)
class KernelStream:
    """Kernels that run one after the other."""

    name: str
    kernels: Sequence[KernelProfile]
    start_us: float = 0.0
    """The time at which all kernels of the stream are issued."""
    priority: int = 0


def run_streams(
    name: str, streams: Sequence[KernelStream], gpu: GpuSpec, *, gap_us: float = 0.0
) -> list[NDArray[np.float64]]:
    """Start and end of every kernel of every stream, us: an array of shape ``(kernels, 2)`` a stream.

    A stream is a tenant that issues its kernels at once, and a scheduler passes them on without latency.

    Args:
        name: of the problem, for messages.
        streams: at least one.
        gpu: where they run.
        gap_us: from a kernel's last block to the first block of the next in its stream.

    Raises:
        InputError: they have not ended after :data:`FOREVER_US`.
    """
    profiles = {id(profile): profile for stream in streams for profile in stream.kernels}
    rows = {key: row for row, key in enumerate(profiles)}
    programs = tuple(
        _program(row, stream, [rows[id(profile)] for profile in stream.kernels], gap_us)
        for row, stream in enumerate(streams)
    )
    problem = Problem(
        scenario=Scenario(
            name=name,
            summary="streams of given kernels",
            gpu=gpu.name,
            tenants=tuple(program.tenant for program in programs),
            horizon_us=FOREVER_US,
        ),
        # The streams are filled before they start, so that launching takes no time.
        gpu=msgspec.structs.replace(gpu, timing=msgspec.structs.replace(gpu.timing, launch_latency_us=0.0)),
        kernels=tuple(profiles.values()),
        gaps_us=np.zeros(len(profiles)),
        graphs=(),
        streams=tuple(ProgramStream(row, stream.priority) for row, stream in enumerate(streams)),
        programs=programs,
    )
    kernels = play(_InOrder(), problem, seed=0, record="kernels").timeline.kernels.dict()
    times = np.stack([kernels["started_us"], kernels["ended_us"]], axis=1)
    missing = sum(len(stream.kernels) for stream in streams) - len(times)
    if missing:
        raise InputError(
            f"{name}: {missing} of {len(times) + missing} kernels would not have ended after {FOREVER_US:g} us; "
            "delays and durations must be shorter together"
        )
    # A stream's kernels finish in order of issue.
    return [times[kernels["tenant"] == tenant] for tenant in range(len(streams))]


class _InOrder:
    """Passes kernels on, oldest first, each into its own stream."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Begin an episode; there is nothing to forget."""

    def decide(self, view: View) -> Command:
        """Launch the first pending kernel of the first tenant that has one."""
        return Launch(int(view.pending.id[0])) if len(view.pending) else WAIT


def _program(number: int, stream: KernelStream, rows: list[int], gap_us: float) -> TenantProgram:
    """A host that issues the kernels of ``rows`` (of the problem's table) all at once."""
    ops = tuple(HostOp(OpKind.KERNEL, 0.0, row, 1.0, 0.0, 0, 0.0, number, gap_us) for row in rows)
    return TenantProgram(
        tenant=Tenant(name=stream.name, workload=stream.name, arrivals=Backlog(start_us=stream.start_us), jobs=1),
        workload=_NO_WORKLOAD,
        variants=(JobProgram(ops, threads=(len(ops),), marks=0),),
        host_spread=(1.0,),
        alone_us=1.0,
        answer_us=1.0,
    )


_NO_WORKLOAD = Workload(
    name="given kernels",
    gpu="h100-sxm",
    source="made directly",
    kernels=(Kernel(name="none", grid=(1, 1, 1), block=(1, 1, 1), registers=1, duration_us=1.0),),
    variants=(Variant(ops=(Op(OpKind.KERNEL, 0.0, 0, 1.0, 0),)),),
    iteration_us=(1.0,),
)
"""Stands in for the workload of a program that is made directly."""


FLOP_PER_FMA = 2
BYTES_PER_LOAD = 16
PLAIN_SPREAD = 0.003
"""Relative deviation of block durations of kernels without loads (placement recordings: 0.27 to 0.37 %)."""
P95_SPREAD = 0.45
"""Deviation of kernels with loads over their solo ``block_us_p95 / block_us - 1`` (0.61 if it were normal)."""
MOST_SPREAD = 0.08
SOLVED = 2e-4
"""Relative error of the solo duration at which the scale is good enough."""


def profile(kernel: SyntheticKernel, gpu: GpuSpec, *, spread: bool = True, calibrate: bool = True) -> KernelProfile:
    """The kernel on ``gpu``, whose solo profile ``kernel.solo`` was taken there.

    Args:
        kernel: a row of the library.
        gpu: the GPU of the recording; needs ``instructions``.
        spread: give blocks their recorded spread of durations.
        calibrate: scale latency and traffic so that the solo duration comes out (else 1).

    Raises:
        InputError: the specification has no instruction costs, or the kernel does not fit.
    """
    scale = 1.0
    for _ in range(8 if calibrate else 0):
        duration = solo_us(profile_of(kernel, gpu, scale=scale, spread=spread), gpu)
        if abs(duration / kernel.solo.duration_us - 1.0) < SOLVED:
            break
        scale *= kernel.solo.duration_us / duration
    return profile_of(kernel, gpu, scale=scale, spread=spread)


def profile_of(kernel: SyntheticKernel, gpu: GpuSpec, *, scale: float = 1.0, spread: bool = True) -> KernelProfile:
    """The kernel with latency and traffic of its blocks ``scale`` times what its work says.

    Raises:
        InputError: as :func:`profile`.
    """
    shape = footprint(gpu, kernel.block, kernel.regs, kernel.smem, kernel.id)
    block = block_of(kernel, gpu, shape, scale=scale, spread=spread)
    return KernelProfile(
        kernel=Kernel(
            name=kernel.id,
            grid=(kernel.grid, 1, 1),
            block=(kernel.block, 1, 1),
            registers=kernel.regs,
            shared_bytes=kernel.smem,
            duration_us=kernel.solo.duration_us,
        ),
        footprint=shape,
        block=block,
        duration_us=kernel.solo.duration_us,
        issue=float(block[0]["rho"]),
        dram=0.0,
        sms=min(gpu.sms, kernel.grid),
    )


def block_of(
    kernel: SyntheticKernel, gpu: GpuSpec, shape: BlockFootprint, *, scale: float = 1.0, spread: bool = True
) -> NDArray[np.void]:
    """One record of a block of ``kernel``, which occupies ``shape``, as :func:`profile_of` has it.

    Raises:
        InputError: as :func:`profile`.
    """
    if gpu.instructions is None:
        raise InputError(f"{gpu.name}: has no instruction costs; measure them with `gpusched lab calibrate`")
    costs = gpu.instructions
    fma = kernel.flop_per_block / kernel.block / FLOP_PER_FMA
    loads = kernel.dram_bytes_per_block / kernel.block / BYTES_PER_LOAD
    # Of a warp: its time alone; of that, in the issue slot of its sub-partition; what heavier co-residents can stretch.
    latency_us = costs.block_us + fma * costs.fma_latency_us + loads * costs.load_latency_us
    issue_us = fma * costs.fma_issue_us + loads * costs.load_issue_us
    wait_us = fma * costs.fma_issue_us + loads * costs.load_wait_us
    deviation = PLAIN_SPREAD
    if kernel.dram_bytes_per_block > 0:
        deviation = P95_SPREAD * (kernel.solo.block_us_p95 / kernel.solo.block_us - 1.0)
        deviation = min(max(deviation, PLAIN_SPREAD), MOST_SPREAD)
    return block_record(
        shape,
        latency_us * scale,
        issue_us / latency_us,
        wait_us / latency_us,
        kernel.dram_bytes_per_block * scale,
        deviation if spread else 0.0,
    )


def solo_us(kernel: KernelProfile, gpu: GpuSpec) -> float:
    """Duration of the kernel alone on the simulated GPU."""
    ((start_us, end_us),) = run_streams(
        f"{kernel.kernel.name} alone", [KernelStream(kernel.kernel.name, [kernel])], gpu
    )[0].tolist()
    return float(end_us - start_us)


def timer_kernel(duration_us: float, gpu: GpuSpec) -> KernelProfile:
    """The one-thread kernel of the recordings that raises the flags: it holds one SM until the last of them.

    It has no shared memory, so it pins that SM's carve-out at the smallest size.
    """
    shape = footprint(gpu, 1, 16, 0, "timer")
    kernel = Kernel(name="timer", grid=(1, 1, 1), block=(1, 1, 1), registers=16, duration_us=duration_us)
    return KernelProfile(kernel, shape, block_record(shape, duration_us, 0.0, 0.0, 0.0), duration_us, 0.0, 0.0, 1)


FLAG_US = 4.0
"""The time from a raised memory flag to the start of the stream that waits for it (median of the recordings)."""
RAISED_TOGETHER_US = 0.55
"""Streams whose flags rise at the same time start this far apart, in stream order."""
BLOCK_GAP_US = 2.05
"""The time from a kernel's last block to the first block of the next in its stream, as block timers see it.

The specification's ``stream_gap_us`` is what profilers see, whose kernel durations contain part of it.
"""


DRAWS = 5
"""One draw's ends are within noise of each other; what is compared with medians of repetitions is their mean."""
SPACER_US = 0.01
"""The time that a grid that takes a number runs."""


@dataclass(frozen=True)
class RecordingReplay:
    """Predicts recorded scenarios of one kernel library on one GPU."""

    kernels: Mapping[str, SyntheticKernel]
    gpu: GpuSpec
    spread: bool = True
    """Blocks of a kernel differ in duration as in its solo profile."""
    calibrate: bool = True
    """Kernels are scaled to their solo duration."""
    timer: bool = True
    """The timer kernel holds an SM."""
    draws: int = DRAWS
    """Draws of the spread of durations over which a prediction is the mean; one where there is no spread."""
    _profiles: dict[str, KernelProfile] = field(default_factory=dict, init=False, repr=False, compare=False)

    def predict(self, scenario: RecordedScenario) -> NDArray[np.float64]:
        """Start and end of every launch of ``scenario``, us, shape ``(launches, 2)``; it sees no measured times.

        Means over :attr:`draws` of the spread.
        """
        draws = range(self.draws if self.spread else 1)
        total = sum((self.drawn(scenario, draw) for draw in draws), start=np.zeros((len(scenario.launches), 2)))
        return total / len(draws)

    def drawn(self, scenario: RecordedScenario, draw: int) -> NDArray[np.float64]:
        """The same of one draw (from 0).

        How long a block takes depends on its grid's number. As many grids of one thread come before the scenario's, and
        are done before the first flag is seen; the timer kernel keeps its place before them.
        """
        streams: list[KernelStream] = []
        last_us = max(launch.delay_us for launch in scenario.launches if launch.delay_us is not None)
        if self.timer and last_us > 0.0:
            streams.append(KernelStream("timer", [timer_kernel(last_us, self.gpu)]))
        streams += [KernelStream(f"draw {i}", [timer_kernel(SPACER_US, self.gpu)]) for i in range(draw)]
        launches: list[list[int]] = [[] for _ in streams]
        """Rows of the scenario's launches of each stream; spacers and the timer kernel are none of them."""
        for number, ready_us in stream_starts(scenario).items():
            own = [i for i, launch in enumerate(scenario.launches) if launch.stream == number]
            kernels = [self._profile(scenario.launches[i].kernel) for i in own]
            streams.append(KernelStream(f"stream {number}", kernels, ready_us, scenario.launches[own[0]].priority))
            launches.append(own)
        times = np.empty((len(scenario.launches), 2))
        for own, found in zip(launches, run_streams(scenario.id, streams, self.gpu, gap_us=BLOCK_GAP_US), strict=True):
            if own:
                times[own] = found
        return times

    def _profile(self, kernel: str) -> KernelProfile:
        """The kernel as it is on this GPU: solved at its first launch."""
        if kernel not in self._profiles:
            self._profiles[kernel] = profile(
                self.kernels[kernel], self.gpu, spread=self.spread, calibrate=self.calibrate
            )
        return self._profiles[kernel]

    def ablations(self) -> dict[str, RecordingReplay]:
        """What predicts with one mechanism switched off, by the mechanism."""
        gpu = self.gpu
        fixed = msgspec.structs.replace(gpu, limits=msgspec.structs.replace(gpu.limits, carveouts=()))

        def without(switch: str) -> GpuSpec:
            return msgspec.structs.replace(gpu, contention=msgspec.structs.replace(gpu.contention, **{switch: False}))

        changes: dict[str, dict[str, GpuSpec | bool]] = {
            "sharing of issue slots": {"gpu": without("issue")},
            "older blocks first": {"gpu": without("oldest_first")},
            "light warps wait longer": {"gpu": without("light_wait")},
            "limit of DRAM bandwidth": {"gpu": without("dram")},
            "shared-memory carve-out": {"gpu": fixed},
            "spread of durations": {"spread": False},
            "older first and spread": {"gpu": without("oldest_first"), "spread": False},
            "scale to solo duration": {"calibrate": False},
            "timer kernel on an SM": {"timer": False},
        }
        return {name: dataclasses.replace(self, **change) for name, change in changes.items()}  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Predict:
    """One prediction; a worker process solves the kernels that it meets once."""

    replay: Shared[RecordingReplay]
    scenario: RecordedScenario

    def run(self, device: str) -> NDArray[np.float64]:
        return self.replay.value.predict(self.scenario)


def stream_starts(scenario: RecordedScenario) -> dict[int, float]:
    """When each stream's first launch may start (us), in order of that time."""
    raised: dict[int, float] = {}
    for launch in scenario.launches:
        if launch.delay_us is not None:
            raised.setdefault(launch.stream, launch.delay_us)
    starts: dict[int, float] = {}
    last = -np.inf
    for stream, delay_us in sorted(raised.items(), key=lambda item: (item[1], item[0])):
        starts[stream] = last = max(delay_us + FLAG_US, last + RAISED_TOGETHER_US)
    return starts
