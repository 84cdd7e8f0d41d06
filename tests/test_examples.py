"""The trainers in one file that docs/training-in-one-file.md explains: they run, and learn what they say they do."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"
BRIEF = ["--scenario", "Toy", "--timesteps", "512", "--envs", "4"]
PNG = b"\x89PNG"

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.long
def test_a_trainer_in_one_file_writes_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.chdir(tmp_path)
    main = runpy.run_path(str(EXAMPLES / "train_ppo.py"))["main"]
    given = ["--steps", "32", "--batch", "64", "--validate-every", "256", "--evaluation-seeds", "2", "--out", "run"]
    costs = main([*BRIEF, *given])
    assert costs.keys() == {"pass-through", "agent"}
    assert costs["pass-through"] == pytest.approx(1.23)
    assert json.loads((tmp_path / "run" / "evaluation.json").read_text()) == costs
    assert (tmp_path / "run" / "learning.png").read_bytes().startswith(PNG)
    assert (tmp_path / "run" / "model.zip").is_file()
    assert "512 decisions: validation cost" in capsys.readouterr().out
    (board,) = (tmp_path / "run").glob("MaskablePPO_*")
    events = EventAccumulator(str(board))
    events.Reload()
    validations = [point.value for point in events.Scalars("validation/cost")]
    assert min(validations) == pytest.approx(costs["agent"], rel=1e-5), "all episodes of Toy are the same"
    assert len(events.Scalars("episode/cost")) > 1


def test_the_curve_has_one_mean_a_step() -> None:
    means_by_step = runpy.run_path(str(EXAMPLES / "train_ppo.py"))["means_by_step"]
    steps, means = means_by_step([(64, 4.0), (64, 2.0), (96, 5.0), (128, 1.0), (128, 1.0), (128, 4.0)])
    assert (steps.tolist(), means.tolist()) == ([64, 96, 128], [3.0, 5.0, 2.0])


@pytest.mark.slow
def test_weights_and_biases_gets_settings_curve_and_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a stand-in for its package, which is no dependency."""
    monkeypatch.chdir(tmp_path)
    told: dict[str, Any] = {}
    wandb: Any = ModuleType("wandb")
    wandb.init = lambda **given: told.update(given)
    wandb.log, wandb.Image, wandb.finish = told.update, Path, lambda: told.update(finished=True)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    main = runpy.run_path(str(EXAMPLES / "train_ppo.py"))["main"]
    costs = main([*BRIEF, "--evaluation-seeds", "1", "--out", "run", "--wandb", "mine"])
    assert (told["project"], told["sync_tensorboard"], told["config"]["envs"]) == ("mine", True, 4)
    assert {name: told[name] for name in costs} == costs
    assert told["learning"].read_bytes().startswith(PNG)
    assert told["finished"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_rllib_learns_to_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    main = runpy.run_path(str(EXAMPLES / "train_rllib.py"))["main"]
    costs = main([*BRIEF[:2], "--timesteps", "4000", "--envs", "4", "--batch", "1000"])
    assert costs[-1] < costs[0] < 8.0


@pytest.mark.slow
def test_the_block_of_the_readme_learns_what_one_can_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of the last twenty training episodes, and what the policy costs on seeds of its own."""
    monkeypatch.chdir(tmp_path)
    found = runpy.run_path(str(EXAMPLES / "readme_training.py"), run_name="__main__")
    reference, agent = (found["result"].interval(name, "cost").mean for name in found["result"].schedulers)
    assert agent < 0.6 * reference
    costs = found["costs"]
    assert sum(costs[-20:]) < 0.8 * sum(costs[:20])
    assert (tmp_path / "runs" / "learning.png").read_bytes().startswith(PNG)
