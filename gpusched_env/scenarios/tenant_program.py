"""What a tenant's host does in a problem."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from gpusched_env.scenarios.program import JobProgram
from gpusched_env.scenarios.serving_engine import NO_ENGINE, Engine
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.traces.replay import Replay
from gpusched_env.workload.workload import Workload


@dataclass(frozen=True, slots=True)
class TenantProgram:
    """What a tenant's host does, with identities of the problem's kernel table."""

    tenant: Tenant
    workload: Workload
    variants: tuple[JobProgram, ...]
    """One a recorded iteration (only the first without variation); of a serving engine, one a step."""
    host_spread: tuple[float, ...]
    """Factors on host times that jobs draw from: recorded iteration times over their median."""
    alone_us: float
    """Profiled turnaround of one job alone on the GPU (mean over variants, of an engine over requests)."""
    answer_us: float
    """The same up to what its objective is about: its completion, of an engine's request the first token."""
    engine: Engine | None = None
    """The serving engine that it is; ``None``: jobs are served one at a time."""
    replay: Replay | None = None
    """What its arrivals play, if they are a trace."""
    footprint_bytes: int = 0
    """That an iteration touches; 0: not known."""
    brings: float = 1.0
    """What its kernels bring into the L2, as a share of the DRAM traffic of their profiles."""
    keeps: bool = False
    """Whether it finds all of its data in the L2 again when nobody else runs: it brings in what it has lost only."""

    @property
    def jobs_a_us(self) -> float:
        """Mean rate of its arrivals; 0 where it is not the process that says how often."""
        return self.tenant.arrivals.jobs_a_us if self.replay is None else self.replay.jobs_a_us

    @property
    def engine_numbers(self) -> dict[str, int]:
        """Its engine, as :func:`gpusched_env.workload.host.program` has it."""
        return NO_ENGINE if self.engine is None else self.engine.numbers

    @property
    def turnaround_slo_us(self) -> float | None:
        """The objective for turnarounds; ``None``: there is none, or it is for the time to the first token."""
        return self.tenant.slo_us if self.engine is None else None

    @property
    def repeats(self) -> tuple[float, ...]:
        """How often a mean job repeats each variant, times :attr:`jobs`."""
        return (1.0,) * len(self.variants) if self.engine is None else self.engine.repeats

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """:attr:`.serving_engine.Engine.sizes`; zeros where it is none."""
        return ((0, 0),) * len(self.variants) if self.engine is None else self.engine.sizes

    @property
    def jobs(self) -> int:
        """Jobs that repeat the variants as often as :attr:`repeats` says."""
        return len(self.variants) if self.engine is None else 1


def of_a_job(engine: Engine | None, values: Sequence[float], *, answered: bool = False) -> float:
    """What a mean job comes to, of something that each variant of its program has; ``answered``: up to what its
    objective is about."""
    if engine is None:
        return statistics.fmean(values)
    counted = zip(engine.repeats, values, engine.sizes, strict=True)
    return sum(times * value for times, value, (batch, _) in counted if batch == 0 or not answered)
