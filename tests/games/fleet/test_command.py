"""``gpusched lab fleet``, and the dispatcher of its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app

SMALL = ["fleet", "--days", "0.1", "--scale", "0.01", "--gpus", "65"]
PAGE = Path(__file__).parents[3] / "docs" / "fleet.md"


def figures(tmp_path: Path, *options: str) -> dict[str, dict[str, float]]:
    done = CliRunner().invoke(app, [*SMALL, "--json", str(tmp_path / "fleet.json"), "--overwrite", *options])
    assert done.exit_code == 0, done.output
    found: dict[str, dict[str, float]] = json.loads((tmp_path / "fleet.json").read_text())["dispatchers"]
    return found


def test_the_command_runs_dispatchers_whole_and_in_shards(tmp_path: Path) -> None:
    whole = figures(tmp_path)
    assert list(whole) == ["no-colocation", "gslice", "gpucolo"]
    assert whole["no-colocation"]["gpus"] == pytest.approx(whole["no-colocation"]["jobs"])
    assert whole["gpucolo"]["gpus"] < 0.5 * whole["no-colocation"]["gpus"]
    assert figures(tmp_path, "--shards", "3") == whole


def test_the_command_runs_a_small_fleet_at_both_levels(tmp_path: Path) -> None:
    small = ["--seconds", "0.5", "--gpus", "2", "--seed", "1", "--dispatchers", "first-fit"]
    found = {}
    for level, options in (("rates", []), ("blocks", ["--blocks"]), ("shards", ["--blocks", "--shards", "2"])):
        found[level] = figures(tmp_path, *small, *options)["first-fit"]
        written = json.loads((tmp_path / "fleet.json").read_text())["level"]
        assert written == ("rates" if level == "rates" else "blocks")
    assert found["blocks"] == found["shards"] != found["rates"]


def test_the_command_runs_a_trace(tmp_path: Path) -> None:
    log = tmp_path / "cluster_job_log"
    attempt = {"start_time": "2017-10-07 01:00:00", "end_time": "2017-10-07 02:00:00", "detail": [{"gpus": ["gpu0"]}]}
    log.write_text(json.dumps([{"status": "Pass", "attempts": [attempt]}]))
    found = figures(tmp_path, "--philly", str(log), "--dispatchers", "gpucolo")
    assert found["gpucolo"]["gpus"] == pytest.approx(60 / 144), "one of 2.4 hours"


def test_wrong_input_is_one_error(tmp_path: Path) -> None:
    for options, error in (
        (["--dispatchers", "gpucol"], "did you mean 'gpucolo'"),
        (["--dispatchers", " ,"], "--dispatchers ' ,': names none; known: "),
        (["--shards", "66"], "66 shards of 65 GPUs"),
        (["--philly", str(tmp_path / "none")], "none"),
        (["--rates", "guessed"], "no rates of a fleet are 'guessed'"),
        (["--pai", "a", "b", "--philly", "c"], "the jobs of one trace"),
        (["--blocks"], "--blocks needs --seconds, without --pai and --philly"),
        (
            ["--seconds", "0.1", "--gpus", "2", "--blocks", "--dispatchers", "gslice"],
            "no scheduler stands for the control",
        ),
    ):
        done = CliRunner().invoke(app, [*SMALL, *options])
        assert isinstance(done.exception, InputError)
        assert error in str(done.exception)


def test_the_page_s_dispatcher_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = PAGE.read_text().partition("```python\n")[2].partition("```")[0]
    exec(compile(code, str(PAGE), "exec"), {"__name__": "page"})
    said, last = capsys.readouterr().out.splitlines()
    assert "GPUs in use" in said
    assert last.startswith("FleetEvent(time_us=")
