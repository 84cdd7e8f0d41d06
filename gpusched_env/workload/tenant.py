"""A tenant: a client of the GPU with its workload, arrivals, urgency and service objective."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gpusched_env.reading import Duration, Label, Time
from gpusched_env.workload.arrivals import ArrivalProcess
from gpusched_env.workload.batching import Batching


class Tenant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tenant of a scenario: a host process that serves jobs in order of arrival, one at a time or in batches."""

    name: Label
    workload: str
    """Name of a shipped workload (``gpusched workloads``), path of a workload file (``.json`` or ``.json.gz``), or
    ``irregular(family=physics,seed=3)`` or ``chain(seed=3)`` for a generated one, or
    ``mlp(model=gpt3_v100,tokens=1024)`` or ``parboil(benchmark=histo)`` for measured kernels."""
    arrivals: ArrivalProcess
    """When its jobs arrive; the kinds are below."""
    jobs: Annotated[int, Meta(ge=1, le=2**53)] | None = None
    """The tenant stops after this many jobs; ``None``: it goes on until the horizon."""
    priority: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    """Urgency for schedulers that know priorities: 0 is the most urgent."""
    weight: Annotated[float, Meta(ge=0, le=1e18)] = 1.0
    """Weight of its jobs in the cost."""
    slo_us: Duration | None = None
    """Service objective: a job's turnaround should not exceed this, or with ``batching`` the time to its first token.
    """
    launch: Literal["eager", "graph"] = "eager"
    """``eager``: kernel by kernel, as recorded; ``graph``: an iteration is one CUDA-graph launch."""
    iteration_us: Duration | None = None
    """Host speed: scale the recorded host times so that an iteration alone takes this long (``eager`` only)."""
    host_us: Time | None = None
    """Host time of every launch in place of the recorded ones: an application that does nothing but launch, the same in
    every job. Synchronisations wait as ever, but cost the host no time of its own (``eager`` only, without
    ``iteration_us``)."""
    memory_bytes: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """Device memory that the tenant holds throughout."""
    kernels: Literal["synthetic", "library"] = "synthetic"
    """On a real GPU, what stands for its recorded kernels, for as long as these took: ``synthetic`` ones of the same
    shape, registers, shared memory and traffic, or a ``library``'s own, matrix products of cuBLAS and element-wise
    operations of CuPy. Simulated devices run the recorded kernels whatever it says."""
    batching: Batching | None = None
    """It is a serving engine: its jobs are requests, which it serves together, step by step, by the recorded variants
    that say which ``step`` they are; ``None``: jobs are served one at a time."""
