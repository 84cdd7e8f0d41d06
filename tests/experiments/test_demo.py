"""The first look: what it says comes from the figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console

from gpusched_env.experiments import demo

SCHEDULERS = {"pass-through": "plain", "sjf": "shortest", "exclusive": "one at a time"}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SCENARIO", "Toy")
    monkeypatch.setattr(demo, "STORY", SCHEDULERS)


def test_a_demo_prints_a_figure_a_sentence_and_a_report(
    short: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    comparison = demo.show_story(2, tmp_path / "demo")
    text = capsys.readouterr().out
    costs = {name: comparison.interval(name, "cost").mean for name in SCHEDULERS}
    bars = {name: len(re.search(rf"^ {name} +(█+)", text, re.MULTILINE)[1]) for name in SCHEDULERS}  # type: ignore[index]
    order = sorted(costs, key=costs.__getitem__)
    assert sorted(bars, key=bars.__getitem__) == order, "the longer the dearer"
    assert re.findall(r"^ ([\w-]+) +█", text, re.MULTILINE) == order, "the least first"
    cheaper = 100 * (1 - costs[order[0]] / costs["pass-through"])
    assert f"{order[0]} costs least, {cheaper:.0f} % below the cost of pass-through" in text
    assert (tmp_path / "demo" / "report.html").stat().st_size < 3_000_000


def test_a_bar_far_off_leaves_room_for_the_others() -> None:
    console = Console(width=120)
    with console.capture() as printed:
        console.print(demo.bars({"a": 1.0, "b": 1.2, "c": 1000.0}, str))
    lines = [line for line in printed.get().splitlines() if "█" in line]
    assert [line.count("█") for line in lines] == [8, 9, demo.BAR]
    assert ["▶" in line for line in lines] == [False, False, True]


def test_the_example_needs_no_compiled_device(capsys: pytest.CaptureFixture[str]) -> None:
    demo.show_example()
    assert "costs 7 % less" in capsys.readouterr().out
