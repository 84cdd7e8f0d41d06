"""Sweeps: what they try, what they keep, that they go on where they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpusched_env.agents.training.config import SETTINGS, TrainingConfig, config_of
from gpusched_env.agents.training.folder import read_config
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

if TYPE_CHECKING:
    import optuna

    from gpusched_env.experiments.sweep.local import SweepTrial

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def toy(**values: Any) -> TrainingConfig:
    return config_of(
        {
            "scenario": load_scenario("Toy"),
            "algo": "a2c",
            "timesteps": 128,
            "envs": 4,
            "n_steps": 8,
            "validation_seeds": 1,
            "validate_every": 64,
            **values,
        }
    )


@pytest.mark.parametrize("algo", [algo for algo in SETTINGS if algo not in ("cma-es", "rollouts", "distillation")])
def test_what_is_tried_is_valid_and_leaves_fixed_settings_alone(algo: str) -> None:
    import optuna

    from gpusched_env.experiments.sweep.local import SPACES, suggested

    config = config_of({"scenario": load_scenario("Toy"), "algo": algo, "learning_rate": 0.5})
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    tried = [suggested(config, frozenset({"learning_rate"}), study.ask()) for _ in range(20)]
    assert {c.settings["learning_rate"] for c in tried} == {0.5}
    assert all(0.99 <= c.settings["gamma"] <= 0.9999 for c in tried)
    for name in SPACES[algo].keys() - {"learning_rate"}:
        assert len({c.settings[name] for c in tried}) > 1, name


def test_what_is_tried_of_a_distillation_is_valid() -> None:
    import optuna

    from gpusched_env.experiments.sweep.local import suggested

    config = config_of({"scenario": load_scenario("ServingPoisson"), "algo": "distillation", "margin": 0.07})
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    tried = [suggested(config, frozenset({"margin"}), study.ask()).settings for _ in range(20)]
    assert {settings["margin"] for settings in tried} == {0.07}
    assert len({settings["n_epochs"] for settings in tried}) > 1


def test_what_is_tried_of_a_search_is_valid() -> None:
    import optuna

    from gpusched_env.experiments.sweep.local import suggested

    config = config_of({"scenario": load_scenario("Toy"), "algo": "cma-es", "sigma": 0.7})
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    tried = [suggested(config, frozenset({"sigma"}), study.ask()).settings for _ in range(20)]
    assert {settings["sigma"] for settings in tried} == {0.7}
    assert {settings["episodes"] for settings in tried} == {1, 2, 4}


def test_what_is_tried_of_rollouts_is_valid() -> None:
    import optuna

    from gpusched_env.experiments.sweep.local import suggested

    config = config_of({"scenario": load_scenario("ServingPoisson"), "algo": "rollouts", "interval_us": 250, "hold": 3})
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    tried = [suggested(config, frozenset({"hold"}), study.ask()).settings for _ in range(20)]
    assert {settings["hold"] for settings in tried} == {3}
    assert len({settings["penalty"] for settings in tried}) == 20


def test_a_sweep_goes_on_where_it_was_cut_short(tmp_path: Path) -> None:
    import optuna

    from gpusched_env.experiments.sweep import local

    config = toy()
    told: list[SweepTrial] = []
    first = local.sweep(config, 2, tmp_path, on_trial=told.append)
    assert [(trial.number, trial.state) for trial in first] == [(0, "complete"), (1, "complete")]
    assert told == first
    # A kill leaves a trial that runs for ever.
    study = optuna.load_study(study_name=local.STUDY, storage=f"sqlite:///{tmp_path / local.STORAGE}")
    study.ask()
    went_on = local.sweep(config, 3, tmp_path)
    assert went_on[:2] == first
    assert [trial.state for trial in went_on] == ["complete", "complete", "failed", "complete"]
    assert len({str(trial.drawn) for trial in went_on if trial.state == "complete"}) == 3
    trained = read_config(tmp_path / "trials" / "0003" / "config.yaml")
    assert trained.settings["learning_rate"] == went_on[3].drawn["learning_rate"]
    assert trained.settings["gamma"] == pytest.approx(1 - 1 / went_on[3].drawn["horizon_decisions"])
    with refused(InputError, "timesteps"):
        local.sweep(toy(timesteps=64), 3, tmp_path)


def test_a_trial_that_falls_behind_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import optuna
    from optuna.trial import TrialState

    from gpusched_env.experiments.sweep import local

    def judge(trial: optuna.Trial) -> bool:
        return trial.number == 1

    monkeypatch.setattr(optuna.Trial, "should_prune", judge)
    tried = local.sweep(toy(timesteps=640), 2, tmp_path)
    assert [trial.state for trial in tried] == ["complete", "pruned"]
    steps = [json.loads((tmp_path / f"trials/{n:04d}/result.json").read_text())["timesteps"] for n in (0, 1)]
    assert steps[0] >= 640
    assert 64 <= steps[1] < 640
    study = optuna.load_study(study_name=local.STUDY, storage=f"sqlite:///{tmp_path / local.STORAGE}")
    assert study.trials[1].state is TrialState.PRUNED


def test_the_table_has_the_best_first() -> None:
    from gpusched_env.experiments.sweep.local import SweepTrial, table

    def tried(number: int, state: str, cost: float | None) -> SweepTrial:
        return SweepTrial(
            number=number, state=state, cost=cost, drawn={"n_steps": 8, "learning_rate": 0.00123}, folder=""
        )

    trials = [tried(0, "complete", 3.0), tried(1, "pruned", 1.0), tried(2, "complete", 2.0), tried(3, "failed", None)]
    shown = table(trials)
    assert list(shown.columns[0].cells) == ["2", "0"]
    assert list(shown.columns[2].cells) == ["n_steps=8, learning_rate=0.00123"] * 2
    assert shown.title == "2 complete, 1 pruned, 1 failed"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_local_ray_cluster_runs_the_same_search(tmp_path: Path) -> None:
    pytest.importorskip("ray.tune")
    from gpusched_env.experiments.sweep import cluster

    tried = cluster.sweep(toy(), 2, tmp_path, "local")
    assert [trial.state for trial in tried] == ["complete", "complete"]
    for trial in tried:
        config = read_config(Path(trial.folder) / "config.yaml")
        assert config.settings["gamma"] == trial.drawn["gamma"]
        best = json.loads((Path(trial.folder) / "result.json").read_text())["best"]["cost"]
        assert trial.cost is not None
        assert trial.cost >= best
    assert tried[0].drawn != tried[1].drawn
