"""The adapter is what stable-baselines3's own DummyVecEnv of monitored single environments is."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pytest

from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.registration import env_id
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.errors import InputError
from tests.refusals import refused

if TYPE_CHECKING:
    from stable_baselines3.common.vec_env import VecEnv

    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SHORT: dict[str, Any] = {"scenario": "InferenceBesideTraining", "horizon_us": 300.0}


def adapter(count: int, **kwargs: Any) -> Sb3VecEnv:
    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv

    return Sb3VecEnv(GpuSchedulingVectorEnv(num_envs=count, autoreset_mode="SAME_STEP", **kwargs))


def assert_same_infos(got: dict[str, Any], expected: dict[str, Any]) -> None:
    """The info at the end of an episode; a monitor rounds the return and has a clock of its own.

    The end at the horizon is final here: what is left is charged, and a learner adds no estimate of it.
    """
    assert got.keys() == expected.keys()
    assert got["TimeLimit.truncated"] is False
    for key in got.keys() - {"episode", "TimeLimit.truncated"}:
        np.testing.assert_equal(got[key], expected[key], err_msg=key)
    assert got["episode"]["r"] == pytest.approx(expected["episode"]["r"], abs=1e-6)
    assert got["episode"]["l"] == expected["episode"]["l"]
    assert got["episode"]["t"] > 0.0
    assert [type(value) for value in got["episode"].values()] == [float, int, float]


@pytest.mark.parametrize("arguments", [SHORT, {"scenario": "Toy"}], ids=["truncated", "terminated"])
def test_it_equals_a_dummy_vec_env_of_monitored_environments(arguments: dict[str, Any]) -> None:
    from sb3_contrib.common.maskable.utils import get_action_masks
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import DummyVecEnv

    envs = (adapter(3, **arguments), DummyVecEnv([lambda: Monitor(GpuSchedulingEnv(**arguments))] * 3))
    rng = np.random.default_rng(0)
    options = [{}, {"scenario": {"horizon_us": 50.0}}, {"scenario": {"decision_us": 1.0}}]
    ended = 0
    for env in envs:
        env.seed(4)
        env.set_options(options)
    got, expected = (env.reset() for env in envs)
    for step in range(150):
        np.testing.assert_equal(got, expected, err_msg=f"step {step}")
        np.testing.assert_equal(envs[0].reset_infos, envs[1].reset_infos)
        masks = get_action_masks(envs[0])
        np.testing.assert_array_equal(masks, get_action_masks(envs[1]))
        actions = (rng.random(masks.shape) * masks).argmax(axis=1)
        (got, rewards, dones, infos), (expected, *rest) = (env.step(actions) for env in envs)
        np.testing.assert_array_equal(rewards, rest[0])
        assert (rewards.dtype, dones.dtype) == (np.float32, np.bool_)
        np.testing.assert_array_equal(dones, rest[1])
        for done, info, expected_info in zip(dones, infos, rest[2], strict=True):
            if done:
                assert_same_infos(info, expected_info)
            else:
                assert info == {}
        ended += int(dones.sum())
    assert ended >= 5
    envs[0].reset()
    *_, dones, _ = envs[0].step(np.zeros(3, np.int64))
    assert not dones.any(), "options hold for one reset"


def test_masks_are_asked_for_once_a_step() -> None:
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

    env = adapter(4, scenario="Toy")
    env.reset()
    assert is_masking_supported(env)
    with patch.object(env.env, "action_masks", wraps=env.env.action_masks) as asked:
        assert get_action_masks(env).tolist() == [[True, True, True]] * 4
    asked.assert_called_once_with()
    assert [row.tolist() for row in env.env_method("action_masks", indices=2)] == [[True, True, True]]


def test_the_batch_of_infos_is_at_hand() -> None:
    env = adapter(2, scenario="Toy")
    env.reset()
    env.step(np.array([0, 1]))
    assert env.infos["elapsed_us"].tolist() == [100.0, 0.0]


def test_wrappers_of_stable_baselines() -> None:
    from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

    env = VecNormalize(adapter(2, scenario="Toy", horizon_us=100.0), norm_obs_keys=["device"])
    env.reset()
    _, _, dones, infos = env.step(np.array([0, 0]))
    assert dones.all()
    assert not np.array_equal(infos[0]["terminal_observation"]["device"], env.unwrapped.infos["final_obs"][0])
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
        VecMonitor(adapter(2, scenario="Toy"))


@pytest.mark.parametrize("make", ["native", "with a mode", "made"])
def test_videos_are_recorded(make: str, tmp_path: Path) -> None:
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecVideoRecorder

    pytest.importorskip("moviepy", exc_type=ImportError)
    if make == "made":
        env: VecEnv = make_vec_env(env_id("Toy"), n_envs=2)
    else:
        env = adapter(2, scenario="Toy", **({} if make == "native" else {"render_mode": "rgb_array"}))
    recorder = VecVideoRecorder(env, str(tmp_path), lambda step: step == 0, video_length=3)
    assert recorder.frames_per_sec == 10
    recorder.reset()
    shown = recorder.render()
    assert shown is not None
    assert all(image is not None and np.ptp(image) > 0 for image in env.get_images())
    for _ in range(4):
        recorder.step(np.zeros(2, np.int64))
    recorder.close()
    (film,) = tmp_path.iterdir()
    assert film.stat().st_size > 1_000


def test_a_film_may_begin_in_the_middle_of_long_episodes() -> None:
    """Later than there is room for at first, and after another episode."""
    from sb3_contrib.common.maskable.utils import get_action_masks

    arguments: dict[str, Any] = {"scenario": "InferenceBesideTraining", "horizon_us": 4000.0}
    env, alike = adapter(2, **arguments), [GpuSchedulingEnv(render_mode="rgb_array", **arguments) for _ in range(2)]
    assert env.render_mode == "rgb_array"
    env.seed(3)
    env.reset()
    for e, single in enumerate(alike):
        single.reset(seed=3 + e)
    rng, ended = np.random.default_rng(0), 0
    for _ in range(900):
        masks = get_action_masks(env)
        actions = (rng.random(masks.shape) * masks).argmax(axis=1)
        _, _, dones, _ = env.step(actions)
        for single, action, done in zip(alike, actions, dones, strict=True):
            single.step(int(action))
            if done:
                single.reset()
        ended += int(dones.sum())
    assert ended >= 1
    np.testing.assert_array_equal(env.get_images(), [single.render() for single in alike])


def test_an_episode_that_began_before_it_was_wrapped_is_not_drawn() -> None:
    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv

    plain = GpuSchedulingVectorEnv("Toy", num_envs=2, autoreset_mode="SAME_STEP")
    plain.reset(seed=0)
    env = Sb3VecEnv(plain)
    env.step(np.zeros(2, np.int64))
    with pytest.raises(InputError, match="it began, or its state was saved, in a vector environment without"):
        env.get_images()
    env.reset()
    assert len(env.get_images()) == 2


def test_what_it_refuses() -> None:
    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv

    with refused(InputError, "autoreset_mode", "NEXT_STEP", "stable-baselines3"):
        Sb3VecEnv(GpuSchedulingVectorEnv("Toy", num_envs=2))
    env = adapter(2, scenario="Toy")
    env.set_options({"scenaro": {}})
    with refused(InputError, "scenario"):
        env.reset()
    with refused(InputError, "object"):
        env.set_attr("wait_us", 3.0, indices=[0])


@pytest.mark.slow
def test_maskable_ppo_finds_the_best_schedule_of_toy() -> None:
    import torch
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.evaluation import evaluate_policy

    torch.set_num_threads(1)
    model = MaskablePPO(
        "MultiInputPolicy", adapter(16, scenario="Toy"), n_steps=32, batch_size=128, learning_rate=3e-3, seed=0
    )
    model.learn(6144)
    assert len(model.ep_info_buffer or ()) == 100
    mean, spread = evaluate_policy(model, adapter(2, scenario="Toy"), n_eval_episodes=2)
    assert mean == pytest.approx(-1.04)
    assert spread == 0.0


def test_the_adapter_keeps_returns_and_lengths() -> None:
    def play(env: Sb3VecEnv, steps: int) -> list[Any]:
        ended = []
        for _ in range(steps):
            _, _, _, infos = env.step(np.argmax(env.env.action_masks(), axis=1))
            ended += [(info["episode"]["r"], info["episode"]["l"]) for info in infos if info]
        return ended

    first, second = (adapter(5, **SHORT) for _ in range(2))
    first.seed(3)
    first.reset()
    play(first, 5)
    state = pickle.loads(pickle.dumps(first.save_state()))
    second.restore_state(state)
    expected = play(first, 40)
    assert expected
    assert play(second, 40) == expected


def test_the_reward_scale_is_for_rewards_alone() -> None:
    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv

    plain, scaled = (Sb3VecEnv(adapter(5, **SHORT).env, scale) for scale in (1.0, 4.0))
    returns = []
    for env in (plain, scaled):
        env.seed(3)
        env.reset()
        rewards, ends = [], []
        for _ in range(40):
            _, reward, _, infos = env.step(np.zeros(5, np.int64))
            rewards.append(reward)
            ends += [info["episode"]["r"] for info in infos if info]
        returns.append((np.array(rewards), ends))
    np.testing.assert_allclose(returns[1][0], 4.0 * returns[0][0], rtol=1e-6)
    assert returns[1][1] == returns[0][1]


def test_observations_in_place_are_refused() -> None:
    with refused(InputError, "copy=False", "env"):
        adapter(2, scenario="Toy", copy=False)
    # Learners look at those from before a step after it.
    env = adapter(2, scenario="Toy")
    before: Any = env.reset()
    kept = {name: table.copy() for name, table in before.items()}
    env.step(np.array([1, 1]))
    np.testing.assert_equal(before, kept)
