"""The placement rule: without weights it is FGD, it plays compiled as it is asked; FGD with knobs; trainings."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.agents.policy_file import write_game_policy
from gpusched_env.agents.training import train
from gpusched_env.agents.training.environments import validation_seeds
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.agents.cluster.rule import SHAPES, LearnedPlacement, PlacementPolicyInfo
from gpusched_env.games.fleet.agents.cluster.trainer import PlacementTraining
from gpusched_env.games.fleet.baselines.cluster.registry import PLACEMENT_SCHEDULERS
from gpusched_env.games.fleet.baselines.cluster.weighted import WeightedDescent, most_typical
from gpusched_env.games.fleet.cluster.fragmentation import typical_pods
from gpusched_env.games.fleet.cluster.shipped import shipped_problem
from gpusched_env.games.fleet.cluster_training import PlacementJudge
from gpusched_env.games.fleet.environment.cluster.env import ClusterPlacementEnv
from gpusched_env.games.fleet.environment.cluster.problems import RANDOM
from gpusched_env.games.fleet.experiments.cluster_game import GAME, run_placement_cell
from tests.refusals import refused

SEED = 11


def stored(path: Path, seed: int | None) -> LearnedPlacement:
    """A rule with all weights 0, or with random ones, from a file."""
    place = np.zeros(SHAPES["place"]) if seed is None else np.random.default_rng(seed).normal(0, 1, SHAPES["place"])
    write_game_policy(path, PlacementPolicyInfo(algorithm="none"), {"place": place.astype(np.float32)})
    return LearnedPlacement(path)


def test_without_weights_it_is_fgd(tmp_path: Path) -> None:
    agent, fgd = stored(tmp_path / "zero.npz", None), PLACEMENT_SCHEDULERS.make("fgd")
    for seed in range(3):
        assert agent.allocation(RANDOM, seed) == pytest.approx(fgd.allocation(RANDOM, seed))


def test_it_plays_as_it_is_asked(tmp_path: Path) -> None:
    agent = stored(tmp_path / "random.npz", 1)
    env = ClusterPlacementEnv()
    rows, _ = env.reset(seed=SEED)
    total, over, others, illegal = 0.0, False, 0, 0
    while not over:
        action = agent.choose(rows)
        others += action > 0
        rows, reward, over, _, info = env.step(action)
        total, illegal = total + reward, info["illegal_actions"]
    assert others > 0
    assert illegal == 0
    assert agent.allocation(RANDOM, SEED) == pytest.approx(total)


def test_fgd_with_knobs_at_rest_is_fgd_and_else_is_not() -> None:
    fgd = PLACEMENT_SCHEDULERS.make("fgd").allocation("gpuspec25", 42)
    assert PLACEMENT_SCHEDULERS.make("weighted-fgd").allocation("gpuspec25", 42) == pytest.approx(fgd)
    assert PLACEMENT_SCHEDULERS.make("weighted-fgd(packing=1.0)").allocation("gpuspec25", 42) != pytest.approx(fgd)


def test_fewer_typical_pods_are_the_first_of_them() -> None:
    problem = shipped_problem("default")
    every = typical_pods(problem.workload, problem.models)
    few = most_typical(every, 0.5)
    assert 0 < len(few.share) < len(every.share)
    assert few.share.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(few.cpu_milli, every.cpu_milli[: len(few.share)])
    assert len(most_typical(every, 0.95).share) == len(every.share)


def test_options_without_sense_are_refused() -> None:
    with refused(InputError, "typical", 0.99):
        PLACEMENT_SCHEDULERS.make("weighted-fgd(typical=0.99)")
    with refused(InputError, "weights"):
        WeightedDescent(packing=math.nan)


def test_a_training_without_weights_is_judged_as_fgd() -> None:
    config = PlacementTraining(validation_seeds=2).checked()
    zero = np.zeros(SHAPES["place"], np.float32)
    judged = PlacementJudge(config).judge(zero)  # type: ignore[abstract]
    field = GAME.tuned(None, ["fgd"], validation_seeds(config)[0], 2)
    cells = [cell for group in field.grid.groups(["fgd"], field.seeds) for cell in group]
    assert judged.costs == pytest.approx([run_placement_cell(cell).cost for cell in cells])
    assert judged.figures["points_above_fgd"] == pytest.approx(0.0, abs=1e-9)


def test_it_learns_alike_with_any_number_of_threads(tmp_path: Path) -> None:
    """Two steps; the first policy is judged, and the last."""
    settings = {"episodes": 2}
    curves = [
        train(
            PlacementTraining(settings=settings, timesteps=2_500, validation_seeds=2, threads=threads).checked(),
            tmp_path / str(threads),
            checkpoints=False,
        ).curve
        for threads in (1, 2)
    ]
    assert curves[0] == curves[1]
    assert len({point.cost for point in curves[0]}) == len(curves[0]) >= 2
