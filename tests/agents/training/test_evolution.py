"""CMA-ES on the rule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.policies import serve as serve_rule
from gpusched_env.agents.policies.rule import SHAPES
from gpusched_env.agents.policies.serve import ServeTerm, Way
from gpusched_env.agents.policies.sizes import ServeSizes
from gpusched_env.agents.policy_file import write_policy
from gpusched_env.agents.rollout import evaluate_costs
from gpusched_env.agents.training import Trained, train
from gpusched_env.agents.training.config import TrainingConfig, config_of
from gpusched_env.agents.training.folder import Checkpoints
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from tests.agents.made_up import made_up
from tests.refusals import refused

if TYPE_CHECKING:
    from gpusched_env.agents.training.progress import TrainingProgress

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def toy(**values: Any) -> TrainingConfig:
    return config_of(
        {
            "scenario": load_scenario("Toy"),
            "algo": "cma-es",
            "timesteps": 4000,
            "episodes": 1,
            "population": 8,
            "validation_seeds": 1,
            "validate_every": 1000,
            "checkpoint_every": 1000,
            **values,
        }
    )


def mean(folder: Path) -> NDArray[np.float64]:
    """Where the search stands at its last checkpoint."""
    found: NDArray[np.float64] = Checkpoints(folder / "checkpoints").last()["learner"]["optimiser"]["_mean"]
    return found


def test_it_finds_a_better_rule_than_launching_everything(tmp_path: Path) -> None:
    """In Toy launching all that there is costs 1.23; the best of all schedules costs 1.04 (docs/toy.md)."""
    trained = train(toy(timesteps=6000, population=32), tmp_path / "toy")
    assert trained.curve[0].cost == pytest.approx(1.23)
    assert trained.best.cost < 1.11
    policy = ExportedPolicy.load(tmp_path / "toy" / "best.npz")
    assert policy.info.algorithm == "cma-es"
    assert evaluate_costs(policy, load_scenario("Toy"), [1_000_000_000]).costs[0] == pytest.approx(trained.best.cost)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Path]:
    """A search on one thread, and its folder."""
    out = tmp_path_factory.mktemp("search") / "whole"
    return train(toy(), out), out


def test_a_stopped_search_goes_on_exactly(whole: tuple[Trained, Path], tmp_path: Path) -> None:
    def stop(progress: TrainingProgress) -> bool:
        return progress.timesteps < 1500

    assert train(toy(), tmp_path / "cut", watch=stop).stopped
    cut = train(toy(timesteps=4001), tmp_path / "cut", resume=True)
    assert cut.curve[-1].costs == whole[0].curve[-1].costs
    assert cut.timesteps == whole[0].timesteps
    assert mean(tmp_path / "cut").tolist() == mean(whole[1]).tolist()


def test_threads_make_no_difference(whole: tuple[Trained, Path], tmp_path: Path) -> None:
    assert train(toy(threads=3), tmp_path / "run").curve == whole[0].curve


def test_what_is_not_searched_stays_zero(tmp_path: Path) -> None:
    train(toy(search=["launch", "level"], sigma=3.0, timesteps=1000), tmp_path / "run")
    weights = ExportedPolicy.load(tmp_path / "run" / "best.npz").weights
    first = int(np.prod(SHAPES["launch"]))
    share = weights[first : first + int(np.prod(SHAPES["share"]))]
    assert not share.any()
    assert weights[:first].any()


def test_of_the_serve_rule_single_terms_can_be_searched(tmp_path: Path) -> None:
    from gpusched_env.agents.training.evolution import searched_weights

    serve: dict[str, Any] = {"policy": "serve", "interval_us": 100.0}
    found = searched_weights(toy(**serve, search=["alone.spare", "beside.one"]), serve_rule.shapes())
    assert found is not None
    expected = [[Way.BESIDE, ServeTerm.ONE], [Way.ALONE, ServeTerm.SPARE]]
    assert np.argwhere(found["value"]).tolist() == expected
    with refused(InputError, "'alone.spar'", "alone.spare"):
        train(toy(**serve, search=["alone.spar"]), tmp_path / "run")
    with refused(InputError, "'bias'", "weights"):
        train(toy(search=["bias"]), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_episodes_count_alike_and_one_that_costs_nothing_is_no_division_by_zero() -> None:
    """Medians of 10, 2 and 0; the last counts as one of 6."""
    from gpusched_env.agents.training.evolution import relative_to_median

    costs = np.array([[10.0, 1.0, 0.0], [20.0, 2.0, 0.0], [5.0, 3.0, 3.0]])
    expected = [[1.0, 0.5, 0.0], [2.0, 1.0, 0.0], [0.5, 1.5, 0.5]]
    assert relative_to_median(costs).tolist() == expected
    assert relative_to_median(np.zeros((4, 2))).tolist() == np.zeros((4, 2)).tolist()


def test_randomised_episodes_are_drawn_anew_each_generation() -> None:
    """A policy costs the same in a generation whenever it plays, and something else in the next one."""
    from gpusched_env.agents.training.evolution import Population

    config = toy(randomise={"rates": [0.5, 2.0], "gpus": ["toy-4sm", "h100-sxm"]}, episodes=4)
    policy = made_up("Toy", "rule")
    costs = []
    for generation in (0, 1, 0):
        population, told = Population(config, policy), []
        found, decisions = population.costs([policy.weights, policy.weights], generation, told.append)
        costs.append(found)
        population.close()
        assert len(told) == 2, "one for each candidate"
        assert 0 < told[0] < told[1] == decisions
    assert costs[0].shape == (2, 4)
    np.testing.assert_array_equal(costs[0][0], costs[0][1])
    np.testing.assert_array_equal(costs[0], costs[2])
    assert (costs[0] != costs[1]).any()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"policy": "slots"}, "cma-es has no policy 'slots'; it has rule"),
        ({"learning_rate": 0.1}, "no setting 'learning_rate'"),
        ({"population": 2}, "population"),
        ({"search": "bias"}, "search"),
        ({"search": []}, "search"),
    ],
)
def test_what_does_not_fit_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        toy(**values)


def test_the_rule_is_for_the_search_alone() -> None:
    with refused(InputError, "'rule'", "slots"):
        config_of({"scenario": load_scenario("Toy"), "algo": "ppo", "policy": "rule"})


def test_it_cannot_begin_with_an_imitation(tmp_path: Path) -> None:
    with refused(InputError, "imitation"):
        train(toy(imitation={"scheduler": "fifo"}), tmp_path / "run")


def test_it_begins_with_a_trained_rule(tmp_path: Path) -> None:
    """A search that takes no step away from where it begins ends there."""
    train(toy(), tmp_path / "first")
    first = ExportedPolicy.load(tmp_path / "first" / "best.npz")
    assert first.weights.any()
    train(toy(begin_with=str(tmp_path / "first" / "best.npz"), sigma=1e-12), tmp_path / "further")
    np.testing.assert_allclose(ExportedPolicy.load(tmp_path / "further" / "best.npz").weights, first.weights, atol=1e-6)


def test_a_search_of_the_serve_rule_begins_with_one_of_fewer_ways(tmp_path: Path) -> None:
    from gpusched_env.agents.training.evolution import first_weights

    info = msgspec.structs.replace(made_up("Toy", "serve", interval_us=100.0).info, network=ServeSizes(ways=2))
    value = np.arange(2 * len(ServeTerm), dtype=np.float32).reshape(2, -1)
    write_policy(tmp_path / "older.npz", info, {"value": value})
    first = first_weights(toy(policy="serve", interval_us=100.0, begin_with=str(tmp_path / "older.npz")))
    assert first is not None
    assert first["value"].tolist() == [*value.tolist(), [0.0] * len(ServeTerm)]
