"""Scripted agents, honest and not, and what their episodes cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.reward import cost_terms, total_cost

Policy = Callable[[GpuSchedulingEnv], int]
"""The next action."""


def honest(env: GpuSchedulingEnv) -> int:
    """Priority streams: launch whatever can be launched, the most urgent tenant first and at its stream priority."""
    launches = _launches(env)
    if not launches:
        return 0
    urgencies = [tenant.priority for tenant in env.scenario.tenants]
    slot = min(launches, key=lambda slot: urgencies[slot])
    classes = sorted(set(urgencies), reverse=True)
    return launches[slot] + min(classes.index(urgencies[slot]), len(env.layout.stream_priorities) - 1)


def starving(*slots: int) -> Policy:
    """Never launches anything of these tenants."""

    def decide(env: GpuSchedulingEnv) -> int:
        return next((action for slot, action in _launches(env).items() if slot not in slots), 0)

    return decide


def idle(env: GpuSchedulingEnv) -> int:
    """Only waits."""
    return 0


def idle_from(at_us: float) -> Policy:
    """Honest up to a time, then it only waits."""
    return lambda env: honest(env) if env.view.time_us < at_us else 0


def _launches(env: GpuSchedulingEnv) -> dict[int, int]:
    """By slot, the launch at default stream priority, where it is legal."""
    mask, priorities = env.action_masks(), len(env.layout.stream_priorities)
    actions = {slot: 1 + slot * priorities for slot in range(len(env.scenario.tenants))}
    return {slot: action for slot, action in actions.items() if mask[action]}


def fewer_jobs(scenario: str, share: int) -> dict[str, dict[str, int]]:
    """An override of the tenants: one job in ``share`` of each."""
    tenants = load_scenario(scenario).tenants
    return {tenant.name: {"jobs": max(1, (tenant.jobs or 0) // share)} for tenant in tenants}


@dataclass(frozen=True)
class Played:
    """One episode."""

    cost: float
    integral: float
    """Cost without the charge for what was left undone at the end."""
    actions: int
    terminated: bool
    figures: dict[str, float]
    """``episode_metrics``."""


def play(env: GpuSchedulingEnv, policy: Policy, seed: int = 0) -> Played:
    """Play one episode to its end."""
    env.reset(seed=seed)
    total, actions, over, terminated = 0.0, 0, False, False
    while not over:
        _, reward, terminated, truncated, info = env.step(policy(env))
        total -= reward
        actions += 1
        over = terminated or truncated
    figures = info["episode_metrics"]
    assert abs(figures["cost"] - total) <= 1e-9 * max(1.0, total), "the return is minus the cost"
    costs = env.device.costs
    assert costs.over
    costs.over = False
    return Played(total, total_cost(env.problem, cost_terms(env.problem, costs)), actions, terminated, figures)
