"""Days of a fleet by name, at random or from a file, and what a day costs.

The cost of a run is ``(GPUs in use + inference served late + jobs waiting) / jobs at a time``, each a mean over all
reports. A job that waits, or is served later than its SLO, counts as one GPU more: one of its own would have served it
in time, so that whoever saves GPUs by being late never gains. Jobs at a time are those that there would be with a GPU
each, so that no co-location costs about 1.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np
from msgspec import Meta

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.fleet.co_location import shipped_rates
from gpusched_env.games.fleet.device import FleetRun
from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
from gpusched_env.games.fleet.workload.jobs import DAY_US, MOST_GB, FleetTrace
from gpusched_env.reading import checked, parse_yaml, read_text

GPUS_IN_ALL: Final = 6500
"""GPUs of the fleet whose jobs are drawn (GPUColo, ICDCS 2024, Section 6)."""
RANDOM: Final = "random"


class FleetDay(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs that are drawn with the statistics of Alibaba's trace, and GPUs of 32 GB."""

    name: str
    days: Annotated[float, Meta(gt=0, le=57)] = 1.0
    scale: Annotated[float, Meta(gt=0, le=1)] = 0.02
    """Share of the 6,500 GPUs and of their jobs."""
    inference_to_training: Annotated[float, Meta(gt=0)] = 3.0
    doubled: bool = False
    """Whether each inference job comes twice, as in the paper's burst."""
    report_us: Annotated[int, Meta(ge=1)] = 60_000_000
    restart_us: Annotated[int, Meta(ge=0)] = 10_000_000

    def problem(self, seed: int) -> FleetProblem:
        """The jobs of a seed."""
        burst = (-57.0, self.days + 1.0) if self.doubled else (58.0, 59.0)
        trace = FleetTrace(
            days=self.days, scale=self.scale, inference_to_training=self.inference_to_training, burst_days=burst
        )
        kinds = (GpuKind("V100M32", max(1, round(GPUS_IN_ALL * self.scale)), MOST_GB),)
        horizon_us = round(self.days * DAY_US)
        jobs = trace.draw(seed)
        return FleetProblem(self.name, jobs, kinds, _rates(), horizon_us, self.report_us, self.restart_us)


DAYS: Final = {
    day.name: day
    for day in (
        FleetDay(name="small", scale=0.01),
        FleetDay(name="usual"),
        FleetDay(name="burst", doubled=True),
        FleetDay(name="training", inference_to_training=1.0),
    )
}
"""Days at several loads: 24, 48, 84 and 48 jobs at a time."""


def random_day(seed: int) -> FleetDay:
    """One of any size, mix and load, to train on."""
    rng = np.random.default_rng((seed, 1))
    scale, ratio = (math.exp(rng.uniform(math.log(low), math.log(high))) for low, high in ((0.006, 0.03), (0.7, 4.0)))
    return FleetDay(name=RANDOM, scale=scale, inference_to_training=ratio, doubled=bool(rng.random() < 0.4))


def fleet_day(name: str, seed: int) -> FleetDay:
    """A day by its name, of random size, or in a file.

    Raises:
        InputError: there is none, or the file says what cannot be.
    """
    if name == RANDOM:
        return random_day(seed)
    if name.endswith((".yaml", ".yml")):
        return checked(parse_yaml(read_text(Path(name)), name), FleetDay, name)
    if name not in DAYS:
        known = (*DAYS, RANDOM)
        raise InputError(f"no day of a fleet is {name!r}; {did_you_mean(name, known)} (a file of your own: .yaml)")
    return DAYS[name]


def fleet_problem(name: str, seed: int) -> FleetProblem:
    """The jobs of a seed on such a day."""
    return fleet_day(name, seed).problem(seed)


_rates = functools.cache(shipped_rates)


def reports_without_sharing(problem: FleetProblem) -> float:
    """Reports that all jobs are there for until the horizon, if each has a GPU of its own."""
    jobs = problem.jobs
    left_us = np.maximum(0.0, problem.horizon_us - jobs["arrival_us"])
    return float(np.minimum(jobs["work_us"], left_us).sum() / problem.report_us)


def fleet_cost(run: FleetRun) -> float:
    """The cost of a run, as above."""
    late = run.state.late_us.sum() / run.problem.report_us
    return float((run.used.sum() + run.waiting.sum() + late) / reports_without_sharing(run.problem))
