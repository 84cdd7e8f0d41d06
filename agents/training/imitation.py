"""A warm start: the policy learns to do as a hand-written scheduler does, and the value what that leads to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from torch.nn.functional import mse_loss
from torch.nn.utils import clip_grad_norm_

from gpusched_env.agents.training.config import Imitation, TrainingConfig
from gpusched_env.agents.training.environments import (
    SEEDS_EACH,
    TRAINING_SEED,
    env_arguments,
    scale_of,
    shaping_of,
    training_scenarios,
)
from gpusched_env.envs.actions import ActionLayout, explicit_launch
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.observations import Observation
from gpusched_env.episodes.session import begin
from gpusched_env.errors import InputError
from gpusched_env.planning.dispatcher import HasFirst, serve_first
from gpusched_env.planning.outlook import outlook_of
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scenarios.set_up import set_up_of
from gpusched_env.scenarios.tenant_program import Stream
from gpusched_env.scheduling.commands import Command, Launch, Reject
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.view import View

Policy = ActorCriticPolicy | MaskableActorCriticPolicy


def imitate(model: BaseAlgorithm, config: TrainingConfig, teacher: Callable[[], Scheduler]) -> dict[str, float]:
    """Train the policy of ``model`` on recorded decisions of ``teacher``; its own optimiser stays untouched.

    Returns:
        figures: mean cost of the teacher's episodes, decisions, agreement (share of the decisions, at the end, in which
        the policy's most probable action is the teacher's), and the last mean losses.

    Raises:
        InputError: a teacher that cannot be imitated.
    """
    settings = config.imitation
    assert settings is not None
    scenarios = training_scenarios(config)
    # The last of the training's own range of seeds, which its environments begin from the first of.
    last = TRAINING_SEED + SEEDS_EACH * (config.seed + 1) - 1
    episodes = [(scenarios[k % len(scenarios)], last - k) for k in range(settings.episodes)]
    lesson = record(config, teacher, episodes, settings.decisions)
    policy = model.policy
    assert isinstance(policy, Policy)
    figures = fit(policy, lesson, settings, np.random.default_rng(config.seed))
    return {"teacher_cost": float(np.mean(lesson.costs)), "decisions": float(len(lesson.actions)), **figures}


def fit(policy: Policy, lesson: Lesson, settings: Imitation, rng: np.random.Generator) -> dict[str, float]:
    """Minimise the cross-entropy of the teacher's actions plus the squared error of the returns, with Adam.

    The learning rate falls linearly to 0.
    """
    count = len(lesson.actions)
    batches = -(-count // settings.batch_size)
    optimiser = torch.optim.Adam(policy.parameters(), lr=settings.learning_rate)
    steps = settings.epochs * batches
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0 - step / steps)
    policy.set_training_mode(True)
    losses: list[tuple[float, float]] = []
    for _ in range(settings.epochs):
        order = rng.permutation(count)
        losses = []
        for batch in np.array_split(order, batches):
            values, log_probabilities = _evaluate(policy, lesson, batch)
            returns = torch.as_tensor(lesson.returns[batch], device=policy.device)
            imitation, regression = -log_probabilities.mean(), mse_loss(values, returns)
            optimiser.zero_grad()
            (imitation + 0.5 * regression).backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(policy.parameters(), 0.5)
            optimiser.step()
            schedule.step()
            losses.append((imitation.item(), regression.item()))
    policy.set_training_mode(False)
    cross_entropy, value_error = np.mean(losses, axis=0)
    return {
        "cross_entropy": float(cross_entropy),
        "value_error": float(value_error),
        "agreement": _agreement(policy, lesson, settings.batch_size),
    }


def _evaluate(policy: Policy, lesson: Lesson, rows: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Values and log-probabilities of the teacher's actions in the decisions ``rows``."""
    observations: Any = policy.obs_to_tensor({name: table[rows] for name, table in lesson.observations.items()})[0]
    actions = torch.as_tensor(lesson.actions[rows], device=policy.device)
    masks = _masks(policy, lesson, rows)
    values, log_probabilities, _ = policy.evaluate_actions(observations, actions, **masks)
    return values.flatten(), log_probabilities


def _agreement(policy: Policy, lesson: Lesson, batch_size: int) -> float:
    same = 0
    bounds = [*range(0, len(lesson.actions), batch_size), len(lesson.actions)]
    for first, end in itertools.pairwise(bounds):
        observations = {name: table[first:end] for name, table in lesson.observations.items()}
        actions, _ = policy.predict(observations, deterministic=True, **_masks(policy, lesson, slice(first, end)))
        same += int((actions == lesson.actions[first:end]).sum())
    return same / len(lesson.actions)


def _masks(policy: Policy, lesson: Lesson, rows: Any) -> dict[str, Any]:
    """The argument with the legal actions, for policies that take one."""
    return {"action_masks": lesson.masks[rows]} if isinstance(policy, MaskableActorCriticPolicy) else {}


@dataclass(frozen=True, slots=True)
class Lesson:
    """Decisions of a teacher, in order; first axis: decision."""

    observations: Observation
    masks: NDArray[np.bool_]
    """Legal actions, shape ``(decisions, actions)``."""
    actions: NDArray[np.int64]
    returns: NDArray[np.float32]
    """Discounted, scaled rewards from the decision on."""
    costs: tuple[float, ...]
    """Costs of the episodes."""
    skipped: int
    """Commands that no action stands for; the environment waited instead."""


def record(
    config: TrainingConfig,
    teacher: Callable[[], Scheduler],
    episodes: Sequence[tuple[Scenario, int]],
    decisions: int,
) -> Lesson:
    """Let a scheduler play, and note what it saw as an agent would and what it did.

    It is asked at the environment's decision epochs: where it waits without an end, that is after ``wait_us`` at the
    latest. A launch has the nearest stream priority on offer. What launches cost the host on top of the scenario
    (``interception_us``) is left out, as an agent's is.

    Args:
        config: says what the environments and the returns are.
        teacher: makes the scheduler.
        episodes: scenarios and seeds.
        decisions: how many to keep at most, as many of each episode, drawn at random.

    Raises:
        InputError: the scheduler needs tenants in contexts of their own, which the scenario does not have, or cannot
            say which tenant goes first where decisions stand for an interval.
    """
    scheduler = teacher()
    if config.interval_us > 0.0 and not isinstance(scheduler, HasFirst):
        raise InputError(
            "where decisions stand for an interval (interval_us), only schedulers can be imitated that rank jobs: "
            "edf, llf, moore, plan, srpt, triage, wspt"
        )
    parts = []
    for scenario, seed in episodes:
        contexts = set_up_of(scheduler).contexts
        if contexts not in (None, scenario.contexts):
            raise InputError(
                f"a scheduler that needs {contexts} contexts cannot be imitated in {scenario.name}, "
                f"whose contexts are {scenario.contexts}"
            )
        part = _episode(config, scheduler, scenario, seed)
        parts.append(_thinned(part, decisions // len(episodes), np.random.default_rng(seed)))
    return Lesson(
        observations={
            name: np.concatenate([part.observations[name] for part in parts]) for name in parts[0].observations
        },
        masks=np.concatenate([part.masks for part in parts]),
        actions=np.concatenate([part.actions for part in parts]),
        returns=np.concatenate([part.returns for part in parts]),
        costs=tuple(cost for part in parts for cost in part.costs),
        skipped=sum(part.skipped for part in parts),
    )


def _episode(config: TrainingConfig, scheduler: Scheduler, scenario: Scenario, seed: int) -> Lesson:
    env = GpuSchedulingEnv(scenario, **env_arguments(config))
    observations: list[Observation] = []
    masks: list[NDArray[np.bool_]] = []
    actions: list[int] = []
    rewards: list[float] = []
    kept: list[int] = []
    cost = 0.0
    observation, _ = env.reset(seed=seed)
    shaping = shaping_of(config)
    if shaping is not None:
        shaping.begin(_batch_of_one(observation))
    streams = env.problem.streams
    begin(scheduler, env.problem, seed)
    over = False
    while not over:
        view = env.view
        command = scheduler.decide(view)
        if env.layout.interval_us > 0.0 and not isinstance(command, Reject):
            action = _serving(scheduler, view, env)
        else:
            action = env.layout.action_of(_on_offer(command, view, streams, env.layout), view, streams=streams)
        if action is not None:
            kept.append(len(rewards))
            observations.append(observation)
            masks.append(env.action_masks())
            actions.append(action)
        observation, reward, terminated, truncated, _ = env.step(action or 0)
        over = terminated or truncated
        cost -= reward
        if shaping is not None:
            reward += float(shaping.step(_batch_of_one(observation), np.array([over]))[0])
        rewards.append(reward)
    return Lesson(
        observations={name: np.stack([o[name] for o in observations]) for name in observations[0]},
        masks=np.stack(masks),
        actions=np.array(actions, np.int64),
        returns=discounted(rewards, config.settings["gamma"], scale_of(config))[kept],
        costs=(cost,),
        skipped=len(rewards) - len(kept),
    )


def _serving(scheduler: Scheduler, view: View, env: GpuSchedulingEnv) -> int | None:
    """The action that lets the tenant go first which a scheduler would: going by the plan, where that does."""
    assert isinstance(scheduler, HasFirst), "checked before"
    first = scheduler.first(view)
    if first is None:
        return None
    return env.layout.serving(serve_first(first, view, env.problem.once(outlook_of)))


def _on_offer(command: Command, view: View, streams: Sequence[Stream], layout: ActionLayout) -> Command:
    """``command`` with the nearest stream priority that agents can choose."""
    if isinstance(command, Launch):
        command = explicit_launch(command, view, streams)
        wanted = command.priority or 0
        return replace(command, priority=min(layout.stream_priorities, key=lambda priority: abs(priority - wanted)))
    return command


def _batch_of_one(observation: Observation) -> Observation:
    return {name: table[None] for name, table in observation.items()}


def _thinned(lesson: Lesson, decisions: int, rng: np.random.Generator) -> Lesson:
    """The lesson with at most ``decisions`` of its decisions, drawn at random, in order."""
    if len(lesson.actions) <= decisions:
        return lesson
    rows = np.sort(rng.choice(len(lesson.actions), max(1, decisions), replace=False))
    return replace(
        lesson,
        observations={name: table[rows] for name, table in lesson.observations.items()},
        masks=lesson.masks[rows],
        actions=lesson.actions[rows],
        returns=lesson.returns[rows],
    )


def discounted(rewards: Sequence[float], gamma: float, scale: float) -> NDArray[np.float32]:
    """Returns of every decision of an episode: ``scale`` times the sum of ``gamma ** k`` times the k-th reward on."""
    found = np.zeros(len(rewards))
    ahead = 0.0
    for i in range(len(rewards) - 1, -1, -1):
        found[i] = ahead = scale * rewards[i] + gamma * ahead
    return found.astype(np.float32)
