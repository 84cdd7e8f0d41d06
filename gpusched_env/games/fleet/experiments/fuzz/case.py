"""A case: everything that a fuzzed run of a fleet depends on, as plain data."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np
from msgspec import Meta

from gpusched_env.experiments.fuzz.stored import Counterexample, Share, Stored
from gpusched_env.games.fleet.hardware.co_location import RateModel
from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
from gpusched_env.games.fleet.windows import PackingRule
from gpusched_env.games.fleet.workload.jobs import JOB

FORMAT: Final = "gpusched-fuzz-fleets/1"
Count = Annotated[int, Meta(ge=0, le=2**31)]
Positive = Annotated[float, Meta(gt=0)]
Few = Annotated[int, Meta(ge=1, le=64)]


class GpusOfAKind(Stored, frozen=True, kw_only=True):
    """Equal GPUs."""

    count: Few = 1
    memory_gb: Positive = 16.0
    speed: Positive = 1.0
    spec: str = "v100-sxm"
    """Which is simulated, where GPUs are block by block."""


class FleetJob(Stored, frozen=True, kw_only=True):
    """A job, with the columns of :data:`~gpusched_env.games.fleet.workload.jobs.JOB`."""

    arrival_us: Count = 0
    training: Literal[0, 1] = 0
    work_us: Positive = 1e6
    utilisation: Positive = 0.1
    memory_gb: Positive = 1.0
    step_us: Positive = 50_000.0
    slo: Positive = 2.0
    """Of inference: over ``step_us``."""
    program: str = ""
    """That it runs, where GPUs are simulated block by block."""


class FleetCase(Stored, frozen=True, kw_only=True):
    """One run of a fleet."""

    kinds: Annotated[tuple[GpusOfAKind, ...], Meta(min_length=1)]
    jobs: Annotated[tuple[FleetJob, ...], Meta(min_length=1)]
    rates: RateModel
    control: Literal["shared", "gpucolo", "gslice", "gpucolo-worst"] = "gpucolo"
    report_us: Annotated[int, Meta(ge=1)] = 1_000_000
    reports: Annotated[int, Meta(ge=1, le=1000)] = 10
    restart_us: Count = 0
    scheduler: str = ""
    """On each GPU, which is simulated block by block; none: GPUs follow the rates."""
    rule: PackingRule | None = None
    """In place of random commands."""
    placed: Share = 0.8
    """Share of the jobs that wait that are placed at a report."""
    moved: Share = 0.1
    """The same of those on GPUs that are moved."""
    misused: Share = 0.0
    """Share of commands before which one is given at random, mostly illegal."""
    seed: int = 0
    """Of all three."""

    def problem(self) -> FleetProblem:
        """The case's problem.

        Raises:
            InputError: it is not a valid one.
        """
        jobs = sorted(self.jobs, key=lambda job: job.arrival_us)
        rows = [
            (
                *(job.arrival_us, job.training, job.work_us, job.utilisation, job.memory_gb, job.step_us),
                0.0 if job.training else job.slo * job.step_us,
            )
            for job in jobs
        ]
        kinds = tuple(GpuKind(f"kind {n}", k.count, k.memory_gb, k.speed, k.spec) for n, k in enumerate(self.kinds))
        horizon_us = self.reports * self.report_us
        times = {"report_us": self.report_us, "restart_us": self.restart_us}
        programs = tuple(job.program for job in jobs) if self.scheduler else ()
        return FleetProblem("fuzz", np.array(rows, JOB), kinds, self.rates, horizon_us, programs=programs, **times)

    def self_contained(self) -> FleetCase:
        """The same: it names nothing that has to be looked up."""
        return self


class FleetCounterexample(Counterexample, frozen=True, kw_only=True):
    """A stored case."""

    format: Literal["gpusched-fuzz-fleets/1"] = FORMAT
    case: FleetCase
