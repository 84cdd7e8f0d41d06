"""Jobs of a fleet, as a table; drawn with the published statistics of Alibaba's PAI trace (``cluster-trace-
gpu-v2020``), seeded.

====================== ============================================================ =================================
statistic              value                                                        source
====================== ============================================================ =================================
length, fleet          57 days, 6,500 GPUs of 32 GB                                 GPUColo (ICDCS 2024), Section 6
jobs on GPUs, mean     3,059, of which inference doubled from day 20 to 40          its Fig. 12, without co-location
jobs                   3,033,232 rows of the sensor table, 34.5 % of them without   public analysis of the trace
                       utilisation, which GPUColo drops
utilisation            mean 10.5 %, median 1.5 %, 75.4 % below 10 %, 5 % above 50 % the same, of all rows
inference to training  3 to 1, in jobs and, as lengths are alike, at any time       GPUColo; its Separate needs as
many
by class               utilisation 2.7 times as high in training; memory            its Fig. 10, twelve of its jobs
run time               90th percentile at 11.7 times the median                     assumed: a heavy tail
====================== ============================================================ =================================

The mean run time follows from jobs and concurrency. Within a class, utilisation, memory and run time are independent,
as far as twelve jobs can tell. How arrivals go with the hour is a parameter, as no figure is published.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError

JOB: Final = np.dtype(
    [
        ("arrival_us", np.int64),
        ("training", np.int64),
        ("work_us", np.float64),
        ("utilisation", np.float64),
        ("memory_gb", np.float64),
        ("step_us", np.float64),
        ("slo_us", np.float64),
    ]
)
"""A job of the fleet.

* ``training``: 1, or 0: it is inference.
* ``work_us``: training: how long it takes alone on a GPU of speed 1. Inference: how long it stays and is asked.
* ``utilisation``: in (0, 1], the share of the time in which it has kernels on the GPU while it is alone there.
* ``memory_gb``: that it claims for as long as it is on a GPU.
* ``step_us``: an iteration of training, or a batch of inference, alone. So inference is asked for
  ``utilisation / step_us`` batches a microsecond.
* ``slo_us``: largest mean latency of its batches; 0 for training.
"""


MOST_US: Final = 10**13
"""Largest time of fleets: four months."""


def check_jobs(jobs: NDArray[np.void], where: str, memory_gb: float) -> None:
    """Refuse what cannot be simulated.

    Raises:
        InputError: names the first such job, its field, and what would be right.
    """
    if jobs.dtype != JOB:
        raise InputError(f"{where}: jobs have the columns {jobs.dtype.names}, must be {JOB.names}")
    asked, slo_us = jobs["training"] == 0, jobs["slo_us"]
    rules: list[tuple[str, Any, str]] = [
        (
            "arrival_us",
            (jobs["arrival_us"] >= 0) & (jobs["arrival_us"] <= MOST_US),
            f"at least 0 and at most {MOST_US}",
        ),
        ("training", (jobs["training"] == 0) | (jobs["training"] == 1), "0 or 1"),
        ("work_us", (jobs["work_us"] > 0) & (jobs["work_us"] <= MOST_US), f"above 0 and at most {MOST_US}"),
        ("utilisation", (jobs["utilisation"] > 0) & (jobs["utilisation"] <= 1), "above 0 and at most 1"),
        ("memory_gb", (jobs["memory_gb"] > 0) & (jobs["memory_gb"] <= memory_gb), f"above 0 and at most {memory_gb:g}"),
        ("step_us", (jobs["step_us"] > 0) & (jobs["step_us"] <= MOST_US), f"above 0 and at most {MOST_US}"),
        ("slo_us", np.where(asked, slo_us > 0, slo_us == 0), "above 0 for inference and 0 for training"),
    ]
    for field, right, rule in rules:
        if not right.all():
            job = int(np.argmin(right))
            raise InputError(f"{where}: job {job}: {field} is {jobs[field][job]}, must be {rule}")
    if (np.diff(jobs["arrival_us"]) < 0).any():
        job = int(np.argmax(np.diff(jobs["arrival_us"]) < 0)) + 1
        raise InputError(f"{where}: job {job} arrives before job {job - 1}; jobs are in order of arrival")


DAY_US: Final = 86_400_000_000
ROWS, WITHOUT = 3_033_232, 0.345
QUANTILES: Final = tuple((q - WITHOUT) / (1.0 - WITHOUT) for q in (WITHOUT, 0.5, 0.754, 0.852, 0.95, 1.0))
UTILISATIONS: Final = (0.001, 0.015, 0.10, 0.30, 0.50, 1.0)
"""Utilisations at the quantiles, logarithmic in between; 30 % half way from 10 to 50 % makes the mean 10.5 %."""
RUN_TIME_SIGMA: Final = math.log(270.0 / 23.0) / NormalDist().inv_cdf(0.9)
"""Sigma of a lognormal of 23 minutes (median) and 270 (90th percentile): assumed, not checked against the trace."""
LONGEST_DAYS: Final = 14.0
MEMORY_LOG_GB: Final = ((1.06, 0.37), (1.51, 0.38))
"""Mean and standard deviation of the logarithm of GB, of inference and training (Fig. 10)."""
CLASS_CORRELATION: Final = 0.54
"""Correlation of the scores of utilisation and class; with it training has 2.7 times the utilisation of inference."""
MOST_GB: Final = 32.0
BATCH_US: Final = 50_000.0
"""Time of a batch of inference: a 5 s SLO of 100 batches (GPUColo, Section 3)."""
ITERATION_US: Final = (400_000.0, 800_000.0)
"""Time of an iteration of training, from and to (the same, Section 3)."""
SLO_STRETCH: Final = 1.0 / 0.59
"""SLO over latency alone: of the twelve jobs, which run at their SLO in co-location and at 0.59 of it alone (Fig. 11).
The simulated SLO of the paper, 0.96 of a length in the trace, cannot be kept where nothing is quicker than alone."""


@dataclass(frozen=True, kw_only=True)
class FleetTrace:
    """The statistics of the jobs that are drawn.

    Raises:
        InputError: a value out of its range.
    """

    days: float = 57.0
    concurrency: float = 3059.0
    """Jobs at a time, alone, mean over all days with their burst."""
    jobs: float = ROWS * (1.0 - WITHOUT)
    """Jobs in 57 days without the burst; with ``concurrency`` it says how long they are."""
    inference_to_training: float = 3.0
    burst_days: tuple[float, float] = (20.0, 40.0)
    """Days from and to which each inference job comes twice."""
    run_time_sigma: float = RUN_TIME_SIGMA
    """Standard deviation of the logarithm of run times."""
    by_hour: float = 0.3
    """Amplitude of the rate of arrivals over a day, in [0, 1), with its peak at 14 h."""
    scale: float = 1.0
    """Factor on the number of jobs: 0.1 is for a fleet of a tenth."""

    def __post_init__(self) -> None:
        for what in ("days", "concurrency", "jobs", "inference_to_training", "run_time_sigma", "scale"):
            if not getattr(self, what) > 0:
                raise InputError(f"fleet trace: {what} is {getattr(self, what)}, must be above 0")
        if not 0 <= self.by_hour < 1:
            raise InputError(f"fleet trace: by_hour is {self.by_hour}, must be at least 0 and below 1")

    def draw(self, seed: int) -> NDArray[np.void]:
        """Jobs in order of arrival, (jobs,) of :data:`~gpusched_env.games.fleet.workload.jobs.JOB`.

        Those that run at the start have arrived before it, and come with what is left of them.
        """
        rng = np.random.default_rng(seed)
        count = rng.poisson(self.jobs * self.scale / 57.0 * (self.days + LONGEST_DAYS))
        asked = self.inference_to_training / (1.0 + self.inference_to_training)
        burst = max(0.0, min(self.burst_days[1], 57.0) - max(self.burst_days[0], 0.0)) / 57.0
        mean_us = self.concurrency / (1.0 + asked * burst) * 57.0 * DAY_US / self.jobs
        day = np.sort(rng.random(count)) * (self.days + LONGEST_DAYS) - LONGEST_DAYS
        arrival_us = self._by_hour(day) * DAY_US
        work_us = np.exp(self.run_time_sigma * rng.standard_normal(count))
        work_us = np.minimum(work_us * _factor(mean_us, self.run_time_sigma), LONGEST_DAYS * DAY_US)
        table = np.zeros(count, JOB)
        score = rng.standard_normal(count)
        table["utilisation"] = _utilisations(score)
        rank = CLASS_CORRELATION * score + math.sqrt(1.0 - CLASS_CORRELATION**2) * rng.standard_normal(count)
        table["training"] = rank > NormalDist().inv_cdf(asked)
        normal = rng.standard_normal(count)
        log_gb = np.array(MEMORY_LOG_GB)[table["training"]]
        table["memory_gb"] = np.minimum(np.exp(log_gb[:, 0] + log_gb[:, 1] * normal), MOST_GB)
        iteration_us = rng.uniform(*ITERATION_US, count)
        table["step_us"] = np.where(table["training"] == 1, iteration_us, BATCH_US)
        table["slo_us"] = np.where(table["training"] == 1, 0.0, BATCH_US * SLO_STRETCH)
        table["work_us"] = work_us - np.maximum(0.0, -arrival_us)
        table["arrival_us"] = np.maximum(0.0, arrival_us).astype(np.int64)
        first, last = (edge * DAY_US for edge in self.burst_days)
        twice = (table["training"] == 0) & (arrival_us >= first) & (arrival_us < last)
        table = np.concatenate([table, table[twice]])
        table = table[table["work_us"] >= 1.0]
        found: NDArray[np.void] = table[np.argsort(table["arrival_us"], kind="stable")]
        return found

    def _by_hour(self, day: NDArray[np.float64]) -> NDArray[np.float64]:
        """Days of an even rate become days of one that goes with the hour, by the inverse of its integral."""
        grid = np.linspace(0.0, 1.0, 289)
        turn = 2.0 * math.pi
        whole = grid + self.by_hour / turn * (np.sin(turn * (grid - 14.0 / 24.0)) - math.sin(-turn * 14.0 / 24.0))
        return np.floor(day) + np.interp(day - np.floor(day), whole, grid)


def _utilisations(score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Utilisations of standard normal scores, by the published quantiles."""
    at = [NormalDist().inv_cdf(min(max(q, 1e-9), 1.0 - 1e-9)) for q in QUANTILES]
    # Interpolated in probability, which needs the distribution function of each score: from a fine table of it.
    grid = np.linspace(at[0], at[-1], 4001)
    below = np.array([NormalDist().cdf(x) for x in grid])
    table = np.exp(np.interp(below, QUANTILES, np.log(UTILISATIONS)))
    found: NDArray[np.float64] = np.interp(score, grid, table)
    return found


def _factor(mean_us: float, sigma: float) -> float:
    """The median of run times with that mean, which are cut at :data:`LONGEST_DAYS`."""
    low, high = 1.0, mean_us
    normal, most_us = NormalDist(), LONGEST_DAYS * DAY_US

    def mean(median_us: float) -> float:
        cut = math.log(most_us / median_us) / sigma
        inside = median_us * math.exp(sigma**2 / 2.0) * normal.cdf(cut - sigma)
        return inside + most_us * (1.0 - normal.cdf(cut))

    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if mean(middle) < mean_us else (low, middle)
    return low
