"""Decisions a second of the environments and of exported policies, and of Gymnasium's CartPole beside them."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import gymnasium
import numpy as np

import gpusched_env  # noqa: F401  (registers the ids)
from gpusched_env.agents.exported import untrained_policy
from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.devices import make_device
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.episodes.session import begin
from gpusched_env.experiments.benchmarks.timing import Elapsed, Measurement, Stopwatch, each, timed
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.showing import LazyView
from gpusched_env.scheduling.view import View

ENV_ID = "gpusched/InferenceBesideTraining-v0"
CARTPOLE = "CartPole-v1"
SCENARIO = "InferenceBesideTraining"
AT_INTERVALS = "ServingPoisson"
INTERVAL_US = 250.0


def everything(scenario: str = SCENARIO) -> dict[str, Any]:
    """Arguments of an environment with all actions that a scenario offers."""
    return {"scenario": scenario, "commands": load_scenario(scenario).commands}


class RandomLoop:
    """A vector environment that takes random legal actions, the same with any number of threads."""

    def __init__(self, copies: int, threads: int, scenario: str = SCENARIO, **options: Any) -> None:
        self.env = GpuSchedulingVectorEnv(num_envs=copies, threads=threads, **everything(scenario), **options)
        self.observations, _ = self.env.reset(seed=0)
        self._rng = np.random.default_rng(0)

    def play(self, steps: int) -> Elapsed:
        """What so many steps took; actions are drawn between them and do not count."""
        watch = Stopwatch()
        for _ in range(steps):
            masks = self.env.action_masks()
            actions = (self._rng.random(masks.shape) * masks).argmax(axis=1)
            with watch:
                self.observations, *_ = self.env.step(actions)
        return watch.timing(steps * self.env.num_envs)


def vector_decisions(copies: int, threads: int, steps: int, warm_up: int) -> Measurement:
    """Steps of the vector environment, in the middle of its episodes."""
    loop = RandomLoop(copies, threads)
    loop.play(warm_up)
    return lambda: loop.play(steps)


def interval_decisions(copies: int, threads: int, steps: int, *, futures: bool) -> Measurement:
    """Steps of the vector environment that decides for an interval, with or without the columns of sampled futures."""
    loop = RandomLoop(copies, threads, AT_INTERVALS, interval_us=INTERVAL_US, futures=futures)
    loop.play(steps)
    return lambda: loop.play(steps)


def vector_cartpole(copies: int, steps: int) -> Measurement:
    """Steps of Gymnasium's ``SyncVectorEnv`` of CartPole, its autoresets included."""
    env = gymnasium.make_vec(CARTPOLE, num_envs=copies, vectorization_mode="sync")
    env.reset(seed=0)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(steps)]
    return timed(each(env.step, actions), steps * copies)


def random_episode(device: str, limit: int | None = None) -> list[int]:
    """The random legal actions of the episode with seed 0 (of ``limit`` steps at most)."""
    env = GpuSchedulingEnv(device=device, **everything())
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    actions: list[int] = []
    over = False
    while not over and (limit is None or len(actions) < limit):
        actions.append(int(rng.choice(np.flatnonzero(info["action_mask"]))))
        _, _, terminated, truncated, info = env.step(actions[-1])
        over = terminated or truncated
    return actions


def single_decisions(actions: list[int]) -> Measurement:
    """A whole episode of the environment as ``gymnasium.make`` makes it, its reset included."""
    return _episodes(gymnasium.make(ENV_ID, **everything()), actions)


def single_cartpole(steps: int) -> Measurement:
    """Steps of CartPole as ``gymnasium.make`` makes it, its resets included."""
    env = gymnasium.make(CARTPOLE)
    env.action_space.seed(0)
    return _episodes(env, [int(env.action_space.sample()) for _ in range(steps)])


def _episodes(env: gymnasium.Env[Any, Any], actions: list[int]) -> Measurement:
    def play() -> None:
        over = True
        seed: int | None = 0
        for action in actions:
            if over:
                env.reset(seed=seed)
                seed = None
            _, _, terminated, truncated, _ = env.step(action)
            over = terminated or truncated

    return timed(play, len(actions))


def autoresets(copies: int = 16) -> Measurement:
    """Ends and beginnings of episodes in the vector environment: the metrics, and the way to the first decision."""
    env = GpuSchedulingVectorEnv(num_envs=copies, autoreset_mode="SAME_STEP", **everything())
    brief = {"scenario": {"horizon_us": 1e-3}}
    return timed(lambda: env.step(np.zeros(copies, np.int64)), copies, lambda: env.reset(seed=0, options=brief))


Kind = Literal["slots", "rule"]
KINDS: tuple[Kind, ...] = ("slots", "rule")


def network_decisions(scenario: str, states: int) -> dict[Kind, Measurement]:
    """Policies on observations in the middle of episodes, without Python between them."""
    loop = RandomLoop(states, 1, scenario=scenario)
    loop.play(200)
    masks = loop.env.action_masks()
    found: dict[Kind, Measurement] = {}
    for kind in KINDS:
        policy = untrained_policy(load_scenario(scenario), kind)
        policy.act(loop.observations, masks)
        found[kind] = timed(partial(policy.act, loop.observations, masks), states)
    return found


def scheduler_decisions(kind: Kind, scenario: str, states: int) -> Measurement:
    """The learned scheduler on the first views of an episode: show, encode, mask, decide, and make the command."""
    scheduler = LearnedScheduler(untrained_policy(load_scenario(scenario), kind))
    problem, device = build_problem(load_scenario(scenario)), make_device("compiled")
    begin(scheduler, problem, 0)
    view = device.reset(problem, 0)
    views: list[View] = []
    while view is not None and len(views) < states:
        views.append(view.complete() if isinstance(view, LazyView) else view)
        device.apply(scheduler.decide(view))
        view = device.advance()
    return timed(each(scheduler.decide, views), len(views))
