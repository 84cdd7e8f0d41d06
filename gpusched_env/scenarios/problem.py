"""A scenario resolved for execution: specification, workloads and kernel profiles in tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, TypeVarTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.knowledge import Knowledge, knowledge_of
from gpusched_env.scenarios.profile_error import Profiles
from gpusched_env.scenarios.profiles import GraphProfile
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scenarios.tenant_program import Stream, TenantProgram
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.workload.carry_over import CarriedOver
from gpusched_env.workload.profile import KernelProfile

Made = TypeVar("Made")
Given = TypeVarTuple("Given")


class _Derived:
    """What has been made of a problem; not copied or sent with it."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found: dict[tuple[Any, ...], Any] = {}

    def __reduce__(self) -> tuple[type[_Derived], tuple[()]]:
        return _Derived, ()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Problem:
    """The truth: everything that a device needs to run a scenario. Schedulers get its :attr:`knowledge`."""

    scenario: Scenario
    gpu: GpuSpec
    kernels: tuple[KernelProfile, ...]
    """True profiles by identity: equal name, grid, block, registers and shared memory of one workload."""
    gaps_us: NDArray[np.float64]
    """True profiled mean time from the end of each identity (kernels, then graphs) to the start of its tenant's next
    kernel in the iteration, alone on the GPU (copies between the two leave the SMs idle too); 0 for the last one."""
    graphs: tuple[GraphProfile, ...]
    """CUDA graphs; their identities follow those of the kernels."""
    streams: tuple[Stream, ...]
    """The tenants' streams, tenant after tenant, then the scheduler's own. A stream's hardware queue is its row modulo
    their number (:func:`gpusched_env.hardware.queues.queue_count`)."""
    programs: tuple[TenantProgram, ...]
    """Programs of the tenants, in the scenario's order."""
    profiles: Profiles | None = None
    """Durations and gaps that everybody is told; ``None``: the true ones."""
    carried_over: tuple[CarriedOver, ...] = ()
    """Workloads that were recorded on another GPU, each once: their durations are estimates
    (:mod:`gpusched_env.workload.carry_over`)."""
    unwindowed: Problem | None = None
    """Where launches pass a window, the same problem with streams that keep their order."""
    _memory: _Derived = field(default_factory=_Derived, init=False, repr=False, compare=False)

    @property
    def knowledge(self) -> Knowledge:
        """What a scheduler may know; made once."""
        return self.once(knowledge_of)

    @property
    def told(self) -> Profiles:
        """Durations and gaps that everybody is told."""
        return self.true_profiles if self.profiles is None else self.profiles

    @property
    def profiled(self) -> list[KernelProfile | GraphProfile]:
        """True profiles by identity: kernels, then graphs."""
        return [*self.kernels, *self.graphs]

    @property
    def true_profiles(self) -> Profiles:
        """Profiles of the recordings, without error."""
        durations = np.array([known.duration_us for known in self.profiled], np.float64)
        return Profiles(duration_us=durations, gap_us=np.asarray(self.gaps_us, np.float64))

    @property
    def l2_matters(self) -> bool:
        """Whether a kernel's time depends on what the L2 has lost (:mod:`gpusched_env.hardware.l2`)."""
        return self.once(_l2_matters)

    @property
    def host_contention(self) -> tuple[float, float]:
        """The scenario's, of hosts at work and of waiting ones; contexts of their own are processes of their own, whose
        hosts do not slow each other."""
        scenario = self.scenario
        shared = scenario.contexts == "shared"
        return (scenario.host_contention, scenario.waiting_contention) if shared else (0.0, 0.0)

    @property
    def window(self) -> KernelWindow | None:
        """What launches pass; ``None``: nothing, streams keep their order."""
        return None if self.unwindowed is None else self.scenario.window

    def once(self, make: Callable[[Problem, *Given], Made], *given: *Given) -> Made:
        """``make(problem, *given)``, always the same one: devices keep what they make of a problem."""
        key, found = (make, *given), self._memory.found
        if key not in found:
            # Of two threads that make it at once, the first one's stays.
            found.setdefault(key, make(self, *given))
        made: Made = found[key]
        return made


def _l2_matters(problem: Problem) -> bool:
    jobs = (job for program in problem.programs for job in program.variants)
    return any(op.cold > 0.0 or any(node.cold > 0.0 for node in op.nodes) for job in jobs for op in job)
