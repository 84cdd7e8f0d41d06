"""A tenant: a client of the GPU with its workload, arrivals, urgency and service objective.

Arrivals are processes as data; :mod:`gpusched_env.workload.host` draws from them, one after another. A trace of
arrivals is played: cut, at its speed, in the device's times.

All randomness is uniform draws (``Generator.random``), one a decision: exponential gaps come by inversion.
"""

from __future__ import annotations

import itertools
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError
from gpusched_env.reading import Duration, Label, Time
from gpusched_env.workload.serving import Batching, Count

Positive = Annotated[float, Meta(gt=0)]
NonNegative = Annotated[float, Meta(ge=0)]
MOST_JOBS = 2**24
"""Most jobs in the system at once, of all tenants: they take 2 GB."""


class _Base(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    start_us: Time = 0.0
    """Earliest first arrival."""

    @property
    def closed(self) -> bool:
        """Whether the next arrival waits for the completion of the previous job."""
        return False

    @property
    def needs_job_count(self) -> bool:
        """Whether the process only makes sense for a finite number of jobs."""
        return False

    @property
    def jobs_a_us(self) -> float:
        """Mean number of jobs a microsecond; 0 where it is not the process that says how often."""
        return 0.0


class ClosedLoop(_Base, frozen=True, kw_only=True, tag="closed-loop", tag_field="kind"):
    """The next job arrives ``think_us`` after the previous one completed."""

    think_us: Time = 0.0

    @property
    def closed(self) -> bool:
        return True


class Poisson(_Base, frozen=True, kw_only=True, tag="poisson", tag_field="kind"):
    """Independent exponential gaps at ``rate_per_s`` jobs a second."""

    rate_per_s: Positive

    @property
    def jobs_a_us(self) -> float:
        return self.rate_per_s / 1e6


class Periodic(_Base, frozen=True, kw_only=True, tag="periodic", tag_field="kind"):
    """One job every ``period_us``."""

    period_us: Duration

    @property
    def jobs_a_us(self) -> float:
        return 1.0 / self.period_us


class Bursts(_Base, frozen=True, kw_only=True, tag="bursts", tag_field="kind"):
    """Poisson bursts at ``rate_per_s``, each of a geometric number of jobs (mean ``mean_size``) at once."""

    rate_per_s: Positive
    mean_size: Annotated[float, Meta(ge=1, le=MOST_JOBS)]

    @property
    def jobs_a_us(self) -> float:
        return self.rate_per_s * self.mean_size / 1e6


class Regimes(_Base, frozen=True, kw_only=True, tag="regimes", tag_field="kind"):
    """Poisson at a rate that switches: ``rate_per_s`` in calm times, ``busy_rate_per_s`` in busy ones.

    Both last as long as chance has it, ``calm_us`` and ``busy_us`` on average; at ``start_us`` it is busy with their
    share. A Markov-modulated Poisson process of two states (H. Heffes, D. M. Lucantoni, IEEE Journal on Selected Areas
    in Communications 4(6), 1986).
    """

    rate_per_s: NonNegative
    busy_rate_per_s: Positive
    calm_us: Duration
    busy_us: Duration

    @property
    def jobs_a_us(self) -> float:
        jobs = self.rate_per_s * self.calm_us + self.busy_rate_per_s * self.busy_us
        return jobs / (self.calm_us + self.busy_us) / 1e6


class Backlog(_Base, frozen=True, kw_only=True, tag="backlog", tag_field="kind"):
    """All jobs are there at ``start_us`` (the tenant needs a finite number of jobs)."""

    @property
    def needs_job_count(self) -> bool:
        return True


class Trace(_Base, frozen=True, kw_only=True, tag="trace", tag_field="kind"):
    """Recorded times, of a ``file`` (below) or ``times_us``, counted from ``start_us`` on.

    What lies from ``from_us`` to ``to_us`` is played, at its own rate or ``mean_rate_per_s``, and ``speed`` times as
    fast. ``window``: an episode begins with the ``first`` request, or at a time that is ``drawn`` by its seed.
    ``at_end``: the trace ``ends``, or it ``repeats``. ``task``: one of several in the file. ``prompts`` and ``answers``
    are lengths that requests had, in tokens; a file has its own.
    """

    file: str | None = None
    times_us: Annotated[tuple[Time, ...], Meta(max_length=2**20)] = ()
    """Recorded times, in order."""
    prompts: tuple[Count, ...] = ()
    answers: tuple[Count, ...] = ()
    """Tokens of each request; empty: not recorded."""
    task: str | None = None
    from_us: NonNegative = 0.0
    to_us: Positive | None = None
    """End of what is played; ``None``: a mean gap after the last request."""
    mean_rate_per_s: Positive | None = None
    speed: Positive = 1.0
    window: Literal["first", "drawn"] = "first"
    at_end: Literal["ends", "repeats"] = "ends"

    def __post_init__(self) -> None:
        if (self.file is None) == (not self.times_us):
            raise ValueError("a trace has a file or times_us, one of them")
        if self.file is not None and (self.prompts or self.answers):
            raise ValueError("prompts and answers belong to times_us, those of a file are in the file")
        if any(before > after for before, after in itertools.pairwise(self.times_us)):
            raise ValueError("times_us must be in order")
        for name, found in (("prompts", self.prompts), ("answers", self.answers)):
            if found and len(found) != len(self.times_us):
                raise ValueError(f"{name} has {len(found)} lengths, must have {len(self.times_us)}, as times_us")
        if self.to_us is not None and self.to_us <= self.from_us:
            raise ValueError(f"to_us is {self.to_us:g}, must be after from_us {self.from_us:g}")


ArrivalProcess = ClosedLoop | Poisson | Periodic | Bursts | Regimes | Backlog | Trace


def too_many_jobs(scenario: str, time_us: float) -> InputError:
    """The error (to raise) where there is no room for the next job."""
    return InputError(
        f"scenario {scenario}: at {time_us:g} us more jobs wait than there is room for ({MOST_JOBS} of all tenants); "
        "give tenants fewer jobs, or lower rates"
    )


class Tenant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tenant of a scenario: a host process that serves jobs in order of arrival, one at a time or in batches."""

    name: Label
    workload: str
    """Name of a shipped workload (``gpusched list workloads``), path of a workload file (``.json`` or ``.json.gz``), or
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
    """How it launches: ``eager``: kernel by kernel, as recorded; ``graph``: an iteration is one CUDA-graph launch."""
    iteration_us: Duration | None = None
    """Host speed: scale the recorded host times so that an iteration alone takes this long (``eager`` only)."""
    host_us: Time | None = None
    """Host time of every launch in place of the recorded ones: an application that does nothing but launch, the same in
    every job. Synchronisations wait as ever, but cost the host no time of its own (``eager`` only, without
    ``iteration_us``)."""
    memory_bytes: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """Device memory that the tenant holds throughout."""
    kernels: Literal["synthetic", "library"] = "synthetic"
    """What stands for its recorded kernels on a real GPU, for as long as these took: ``synthetic`` ones of the same
    shape, registers, shared memory and traffic, or a ``library``'s own, matrix products of cuBLAS and element-wise
    operations of CuPy. Simulated devices run the recorded kernels whatever this says."""
    batching: Batching | None = None
    """How a serving engine batches: its jobs are requests, which it serves together, step by step, by the recorded
    variants that say which ``step`` they are; ``None``: it is none, and jobs are served one at a time."""
