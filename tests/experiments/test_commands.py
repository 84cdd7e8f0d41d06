"""The names of commands, and typical mistakes: each has one answer, with its cause and its cure."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import typer

from gpusched_env.baselines.registry import scheduler_names
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.lib.names import USUAL, USUAL_WITH, all_schedulers, default_schedulers
from gpusched_env.experiments.lib.renamed import RENAMED, now_called
from gpusched_env.scenarios.scenario import load_scenario, scenario_names
from tests.conftest import Run

EVERYDAY = {"demo", "compare", "train", "evaluate", "import", "tune", "list", "reproduce"}


def test_the_help_shows_eight_everyday_commands_and_where_the_others_are(
    gpusched: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpusched("--help") == 0
    shown = capsys.readouterr().out
    assert gpusched() == 0
    assert capsys.readouterr().out == shown, "without a command, too"
    everyday, _, more = shown.rpartition("─ More ─")
    known = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    assert {name for name in known if f"│ {name} " in everyday} == EVERYDAY
    assert {name for name in known if f"│ {name} " in more} == known - EVERYDAY
    assert "lab" in known
    assert not known & set(RENAMED), "no two names for one thing"


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_works_and_says_the_new_one(old: str, gpusched: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpusched(old, "--help") == 0
    printed = capsys.readouterr()
    assert printed.err == f"note: gpusched {old} is now gpusched {RENAMED[old]}; the old name works for one release\n"
    assert gpusched(*RENAMED[old].split(), "--help") == 0
    assert capsys.readouterr() == (printed.out, "")
    assert now_called(f"gpusched {old} --docs x") == f"gpusched {RENAMED[old]} --docs x"


def test_old_names_are_no_longer_written() -> None:
    root = Path(__file__).resolve().parents[2]
    pages = [
        root / "README.md",
        root / "Makefile",
        *(root / "docs").glob("*.md"),
        *(root / "experiments").rglob("*.j2"),
    ]
    # A record keeps the command that it was made by.
    kept = "`gpusched train-cluster-queue --steps 1000 --seed 0`"
    for page in pages:
        text = page.read_text(encoding="utf-8").replace(kept, "")
        assert [old for old in RENAMED if f"gpusched {old} " in text or f"gpusched {old}`" in text] == [], page


@pytest.mark.parametrize("name", scenario_names())
def test_a_dozen_are_compared_by_default(name: str) -> None:
    scenario = load_scenario(name)
    found, everybody = default_schedulers(scenario), all_schedulers(scenario)
    assert set(found) <= set(everybody)
    assert len(found) <= len(USUAL) + max(map(len, USUAL_WITH.values())) + 2
    assert {*USUAL, *(name for names in USUAL_WITH.values() for name in names)} <= set(scheduler_names())
    # The best with tuned options and the trained agent are among them.
    assert set(everybody[-1:]) <= set(found) or everybody[-1] in scheduler_names()


MISTAKES = {
    "comapre Toy": ("'comapre'", "gpusched compare"),
    "compare": ("SCENARIO", "gpusched list scenarios"),
    "compare Toyy": ("'Toyy'", "did you mean 'Toy'"),
    "compare mine.yaml": ("mine.yaml", "cannot be read"),
    "compare Fleet": ("Fleet", "rank"),
    "compare Toy fifo": ("fifo", "usage: gpusched compare"),
    "compare Toy --schedulers fifoo": ("'fifoo'", "did you mean 'fifo'"),
    "compare Toy --schedulers fifo,fifo": ("named twice", "fifo"),
    "compare Toy --schedulers 'mps(shares=5)'": ("'shares'", "did you mean 'share'"),
    "compare Toy --schedulers 'mps(share=half)'": ("share=half", "float"),
    "compare Toy --schedulers 'mps(share=50'": ("parenthesis", "NAME(OPTION=VALUE"),
    "compare Toy --schedulers mine.py:Mine": ("mine.py", "no such file"),
    "compare Toy --schedulers mine.py": ("'mine.py'", "path/to/file.py:Name"),
    "compare Toy --schedulers learned:nowhere": ("nowhere", "gpusched train"),
    "compare Toy --scheduler fifo": ("--scheduler", "did you mean --schedulers"),
    "compare Toy --timesteps 5": ("--timesteps", "gpusched train"),
    "compare Toy --seeds 0": ("--seeds", "greater than or equal to 1"),
    "compare Toy --seeds few": ("--seeds", "integer"),
    "compare Toy --gpu h100sxm": ("'h100sxm'", "did you mean 'h100-sxm'"),
    "compare Toy --set load": ("--set load", "KEY=VALUE"),
    "compare Toy --set laod=2": ("'laod'", "did you mean 'load'"),
    "compare Toy --set load=much": ("load", "float"),
    "compare Toy --simulator fast": ("'fast'", "compiled, reference"),
    "compare Toy --sweep load=1:2": ("load=1:2", "FIELD=START:STOP:STEP"),
    "compare Toy --sweep load=1,2 --explain": ("--explain", "--sweep"),
    "compare Toy --columns cots": ("'cots'", "did you mean 'cost'"),
    "compare Toy --window-us 3": ("--window-us", "2"),
    "compare Toy --out there.txt": ("there.txt", "name a folder"),
    "train": ("SCENARIO", "gpusched list scenarios"),
    "train Toy --algo pqo": ("'pqo'", "did you mean 'ppo'"),
    "train Toy --policy big": ("'big'", "mlp"),
    "train Toy --timesteps 0": ("--timesteps", "greater than or equal to 1"),
    "train Toy --set learning_rat=1": ("'learning_rat'", "did you mean 'learning_rate'"),
    "evaluate fifo Toy": ("'fifo'", "gpusched compare"),
    "evaluate nowhere Toy": ("nowhere", "gpusched train"),
    "evaluate learned ThreeTenants": ("ThreeTenants", "learned:PATH"),
    "import net.json": ("'net.json'", "trace"),
    "import trace": ("FILE", "PyTorch profiler"),
    "import trace nowhere.json": ("nowhere.json", "cannot be read"),
    "import trace there.txt": ("there.txt", "Kineto"),
    "import kernels nowhere.csv": ("--gpu", "gpusched list gpus"),
    "tune Toy": ("--json", "Result file"),
    "list scenario": ("'scenario'", "gpusched list scenarios"),
    "reproduce nothing": ("'nothing'", "recordings"),
    "replay": ("'replay'", "gpusched lab replay"),
    "lab rnak": ("'rnak'", "gpusched lab rank"),
    "lab rank Toy --json x.json --workloads mine": ("'mine'", "held_out"),
    "lab replay nowhere.json": ("nowhere.json", "cannot be read"),
    "--verison": ("--verison", "did you mean --version"),
}
"""What names the cause in the answer, and what the cure."""


@pytest.mark.parametrize("line", MISTAKES)
def test_a_typical_mistake_has_one_answer_with_cause_and_cure(
    line: str, gpusched: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there.txt").write_text(json.dumps("text"))
    assert gpusched(*shlex.split(line)) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    cause, cure = MISTAKES[line]
    assert cause in printed.err
    assert cure in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["there.txt"]
