"""Training by rollouts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.policies.serve import MARGINS, ServeTerm, Way
from gpusched_env.agents.training import train
from gpusched_env.agents.training.config import TrainingConfig, config_of
from gpusched_env.agents.training.folder import Checkpoints
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

if TYPE_CHECKING:
    from gpusched_env.agents.training.progress import TrainingProgress
    from gpusched_env.agents.training.rollouts import RidgeFit

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def serving(**values: Any) -> TrainingConfig:
    return config_of(
        {
            "scenario": load_scenario("ServingPoisson", horizon_us=8000.0),
            "algo": "rollouts",
            "interval_us": 250.0,
            "timesteps": 3000,
            "episodes": 1,
            "states": 0.3,
            "horizon_us": 2000.0,
            "validation_seeds": 1,
            "validate_every": 1500,
            "checkpoint_every": 500,
            **values,
        }
    )


def learnt(folder: Path) -> RidgeFit:
    """What the last checkpoint has."""
    found: RidgeFit = Checkpoints(folder / "checkpoints").last()["learner"]["fit"]
    return found


def test_a_fit_gives_back_the_line_that_gains_lie_on() -> None:
    """Gains of -0.5 times what is seen ahead, plus 0.1 for the way alone: what the rule has anyway is taken off."""
    from gpusched_env.agents.training.rollouts import TRIED, RidgeFit

    rng = np.random.default_rng(0)
    fit = RidgeFit()
    assert not fit.weights(1.0, 0.5)["value"].any(), "nothing is known"
    for _ in range(4000):
        for way in TRIED:
            terms = rng.standard_normal(len(ServeTerm))
            terms[ServeTerm.ONE] = 1.0
            fit.add(way, terms, -0.5 * terms[ServeTerm.AHEAD] + 0.1 * way + rng.normal(0.0, 0.1))
    value = fit.weights(1.0, 0.03)["value"]
    for way in TRIED:
        expected = np.zeros(len(ServeTerm))
        expected[ServeTerm.ONE] = 0.1 * way + MARGINS[way] - 0.03
        expected[ServeTerm.AHEAD] = -0.5 + 1.0
        np.testing.assert_allclose(value[way], expected, atol=0.01)
    assert not value[Way.WIDE].any(), "it is not tried"


def test_a_penalty_holds_back_what_few_pairs_say() -> None:
    from gpusched_env.agents.training.rollouts import RidgeFit

    fit = RidgeFit()
    terms = np.zeros(len(ServeTerm))
    terms[ServeTerm.ONE] = 1.0
    fit.add(Way.BESIDE, terms, 8.0)
    assert fit.weights(3.0, 0.0)["value"][Way.BESIDE, ServeTerm.ONE] == pytest.approx(2.0 + MARGINS[Way.BESIDE])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a training that was not stopped."""
    out = tmp_path_factory.mktemp("rollouts") / "whole"
    trained = train(serving(), out)
    assert trained.timesteps >= 3000
    assert len(trained.curve) >= 2
    return out


def test_it_tries_actions_and_learns_of_them(whole: Path) -> None:
    fit = learnt(whole)
    assert fit.pairs > 50
    # Every pair has a one: so many were tried in each way.
    assert (fit.products[:, ServeTerm.ONE, ServeTerm.ONE] > 10).all()
    policy = ExportedPolicy.load(whole / "best.npz")
    assert policy.info.algorithm == "rollouts"
    assert policy.info.actions.interval_us == 250.0


def test_a_stopped_training_goes_on_exactly(whole: Path, tmp_path: Path) -> None:
    def stop(progress: TrainingProgress) -> bool:
        return progress.timesteps < 1000

    assert train(serving(), tmp_path / "cut", watch=stop).stopped
    train(serving(timesteps=3001), tmp_path / "cut", resume=True)
    np.testing.assert_array_equal(learnt(tmp_path / "cut").gains, learnt(whole).gains)


def test_threads_make_no_difference(whole: Path, tmp_path: Path) -> None:
    train(serving(threads=3), tmp_path / "run")
    np.testing.assert_array_equal(learnt(tmp_path / "run").gains, learnt(whole).gains)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"policy": "slots"}, "rollouts has no policy 'slots'; it has serve"),
        ({"states": 0.0}, "states"),
        ({"sigma": 0.1}, "no setting 'sigma'"),
    ],
)
def test_what_does_not_fit_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        serving(**values)


def test_without_an_interval_nothing_is_begun(tmp_path: Path) -> None:
    with refused(InputError, "interval"):
        train(serving(interval_us=0.0), tmp_path / "run")
    assert not (tmp_path / "run").exists()
