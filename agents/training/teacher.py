"""Episodes of a hand-written scheduler, in the observations and actions of the environment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.shaping import ProgressShaping
from gpusched_env.envs.actions import ActionLayout, spelt_out
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.observations import Observation
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Stream
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scheduling.commands import Command, Launch
from gpusched_env.scheduling.scheduler import Scheduler
from gpusched_env.scheduling.session import begin
from gpusched_env.scheduling.view import View


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
    """Of the episodes."""
    skipped: int
    """Commands that no action stands for; the environment waited instead."""


def record(
    scenarios: Sequence[Scenario],
    teacher: Callable[[], Scheduler],
    seeds: Sequence[int],
    *,
    decisions: int,
    gamma: float,
    reward_scale: float,
    shaping: bool,
    slots: int | None,
    running_slots: int,
    wait_us: float,
) -> Lesson:
    """Let a scheduler play, and note what it saw as an agent would and what it did.

    It is asked at the environment's decision epochs: where it waits without an end, that is after ``wait_us`` at the
    latest. A launch has the nearest stream priority on offer. What launches cost the host on top of the scenario
    (``interception_us``) is left out, as an agent's is.

    Args:
        scenarios: one an episode.
        teacher: makes the scheduler.
        seeds: one an episode.
        decisions: how many to keep at most, as many of each episode, drawn at random.
        gamma, reward_scale, shaping: make ``returns``.
        slots, running_slots, wait_us: of the environment.

    Raises:
        InputError: the scheduler needs tenants in contexts of their own, which the scenario does not have.
    """
    scheduler = teacher()
    parts = []
    for scenario, seed in zip(scenarios, seeds, strict=True):
        _check_contexts(scheduler, scenario)
        env = GpuSchedulingEnv(scenario, slots=slots, running_slots=running_slots, wait_us=wait_us)
        part = _episode(env, scheduler, seed, gamma, reward_scale, shaping=shaping)
        parts.append(_thinned(part, decisions // len(seeds), np.random.default_rng(seed)))
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


def _check_contexts(scheduler: Scheduler, scenario: Scenario) -> None:
    contexts = getattr(scheduler, "contexts", None)
    if contexts not in (None, scenario.contexts):
        raise InputError(
            f"a scheduler that needs {contexts} contexts cannot be imitated in {scenario.name}, "
            f"whose contexts are {scenario.contexts}"
        )


def _episode(
    env: GpuSchedulingEnv, scheduler: Scheduler, seed: int, gamma: float, reward_scale: float, *, shaping: bool
) -> Lesson:
    observations: list[Observation] = []
    masks: list[NDArray[np.bool_]] = []
    actions: list[int] = []
    rewards: list[float] = []
    kept: list[int] = []
    cost = 0.0
    observation, _ = env.reset(seed=seed)
    progress = ProgressShaping(env.scenario.reward)
    progress.begin(_batch_of_one(observation))
    streams = env.problem.streams
    begin(scheduler, env.problem, seed)
    over = False
    while not over:
        view = env.view
        command = _on_offer(scheduler.decide(view), view, streams, env.layout)
        action = env.layout.action_of(command, view, streams=streams)
        if action is not None:
            kept.append(len(rewards))
            observations.append(observation)
            masks.append(env.action_masks())
            actions.append(action)
        observation, reward, terminated, truncated, _ = env.step(action or 0)
        over = terminated or truncated
        growth = progress.step(_batch_of_one(observation), np.array([over]))
        cost -= reward
        rewards.append(reward + float(growth[0]) if shaping else reward)
    return Lesson(
        observations={name: np.stack([o[name] for o in observations]) for name in observations[0]},
        masks=np.stack(masks),
        actions=np.array(actions, np.int64),
        returns=discounted(rewards, gamma, reward_scale)[kept],
        costs=(cost,),
        skipped=len(rewards) - len(kept),
    )


def _on_offer(command: Command, view: View, streams: Sequence[Stream], layout: ActionLayout) -> Command:
    """``command`` with the nearest stream priority that agents can choose."""
    if isinstance(command, Launch):
        command = spelt_out(command, view, streams)
        wanted = command.priority or 0
        return replace(command, priority=min(layout.stream_priorities, key=lambda priority: abs(priority - wanted)))
    return command


def _batch_of_one(observation: Observation) -> Observation:
    return {name: table[None] for name, table in observation.items()}


def _thinned(lesson: Lesson, decisions: int, rng: np.random.Generator) -> Lesson:
    """At most so many of a lesson's decisions, drawn at random, in order."""
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
