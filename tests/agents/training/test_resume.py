"""A training that was killed and resumed ends with the weights of one that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
import yaml

import gpusched_env
from gpusched_env.agents.training import train
from gpusched_env.agents.training.config import TrainingConfig, config_of
from gpusched_env.agents.training.folder import Checkpoints, read_config
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

if TYPE_CHECKING:
    from gpusched_env.agents.training.progress import TrainingProgress

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


ENDLESS = {"jobs": None, "arrivals": {"kind": "closed-loop", "think_us": 50.0}}
LONG = load_scenario("Toy", tenants={"batch": ENDLESS, "urgent": ENDLESS}, horizon_us=5000.0)
"""Episodes of some fifty decisions of each tenant."""


def small(algo: str, **values: Any) -> TrainingConfig:
    """A training of seconds whose episodes outlast its rollouts, each drawn anew; five checkpoints or so."""
    rollout = {"n_steps": 16, "batch_size": 32, "n_epochs": 2}
    settings = {
        "maskable-ppo": rollout,
        "ppo": rollout,
        "recurrent-ppo": {**rollout, "n_steps": 8},
        "a2c": {"n_steps": 8},
        "dqn": {"buffer_size": 300, "learning_starts": 100, "batch_size": 16, "target_update_interval": 64},
    }
    return config_of(
        {
            "scenario": LONG,
            "algo": algo,
            "timesteps": 600,
            "envs": 4,
            "randomise": {"rates": [0.5, 2.0]},
            "validation_seeds": 1,
            "validate_every": 300,
            "checkpoint_every": 150,
            **settings[algo],
            **values,
        }
    )


def weights(path: Path) -> dict[str, Any]:
    """Parameters and optimiser states of a saved model."""
    from stable_baselines3.common.save_util import load_from_zip_file

    _, parameters, _ = load_from_zip_file(path, device="cpu")
    return parameters


def assert_same(got: Any, expected: Any) -> None:
    import torch

    if isinstance(expected, dict):
        assert got.keys() == expected.keys()
        for key, value in expected.items():
            assert_same(got[key], value)
    elif isinstance(expected, (list, tuple)):
        for a, b in zip(got, expected, strict=True):
            assert_same(a, b)
    elif isinstance(expected, torch.Tensor):
        assert torch.equal(got, expected)
    else:
        assert got == expected


@pytest.mark.parametrize("algo", ["maskable-ppo", "ppo", "recurrent-ppo", "a2c", "dqn"])
def test_a_stopped_training_goes_on_exactly(algo: str, tmp_path: Path) -> None:
    import torch

    config = small(algo)
    whole = train(config, tmp_path / "whole")
    kept = Checkpoints(tmp_path / "whole" / "checkpoints")

    class Cut(Exception):
        """Stands for a kill in the middle of a rollout."""

    def cut(progress: TrainingProgress) -> None:
        if progress.timesteps > 400:
            raise Cut

    with pytest.raises(Cut):
        train(config, tmp_path / "cut", watch=cut)
    # What a kill leaves of files that were being written.
    for stale in (".best.8fj2.partial.zip", "checkpoints/.000000000600.k2x0.partial"):
        (tmp_path / "cut" / stale).touch()
    # What a new process would have: other states of all generators.
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    torch.manual_seed(1)
    seen: list[int] = []
    resumed = train(config, tmp_path / "cut", resume=True, watch=lambda progress: seen.append(progress.timesteps))
    assert 0 < seen[0] <= 400, "it must go on from a checkpoint, not from the start"
    assert_same(weights(tmp_path / "cut" / "final.zip"), weights(tmp_path / "whole" / "final.zip"))
    assert_same(weights(tmp_path / "cut" / "best.zip"), weights(tmp_path / "whole" / "best.zip"))
    assert resumed.curve == whole.curve
    assert not [found for found in (tmp_path / "cut").rglob(".*") if found.is_file()]
    assert Checkpoints(tmp_path / "cut" / "checkpoints").steps() == kept.steps()
    kept.file(kept.steps()[-1]).unlink()
    with pytest.raises(AssertionError):
        assert_same(kept.last()["learner"]["parameters"], weights(tmp_path / "whole" / "final.zip"))


@pytest.mark.long
def test_a_killed_process_is_resumed_by_the_same_command(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_text(yaml.safe_dump(msgspec.to_builtins(LONG)))
    command = [
        *(sys.executable, "-m", "gpusched_env.experiments.cli", "train", "long.yaml"),
        *("--timesteps", "1500", "--envs", "4", "--baselines", "none", "--algo", "maskable-ppo"),
        *("--set", "n_steps=32", "--set", "batch_size=32", "--set", "validation_seeds=1"),
        *("--set", "checkpoint_every=128"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(gpusched_env.__file__).parents[1])}

    killed = subprocess.Popen([*command, "--out", "killed"], cwd=tmp_path, env=environment)
    kept = Checkpoints(tmp_path / "killed" / "checkpoints")
    while not any(kept.steps()):
        assert killed.poll() is None
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert not (tmp_path / "killed" / "final.zip").exists()
    subprocess.run([*command, "--out", "killed", "--resume"], cwd=tmp_path, env=environment, check=True)
    train(read_config(tmp_path / "killed" / "config.yaml"), tmp_path / "whole")
    assert_same(weights(tmp_path / "killed" / "final.zip"), weights(tmp_path / "whole" / "final.zip"))


def test_only_the_same_training_is_resumed(tmp_path: Path) -> None:
    config = small("a2c", timesteps=64)
    first = train(config, tmp_path)
    with refused(InputError, "training"):
        train(config, tmp_path)
    with refused(InputError, "0 there, 1 now", "settings.gamma", "0.999 there, 0.9 now"):
        train(small("a2c", timesteps=64, seed=1, gamma=0.9), tmp_path, resume=True)
    assert train(config, tmp_path, resume=True).curve == first.curve
    longer = train(small("a2c", timesteps=128), tmp_path, resume=True)
    assert longer.timesteps == 128
    assert longer.curve[: len(first.curve)] == first.curve


def test_killed_before_the_first_checkpoint_it_starts_anew(tmp_path: Path) -> None:
    config = small("a2c", timesteps=64)
    expected = train(config, tmp_path / "whole")
    folder = tmp_path / "early"
    folder.mkdir()
    for name in ("config.yaml", "validation.json"):
        (folder / name).write_bytes((tmp_path / "whole" / name).read_bytes())
    assert train(config, folder, resume=True).curve == expected.curve


@pytest.mark.parametrize("timesteps", [64, 128], ids=["completed", "prolonged"])
@pytest.mark.parametrize("name", ["best.zip", "best.npz"])
def test_a_training_without_its_best_policy_does_not_go_on(name: str, timesteps: int, tmp_path: Path) -> None:
    train(small("a2c", timesteps=64), tmp_path)
    whole = (tmp_path / name).read_bytes()
    for damaged in (whole[: len(whole) // 2], None):
        (tmp_path / name).unlink()
        if damaged is not None:
            (tmp_path / name).write_bytes(damaged)
        with refused(InputError, name, "missing"):
            train(small("a2c", timesteps=timesteps), tmp_path, resume=True)
        (tmp_path / name).write_bytes(whole)
    assert train(small("a2c", timesteps=timesteps), tmp_path, resume=True).timesteps == timesteps


@pytest.mark.parametrize("name", ["tensorboard", "checkpoints"])
def test_a_file_in_place_of_a_folder_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"x")
    with refused(InputError, name, "folder"):
        train(small("a2c", timesteps=64), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
