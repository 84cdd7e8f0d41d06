"""Streams of given kernels on the simulated GPU: no workload behind them, and no host that slows them down."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.lib.play import play
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp, JobProgram
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scenarios.stream import Stream as ProgramStream
from gpusched_env.scenarios.tenant_program import TenantProgram
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.view import View
from gpusched_env.workload.arrivals import Backlog
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import KernelProfile
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

FOREVER_US = 1e9


@dataclass(frozen=True, slots=True)
class KernelStream:
    """Kernels that run one after the other."""

    name: str
    kernels: Sequence[KernelProfile]
    start_us: float = 0.0
    """When all of them are issued."""
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
    # A stream's kernels finish in order of issue.
    return [times[kernels["tenant"] == tenant] for tenant in range(len(streams))]


class _InOrder:
    """Passes kernels on, oldest first, each into its own stream."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing to forget."""

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
