"""Model-predictive scheduling: whoever costs least in sampled futures goes first.

Rollouts of a base rule (D. P. Bertsekas, J. N. Tsitsiklis, C. Wu, *Rollout Algorithms for Combinatorial Optimization*,
Journal of Heuristics 1997; hindsight sampling of arrivals as by E. K. P. Chong, R. L. Givan, H. S. Chang, *A Framework
for Simulation-Based Network Control via Hindsight Optimization*, CDC 2000). The base rule is
:class:`~gpusched_env.baselines.moore.Moore`. Whenever a job has come or gone, the oldest job of each tenant is tried in
the first place, beside others and with the GPU to itself: ``samples`` futures of ``horizon_us`` are played in a fluid
model (:mod:`gpusched_env.planning.fluid`), in which the base rule goes on once that job is done. The base rule is
departed from where that saves more than ``margin``.

What is known, and how it is modelled:

======================== ===============================================================================================
What                     How it is modelled
======================== ===============================================================================================
Arrivals                 Poisson, by the rates seen so far. Before anything has been seen: that tenants share the
                         capacity evenly, as if that had been seen for ``prior_us``. Bursts and switching rates are not
                         modelled; a busy time shows in the rates as it goes on
Time left of a job       The share of its profiled device time that is left, of its profiled turnaround alone: between
                         kernels the GPU waits for nobody else
Sharing of the GPU       Two speeds, ``first`` and ``beside``, whichever kernels meet; with ``interference`` the first
                         job is served and those behind it that share four launches, at speeds that are predicted for
                         who meets (:mod:`gpusched_env.planning.interference`). No kernels in flight that keep their
                         priority, no host and launch times
Price of time            That with which least is lost in futures that begin with an idle GPU, anew whenever rates have
                         been seen for twice as long (:mod:`gpusched_env.planning.outlook`)
Best-effort tenants      Always have a job, which is worth their weight; they are tried in the first place, too
======================== ===============================================================================================
"""

from __future__ import annotations

import math
import statistics
from typing import ClassVar

import numpy as np

from gpusched_env.baselines.moore import JobId, Moore, job_id
from gpusched_env.baselines.pending import JOB, JOB_LEFT, TENANT
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.baselines.ranked_streams import JOB_TENANT, UNLIMITED, Rank, Row
from gpusched_env.errors import InputError
from gpusched_env.planning.fluid_tables import MOST, WORK, FluidTenant, Model
from gpusched_env.planning.interference import UNKNOWN, pair_speeds, shipped_model
from gpusched_env.planning.outlook import BESIDE, FIRST, SCALE, launched_as_graphs, mean_losses, worth_a_us
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import JobColumn, View

MORE: float = 1.5
"""Arrivals that are drawn for a future, in multiples of their mean number, and :data:`LEAST` more."""
LEAST = 10
FIRST_PRICED_US = 5000.0
"""When a microsecond is priced for the first time by rates that were seen, and then whenever so much more was seen."""


class ModelPredictive(Moore):
    """Model-predictive: whoever costs least in sampled futures of a fluid model goes first, else as moore has it."""

    reads: Reads = ("weights", "objectives", "requests", "profiles", "demands", "completions", "progress")
    ranges: ClassVar[Ranges] = {
        "depth": Range(1, 64, log=True),
        "others": Range(1, UNLIMITED, log=True),
        "price": Range(0.0, 2.0),
        "reject": Choice((True, False)),
        "horizon_us": Range(2000.0, 30000.0, log=True),
        "scale": Range(0.5, 1.2),
        "first": Range(0.4, 1.0),
        "beside": Range(0.0, 1.0),
        "margin": Range(0.0, 0.5),
        "prior_us": Range(2000.0, 100000.0, log=True),
        "interference": Choice((True, False)),
    }

    def __init__(
        self,
        depth: int = 16,
        others: int = 16,
        price: float | None = None,
        reject: bool = True,
        samples: int = 32,
        horizon_us: float = 15000.0,
        scale: float = SCALE,
        first: float = FIRST,
        beside: float = BESIDE,
        margin: float = 0.1,
        prior_us: float = 20000.0,
        interference: bool = False,
    ) -> None:
        """``depth``, ``others``, ``price``, ``reject``: see :class:`~gpusched_env.baselines.moore.Moore`. Without a
        price it is that with which least is lost in the model at the rates seen
        (:func:`~gpusched_env.planning.outlook.worth_a_us`).

        ``samples``: futures that each choice is tried in (>= 1). ``horizon_us``: how far they go (> 0). ``scale``: what
        a job takes of the GPU in the plans of the model, in multiples of its time alone (> 0). ``first``: speed of the
        job that goes first while others are served, in multiples of that alone (above 0, at most 1). ``beside``: that
        of all others together (>= 0). ``margin``: what leaving the base rule has to save, and what keeping others off
        the GPU has to save, in multiples of the tenants' mean weight (>= 0). ``prior_us``: for how long an even load is
        taken to have been seen before the episode (> 0). ``interference``: whether speeds side by side are
        those that are predicted for each pair of tenants, in place of ``first`` and ``beside``.

        Raises:
            InputError: a value is out of range.
        """
        super().__init__(depth, others, 1.0, 0.0 if price is None else price, reject)
        positive = {"samples": samples, "horizon_us": horizon_us, "scale": scale, "first": first, "prior_us": prior_us}
        for name, value in positive.items():
            if not 0.0 < value < math.inf:
                raise InputError(f"plan: {name} is {value}, must be above 0 and finite")
        if not isinstance(interference, bool):
            raise InputError(f"plan: interference is {interference!r}, must be true or false")
        if first > 1.0 or not (0.0 <= beside < math.inf and 0.0 <= margin < math.inf):
            raise InputError(
                f"plan: first {first}, beside {beside}, margin {margin}; must be at most 1, at least 0, at least 0"
            )
        self._samples, self._horizon_us, self._margin, self._prior_us = samples, horizon_us, margin, prior_us
        self._future_scale, self._first, self._beside, self._limit = scale, first, beside, others
        self._prices_itself = price is None
        self._interference = interference
        self._work = np.empty(WORK)
        self._found = np.empty((2, MOST))

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing has arrived."""
        super().reset(knowledge, rng)
        self._rng = rng
        tenants = knowledge.tenants
        self._tenants = np.array(
            [
                [each.alone_us, each.slo_us, each.weight, 0.0, graphs]
                for each, graphs in zip(tenants, launched_as_graphs(knowledge), strict=True)
            ]
        )
        self._with_slo = self._tenants[:, FluidTenant.SLO_US] < math.inf
        even = 1.0 / (max(1, int(self._with_slo.sum())) * self._tenants[:, FluidTenant.ALONE_US])
        self._prior_jobs = np.where(self._with_slo, even, 0.0) * self._prior_us
        self._least_gain = self._margin * statistics.fmean(each.weight for each in tenants)
        pairs = pair_speeds(knowledge) if self._interference else UNKNOWN
        self._model = Model(
            self._horizon_us, self._price_a_us, self._future_scale, self._first, self._beside, pairs,
            shipped_model().exponent, self._rejects,
        )  # fmt: skip
        self._arrived = np.zeros(len(tenants))
        """Jobs seen so far, by tenant."""
        self._device_us = [0.0] * len(tenants)
        """The most profiled device time that was left of a job, by tenant: all of it."""
        self._to_price_us = math.inf
        if self._prices_itself:
            self._to_price_us = FIRST_PRICED_US
            self._tenants[:, FluidTenant.JOBS_A_US] = self._prior_jobs / self._prior_us
            self._reckon_price()
        self._present: list[JobId] = []
        """Jobs for which it was decided who goes first."""
        self._goes_first: JobId | None = None

    def decide(self, view: View) -> Command:
        """Look ahead if other jobs are there; then as the base rule, with the chosen job before all others.

        Of more tenants than the model holds (:data:`~gpusched_env.planning.fluid_tables.MOST`) nothing is seen.
        """
        for kernel in view.pending.rows:
            tenant = int(kernel[TENANT])
            self._device_us[tenant] = max(self._device_us[tenant], kernel[JOB_LEFT])
        present = [job_id(job) for job in view.jobs.rows]
        if present != self._present:
            self._present = present
            for tenant, number in present:
                self._arrived[tenant] = max(self._arrived[tenant], number + 1)
            self._goes_first, self._others = None, self._limit
            if len({tenant for tenant, _ in present}) > 1 and len(view.tenants) <= MOST:
                self._look_ahead(view)
        return super().decide(view)

    def left_us(self, view: View, job: Row) -> float:
        """Profiled time left of a job alone: of its turnaround, as much as of its device time."""
        device_us = super().left_us(view, job)
        tenant = int(job[JOB_TENANT])
        alone_us = self._knowledge.tenants[tenant].alone_us
        whole_us = self._device_us[tenant]
        return min(alone_us, device_us * alone_us / whole_us) if whole_us > 0.0 else device_us

    def rank(self, view: View, kernel: Row, left_us: float) -> Rank:
        """The chosen job is before all others."""
        rank = super().rank(view, kernel, left_us)
        return (-1, rank[1]) if (int(kernel[TENANT]), int(kernel[JOB])) == self._goes_first else rank

    def _reckon_price(self) -> None:
        """Reckon anew what a microsecond is worth, at the rates that are thought now."""
        self._price_a_us = worth_a_us(self._tenants, self._model.pairs, self._model.exponent, self._rejects)
        self._model = self._model._replace(price=self._price_a_us)

    def _look_ahead(self, view: View) -> None:
        """Choose who goes first, and whether others are served beside it."""
        jobs = view.jobs.array
        jobs = jobs[np.argsort(jobs[:, JobColumn.DEADLINE_US], kind="stable")][:MOST]
        table = np.stack(
            [
                jobs[:, JobColumn.TENANT],
                jobs[:, JobColumn.DEADLINE_US] - view.time_us,
                [self.left_us(view, job) for job in jobs.tolist()],
            ],
            axis=1,
        )
        rates = (self._prior_jobs + self._arrived) / (self._prior_us + view.time_us)
        self._tenants[:, FluidTenant.JOBS_A_US] = np.where(self._with_slo, rates, 0.0)
        if view.time_us >= self._to_price_us:
            self._to_price_us = 2.0 * view.time_us
            self._reckon_price()
        arrivals = int(MORE * self._horizon_us * rates[self._with_slo].sum()) + LEAST
        gaps = self._rng.standard_exponential((self._samples, arrivals))
        draws = self._rng.random((self._samples, arrivals))
        mean_losses(table, self._tenants, self._model, gaps, draws, self._work, self._found)
        found, alone = self._found[:, : len(table)]
        if not np.isfinite(found).any():
            return
        kept = self.kept(view, jobs[jobs[:, JobColumn.DEADLINE_US] < math.inf].tolist())
        can_be = [row for row in range(len(jobs)) if found[row] < math.inf]
        base = next((row for row in can_be if job_id(jobs[row]) in kept), can_be[0])
        found[base] -= self._least_gain
        best = int(np.argmin(found))
        least = found[best]
        if alone.min() < least - self._least_gain:
            best, self._others = int(np.argmin(alone)), 0
        self._goes_first = job_id(jobs[best])
