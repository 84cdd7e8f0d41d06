"""What a training is unless told otherwise."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from gpusched_env.agents.manifest import read_manifest
from gpusched_env.agents.policy_file import kind
from gpusched_env.agents.shipped import FOLDER, shipped_names, shipped_policy
from gpusched_env.agents.training import train
from gpusched_env.agents.training.config import DEFAULTS, config_of, defaults_for
from gpusched_env.agents.training.trainer import GameTraining, game_training_of
from gpusched_env.games.child_launches.agents.rule import NAME as DYNAMIC_PARALLELISM
from gpusched_env.games.child_launches.agents.rule import LearnedLaunches
from gpusched_env.games.child_launches.agents.trainer import LaunchTraining
from gpusched_env.games.fleet.agents.cluster.rule import NAME as CLUSTER_PLACEMENT
from gpusched_env.games.fleet.agents.cluster.rule import LearnedPlacement
from gpusched_env.games.fleet.agents.cluster.trainer import PlacementTraining
from gpusched_env.games.fleet.agents.rule import NAME as FLEET
from gpusched_env.games.fleet.agents.rule import LearnedFleet
from gpusched_env.games.fleet.agents.trainer import FleetTraining
from gpusched_env.games.task_queues.agents.rule import NAME as TASK_QUEUE
from gpusched_env.games.task_queues.agents.rule import LearnedForms
from gpusched_env.games.task_queues.agents.trainer import FormTraining
from gpusched_env.scenarios.games import GAMES
from gpusched_env.scenarios.scenario import load_scenario

Learned = LearnedLaunches | LearnedFleet | LearnedForms | LearnedPlacement
OF_GAMES: dict[str, tuple[type[GameTraining], Callable[[], Learned]]] = {
    DYNAMIC_PARALLELISM: (LaunchTraining, LearnedLaunches),
    CLUSTER_PLACEMENT: (PlacementTraining, LearnedPlacement),
    FLEET: (FleetTraining, LearnedFleet),
    TASK_QUEUE: (FormTraining, LearnedForms),
}
"""Of each game, its trainings and the scheduler of its shipped agent."""

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_toy_is_solved(seed: int, tmp_path: Path) -> None:
    """The best of all its schedules costs 1.040 (docs/toy.md)."""
    config = config_of({**defaults_for("Toy"), "scenario": load_scenario("Toy"), "seed": seed})
    assert train(config, tmp_path / "run").best.cost == pytest.approx(1.04)


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_agents_were_trained_with_them(name: str) -> None:
    (step,) = read_manifest(FOLDER / f"{name}.json").trainings
    program, command, scenario, *options = shlex.split(step.command)
    assert (program, command, scenario) == ("gpusched", "train", name)
    options = [option for option in options if option not in ("--resume", "--trust")]
    given = {}
    for option, value in zip(options[::2], options[1::2], strict=True):
        key, text = value.split("=") if option == "--set" else (option.removeprefix("--"), value)
        if key not in ("seed", "baselines", "out", "threads", "checkpoint_every"):
            given[key] = yaml.safe_load(text)
    defaults = defaults_for(name, given.get("algo"))
    if given:
        assert defaults == given
    # Without options a training takes all from the file.
    assert defaults["timesteps"] <= step.timesteps < 1.1 * defaults["timesteps"]
    if name in GAMES:
        assert OF_GAMES[name][1]().info.command == step.command
        return
    info = shipped_policy(load_scenario(name)).info
    assert (info.algorithm, kind(info.network)) == (defaults["algo"], defaults.get("policy", "rule"))


def test_they_are_settings_of_scenarios() -> None:
    for key in yaml.safe_load(DEFAULTS.read_text()):
        name, _, algo = key.partition(" --algo ")
        if name in OF_GAMES:
            game_training_of(OF_GAMES[name][0], defaults_for(name))
        else:
            config_of({**defaults_for(name, algo or None), "scenario": load_scenario(name)})
    assert defaults_for("ServingPoisson")["algo"] != "distillation"
    assert defaults_for("ServingPoisson", "distillation")["algo"] == "distillation"
    assert defaults_for("Toy", "dqn") == defaults_for("MyOwn") == {}
