"""How long a learned scheduler takes to decide: the network alone, from view to command, and in torch.

Weights are random; what a decision costs does not depend on them.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.agents.untrained import untrained_policy
from gpusched_env.devices import make_device
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.experiments.benchmarks.timing import Measurement, Stopwatch, Timing
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.device import Device
from gpusched_env.scheduling.session import begin
from gpusched_env.scheduling.view import LazyView, View

Kind = Literal["slots", "rule"]
SCENARIOS = {2: "InferenceBesideTraining", 3: "PriorityFill", 8: "MultiTenantBurst"}
"""A scenario with each number of tenants that is measured."""


def network_decisions(kind: Kind, tenants: int, states: int) -> Measurement:
    """An exported policy on observations in the middle of episodes, without Python between them."""
    policy = _policy(kind, tenants)
    env = GpuSchedulingVectorEnv(SCENARIOS[tenants], num_envs=states, threads=1)
    observations, _ = env.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        masks = env.action_masks()
        observations, *_ = env.step((rng.random(masks.shape) * masks).argmax(axis=1))
    masks = env.action_masks()
    policy.act(observations, masks)

    def measure() -> Timing:
        watch = Stopwatch()
        with watch:
            policy.act(observations, masks)
        return watch.timing(states)

    return measure


def scheduler_decisions(kind: Kind, tenants: int, states: int) -> Measurement:
    """The learned scheduler on views of an episode: show, encode, mask, decide, and make the command."""
    scheduler = LearnedScheduler(_policy(kind, tenants))
    views = _views(scheduler, make_device("compiled"), tenants, states)

    def measure() -> Timing:
        watch = Stopwatch()
        with watch:
            for view in views:
                scheduler.decide(view)
        return watch.timing(len(views))

    return measure


def torch_decisions(tenants: int, states: int) -> Measurement:
    """The slot network in torch, one observation at a time, as a scheduler has to decide."""
    import torch
    from sb3_contrib import MaskablePPO

    from gpusched_env.agents.policies.registry import policy_of
    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv

    torch.set_num_threads(1)
    vector = GpuSchedulingVectorEnv(SCENARIOS[tenants], num_envs=1, autoreset_mode="SAME_STEP")
    env = Sb3VecEnv(vector)
    policy, arguments = policy_of("maskable-ppo", "slots", vector.layout)
    kind: Any = policy
    model = MaskablePPO(kind, env, policy_kwargs=arguments, device="cpu")
    observation: Any = env.reset()
    masks = vector.action_masks()

    def measure() -> Timing:
        watch = Stopwatch()
        with watch:
            for _ in range(states):
                model.predict(observation, deterministic=True, action_masks=masks)
        return watch.timing(states)

    return measure


def _policy(kind: Kind, tenants: int) -> ExportedPolicy:
    return untrained_policy(load_scenario(SCENARIOS[tenants]), kind)


def _views(scheduler: LearnedScheduler, device: Device, tenants: int, count: int) -> list[View]:
    """The first views that the scheduler decides on."""
    problem = build_problem(load_scenario(SCENARIOS[tenants]))
    begin(scheduler, problem, 0)
    view = device.reset(problem, 0)
    views: list[View] = []
    while view is not None and len(views) < count:
        views.append(view.complete() if isinstance(view, LazyView) else view)
        device.apply(scheduler.decide(view))
        view = device.advance()
    return views
