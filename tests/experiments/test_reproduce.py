"""Reproduced figures: tolerances, summary line, pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpusched_env.experiments.reproduce import recordings
from gpusched_env.experiments.reproduce.check import Check, checks_markdown, summary_line, write_checks

GOOD = Check("alone", "net", "us", 102.0, 100.0, 0.03)
BAD = Check("alone", "other", "us", 80.0, 100.0, 0.15)


def test_a_figure_holds_within_its_relative_tolerance() -> None:
    assert GOOD.holds
    assert GOOD.error == pytest.approx(0.02)
    assert not BAD.holds
    assert BAD.error == pytest.approx(-0.2)


def test_the_summary_names_the_worst_figure() -> None:
    assert summary_line("recordings", [GOOD]) == (
        "OK: recordings: 1 of 1 figures within tolerance; worst alone, net: +2.0% (tolerance 3%)"
    )
    assert summary_line("recordings", [GOOD, BAD]).startswith(
        "FAILED: recordings: 1 of 2 figures within tolerance; worst"
    )


def test_results_are_written_as_data_and_as_a_page(tmp_path: Path) -> None:
    write_checks(tmp_path / "r.json", "recordings", [GOOD, BAD])
    data = json.loads((tmp_path / "r.json").read_text())
    assert data["holds"] is False
    assert [check["holds"] for check in data["checks"]] == [True, False]
    assert "| other | 80 us | 100 us | -20.0% | 15% | **no** |" in checks_markdown([GOOD, BAD])


def test_the_command_fails_when_a_figure_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpusched_env.experiments.cli import app

    for checks, code in (([GOOD], 0), ([GOOD, BAD], 1)):
        monkeypatch.setattr(recordings, "all_checks", lambda checks=checks: iter(checks))
        result = CliRunner().invoke(app, ["reproduce", "recordings"])
        assert result.exit_code == code
        assert result.output.strip().splitlines()[-1] == summary_line("recordings", checks)


def test_time_sliced_processes_take_turns_as_recorded() -> None:
    """AlexNet beside VGG-16: both finish an iteration a turn, 2.29 ms (recorded)."""
    checks = [check for check, _ in zip(recordings.time_sliced(horizon_us=60_000.0), range(2), strict=False)]
    assert all(check.holds for check in checks), checks


def test_inference_beside_training_slows_as_recorded() -> None:
    checks = list(recordings.beside_training(horizon_us=60_000.0))
    assert len(checks) == 4
    assert all(check.holds for check in checks), checks


@pytest.mark.slow
def test_all_recordings_are_reproduced() -> None:
    failed = [check for check in recordings.all_checks() if not check.holds]
    assert failed == []
