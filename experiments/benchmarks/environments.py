"""Decisions a second of the environments, and of Gymnasium's CartPole beside them.

One decision is one action; the environments never return where there is nothing to choose. Actions are random
legal ones. They are drawn outside the stopwatch, and so are CartPole's.
"""

from __future__ import annotations

import gymnasium
import numpy as np
from numpy.typing import NDArray

import gpusched_env  # noqa: F401  (registers the ids)
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.experiments.benchmarks.timing import Measurement, Stopwatch, Timing

ENV_ID = "gpusched/InferenceBesideTraining-v0"
CARTPOLE = "CartPole-v1"


def vector_decisions(copies: int, threads: int, steps: int, warm_up: int) -> Measurement:
    """Steps of the vector environment, in the middle of its episodes."""
    env = GpuSchedulingVectorEnv(num_envs=copies, threads=threads)
    env.reset(seed=0)
    rng = np.random.default_rng(0)

    def legal() -> NDArray[np.int64]:
        masks = env.action_masks()
        chosen: NDArray[np.int64] = (rng.random(masks.shape) * masks).argmax(axis=1)
        return chosen

    for _ in range(warm_up):
        env.step(legal())

    def measure() -> Timing:
        watch = Stopwatch()
        for _ in range(steps):
            actions = legal()
            with watch:
                env.step(actions)
        return watch.timing(steps * copies)

    return measure


def vector_cartpole(copies: int, steps: int) -> Measurement:
    """Steps of Gymnasium's ``SyncVectorEnv`` of CartPole, its autoresets included."""
    env = gymnasium.make_vec(CARTPOLE, num_envs=copies, vectorization_mode="sync")
    env.reset(seed=0)
    env.action_space.seed(0)

    def measure() -> Timing:
        actions = [env.action_space.sample() for _ in range(steps)]
        watch = Stopwatch()
        with watch:
            for row in actions:
                env.step(row)
        return watch.timing(steps * copies)

    return measure


def random_episode(device: str, limit: int | None = None) -> tuple[GpuSchedulingEnv, list[int]]:
    """An environment, and the random legal actions of its episode with seed 0 (of ``limit`` steps at most)."""
    env = GpuSchedulingEnv(device=device)
    rng = np.random.default_rng(0)
    _, info = env.reset(seed=0)
    actions: list[int] = []
    over = False
    while not over and (limit is None or len(actions) < limit):
        actions.append(int(rng.choice(np.flatnonzero(info["action_mask"]))))
        _, _, terminated, truncated, info = env.step(actions[-1])
        over = terminated or truncated
    return env, actions


def single_decisions(actions: list[int]) -> Measurement:
    """A whole episode of the environment as ``gymnasium.make`` makes it, its reset included."""
    env = gymnasium.make(ENV_ID)

    def measure() -> Timing:
        watch = Stopwatch()
        with watch:
            env.reset(seed=0)
            for action in actions:
                env.step(action)
        return watch.timing(len(actions))

    return measure


def single_cartpole(steps: int) -> Measurement:
    """Steps of CartPole as ``gymnasium.make`` makes it, its resets included."""
    env = gymnasium.make(CARTPOLE)
    env.reset(seed=0)
    env.action_space.seed(0)

    def measure() -> Timing:
        actions = [env.action_space.sample() for _ in range(steps)]
        env.reset()
        watch = Stopwatch()
        with watch:
            for action in actions:
                _, _, terminated, truncated, _ = env.step(action)
                if terminated or truncated:
                    env.reset()
        return watch.timing(steps)

    return measure


def autoresets(copies: int = 16) -> Measurement:
    """Ends and beginnings of episodes in the vector environment: the metrics, and the way to the first decision."""
    env = GpuSchedulingVectorEnv(num_envs=copies, autoreset_mode="SAME_STEP")
    brief = {"horizon_us": 1e-3}

    def measure() -> Timing:
        env.reset(seed=0, options={"scenario": brief})
        watch = Stopwatch()
        with watch:
            env.step(np.zeros(copies, np.int64))
        return watch.timing(copies)

    return measure
