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
from gpusched_env.scheduling.timeline import Timeline

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
    jobs = episode.timeline.jobs.array
    tenant_of, started, completed = (jobs[:, i] for i in (0, 3, 4))
    tenants = []
    for row, program in enumerate(problem.programs):
        mine = tenant_of == row
        tenants.append(
            _tenant_metrics(
                program,
                turnaround_us=_turnarounds_us(jobs, row),
                answer_us=episode.timeline.answer_us(row),
                token_us=_token_us(episode, row),
                active_us=_active_us(episode, row),
                service_us=completed[mine] - started[mine],
                arrived=int(costs.arrived[row]),
                rejected=int(costs.rejected[row]),
                missed=float(costs.slo_misses[row]),
            )
        )
    served = [t for t in tenants if t.completed + t.rejected + t.unfinished > 0]
    urgent, best_effort = _trade(problem.programs, tenants, [_turnarounds_us(jobs, row) for row in range(len(tenants))])
    all_completed = sum(t.completed for t in tenants)
    terms = cost_terms(problem, costs)
    return Metrics(
        tenants=tuple(tenants),
        stp=sum(t.progress for t in served) if served else math.nan,
        antt=sum(t.slowdown for t in served) / len(served) if served else math.nan,
        urgent_p99=urgent,
        best_effort=best_effort,
        goodput_per_s=_goodput_per_s(episode),
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


def _tenant_metrics(
    program: TenantProgram,
    *,
    turnaround_us: NDArray[np.float64],
    answer_us: NDArray[np.float64],
    token_us: NDArray[np.float64],
    service_us: NDArray[np.float64],
    active_us: float,
    arrived: int,
    rejected: int,
    missed: float,
) -> TenantMetrics:
    completed = len(turnaround_us)
    slo_us = program.tenant.slo_us
    mean, p50, p95, p99 = _spread(turnaround_us, 50, 95, 99)
    ttft_mean, ttft_p50, ttft_p99 = _spread(answer_us if program.engine is not None else np.empty(0), 50, 99)
    tpot_mean, tpot_p50, tpot_p99 = _spread(token_us, 50, 99)
    met = math.nan if slo_us is None else float(np.count_nonzero(answer_us <= slo_us))
    if completed:
        progress = _ratio(completed * program.alone_us, float(np.sum(service_us)))
    else:
        progress = 0.0 if arrived else math.nan
    return TenantMetrics(
        name=program.tenant.name,
        completed=completed,
        rejected=rejected,
        unfinished=arrived - completed - rejected,
        turnaround_mean_us=mean,
        turnaround_p50_us=p50,
        turnaround_p95_us=p95,
        turnaround_p99_us=p99,
        slowdown=mean / program.alone_us,
        progress=progress,
        slo_attainment=_ratio(met, met + missed),
        throughput_per_s=_ratio(completed * 1e6, active_us) if completed else 0.0 if arrived else math.nan,
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
    return [float(np.mean(values)), *(float(p) for p in np.percentile(values, percentiles))]


def _token_us(episode: PlayedEpisode, tenant: int) -> NDArray[np.float64]:
    """Time a token behind the first one, by completed request of a tenant with several tokens."""
    jobs, requests = episode.timeline.jobs.array, episode.timeline.requests.array
    requests = requests[requests[:, 0] == tenant]
    if not len(requests):
        return np.empty(0)
    completed, further = jobs[jobs[:, 0] == tenant, 4], requests[:, 3] - 1.0
    several = further > 0.0
    found: NDArray[np.float64] = (completed - requests[:, 2])[several] / further[several]
    return found


def _turnarounds_us(jobs: NDArray[np.float64], tenant: int) -> NDArray[np.float64]:
    mine = jobs[jobs[:, 0] == tenant]
    turnarounds: NDArray[np.float64] = mine[:, 4] - mine[:, 2]
    return turnarounds


def _trade(
    programs: Sequence[TenantProgram], tenants: Sequence[TenantMetrics], turnarounds_us: Sequence[NDArray[np.float64]]
) -> tuple[float, float]:
    """``urgent_p99`` and ``best_effort``."""
    most_urgent = min(program.tenant.priority for program in programs)
    urgent = [program.tenant.priority == most_urgent for program in programs]
    if all(urgent):
        return math.nan, math.nan
    slowdowns = np.concatenate(
        [
            us / program.alone_us
            for us, program, is_urgent in zip(turnarounds_us, programs, urgent, strict=True)
            if is_urgent
        ]
    )
    others = [
        tenant.progress
        for tenant, is_urgent in zip(tenants, urgent, strict=True)
        if not is_urgent and not math.isnan(tenant.progress)
    ]
    return float(np.percentile(slowdowns, 99)) if len(slowdowns) else math.nan, _ratio(sum(others), len(others))


def _goodput_per_s(episode: PlayedEpisode) -> float:
    bounds = [program.tenant.slo_us for program in episode.problem.programs]
    met = sum(
        int(np.count_nonzero(episode.timeline.answer_us(row) <= slo_us))
        for row, slo_us in enumerate(bounds)
        if slo_us is not None
    )
    sent_us = min(episode.end_us, episode.problem.scenario.sends_until_us)
    return _ratio(met * 1e6, sent_us) if any(slo_us is not None for slo_us in bounds) else math.nan


def _active_us(episode: PlayedEpisode, tenant: int) -> float:
    """Time from a tenant's first arrival to when nothing of it was left, or the end; 0 if no job is known."""
    timeline, costs = episode.timeline, episode.costs
    jobs, rejections = timeline.jobs.array, timeline.rejections.array
    jobs, rejections = jobs[jobs[:, 0] == tenant], rejections[rejections[:, 0] == tenant]
    if len(jobs) + len(rejections) == 0:
        return 0.0
    over = len(jobs) + len(rejections) == costs.arrived[tenant]
    last_us = max(jobs[:, 4].max(initial=0.0), rejections[:, 3].max(initial=0.0)) if over else episode.end_us
    return float(last_us - min(jobs[:, 2].min(initial=np.inf), rejections[:, 2].min(initial=np.inf)))


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
