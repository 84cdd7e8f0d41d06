"""``gpusched/ClusterPlacement-v0``: its return is the allocation, its first action FGD's, its copies step alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.environment.cluster.demand import demand_of, unfillable_milli
from gpusched_env.games.fleet.environment.cluster.drawn import drawn_problem
from gpusched_env.games.fleet.environment.cluster.encoding import PlacementFeature
from gpusched_env.games.fleet.environment.cluster.env import ClusterPlacementEnv
from gpusched_env.games.fleet.environment.cluster.problems import RANDOM, allocation_of, cluster_problem
from gpusched_env.games.fleet.environment.cluster.shortlist import CANDIDATES
from gpusched_env.games.fleet.environment.cluster.vector_env import ClusterPlacementVectorEnv
from tests.games.fleet.cluster.toys import HALF, ONE, TWO, toy
from tests.refusals import refused

TABLES = ("nodes.csv", "pods.csv")


@pytest.fixture
def small(tmp_path: Path) -> str:
    """Three nodes of two models, and pods of each class, as tables."""
    (tmp_path / TABLES[0]).write_text("cpu_milli,memory_mib,gpu,model,count\n8000,8000,2,A,2\n16000,16000,4,B,1\n")
    (tmp_path / TABLES[1]).write_text(
        "cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,count\n"
        "1000,500,1,400,,9\n2000,500,1,1000,A,3\n1000,500,2,1000,,2\n1000,1000,0,0,,3\n"
    )
    return ":".join(str(tmp_path / name) for name in TABLES)


def played(env: ClusterPlacementEnv, seed: int, choose: Any) -> tuple[float, dict[str, Any]]:
    """The return of an episode, and its last info."""
    _, info = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        observation, reward, over, _, info = env.step(choose(info["action_mask"]))
        assert env.observation_space.contains(observation)
        total += reward
    return total, info


def test_is_an_environment_of_gymnasium() -> None:
    check_env(ClusterPlacementEnv(), skip_render_check=True)


@pytest.mark.parametrize("name", [RANDOM, "gpuspec25"])
def test_the_first_action_is_that_of_fgd(name: str) -> None:
    total, info = played(ClusterPlacementEnv(name), 42, lambda mask: 0)
    assert total == pytest.approx(allocation_of(Policy.FGD, name, 42), abs=1e-9)
    assert info["allocation"] == pytest.approx(total, abs=1e-9)


def test_the_return_is_the_allocation_with_and_without_shaping(small: str) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        plain, info = played(ClusterPlacementEnv(small), seed, lambda mask, rng=rng: rng.choice(np.flatnonzero(mask)))
        assert plain == pytest.approx(info["episode_metrics"]["allocation"])
        rng = np.random.default_rng(seed)
        env = ClusterPlacementEnv(small, shaping=0.7)
        shaped, _ = played(env, seed, lambda mask, rng=rng: rng.choice(np.flatnonzero(mask)))
        assert shaped == pytest.approx(plain)


def test_masked_actions_are_those_of_fgd_and_counted(small: str) -> None:
    first, _ = played(ClusterPlacementEnv(small), 3, lambda mask: 0)
    masked, info = played(ClusterPlacementEnv(small), 3, lambda mask: CANDIDATES - 1)
    assert masked == first
    assert info["illegal_actions"] == info["pods"] - info["dropped"]


def test_candidates_are_nodes_that_differ() -> None:
    env = ClusterPlacementEnv("default")
    rows, info = env.reset(seed=42)
    count = int(info["action_mask"].sum())
    assert 1 < count <= CANDIDATES
    assert (rows[:count, PlacementFeature.PRESENT] == 1).all()
    assert not rows[count:].any()
    assert len(np.unique(rows[:count], axis=0)) == count


@pytest.mark.parametrize("mode", ["SAME_STEP", "NEXT_STEP"])
def test_copies_step_as_single_environments_do(small: str, mode: str) -> None:
    many = ClusterPlacementVectorEnv(small, num_envs=3, shaping=0.2, autoreset_mode=mode)
    singles = [ClusterPlacementEnv(small, shaping=0.2) for _ in range(3)]
    rows, infos = many.reset(seed=7)
    started = [env.reset(seed=7 + number) for number, env in enumerate(singles)]
    rng, over = np.random.default_rng(0), [False] * 3
    assert np.array_equal(rows, [row for row, _ in started])
    for _ in range(12):
        actions = [int(rng.choice(np.flatnonzero(mask))) if mask.any() else 0 for mask in infos["action_mask"]]
        rows, rewards, ends, _, infos = many.step(actions)
        for number, env in enumerate(singles):
            if over[number]:
                continue
            row, reward, over[number], _, info = env.step(actions[number])
            assert reward == pytest.approx(rewards[number])
            assert over[number] == ends[number]
            if over[number] and mode == "SAME_STEP":
                assert np.array_equal(infos["final_obs"][number], row)
                found = infos["final_info"]["episode_metrics"]["allocation"][number]
                assert found == pytest.approx(info["episode_metrics"]["allocation"])
            else:
                assert np.array_equal(rows[number], row)


def test_drawn_problems_are_their_seed() -> None:
    assert drawn_problem(5) is drawn_problem(5)
    drawn_problem.cache_clear()
    assert drawn_problem(5) == cluster_problem(RANDOM, 5) != drawn_problem(6)


def test_what_is_unfillable_by_hand() -> None:
    """Halves are a quarter of the demand, single GPUs a quarter, pairs a half."""
    game = toy([HALF, HALF, ONE, TWO])
    demand = demand_of(game.problem, game.state, game.pods)
    assert sorted(demand.share) == [0.25, 0.25, 0.5]
    assert unfillable_milli(game.state, game.pods, demand, 0) == 0.0
    game.state.cpu_left[0] = 5000  # Four halves, one GPU, no pair.
    assert unfillable_milli(game.state, game.pods, demand, 0) == 2000 - 0.25 * 2000 - 0.25 * 1000
    game.state.gpu_left[0] = 700, 1000, 0, 0  # One half and two, one GPU.
    assert unfillable_milli(game.state, game.pods, demand, 0) == 1700 - 0.25 * 1500 - 0.25 * 1000
    game.state.memory_left[0] = 20  # Two halves, one GPU.
    assert unfillable_milli(game.state, game.pods, demand, 0) == 1700 - 0.25 * 1000 - 0.25 * 1000


def test_bad_input_is_refused(small: str) -> None:
    with refused(InputError, "defualt", "default"):
        ClusterPlacementEnv("defualt")
    with refused(InputError, "shaping", -1.0):
        ClusterPlacementEnv(shaping=-1.0)
    with refused(InputError, "num_envs", 0):
        ClusterPlacementVectorEnv(num_envs=0)
    with refused(InputError, "DISABLED"):
        ClusterPlacementVectorEnv(autoreset_mode="DISABLED")
    env = ClusterPlacementEnv(small)
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with refused(InputError, CANDIDATES):
        env.step(CANDIDATES)
    many = ClusterPlacementVectorEnv(small, num_envs=2)
    many.reset(seed=0)
    with refused(InputError, "2 integers"):
        many.step([0])
