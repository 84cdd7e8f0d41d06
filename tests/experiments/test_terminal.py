"""Progress says how long it still takes."""

from __future__ import annotations

import re

import pytest

from gpusched_env.experiments.lib import terminal
from gpusched_env.experiments.lib.terminal import Remaining, progress_bar


def test_preparation_does_not_count() -> None:
    """100 s before the first of ten episodes, 2 s for each of the next four: five more take ten."""
    now = [0.0]
    remaining = Remaining(lambda: now[0])
    assert remaining.text(0.0) == ""
    now[0] = 100.0
    assert remaining.text(0.1) == "", "nothing to tell by"
    now[0] = 108.0
    assert remaining.text(0.5) == "about 10 s left"
    now[0] = 118.0
    assert remaining.text(1.0) == ""


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal._Lines, "EVERY_S", 0.0)
    with progress_bar(100) as on_progress:
        for finished in range(1, 101):
            on_progress(finished, finished / 100)
    lines = capsys.readouterr().err.splitlines()
    assert 5 <= len(lines) <= 10, "one for each tenth of the way"
    assert re.fullmatch(r"10 of 100 episodes, about \d+ s left", lines[0])
