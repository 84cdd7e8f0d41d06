"""Recorded scenarios on the reference device: what a prediction may see goes in, times come out.

The recordings fill all streams first; a timer kernel on one SM raises a flag for each stream at its delay.
A scenario becomes a problem with one tenant a stream that issues its launches at once when the stream may
start, and a scheduler that passes them on with the recorded priorities.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from gpusched_env.devices.reference.device import ReferenceDevice
from gpusched_env.experiments.reproduce.recordings import SCHEDULERS, graph_turnarounds_us
from gpusched_env.experiments.validate.dataset import ModelPair, RecordedScenario, SyntheticKernel
from gpusched_env.experiments.validate.scoring import Prediction
from gpusched_env.experiments.validate.synthetic import profile, timer_kernel
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import HostOp, Problem, TenantProgram, load_workload
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.session import run_episode
from gpusched_env.scheduling.timeline import Detail, Timeline
from gpusched_env.scheduling.view import View
from gpusched_env.workload.arrivals import Backlog
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import KernelProfile
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

FLAG_US = 4.0
"""From a raised memory flag to the start of the stream that waits for it (median of the recordings)."""
RAISED_TOGETHER_US = 0.55
"""Streams whose flags rise at the same time start this far apart, in stream order."""
BLOCK_GAP_US = 2.05
"""From a kernel's last block to the first block of the next in its stream, as block timers see it.

The specification's ``stream_gap_us`` is what profilers see, whose kernel durations contain part of it.
"""
FOREVER_US = 1e9
PAIR_HORIZON_US = 150_000.0
"""Pairs of networks are simulated this long, or for :data:`PAIR_ITERATIONS` of the longer network."""
PAIR_ITERATIONS = 5


@dataclass(frozen=True, slots=True)
class Mechanisms:
    """What the replay takes into account besides the specification's own switches (for ablations)."""

    spread: bool = True
    """Blocks of a kernel differ in duration as in its solo profile."""
    calibrate: bool = True
    """Kernels are scaled to their solo duration."""
    timer: bool = True
    """The timer kernel holds an SM."""


class Priorities:
    """Passes kernels on, oldest first, each tenant's with its stream priority."""

    def __init__(self, priorities: list[int]) -> None:
        self._priorities = priorities

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing to forget."""

    def decide(self, view: View) -> Command:
        """Launch the first pending kernel of the first tenant that has one."""
        if len(view.pending) == 0:
            return WAIT
        tenant = int(view.pending.tenant[0])
        return Launch(int(view.pending.id[0]), priority=self._priorities[tenant])


class Replay:
    """Predicts recorded scenarios of one kernel library on one GPU."""

    def __init__(self, kernels: dict[str, SyntheticKernel], gpu: GpuSpec, mechanisms: Mechanisms | None = None) -> None:
        """Solves every kernel's demands (about a second for a hundred kernels)."""
        self.gpu = gpu
        self.mechanisms = mechanisms or Mechanisms()
        use = self.mechanisms
        self._profiles = {
            id_: profile(kernel, gpu, spread=use.spread, calibrate=use.calibrate) for id_, kernel in kernels.items()
        }

    def predict(self, scenario: RecordedScenario) -> Prediction:
        """Start and end of every launch of ``scenario``; its measured times are not looked at."""
        timeline, tenants = self._run(scenario, "kernels")
        kernels = timeline.kernels.dict()
        start = np.empty(len(scenario.launches))
        end = np.empty(len(scenario.launches))
        for stream, tenant in tenants.items():
            # A stream's kernels finish in order of issue, which is that of its launches.
            rows = kernels["tenant"] == tenant
            own = [i for i, launch in enumerate(scenario.launches) if launch.stream == stream]
            start[own] = kernels["started_us"][rows]
            end[own] = kernels["ended_us"][rows]
        return Prediction(scenario, start, end)

    def _run(self, scenario: RecordedScenario, record: Detail) -> tuple[Timeline, dict[int, int]]:
        """Simulate; returns the timeline and the tenant of each stream."""
        profiles: list[KernelProfile] = []
        rows: dict[str, int] = {}
        programs: list[TenantProgram] = []
        priorities: list[int] = []
        if self.mechanisms.timer:
            last_us = max(launch.delay_us for launch in scenario.launches if launch.delay_us is not None)
            if last_us > 0.0:
                profiles.append(timer_kernel(last_us, self.gpu))
                programs.append(self._program("timer", [0], 0.0))
                priorities.append(0)
        tenants: dict[int, int] = {}
        for stream, ready_us in stream_starts(scenario).items():
            launches = [launch for launch in scenario.launches if launch.stream == stream]
            for launch in launches:
                if launch.kernel not in rows:
                    rows[launch.kernel] = len(profiles)
                    profiles.append(self._profiles[launch.kernel])
            tenants[stream] = len(programs)
            programs.append(self._program(f"stream {stream}", [rows[launch.kernel] for launch in launches], ready_us))
            priorities.append(launches[0].priority)
        problem = Problem(
            scenario=Scenario(
                name=scenario.id,
                summary="recorded",
                gpu=self.gpu.name,
                tenants=tuple(program.tenant for program in programs),
                horizon_us=FOREVER_US,
            ),
            gpu=replace_latency(self.gpu),
            kernels=tuple(profiles),
            gaps_us=np.zeros(len(profiles)),
            programs=tuple(programs),
        )
        episode = run_episode(Priorities(priorities), problem, ReferenceDevice(), seed=0, record=record)
        return episode.timeline, tenants

    def _program(self, name: str, kernels: list[int], start_us: float) -> TenantProgram:
        """A host that issues ``kernels`` (rows of the problem's table) all at once at ``start_us``."""
        ops = tuple(HostOp(OpKind.KERNEL, 0.0, row, 1.0, 0.0, 0, 0.0) for row in kernels)
        return TenantProgram(
            tenant=Tenant(name=name, workload=name, arrivals=Backlog(start_us=start_us), jobs=1),
            workload=_NO_WORKLOAD,
            variants=(ops,),
            host_spread=(1.0,),
            gap_us=BLOCK_GAP_US,
            alone_us=1.0,
        )


def stream_starts(scenario: RecordedScenario) -> dict[int, float]:
    """When each stream's first launch may start (us), in order of that time."""
    raised: dict[int, float] = {}
    for launch in scenario.launches:
        if launch.delay_us is not None and launch.stream not in raised:
            raised[launch.stream] = launch.delay_us
    starts: dict[int, float] = {}
    last = -np.inf
    for stream, delay_us in sorted(raised.items(), key=lambda item: (item[1], item[0])):
        last = max(delay_us + FLAG_US, last + RAISED_TOGETHER_US)
        starts[stream] = last
    return starts


def replace_latency(gpu: GpuSpec) -> GpuSpec:
    """``gpu`` without launch latency: the recorded streams are filled before the release."""
    return msgspec.structs.replace(gpu, timing=msgspec.structs.replace(gpu.timing, launch_latency_us=0.0))


_NO_WORKLOAD = Workload(
    name="recorded launches",
    gpu="h100-sxm",
    source="made from a recorded scenario",
    kernels=(Kernel(name="none", grid=(1, 1, 1), block=(1, 1, 1), registers=1, duration_us=1.0),),
    variants=(Variant(ops=(Op(OpKind.KERNEL, 0.0, 0, 1.0, 0),)),),
    iteration_us=(1.0,),
)
"""Stands in for the workload of a program that is made directly."""


def network_alone_us(network: str, gpu: str) -> float:
    """Median turnaround of a network as a CUDA graph by itself."""
    return _turnarounds_us([network], gpu, "pass-through")[0]


def networks_together_us(pair: ModelPair, gpu: str) -> tuple[float, float]:
    """Median turnarounds of a pair's foreground and background as CUDA graphs on two streams."""
    foreground, background = _turnarounds_us([pair.fg, pair.bg], gpu, SCHEDULERS[pair.mode])
    return foreground, background


def _turnarounds_us(networks: list[str], gpu: str, scheduler: str) -> list[float]:
    longest_us = max(max(load_workload(name).iteration_us) for name in networks)
    return graph_turnarounds_us(networks, gpu, scheduler, max(PAIR_HORIZON_US, PAIR_ITERATIONS * longest_us))
