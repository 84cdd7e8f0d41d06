"""What is drawn is played again from seed and actions: pictures are those of an episode recorded from its start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.vector import RecordVideo
from numpy.typing import NDArray

from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.errors import InputError
from gpusched_env.scheduling.commands import Wait
from tests.refusals import refused

CASES: list[dict[str, Any]] = [
    {"scenario": "InferenceBesideTraining", "horizon_us": 3_000.0},
    {"scenario": "PriorityFill", "horizon_us": 2_000.0, "commands": ["launch", "preempt", "partition"]},
    {"scenario": "ServingPoisson", "horizon_us": 4_000.0},
    {"scenario": "Toy", "device": "reference"},
]
FASTER: dict[str, Any] = {"scenario": {"decision_us": 2.0, "gpu": "h200-sxm"}}


def pair(mode: str = "rgb_array", **arguments: Any) -> tuple[GpuSchedulingEnv, GpuSchedulingEnv]:
    """One that is drawn as usual, and one that records from the start all that pictures show."""
    usual, recorded = (
        GpuSchedulingEnv(render_mode=mode, record=record, **arguments)  # type: ignore[arg-type]
        for record in (None, "kernels" if mode == "ansi" else "blocks")
    )
    return usual, recorded


def steps(*envs: GpuSchedulingEnv, seed: int = 0, **reset: Any) -> Iterator[int]:
    """The same random legal actions in all of them, to the end."""
    rng = np.random.default_rng(seed)
    over, count = False, 0
    while not over:
        action = int(rng.choice(np.flatnonzero(envs[0].action_masks())))
        results = [env.step(action) for env in envs]
        assert len({result[1:4] for result in results}) == 1
        over = results[0][2] or results[0][3]
        count += 1
        yield count


def same(one: GpuSchedulingEnv, other: GpuSchedulingEnv) -> Any:
    pictures = [env.render() for env in (one, other)]
    np.testing.assert_array_equal(*pictures)
    return pictures[0]


@pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["scenario"])
def test_pictures_are_those_of_a_recorded_episode(case: dict[str, Any], mode: str) -> None:
    envs = pair(mode, **case)
    for seed, options in ((3, None), (4, FASTER if "device" not in case else None)):
        for env in envs:
            env.reset(seed=seed, options=options)
        same(*envs)
        for count in steps(*envs, seed=seed):
            assert envs[0].device.timeline.detail == "jobs", "nothing is recorded"
            if count % 37 == 0:
                same(*envs)
        last = same(*envs)
    assert np.any(last != "" if mode == "ansi" else np.ptp(last) > 0)


def test_restored_states_are_drawn() -> None:
    """Also such as an environment without a mode has saved, and after another way was gone from there."""
    case = CASES[1]
    plain = GpuSchedulingEnv(**case)
    drawn, recorded = pair(**case)
    plain.reset(seed=5)
    recorded.reset(seed=5)
    drawn.reset(seed=6)
    drawn.render()
    for count in steps(plain, recorded, seed=1):
        if count == 40:
            break
    state, of_recorded = plain.save_state(), recorded.save_state()
    drawn.restore_state(state)
    same(drawn, recorded)
    for count in steps(drawn, recorded, seed=2):
        if count == 25:
            break
    same(drawn, recorded)
    drawn.restore_state(state)
    recorded.restore_state(of_recorded)
    for count in steps(drawn, recorded, seed=3):
        if count == 7:
            break
    same(drawn, recorded)


def test_the_episode_and_its_film_are_what_is_drawn(tmp_path: Path) -> None:
    drawn, recorded = pair("rgb_array", **CASES[0])
    for env in (drawn, recorded):
        env.reset(seed=0)
    for _ in steps(drawn, recorded):
        pass
    films = [env.episode().animate(tmp_path / f"{e}.gif", frames=5) for e, env in enumerate((drawn, recorded))]
    assert films[0].read_bytes() == films[1].read_bytes()
    np.testing.assert_equal(asdict(drawn.episode().metrics), asdict(recorded.episode().metrics))


def test_an_episode_that_went_on_by_itself_is_not_drawn_as_another() -> None:
    env = GpuSchedulingEnv("Toy", render_mode="rgb_array")
    env.reset(seed=0)
    env.device.apply(Wait(10.0))
    env.device.advance()
    env.step(0)
    with refused(InputError, "actions"):
        env.render()
    env.reset(seed=0)
    assert env.render() is not None


# ---- vector environments ---------------------------------------------------------------------------

VECTOR: dict[str, Any] = {"scenario": "InferenceBesideTraining", "horizon_us": 100.0}


def several(**arguments: Any) -> GpuSchedulingVectorEnv:
    return GpuSchedulingVectorEnv(num_envs=3, render_mode="rgb_array", **VECTOR, **arguments)


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_a_vector_environment_draws_what_single_ones_draw(mode: str) -> None:
    envs = several(autoreset_mode=mode)
    alike = gym.vector.SyncVectorEnv(
        [lambda: GpuSchedulingEnv(render_mode="rgb_array", record="blocks", **VECTOR)] * 3,
        autoreset_mode=gym.vector.AutoresetMode[mode],
    )
    for env in (envs, alike):
        env.reset(seed=7)
    rng, ended = np.random.default_rng(0), 0
    for step in range(60):
        masks = envs.action_masks()
        actions = (rng.random(masks.shape) * masks).argmax(axis=1)
        _, _, terminations, truncations, _ = envs.step(actions)
        alike.step(actions)
        ended += int((terminations | truncations).sum())
        if step % 4 == 0:
            np.testing.assert_array_equal(envs.render(), alike.render())
    assert ended >= 3
    np.testing.assert_array_equal(
        envs.episode(1).timeline.blocks.array, alike.envs[1].unwrapped.episode().timeline.blocks.array
    )


def drive(envs: GpuSchedulingVectorEnv, count: int) -> NDArray[np.uint8]:
    """All of them by their first legal launch; what they draw then."""
    for _ in range(count):
        envs.step(envs.action_masks().argmax(axis=1) if count % 2 else np.zeros(3, np.int64))
    return np.array(envs.render())


def test_states_of_vector_environments_are_drawn_if_their_actions_are_known() -> None:
    envs = several()
    envs.reset(seed=1)
    drive(envs, 3)
    state = envs.save_state()
    expected = drive(envs, 5)
    other = several()
    other.reset(seed=2)
    other.restore_state(state)
    np.testing.assert_array_equal(drive(other, 5), expected)
    blind = GpuSchedulingVectorEnv(num_envs=3, **VECTOR)
    blind.reset(seed=1)
    other.restore_state(blind.save_state())
    with refused(InputError, "render_mode", "without"):
        other.render()
    other.step(np.zeros(3, np.int64))
    other.reset(seed=1)
    assert len(other.render() or ()) == 3


def test_pictures_of_different_gpus_have_one_size() -> None:
    envs = GpuSchedulingVectorEnv("Toy", num_envs=2, render_mode="rgb_array", scenarios=[{}, {"gpu": "h100-sxm"}])
    envs.reset(seed=0)
    small, large = envs.render() or ()
    assert small.shape == large.shape
    alone = GpuSchedulingEnv("Toy", render_mode="rgb_array")
    alone.reset(seed=0)
    height, width, _ = alone.render().shape
    np.testing.assert_array_equal(small[:height, :width], alone.render())


def test_without_a_mode_a_vector_environment_says_what_to_do() -> None:
    envs = GpuSchedulingVectorEnv("Toy", num_envs=1)
    envs.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode='rgb_array'"):
        assert envs.render() is None


def test_gymnasium_records_videos_of_vector_environments(tmp_path: Path) -> None:
    pytest.importorskip("moviepy", exc_type=ImportError)
    folder = tmp_path / "videos"
    envs = RecordVideo(several(), str(folder), step_trigger=lambda step: step == 0, video_length=4)
    envs.reset(seed=0)
    for _ in range(6):
        envs.step(np.zeros(3, np.int64))
    envs.close()
    (film,) = folder.iterdir()
    assert film.stat().st_size > 1_000
