"""Trainings that begin with a trained policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusched_env.agents.policy_file import read_policy
from gpusched_env.agents.training import train
from gpusched_env.agents.training.config import TrainingConfig, config_of
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

TOY = load_scenario("Toy")


def small(**values: Any) -> TrainingConfig:
    return config_of(
        {
            "scenario": TOY,
            "policy": "slots",
            "timesteps": 128,
            "envs": 4,
            "n_steps": 16,
            "batch_size": 32,
            "validation_seeds": 1,
            "validate_every": 64,
            "checkpoint_every": 1000,
            **values,
        }
    )


def actors(folder: Path) -> dict[str, Any]:
    from tests.agents.training.test_resume import weights

    found = weights(folder / "final.zip")["policy"]
    return {name: array for name, array in found.items() if ".actor." in name}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained") / "first"
    train(small(), folder)
    return folder


@pytest.mark.parametrize("name", ["best.zip", "best.npz"])
def test_it_decides_at_first_as_the_policy_that_it_begins_with(name: str, trained: Path, tmp_path: Path) -> None:
    from tests.agents.training.test_resume import weights

    again = train(small(begin_with=str(trained / name), seed=12), tmp_path / "again")
    first = train(small(seed=12), tmp_path / "other").curve[0]
    best = min(entry.cost for entry in train(small(), trained, resume=True).curve)
    assert again.curve[0].cost == best
    assert weights(tmp_path / "again" / "final.zip").keys() == weights(trained / "final.zip").keys()
    assert first.cost != best, "without it another policy begins"


def test_while_the_critic_learns_the_actor_stays(trained: Path, tmp_path: Path) -> None:
    from tests.agents.training.test_resume import assert_same

    begun = {"begin_with": str(trained / "best.npz"), "seed": 5}
    train(small(**begun, critic_first=10_000), tmp_path / "still")
    kept = actors(tmp_path / "still")
    for name, array in read_policy(trained / "best.npz")[1].items():
        np.testing.assert_array_equal(kept[f"mlp_extractor.actor.{name}"].numpy(), array, err_msg=name)
    train(small(**begun, critic_first=64), tmp_path / "moves")
    with pytest.raises(AssertionError):
        assert_same(actors(tmp_path / "moves"), kept)


def test_what_does_not_fit_is_named(trained: Path, tmp_path: Path) -> None:
    wide = {"policy_kwargs": {"sizes": {"priorities": 2, "width": 16}}}
    with refused(InputError, "shape"):
        train(small(begin_with=str(trained / "best.npz"), **wide), tmp_path / "wide")
    with refused(InputError, "policy"):
        train(small(begin_with=str(trained / "best.npz"), policy="mlp"), tmp_path / "mlp")
    with refused(InputError, "policy"):
        train(small(begin_with=str(trained / "best.zip"), policy="mlp"), tmp_path / "mlp")
    (tmp_path / "no.zip").write_bytes(b"none")
    with refused(InputError, "model"):
        train(small(begin_with=str(tmp_path / "no.zip")), tmp_path / "none")
    search = {"scenario": TOY, "algo": "cma-es", "begin_with": str(trained / "best.npz")}
    with refused(InputError, "weights"):
        train(config_of(search), tmp_path / "none")
    rollouts = {"scenario": TOY, "algo": "rollouts", "interval_us": 100.0, "begin_with": "best.npz"}
    with refused(InputError, "rollouts"):
        train(config_of(rollouts), tmp_path / "none")
    assert [found.name for found in tmp_path.iterdir()] == ["no.zip"], "nothing is half begun"
