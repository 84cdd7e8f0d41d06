"""The scenario of a draft: what takes how long alone is found out, and rates, objectives and prices follow."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gpusched_env.games.drawn.problems.arrivals import draw_arrivals, rounded
from gpusched_env.games.drawn.problems.distribution import Distribution, Draft, Rough, draw_draft
from gpusched_env.games.drawn.problems.gpus import VARIED
from gpusched_env.games.drawn.problems.networks import ENGINE
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profile_error import ProfileError
from gpusched_env.scenarios.scenario import Reward, Scenario
from gpusched_env.workload.serving import Batching, Geometric, Lognormal
from gpusched_env.workload.tenant import ClosedLoop, Tenant

REQUESTS: Final = 40
"""Requests of all services in an episode, about: enough to choose among, and few enough to play 200 scenarios with all
schedulers in minutes."""
STEPS: Final = 6
"""Steps that a tenant without an objective could do alone in an episode, at least."""
PHYSICS: Final = 2
"""Version of the laws."""
LONGEST_US: Final = 400_000.0
LEAST_STEPS: Final = 3
ENGINE_REQUESTS: Final = 12
"""Of an engine, in an episode at least."""
TOGETHER: Final = 6.0
"""Requests of an engine that share its steps, about: each takes so much less of the GPU's time."""
LEAST_WEIGHT: Final = 1e-3
FLOOR: Final = 0.01
"""Share of what is at stake below which costs count as equal."""
BATCHING: Final = Batching(
    max_batch=16,
    cache_tokens=6000,
    prompt=Lognormal(median=250, sigma=0.7, most=1024),
    answer=Geometric(mean=20, most=100),
)


@dataclass(frozen=True, slots=True)
class Alone:
    """What a job takes alone, three digits, microseconds."""

    busy_us: float
    """Its turnaround; of an engine's request its share of the steps."""
    answer_us: float
    """What its objective is of: its turnaround, or the time to the first token."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A scenario of a split."""

    scenario: Scenario
    """``scenario.gpu`` names the GPU that :attr:`gpu` ships as, or is a variation of."""
    gpu: GpuSpec
    at_stake: float
    """About what an episode would cost in which no request is served in time and no step is done (> 0)."""

    def problem(self) -> Problem:
        """What devices play."""
        return build_problem(self.scenario, gpu=self.gpu)

    @property
    def floor(self) -> float:
        """The cost below which costs count as equal, where their logarithms are compared."""
        return rounded(FLOOR * self.at_stake)


def draw(name: str, seed: tuple[int, ...], of: Distribution) -> Drawn:
    """The scenario of a seed.

    Args:
        name: of the scenario.
        seed: of the drawing; an episode's is another thing.
        of: what it is drawn from.
    """
    rng = np.random.default_rng(seed)
    draft = draw_draft(rng, of)
    base = draft.gpu.name.removesuffix(VARIED)
    alone = [_alone(rough.workload, tuple(_host(rough).items()), draft.gpu, base) for rough in draft.tenants]
    until_us = rounded(_length_us(draft, alone))
    tenants = tuple(
        _tenant(rng, f"tenant-{row}", rough, own)
        for row, (rough, own) in enumerate(zip(draft.tenants, alone, strict=True))
    )
    longest_us = max(tenant.slo_us or 0.0 for tenant in tenants)
    scenario = Scenario(
        name=name,
        summary=f"{len(tenants)} tenants on {draft.gpu.name}, load {draft.load:.2f}, {draft.knowledge} profiles",
        gpu=base,
        tenants=tenants,
        horizon_us=rounded(until_us + longest_us),
        arrivals_until_us=until_us,
        commands=("launch", *draft.offered),
        preemption=("drain", "save"),
        stream_priorities=tuple(range(0, -min(6, draft.gpu.priorities), -1)),
        interval_us=250.0,
        physics=PHYSICS,
        profiles=_profiles(rng, draft.knowledge),
        reward=Reward(slo_miss=1.0, lost_progress=1.0, slowdown=draft.slowdown),
    )
    jobs = [until_us * rough.load / own.busy_us for rough, own in zip(draft.tenants, alone, strict=True)]
    at_stake = sum(tenant.weight * number for tenant, number in zip(tenants, jobs, strict=True))
    return Drawn(scenario, draft.gpu, at_stake)


def _length_us(draft: Draft, alone: list[Alone]) -> float:
    """How long requests come: until there were enough, and those without an objective could do some steps."""
    services = [(rough, own.busy_us) for rough, own in zip(draft.tenants, alone, strict=True) if not rough.best_effort]
    steps = (own.busy_us for rough, own in zip(draft.tenants, alone, strict=True) if rough.best_effort)
    longest_step = max(steps, default=0.0)
    engine = (ENGINE_REQUESTS * busy / rough.load for rough, busy in services if rough.workload == ENGINE)
    wanted = max(REQUESTS / sum(rough.load / busy for rough, busy in services), STEPS * longest_step, *engine)
    return max(min(wanted, LONGEST_US), LEAST_STEPS * longest_step)


def _tenant(rng: np.random.Generator, name: str, rough: Rough, alone: Alone) -> Tenant:
    weight = rounded(max(LEAST_WEIGHT, rough.price * alone.busy_us / 1e3))
    shape: dict[str, Any] = {"name": name, "workload": rough.workload, "priority": rough.priority, **_host(rough)}
    if rough.best_effort:
        return Tenant(arrivals=ClosedLoop(), weight=weight, **shape)
    return Tenant(
        arrivals=draw_arrivals(rng, rough.kind, rough.load / alone.busy_us * 1e6, alone.busy_us),
        weight=weight,
        slo_us=rounded(rough.slack * alone.answer_us),
        batching=BATCHING if rough.workload == ENGINE else None,
        **shape,
    )


def _host(rough: Rough) -> dict[str, Any]:
    match rough.host:
        case "graph":
            return {"launch": "graph"}
        case "driver":
            return {"host_us": 1.0}
        case "runtime":
            return {"host_us": rounded(rough.launch_us)}
        case "python":
            return {}


@functools.lru_cache(maxsize=4096)
def _alone(workload: str, host: tuple[tuple[str, Any], ...], gpu: GpuSpec, base: str) -> Alone:
    engine = workload == ENGINE
    batching = BATCHING if engine else None
    tenant = Tenant(name="alone", workload=workload, arrivals=ClosedLoop(), batching=batching, **dict(host))
    scenario = Scenario(name="alone", gpu=base, tenants=(tenant,), horizon_us=1.0, physics=PHYSICS)
    problem = build_problem(scenario, gpu=gpu)
    program = problem.programs[0]
    return Alone(rounded(program.alone_us / (TOGETHER if engine else 1.0)), rounded(program.answer_us))


def _profiles(rng: np.random.Generator, knowledge: str) -> ProfileError:
    match knowledge:
        case "scattered":
            return ProfileError(scatter=rounded(rng.uniform(1.3, 3.0)), seed=int(rng.integers(1000)))
        case "forgotten":
            return ProfileError(forget=1.0)
        case _:
            return ProfileError()
