"""``gpusched train`` and ``gpusched evaluate``: from a scenario to a row in the table."""

from __future__ import annotations

import itertools
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import yaml

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.experiments.cli import main
from gpusched_env.experiments.lib.names import new_scheduler
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
Run = Callable[..., int]
VECTOR = Path(__file__).parents[2] / "docs" / "vector-environments.md"


@pytest.fixture
def gpusched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the command line in this process, in an empty folder; returns the exit status."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["gpusched", *arguments])
        try:
            main()
        except SystemExit as ended:
            return int(ended.code or 0)
        return 0

    return run


@pytest.mark.long
def test_from_training_to_the_table(gpusched: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = (
        *("train", "Toy", "--out", "trained", "--seed", "3", "--baselines", "fifo,sjf"),
        *("--timesteps", "8000", "--set", "policy_kwargs.net_arch=[32,32]"),
    )
    assert gpusched(*command) == 0
    printed = capsys.readouterr()
    assert "Best baseline on the same episodes: sjf, 1.14" in printed.out
    assert "Written to trained: baselines.json, best.npz, best.zip, checkpoints, config.yaml, " in printed.out
    assert "validation cost" in printed.err
    # The optimum of the scenario (docs/toy.md).
    result = json.loads((tmp_path / "trained" / "result.json").read_text())
    assert result["best"]["cost"] == pytest.approx(1.04)
    assert result["baselines"] == {"fifo": pytest.approx(1.83), "sjf": pytest.approx(1.14)}
    written = yaml.safe_load((tmp_path / "trained" / "config.yaml").read_text())
    assert written["provenance"]["command"].startswith("gpusched train Toy --out trained")
    assert {"torch", "stable-baselines3", "gymnasium", "python"} <= written["provenance"]["versions"].keys()
    training = written["training"]
    assert (training["timesteps"], training["policy_kwargs"]) == (8000, {"net_arch": [32, 32]})
    assert (training["envs"], training["settings"]["learning_rate"]) == (16, 3e-3), "the scenario's own"
    assert gpusched(*command) == 2
    assert "go on with --resume" in capsys.readouterr().err
    assert gpusched(*command, "--resume") == 0

    evaluate = ("Toy", "--seeds", "2", "--schedulers", "fifo", "--workers", "1", "--json", "table.json", "--overwrite")
    assert gpusched("compare", "Toy", "--schedulers", "fifo,learned:trained", "--seeds", "1", "--workers", "1") == 0
    assert "learned:trained" in capsys.readouterr().out
    for model in ("trained", "trained/best.zip"):
        assert gpusched("evaluate", model, *evaluate) == 0
        table = json.loads((tmp_path / "table.json").read_text())["schedulers"]
        names = list(table)
        assert names[0].startswith("learned:trained/best.")
        assert names[1:] == ["fifo"]
        assert table[names[0]]["figures"]["cost"]["mean"] == pytest.approx(1.04)
        assert "fifo" in capsys.readouterr().out


def test_an_imitation_begins_as_good_as_its_teacher(gpusched: Run, tmp_path: Path) -> None:
    command = (
        *("train", "Toy", "--timesteps", "1", "--envs", "2", "--out", "trained", "--imitate", "fifo"),
        *("--set", "n_steps=2", "--set", "batch_size=4", "--imitate-episodes", "4", "--baselines", "none"),
        *("--set", "imitation.epochs=100", "--set", "imitation.learning_rate=0.003"),
    )
    assert gpusched(*command) == 0
    curve = json.loads((tmp_path / "trained" / "validation.json").read_text())["validations"]
    assert curve[0]["cost"] == pytest.approx(1.83), "what fifo costs (docs/toy.md)"


def test_a_recurrent_model_is_evaluated_as_it_is(gpusched: Run, tmp_path: Path) -> None:
    command = (
        *("train", "short.yaml", "--algo", "recurrent-ppo", "--timesteps", "64", "--envs", "2"),
        *("--set", "n_steps=32", "--set", "batch_size=32", "--baselines", "none", "--out", "trained"),
        *("--set", "validation_seeds=2"),
    )
    # A short episode: the file names the whole scenario.
    scenario = load_scenario("InferenceBesideTraining", horizon_us=4000.0, workload_sets=None)

    (tmp_path / "short.yaml").write_text(yaml.safe_dump(msgspec.to_builtins(scenario)))
    assert gpusched(*command) == 0
    assert not (tmp_path / "trained" / "best.npz").exists()
    best = json.loads((tmp_path / "trained" / "result.json").read_text())["best"]["costs"]
    problem = build_problem(scenario)
    for seed, expected in zip(range(1_000_000_000, 1_000_000_002), best, strict=True):
        scheduler = new_scheduler("learned:trained/best.zip")
        episode = run_episode(scheduler, problem, make_device("compiled"), seed)
        assert episode_metrics(episode).cost == pytest.approx(expected, rel=1e-12)
    other = episode_metrics(run_episode(make_scheduler("fifo"), problem, make_device("compiled"), 1_000_000_000))
    assert other.cost != pytest.approx(best[0], rel=1e-6)


def test_a_saved_model_goes_wherever_a_scheduler_does(
    gpusched: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The block for stable-baselines3 of the page of vector environments, and what stands below it."""
    blocks = re.findall(r"```(?:python|sh)\n(.*?)```", VECTOR.read_text(), re.DOTALL)
    block, commands = next((a, b) for a, b in itertools.pairwise(blocks) if 'model.save("runs/toy_ppo")' in a)
    exec(block.replace("1024", "512"), {})
    for command in commands.splitlines():
        program, *arguments = shlex.split(command)
        assert program == "gpusched"
        assert gpusched(*arguments, "--seeds", "1", "--workers", "1") == 0
        assert "learned:toy_ppo.npz" in capsys.readouterr().out
    same = ("--schedulers", "fifo", "--seeds", "1", "--workers", "1", "--json", "table.json")
    assert gpusched("evaluate", "runs/toy_ppo.zip", "Toy", *same) == 2
    assert "--trust" in capsys.readouterr().err
    assert not (tmp_path / "table.json").exists()
    assert gpusched("evaluate", "runs/toy_ppo.zip", "Toy", *same, "--trust") == 0
    again = (*same[2:], "--overwrite")
    assert gpusched("compare", "Toy", "--schedulers", "learned:runs/toy_ppo.zip", *again, "--trust") == 0
    ranking = ("lab", "rank", "Toy", "--schedulers", "fifo,learned:runs/toy_ppo.zip", *same[2:-1], "rank.json")
    assert gpusched(*ranking) == 2
    assert gpusched(*ranking, "--trust") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "Toy", "--algo", "ppq"), "did you mean 'ppo'"),
        (("train", "Toy", "--policy", "slot"), "has no policy 'slot'"),
        (("train", "Toy", "--set", "n_step=3"), "did you mean 'n_steps'"),
        (("train", "PriorityFill", "--lr", "0.1"), "settings of its own, for cma-es; --algo names another"),
        (("train", "Toy", "--imitate", "fifi"), "unknown scheduler 'fifi'"),
        (("train", "Toy", "--baselines", "fifi"), "unknown scheduler 'fifi'"),
        (("train", "Toy", "--randomise", "gpus=h1000"), "unknown GPU 'h1000'"),
        (("train", "Toy", "--algo", "dqn", "--imitate", "fifo"), "dqn cannot begin with an imitation"),
        (("train", "Toy", "--randomise", "speed=2"), "--randomise speed=2"),
        (("evaluate", "nowhere", "Toy"), "nowhere: no such file"),
        (("sweep", "Toy", "--algo", "ppq"), "did you mean 'ppo'"),
    ],
)
def test_wrong_input_is_named_and_leaves_nothing(
    gpusched: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert gpusched(*arguments) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_starts_without_learning_libraries() -> None:
    code = (
        "import sys, gpusched_env.experiments.cli; "
        "print({'torch', 'stable_baselines3', 'optuna', 'ray', 'tensorboard'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"
