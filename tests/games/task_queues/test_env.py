"""``gpusched/TaskQueue-v0``: returns, masks, changes of form, and both devices."""

from __future__ import annotations

import copy

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from gpusched_env.envs.registration import env_id
from gpusched_env.errors import InputError
from gpusched_env.games.task_queues.environment.env import FORMS, TaskQueueEnv
from tests.refusals import refused

SMALL = 2
"""A seed whose random problem is small: a colouring of a mesh."""


def make(**options: object) -> TaskQueueEnv:
    env = gymnasium.make(env_id("TaskQueue"), **options).unwrapped
    assert isinstance(env, TaskQueueEnv)
    return env


def play(env: TaskQueueEnv, seed: int, actions: list[int]) -> tuple[float, dict[str, object], list[np.ndarray]]:
    observation, _ = env.reset(seed=seed)
    seen, total, over, info = [observation], 0.0, False, {}
    while not over:
        observation, reward, over, _, info = env.step(actions[len(seen) % len(actions)])
        total += reward
        seen.append(observation)
    return total, info, seen


def test_gymnasium_accepts_it() -> None:
    check_env(make(render_mode="rgb_array"), skip_close_check=True)


def test_the_return_is_minus_the_cost() -> None:
    total, info, seen = play(make(), SMALL, [0, 8, 4])
    assert total == pytest.approx(-info["episode_metrics"]["cost"])  # type: ignore[index]
    assert info["changes"] > 0
    assert not seen[-1].any()


def test_both_devices_show_the_same() -> None:
    results = [play(make(device=device, interval_us=200.0), SMALL, [0, 17, 9]) for device in ("reference", "compiled")]
    assert results[0][0] == results[1][0]
    assert np.array_equal(results[0][2], results[1][2])


def test_thresholds_are_for_searches() -> None:
    env = make()
    env.reset(seed=SMALL)
    assert env.action_masks().tolist() == [form.threshold == 0 for form in FORMS]
    _, _, _, _, info = env.step(len(FORMS) - 1)
    assert info["illegal_actions"] == 1
    env.reset(seed=0, options={"problem": "bfs-web"})
    assert env.action_masks().all()


def test_several_gpus() -> None:
    """The actions and columns are the same; the cost is over the level-by-level time on as many GPUs."""
    env = make(gpus=2)
    total, info, seen = play(env, SMALL, [0, 8, 17])
    assert total == pytest.approx(-info["episode_metrics"]["cost"])  # type: ignore[index]
    assert info["changes"] > 0
    assert all(observation.min() >= 0.0 and observation.max() <= 1.0 for observation in seen)
    session = env._run
    assert session is not None
    assert session.view.workers % 2 == 0
    assert session.device.totals["sent"] > 0
    with refused(InputError, "is 2", "on 1"):
        env.reset(seed=0, options={"problem": "colouring-hubs"})
    with refused(InputError, "is 0", "least 1"):
        make(gpus=0)


def test_what_is_refused() -> None:
    env = make()
    env.reset(seed=SMALL)
    with refused(InputError, "action 24", "in 0..23"):
        env.step(24)
    with refused(InputError, "'bfs-rood'", "did you mean 'bfs-road'"):
        make(problem="bfs-rood")
    with refused(TypeError, "shallow"):
        copy.copy(env)


def test_pictures_and_words() -> None:
    env = make(render_mode="ansi")
    env.reset(seed=SMALL)
    env.step(0)
    assert "persistent-block-32" in env.render()
    drawn = make(render_mode="rgb_array")
    drawn.reset(seed=SMALL)
    drawn.step(0)
    assert drawn.render().shape == (240, 480, 3)
