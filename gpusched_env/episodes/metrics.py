"""What an episode leaves behind, as plain data, and the figures that schedulers are compared by.

System figures follow Eyerman & Eeckhout, *System-Level Performance Metrics for Multiprogram Workloads*
(IEEE Micro, 2008): STP is the sum of the tenants' normalised progress (higher is better, at most the
number of tenants), ANTT the mean of their normalised turnaround times (lower is better, 1 at best).

A figure that an episode does not define (a percentile without a completed job, SLO attainment without an
SLO) is NaN. It is never replaced by a flattering default.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.tenant_program import TenantProgram
from gpusched_env.scheduling.reward import Costs, cost_terms, total_cost
from gpusched_env.scheduling.timeline import Timeline, answers_us

if TYPE_CHECKING:
    from gpusched_env.scheduling.view import View


@dataclass(frozen=True)
class PlayedEpisode:
    """What figures, charts and films are made of; :class:`~gpusched_env.episodes.session.Episode` has these."""

    problem: Problem
    seed: int
    timeline: Timeline
    costs: Costs
    end_us: float
    """Simulated time at the end."""
    done: bool
    """The workload was completed or rejected (otherwise the horizon or an interrupt ended the run)."""
    decisions: int
    """Commands other than ``Wait``."""
    wall_s: float
    last: View | None = None
    """The state at the end, where pictures are drawn of it (detail ``kernels`` and ``blocks``)."""


@dataclass(frozen=True, slots=True)
class TenantMetrics:
    """Figures of one tenant. Turnaround is arrival to completion, over completed jobs.

    A job is *answered* when what its objective is about has happened: it has completed, or the first token of a serving
    engine's request is there.
    """

    name: str
    completed: int
    rejected: int
    """Jobs that the scheduler gave up."""
    unfinished: int
    """Jobs that arrived and had neither completed nor been rejected when the episode ended."""
    turnaround_mean_us: float
    turnaround_p50_us: float
    turnaround_p95_us: float
    turnaround_p99_us: float
    """Percentiles interpolate linearly between order statistics."""
    slowdown: float
    """Mean turnaround over the profiled turnaround alone (queueing behind the tenant's own jobs included)."""
    progress: float
    """Normalised progress, about 0 to 1: time that the completed jobs need alone over the time that the
    tenant's host was at work on them. 0 if jobs arrived and none completed, NaN if none arrived."""
    slo_attainment: float
    """Completed jobs that were answered within the SLO over jobs with a known outcome: those, the ones whose deadline
    passed, completed or not, and rejected ones. Jobs that were still within their deadline at the end do not count. NaN
    without any."""
    throughput_per_s: float
    """Completed jobs over the time that the tenant was active: from its first arrival to its last completion or
    rejection, or to the end of the episode if jobs are unfinished. 0 if jobs arrived and none completed, NaN if none
    arrived."""
    ttft_mean_us: float
    ttft_p50_us: float
    ttft_p99_us: float
    """Time to first token: from the arrival of a serving engine's request, over completed ones. NaN of other tenants.
    """
    tpot_mean_us: float
    tpot_p50_us: float
    tpot_p99_us: float
    """Time per output token: from a request's first token to its last, over the tokens behind the first. NaN of other
    tenants, and where no answer has two tokens."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Figures of one episode."""

    tenants: tuple[TenantMetrics, ...]
    """Figures of the tenants, in the scenario's order."""
    stp: float
    """System throughput: sum of the tenants' ``progress``; NaN if no job arrived."""
    antt: float
    """Average normalised turnaround time: mean of the slowdowns of the tenants that had a job. NaN if one of them
    completed none: leaving it out would reward starving it."""
    urgent_p99: float
    """99th percentile of turnaround over turnaround alone, of the completed jobs of the most urgent tenants together:
    how well they are protected. NaN if all tenants are equally urgent, or without such a job."""
    best_effort: float
    """Mean ``progress`` of the other tenants that had a job, about 0 to 1: what the protection leaves. NaN if all are
    equally urgent."""
    goodput_per_s: float
    """Completed jobs that were answered within their SLO, of all tenants that have one, over the length of the episode,
    or of the part of it in which jobs arrive. NaN without such a tenant."""
    utilisation: float
    """SM-time with a resident block over all SM-time, 0 to 1."""
    dram_utilisation: float
    """DRAM traffic over what the nominal bandwidth allows, 0 to 1."""
    energy_j: float
    energy_per_job_j: float
    """Energy over completed jobs of all tenants; NaN without one."""
    makespan_us: float
    """Time until the workload was done, or until the end of the episode."""
    done: bool
    """The workload was completed (or rejected) before the horizon."""
    decisions: int
    """Commands that the scheduler gave."""
    end_us: float
    """Length of the episode."""
    terms: dict[str, float]
    """Cost terms before weighting, see :func:`~gpusched_env.scheduling.reward.cost_terms`."""
    cost: float
    """Sum of the terms with the scenario's reward weights; an agent's return is minus this."""

    @property
    def jobs_per_j(self) -> float:
        """Completed jobs of all tenants a joule, the inverse of ``energy_per_job_j``: energy efficiency. 0 if none."""
        return 0.0 if math.isnan(self.energy_per_job_j) else 1.0 / self.energy_per_job_j

    def as_dict(self) -> dict[str, Any]:
        """Plain nested values, for JSON; NaN becomes ``None``."""
        plain: dict[str, Any] = _without_nan(asdict(self))
        return plain


def episode_metrics(episode: PlayedEpisode) -> Metrics:
    """The figures of one episode; needs a timeline of any detail."""
    problem, costs = episode.problem, episode.costs
    kept = _kept(episode)
    tenants = [_tenant_metrics(*each) for each in zip(problem.programs, kept, strict=True)]
    served = [t for t in tenants if t.completed + t.rejected + t.unfinished > 0]
    urgent, best_effort = _trade(problem.programs, tenants, kept)
    all_completed = sum(t.completed for t in tenants)
    terms = cost_terms(problem, costs)
    return Metrics(
        tenants=tuple(tenants),
        stp=sum(t.progress for t in served) if served else math.nan,
        antt=sum(t.slowdown for t in served) / len(served) if served else math.nan,
        urgent_p99=urgent,
        best_effort=best_effort,
        goodput_per_s=_goodput_per_s(episode, kept),
        utilisation=_ratio(costs.busy_sm_us, problem.gpu.sms * episode.end_us),
        dram_utilisation=_ratio(costs.dram_bytes, problem.gpu.dram_bytes_per_us * episode.end_us),
        energy_j=float(costs.energy_j),
        energy_per_job_j=_ratio(costs.energy_j, all_completed),
        makespan_us=float(costs.makespan_us),
        done=episode.done,
        decisions=episode.decisions,
        end_us=float(episode.end_us),
        terms=terms,
        cost=total_cost(problem, terms),
    )


@dataclass(frozen=True, slots=True)
class _Kept:
    """What an episode has kept of one tenant. Whole episodes of a few jobs take a millisecond: each is read once."""

    jobs: NDArray[np.float64]
    rejections: NDArray[np.float64]
    requests: NDArray[np.float64]
    """Rows of the timeline's tables."""
    turnaround_us: NDArray[np.float64]
    answer_us: NDArray[np.float64]
    """Of completed jobs."""
    arrived: int
    rejected: int
    missed: float
    """Jobs that have arrived, that were rejected, and that missed the objective."""
    active_us: float
    """Time from its first arrival to when nothing of it was left, or the end; 0 if no job is known."""


def _kept(episode: PlayedEpisode) -> list[_Kept]:
    timeline, costs = episode.timeline, episode.costs
    tables = timeline.jobs.array, timeline.rejections.array, timeline.requests.array
    found = []
    for row in range(len(episode.problem.programs)):
        jobs, rejections, requests = (table[table[:, 0] == row] for table in tables)
        arrived = int(costs.arrived[row])
        active_us = 0.0
        if len(jobs) + len(rejections):
            over = len(jobs) + len(rejections) == arrived
            ends_us, arrivals_us = [*jobs[:, 4].tolist(), *rejections[:, 3].tolist()], (jobs[:, 2], rejections[:, 2])
            first_us = min(us for column in arrivals_us for us in column.tolist())
            active_us = (max(0.0, *ends_us) if over else float(episode.end_us)) - first_us
        found.append(
            _Kept(
                jobs=jobs,
                rejections=rejections,
                requests=requests,
                turnaround_us=jobs[:, 4] - jobs[:, 2],
                answer_us=answers_us(jobs, requests),
                arrived=arrived,
                rejected=int(costs.rejected[row]),
                missed=float(costs.slo_misses[row]),
                active_us=active_us,
            )
        )
    return found


def _tenant_metrics(program: TenantProgram, kept: _Kept) -> TenantMetrics:
    completed, arrived = len(kept.jobs), kept.arrived
    slo_us = program.tenant.slo_us
    mean, p50, p95, p99 = _spread(kept.turnaround_us, 50, 95, 99)
    ttft_mean, ttft_p50, ttft_p99 = _spread(kept.answer_us if program.engine is not None else np.empty(0), 50, 99)
    tpot_mean, tpot_p50, tpot_p99 = _spread(_token_us(kept), 50, 99)
    met = math.nan if slo_us is None else float(np.count_nonzero(kept.answer_us <= slo_us))
    if completed:
        progress = _ratio(completed * program.alone_us, float((kept.jobs[:, 4] - kept.jobs[:, 3]).sum()))
    else:
        progress = 0.0 if arrived else math.nan
    return TenantMetrics(
        name=program.tenant.name,
        completed=completed,
        rejected=kept.rejected,
        unfinished=arrived - completed - kept.rejected,
        turnaround_mean_us=mean,
        turnaround_p50_us=p50,
        turnaround_p95_us=p95,
        turnaround_p99_us=p99,
        slowdown=mean / program.alone_us,
        progress=progress,
        slo_attainment=_ratio(met, met + kept.missed),
        throughput_per_s=_ratio(completed * 1e6, kept.active_us) if completed else 0.0 if arrived else math.nan,
        ttft_mean_us=ttft_mean,
        ttft_p50_us=ttft_p50,
        ttft_p99_us=ttft_p99,
        tpot_mean_us=tpot_mean,
        tpot_p50_us=tpot_p50,
        tpot_p99_us=tpot_p99,
    )


def _spread(values: NDArray[np.float64], *percentiles: float) -> list[float]:
    """The mean, and percentiles; NaN of nothing."""
    if not len(values):
        return [math.nan] * (1 + len(percentiles))
    ordered = np.sort(values).tolist()
    return [float(values.mean()), *(percentile(ordered, percent) for percent in percentiles)]


def percentile(ordered: Sequence[float], percent: float) -> float:
    """A percentile of values in order, linear between neighbours, as ``numpy.percentile``, which takes far longer for a
    few of them."""
    place = (len(ordered) - 1) * (percent / 100)
    below = math.floor(place)
    low, high, part = ordered[below], ordered[min(below + 1, len(ordered) - 1)], place - below
    # Either end is met exactly.
    return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part


def _token_us(kept: _Kept) -> NDArray[np.float64]:
    """Time a token behind the first one, by completed request of a tenant with several tokens."""
    if not len(kept.requests):
        return np.empty(0)
    further = kept.requests[:, 3] - 1.0
    several = further > 0.0
    found: NDArray[np.float64] = (kept.jobs[:, 4] - kept.requests[:, 2])[several] / further[several]
    return found


def _trade(
    programs: Sequence[TenantProgram], tenants: Sequence[TenantMetrics], kept: Sequence[_Kept]
) -> tuple[float, float]:
    """``urgent_p99`` and ``best_effort``."""
    most_urgent = min(program.tenant.priority for program in programs)
    urgent = [program.tenant.priority == most_urgent for program in programs]
    if all(urgent):
        return math.nan, math.nan
    slowdowns = np.concatenate(
        [
            of.turnaround_us / program.alone_us
            for of, program, is_urgent in zip(kept, programs, urgent, strict=True)
            if is_urgent
        ]
    )
    others = [
        tenant.progress
        for tenant, is_urgent in zip(tenants, urgent, strict=True)
        if not is_urgent and not math.isnan(tenant.progress)
    ]
    return _spread(slowdowns, 99)[1], _ratio(sum(others), len(others))


def _goodput_per_s(episode: PlayedEpisode, kept: Sequence[_Kept]) -> float:
    bounds = [program.tenant.slo_us for program in episode.problem.programs]
    met = sum(
        int(np.count_nonzero(of.answer_us <= slo_us))
        for of, slo_us in zip(kept, bounds, strict=True)
        if slo_us is not None
    )
    sent_us = min(episode.end_us, episode.problem.scenario.sends_until_us)
    return _ratio(met * 1e6, sent_us) if any(slo_us is not None for slo_us in bounds) else math.nan


def _ratio(part: float, whole: float) -> float:
    return float(part) / float(whole) if whole else math.nan


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
