"""What to know before figures are read: estimates, objectives out of reach, and tenants that hardly meet.

Where tenants hardly meet all schedulers cost the same, and none is better.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.tenant_program import TenantProgram, mean_per_job
from gpusched_env.workload.carry_over import HOW_FAR_OFF
from gpusched_env.workload.workload import DEVICE_OPS


def cautions(problem: Problem) -> list[str]:
    """Cautions about a problem, a sentence each; they hold for any scheduler."""
    profiled = {p.workload.name: None for p in problem.programs if p.workload.profiled and _has_recorded_host(p)}
    said = [about(program) for about in (_too_long, _out_of_reach) for program in problem.programs]
    return [
        *(f"{carried}." for carried in problem.carried_over),
        *([HOW_FAR_OFF] if problem.carried_over else []),
        *(
            f"{workload} has host times of a run under the profiler, which slows the host: import it with "
            "--iteration-us, or give its tenant an iteration_us."
            for workload in profiled
        ),
        *filter(None, said),
    ]


def _has_recorded_host(program: TenantProgram) -> bool:
    """Graphs have no host times between kernels, ``iteration_us`` and ``host_us`` replace the recorded ones."""
    tenant = program.tenant
    return tenant.launch == "eager" and tenant.iteration_us is None and tenant.host_us is None


def _too_long(program: TenantProgram) -> str:
    """What is said of a serving engine that rejects some requests whatever happens."""
    engine = program.engine
    if engine is None or engine.fitting.count == engine.fitting.asked:
        return ""
    asked, beyond = engine.asked, engine.fitting.asked - engine.fitting.count
    of = f"{beyond} of {engine.fitting.asked} requests"
    if not asked.belong_together:
        pairs = f"{len(asked.prompts)} prompts, each with any of {len(asked.answers)} answers"
        of = f"{beyond / engine.fitting.asked:.1%} of its requests ({pairs})"
    return (
        f"{program.tenant.name}: {of} are longer than the {engine.longest_request} tokens that its cache and "
        f"the steps of {program.workload.name} hold of one: it rejects them when they arrive."
    )


def _out_of_reach(program: TenantProgram) -> str:
    """What is said if the mean job is too long: some may still be in time."""
    slo_us, alone_us = program.tenant.slo_us, program.answer_us
    if slo_us is None or alone_us <= slo_us:
        return ""
    return (
        f"{program.tenant.name} ({program.workload.name}) needs {alone_us / 1e3:.3g} ms on average for "
        f"{_what(program)} alone on the GPU, its SLO is {slo_us / 1e3:.3g} ms: no scheduler can keep it."
    )


def _what(program: TenantProgram) -> str:
    return "a job" if program.engine is None else "the first token of a request"


ALIKE = 0.02
"""Costs closer than this, relative to the least, count as equal where no intervals say it."""
SELDOM = 0.15
"""Share of the time with work of two tenants on the GPU below which they hardly meet."""
OFTEN = 0.5
"""Share of the time with work of two tenants on the GPU from which schedulers have enough to decide."""


@dataclass(frozen=True, slots=True)
class TenantDemand:
    """What a tenant asked of the GPU in an episode."""

    tenant: str
    at_work: float
    """Share of the episode in which it had a job to do, 0 to 1."""
    device: float
    """Share of a job alone in which the GPU has work of it, 0 to 1."""
    completed: int
    """Jobs that were completed."""


@dataclass(frozen=True, slots=True)
class CostRange:
    """A scheduler's cost over seeds."""

    mean: float
    low: float | None
    high: float | None
    """Bounds of its confidence interval; ``None``: one seed gives none."""


def demands(
    problem: Problem, jobs: NDArray[np.float64], end_us: float, unfinished: Sequence[int] | None = None
) -> list[TenantDemand]:
    """What each tenant asked of the GPU.

    Args:
        problem: the problem of the episode.
        jobs: completed jobs, columns as of ``Timeline.jobs``.
        end_us: length of the episode.
        unfinished: by tenant, jobs that were there and not completed at its end; ``None``: none.
    """
    found = []
    for row, program in enumerate(problem.programs):
        mine = jobs[jobs[:, 0] == row]
        spans = [(float(arrived), float(completed)) for arrived, completed in mine[:, [2, 4]]]
        if unfinished is not None and unfinished[row] > 0:
            spans.append((max((end for _, end in spans), default=0.0), end_us))
        device_us = mean_per_job(
            program.engine,
            [sum(op.device_us for op in variant if op.kind in DEVICE_OPS) for variant in program.variants],
        )
        found.append(
            TenantDemand(
                tenant=program.tenant.name,
                at_work=min(1.0, _covered_us(spans) / end_us) if end_us > 0.0 else 0.0,
                device=min(1.0, device_us / program.alone_us),
                completed=len(mine),
            )
        )
    return found


def meeting_share(asked: Sequence[TenantDemand]) -> float:
    """Share of the time in which two tenants or more have work on the GPU, if they are independent of each other."""
    nobody, one = 1.0, 0.0
    for demand in asked:
        busy = demand.at_work * demand.device
        nobody, one = nobody * (1.0 - busy), one * (1.0 - busy) + nobody * busy
    return max(0.0, 1.0 - nobody - one)


def meeting_remark(asked: Sequence[TenantDemand], utilisation: float, costs: Mapping[str, CostRange]) -> str:
    """What to know if all schedulers cost the same, and what to change; empty if they differ.

    Args:
        asked: what tenants asked of the GPU, see :func:`demands`.
        utilisation: share of the SM-time with a block of anybody, mean over the episodes, 0 to 1.
        costs: by scheduler.
    """
    if len(costs) < 2 or len(asked) < 2 or not _alike(costs.values()):
        return ""
    share = meeting_share(asked)
    if share >= SELDOM:
        if len({cost.mean for cost in costs.values()}) == 1:
            return ""  # they decide alike, and no seed changes that
        return (
            f"All schedulers cost the same within the noise, though tenants meet on the GPU in about {share:.0%} of "
            "the time: more seeds or jobs would tell them apart, if anything does."
        )
    return (
        f"All schedulers cost the same within the noise, since tenants hardly meet: two have work on the GPU in about "
        f"{share:.1%} of the time (the SMs are busy for {utilisation:.0%}). {_advice(asked)}"
    )


def some_alike_remark(asked: Sequence[TenantDemand], first: str, alike: int, others: int) -> str:
    """What to know if at least half of the schedulers, but not all, cost the same as the first; else empty.

    Args:
        asked: what tenants asked of the GPU, see :func:`demands`.
        first: the scheduler that the others are compared with.
        alike: others whose cost is the same within the noise.
        others: how many there are.
    """
    if alike == 0 or 2 * alike < others or len(asked) < 2:
        return ""
    share = meeting_share(asked)
    same = f"{alike} of the {others} others cost the same as {first} within the noise"
    if share < OFTEN:
        return (
            f"{same}: two tenants have work on the GPU in about {share:.0%} of the time, and only then does a "
            "scheduler have much to decide."
        )
    return (
        f"{same}, though two tenants have work on the GPU in about {share:.0%} of the time: they decide alike, or it "
        "takes more seeds or jobs to tell them apart."
    )


def _alike(costs: Iterable[CostRange]) -> bool:
    """Whether nothing tells costs apart: they are close, or all intervals overlap."""
    known = [cost for cost in costs if math.isfinite(cost.mean)]
    if len(known) < 2:
        return False
    least, most = min(cost.mean for cost in known), max(cost.mean for cost in known)
    lows = [cost.low for cost in known if cost.low is not None]
    highs = [cost.high for cost in known if cost.high is not None]
    overlap = len(lows) == len(highs) == len(known) and max(lows) <= min(highs)
    return overlap or most - least <= ALIKE * abs(least)


def _advice(asked: Sequence[TenantDemand]) -> str:
    """What to change, by what keeps each tenant off the GPU."""
    seldom = [demand for demand in asked if demand.at_work < 0.5]
    slow = [demand for demand in asked if demand.device < 0.5]
    advice = []
    if seldom:
        names = ", ".join(f"{demand.tenant} ({demand.at_work:.0%} of the time)" for demand in seldom)
        advice.append(
            "raise the rate of arrivals (rate_per_s, or a shorter think_us or period_us) or the jobs of who seldom "
            f"has one: {names}"
        )
    if slow:
        names = ", ".join(f"{demand.tenant} ({demand.device:.0%} of a job alone)" for demand in slow)
        advice.append(
            "give a faster host (iteration_us; import trace --iteration-us if a profiler slowed it) to whose host "
            f"keeps the GPU waiting: {names}"
        )
    advice = advice or ["add tenants"]
    return "To give schedulers something to decide, " + ", and ".join(advice) + "."


def _covered_us(spans: Sequence[tuple[float, float]]) -> float:
    """Time that some of ``spans`` covers."""
    covered_us, until_us = 0.0, 0.0
    for start_us, end_us in sorted(spans):
        covered_us += max(0.0, end_us - max(start_us, until_us))
        until_us = max(until_us, end_us)
    return covered_us
