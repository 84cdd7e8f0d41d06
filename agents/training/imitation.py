"""A warm start: the policy learns to do as a hand-written scheduler does, and the value what that leads to."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import ActorCriticPolicy
from torch.nn.functional import mse_loss
from torch.nn.utils import clip_grad_norm_

from gpusched_env.agents.training.config import Imitation, TrainingConfig
from gpusched_env.agents.training.environments import SEEDS_EACH, TRAINING_SEED, scale_of, training_scenarios
from gpusched_env.agents.training.teacher import Lesson, record
from gpusched_env.errors import InputError
from gpusched_env.scheduling.scheduler import Scheduler

Policy = ActorCriticPolicy | MaskableActorCriticPolicy
OFFERED = ("maskable-ppo", "ppo", "a2c")
"""Algorithms whose policy gives a probability to each action of a single decision."""


def imitate(model: BaseAlgorithm, config: TrainingConfig, teacher: Callable[[], Scheduler]) -> dict[str, float]:
    """Train the policy of ``model`` on recorded decisions of ``teacher``; its own optimiser stays untouched.

    Returns:
        figures: mean cost of the teacher's episodes, decisions, agreement (share of the decisions, at the end, in which
        the policy's most probable action is the teacher's), and the last mean losses.

    Raises:
        InputError: not with this algorithm, or a teacher that cannot be imitated.
    """
    settings = config.imitation
    assert settings is not None
    check_algorithm(config.algo)
    scenarios = training_scenarios(config)
    # The last of the training's own range of seeds, which its environments begin from the first of.
    last = TRAINING_SEED + SEEDS_EACH * (config.seed + 1) - 1
    lesson = record(
        [scenarios[k % len(scenarios)] for k in range(settings.episodes)],
        teacher,
        [last - k for k in range(settings.episodes)],
        decisions=settings.decisions,
        gamma=config.settings["gamma"],
        reward_scale=scale_of(config),
        shaping=config.shaping,
        slots=config.slots,
        running_slots=config.running_slots,
        wait_us=config.wait_us,
    )
    policy = model.policy
    assert isinstance(policy, Policy)
    figures = fit(policy, lesson, settings, np.random.default_rng(config.seed))
    return {"teacher_cost": float(np.mean(lesson.costs)), "decisions": float(len(lesson.actions)), **figures}


def check_algorithm(algo: str) -> None:
    """Raises InputError if ``algo`` cannot begin with an imitation."""
    if algo not in OFFERED:
        raise InputError(f"{algo} cannot begin with an imitation; {', '.join(OFFERED)} can")


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
