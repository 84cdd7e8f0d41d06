"""Cases: everything that a fuzzed run of a fleet depends on, as plain data.

Random ones have few GPUs, jobs that hardly fit, and times that coincide.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np
from msgspec import Meta

from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.stored import Counterexample, GameCase, Share, Stored
from gpusched_env.games.fleet.co_location import CONTROLS, RateModel
from gpusched_env.games.fleet.problem import CLIENTS, FleetProblem, GpuKind
from gpusched_env.games.fleet.windows import PackingRule
from gpusched_env.games.fleet.workload.jobs import JOB

FORMAT: Final = "gpusched-fuzz-fleets/1"
Count = Annotated[int, Meta(ge=0, le=2**31)]
Positive = Annotated[float, Meta(gt=0)]
Few = Annotated[int, Meta(ge=1, le=64)]


class GpusOfAKind(Stored, frozen=True, kw_only=True):
    """Equal GPUs of a case's fleet."""

    count: Few = 1
    memory_gb: Positive = 16.0
    speed: Positive = 1.0
    spec: str = "v100-sxm"
    """Name of the GPU that is simulated, where GPUs are block by block."""


class FleetJob(Stored, frozen=True, kw_only=True):
    """A job, with the columns of :data:`~gpusched_env.games.fleet.workload.jobs.JOB`."""

    arrival_us: Count = 0
    training: Literal[0, 1] = 0
    work_us: Positive = 1e6
    utilisation: Positive = 0.1
    memory_gb: Positive = 1.0
    step_us: Positive = 50_000.0
    slo: Positive = 2.0
    """SLO of inference, over ``step_us``."""
    program: str = ""
    """Name of the program that it runs, where GPUs are simulated block by block."""


class FleetCase(GameCase, frozen=True, kw_only=True):
    """One run of a fleet."""

    kinds: Annotated[tuple[GpusOfAKind, ...], Meta(min_length=1)]
    jobs: Annotated[tuple[FleetJob, ...], Meta(min_length=1)]
    rates: RateModel
    control: Literal["shared", "gpucolo", "gslice", "gpucolo-worst"] = "gpucolo"
    report_us: Annotated[int, Meta(ge=1)] = 1_000_000
    reports: Annotated[int, Meta(ge=1, le=1000)] = 10
    restart_us: Count = 0
    scheduler: str = ""
    """Scheduler on each GPU, which is simulated block by block; none: GPUs follow the rates."""
    rule: PackingRule | None = None
    """The rule that plays in place of random commands."""
    placed: Share = 0.8
    """Share of the jobs that wait that are placed at a report."""
    moved: Share = 0.1
    """Share of the jobs on GPUs that are moved at a report."""
    misused: Share = 0.0
    """Share of commands before which one is given at random, mostly illegal."""
    seed: int = 0
    """Seed of all three."""

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


class FleetCounterexample(Counterexample, frozen=True, kw_only=True):
    """A stored case."""

    format: Literal["gpusched-fuzz-fleets/1"] = FORMAT
    case: FleetCase


MEMORIES_GB = (4.0, 16.0, 32.0)
REPORTS_US = (1, 1000, 1_000_000, 10_000_000, 60_000_000)
KINDS = {1: 4, 2: 2, 3: 1}
"""Numbers of kinds of GPUs, and their weights."""
BLOCKS = 0.1
"""Share of cases whose GPUs are simulated block by block."""
TEACHING = "toy-4sm"
PROGRAMS_US = {"toy_batch": 300.0, "toy_urgent": 210.0}
"""Programs, and the time of an iteration alone."""
SCHEDULERS = (
    "default-stream",
    "mps",
    "mps(urgent_share=75,other_share=50,client_priority=True)",
    "gpucolo(slope_ms=-0.1,period_s=0.0007,outer=2,first_share=50)",
)


def draw_fleet(seed: int, episode: int) -> FleetCase:
    """The case of an episode: the same for the same two numbers."""
    blocks = Dice(seed, episode, 3)
    if blocks.chance(BLOCKS):
        return _block_by_block(blocks)
    dice = Dice(seed, episode, 2)
    dice.tidy = dice.chance(0.5)
    report_us = dice.pick(REPORTS_US)
    kinds = tuple(_kind(dice) for _ in range(dice.weighted(KINDS)))
    most_gb = max(kind.memory_gb for kind in kinds)
    return FleetCase(
        kinds=kinds,
        jobs=tuple(_job(dice, report_us, most_gb) for _ in range(dice.log_integer(1, 60))),
        rates=_rates(dice),
        control=dice.pick(CONTROLS),
        report_us=report_us,
        reports=dice.log_integer(1, 40),
        restart_us=dice.pick((0, report_us // 2, report_us, 3 * report_us)),
        rule=_rule(dice) if dice.chance(0.4) else None,
        placed=dice.pick((0.3, 0.9, 1.0)),
        moved=dice.pick((0.0, 0.1, 0.5)),
        misused=0.2 if dice.chance(0.4) else 0.0,
        seed=dice.seed(),
    )


def _block_by_block(dice: Dice) -> FleetCase:
    """Teaching GPUs and programs of a few kernels, which the readable device simulates in a moment."""
    dice.tidy = dice.chance(0.5)
    report_us = dice.pick((500, 1000, 3000))
    kinds = dice.integer(1, 2)
    return FleetCase(
        kinds=tuple(GpusOfAKind(count=dice.integer(1, 2), memory_gb=1.0, spec=TEACHING) for _ in range(kinds)),
        jobs=tuple(_program(dice, report_us) for _ in range(dice.log_integer(1, 8))),
        rates=_rates(dice),
        control="shared",
        report_us=report_us,
        reports=dice.log_integer(1, 6),
        restart_us=dice.pick((0, report_us // 2, report_us, 2 * report_us)),
        scheduler=dice.pick(SCHEDULERS),
        rule=_rule(dice) if dice.chance(0.2) else None,
        placed=dice.pick((0.9, 1.0)),
        moved=dice.pick((0.0, 0.3, 0.6)),
        seed=dice.seed(),
    )


def _program(dice: Dice, report_us: int) -> FleetJob:
    program, step_us = dice.pick(tuple(PROGRAMS_US.items()))
    return FleetJob(
        arrival_us=dice.pick((0, dice.integer(0, 3) * report_us, dice.integer(0, 3 * report_us))),
        training=1 if dice.chance(0.5) else 0,
        work_us=dice.number(0.2, 5.0) * report_us,
        utilisation=min(1.0, dice.number(0.1, 1.0)),
        memory_gb=min(1.0, dice.number(0.05, 0.5)),
        step_us=step_us,
        slo=dice.number(0.8, 5.0),
        program=program,
    )


def _kind(dice: Dice) -> GpusOfAKind:
    speed = 1.0 if dice.chance(0.6) else dice.number(0.3, 3.0)
    return GpusOfAKind(count=dice.log_integer(1, 6), memory_gb=dice.pick(MEMORIES_GB), speed=speed)


def _job(dice: Dice, report_us: int, most_gb: float) -> FleetJob:
    """Mostly as long as a few reports; some arrive together, some exactly at a report."""
    at = dice.pick((0, dice.integer(0, 20) * report_us, dice.integer(0, 20 * report_us)))
    training = int(dice.chance(0.4))
    return FleetJob(
        arrival_us=at,
        training=1 if training else 0,
        work_us=dice.number(0.1, 30.0) * report_us,
        utilisation=min(1.0, dice.number(0.01, 1.0)),
        memory_gb=min(most_gb, dice.number(0.1, most_gb)),
        step_us=dice.number(1e3, 1e6),
        slo=dice.number(0.8, 5.0),
    )


def _rates(dice: Dice) -> RateModel:
    def some(low: float, high: float) -> float:
        return 0.0 if dice.chance(0.2) else dice.number(low, high)

    return RateModel(
        inference_by_inference=some(0.1, 3.0),
        # GPUColo's share follows from what training adds, by a power of it.
        inference_by_training=dice.number(0.1, 3.0),
        exponent=dice.pick((-0.3, 0.2, 0.5, 1.0)),
        training_by_others=some(0.1, 3.0),
        cap_knee=dice.pick((0.3, 0.8, 1.0)),
        cap_exponent=dice.pick((0.5, 0.7, 1.0)),
        apart=some(0.01, 0.5),
        noise=dice.pick((0.0, 0.02, 0.1)),
    )


def _rule(dice: Dice) -> PackingRule:
    return PackingRule(
        most_jobs=dice.pick((1, 3, CLIENTS)),
        best=dice.chance(0.4),
        unit=dice.pick((0, 0, 0, 2, 3)),
        inference=dice.pick((1.0, 1.0, 0.6, 0.2)),
    )
