"""Reproductions: tolerances, the command, pages and files of any paper; and the shipped recordings.

This text begins the page of the paper made up here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from gpusched_env.display.frame import frame
from gpusched_env.display.table import NONE, Table
from gpusched_env.errors import InputError
from gpusched_env.experiments.commands import reproduce
from gpusched_env.experiments.lib.criteria import NOTE, CriterionMark, Kind
from gpusched_env.experiments.lib.verdicts import (
    Check,
    Simulation,
    Target,
    table_of,
    table_of_numbers,
    targets_table,
)
from gpusched_env.experiments.papers import find_paper, paper_names, recordings
from gpusched_env.experiments.papers.recordings import GroupFigure, TimeSlicedPair
from gpusched_env.experiments.papers.reproduction import Reproduction
from tests.refusals import refused

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

GOOD = GroupFigure(group="alone", what="net", unit="us", simulated=102.0, recorded=100.0, tolerance=0.03)
BAD = GroupFigure(group="alone", what="other", unit="us", simulated=80.0, recorded=100.0, tolerance=0.15)


def test_a_figure_holds_within_its_relative_tolerance() -> None:
    assert GOOD.holds
    assert GOOD.error == pytest.approx(0.02)
    assert not BAD.holds
    assert BAD.error == pytest.approx(-0.2)


@pytest.mark.parametrize(
    ("ours", "difference", "holds"),
    [(2.0, 0.0, True), (1.0, -0.32, False), (1.2, -0.12, True), (16.5, 0.09, True), (17.0, 0.59, False)],
)
def test_a_figure_holds_within_its_range_and_slack(ours: float, difference: float, holds: bool) -> None:
    target = Target("speed-up", 1.32, 16.41, ours, slack=0.13)
    assert target.difference == pytest.approx(difference)
    assert target.holds is holds


class Doubled(Check):
    """A number that was doubled."""

    def named(self) -> str:
        return f"twice {self.simulated / 2.0:g}"


@dataclass(frozen=True)
class Twice:
    """A cell that simulates nothing."""

    number: int

    def run(self, device: str) -> Doubled:
        return Doubled(simulated=2.0 * self.number, recorded=4.0, tolerance=0.1)


class Made(Reproduction):
    """Of a paper that says that twice a number is 4."""

    name = "made"
    title = "Twice a number"
    legend = "*Error*: relative."
    marks = (
        CriterionMark("twice 2", Kind.DEFINITIONAL, "It is hand-solved."),
        CriterionMark("twice *5", Kind.PREDICTED, "It was open.", "nothing doubled: 5"),
    )

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return [Twice(2)]

    def checks(self) -> list[Doubled]:
        return list(self.runs.values())

    def summary(self) -> str:
        return f"{self.tally()}; {len(self.runs)} numbers"

    def tables(self) -> list[Table]:
        return [
            table_of(
                "Numbers",
                self.checks(),
                "twice = {simulated:g} | verdict = {verdict}",
                "Each is doubled.\n\n![A picture](made-twice.svg)",
            ),
            targets_table("Ranges", [Target("x", 0.0, 1.0, 2.0), Target.of_figure("y", 3.0, 2.0, 1.5, "there")]),
            Table("Nothing", ("a", "b"), []),
        ]

    def details(self) -> list[Table]:
        return [Table(f"Run of {cell.number}", ("number",), [(str(cell.number),)]) for cell in self.runs]

    def attachments(self) -> dict[str, DataFrame]:
        return {"numbers": self.to_frame()}

    def data(self) -> dict[str, Any]:
        return {"runs": self.to_frame().to_dict("records")}


def test_without_published_figures_a_table_has_no_column_for_them() -> None:
    table = targets_table("Ranges", [Target("x", 0.0, 1.0, 2.0), Target("y", -math.inf, 0.0, -1.0)])
    assert table.heads == ("figure", "holds within", "ours", "difference", "verdict", "at")
    assert [row[:3] for row in table.rows] == [("x", "at most 1", "2"), ("y", "at most 0", "-1")]


def test_a_frame_of_numbers_is_a_table_with_dashes_where_there_is_none() -> None:
    columns = {"name": ["x", "y"], "size": [1, 2], "a": [0.5, float("nan")], "b": [1.0, 2.0]}
    values = frame(columns).set_index(["name", "size"])
    assert table_of_numbers("T", ["name", "size"], values, ".0%").rows == [
        ("x", "1", "50%", "100%"),
        ("y", "2", NONE, "200%"),
    ]
    assert table_of_numbers("T", ["name", "size"], values).heads == ["name", "size", "a", "b"]
    assert table_of_numbers("T", ["name", "size", "A", "B"], values).heads == ["name", "size", "A", "B"]


def test_a_range_may_have_no_upper_end() -> None:
    assert targets_table("T", [Target("x", 2.5, math.inf, 3.0), Target("y", 2.5, math.inf, 2.0)]).rows == [
        ("x", "at least 2.5", "3", "inside", "holds", ""),
        ("y", "at least 2.5", "2", "-0.5", "off", ""),
    ]


def test_a_page_has_introduction_summary_tables_with_their_notes_and_runs() -> None:
    page = Made.simulate(workers=1, cells=[Twice(2), Twice(5)]).markdown()
    assert page.split("\n\n") == [
        "# Twice a number",
        "<!-- Generated by `gpusched reproduce made --docs`; do not edit. -->",
        "**0 of 1 predictions come out; 2 numbers.**",
        "Did not come out: twice 5 (10 for 3.6 to 4.4).",
        "![A picture](made-twice.svg)",
        "## Numbers",
        "Each is doubled.",
        "| twice | verdict |\n| ---: | --- |\n| 4 | holds |\n| 10 | off |",
        "[All other tables](made-tables.csv). [Numbers](made-numbers.csv).",
        "## What counts",
        NOTE,
        "| criterion | come out | worth | control | why |\n| --- | ---: | --- | --- | --- |\n"
        "| twice ...5 | 0 of 1 | predicted | nothing doubled: 5 | It was open. |\n"
        "| twice 2 | 1 of 1 | definitional | – | It is hand-solved. |",
        "[Every criterion](made-criteria.csv).",
        "## About",
        "This text begins the page of the paper made up here.",
        "*Error*: relative.",
        "## What the other tables show",
        "- *Ranges*: *Holds within* is a criterion of our own.\n",
    ]


def test_what_the_page_leaves_out_is_in_its_tables() -> None:
    made = Made.simulate(workers=1, cells=[Twice(2), Twice(5)])
    assert made.tables_csv().splitlines() == [
        "table,figure,published,holds_within,ours,difference,verdict,at,number",
        "Ranges,x,,at most 1,2,+1,off,,",
        "Ranges,y,3,1.5 to 4.5,2,-1,holds,there,",
        "Run of 2,,,,,,,,2",
        "Run of 5,,,,,,,,5",
    ]


def test_it_prints_as_its_tables() -> None:
    made = Made.simulate(workers=1, cells=[Twice(2)])
    lines = str(made).splitlines()
    assert lines[:2] == ["Numbers", "Each is doubled."]
    assert ["4", "holds"] in [line.split() for line in lines]
    assert "Nothing" not in lines
    assert repr(made) == "<Made: OK: made: 0 of 0 predictions come out; 1 numbers>"


@pytest.mark.parametrize(("number", "code"), [(2, 0), (5, 1)])
def test_the_command_prints_writes_and_fails_with_its_figures(
    number: int, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from gpusched_env.experiments.cli import app

    monkeypatch.setattr(reproduce, "find_paper", lambda name: Made)
    monkeypatch.setattr(Made, "cells", lambda: [Twice(number)])
    files = ["--json", str(tmp_path / "m.json"), "--docs", str(tmp_path / "m.md"), "--out", str(tmp_path / "out")]
    ran = CliRunner().invoke(app, ["reproduce", "made", "--simulator", "reference", "--workers", "1", *files])
    made = Made.simulate(workers=1)
    assert ran.exit_code == code, ran.output
    assert ran.stdout.strip().splitlines()[-1] == made.summary_line()
    assert "Each is doubled." in ran.output
    data = json.loads((tmp_path / "m.json").read_text())
    assert data == json.loads((tmp_path / "out" / "made.json").read_text()) == made.as_dict()
    assert (data["schema"], data["holds"]) == ("gpusched-made/1", code == 0)
    assert data["runs"] == [{"number": number, "simulated": 2.0 * number, "recorded": 4.0, "tolerance": 0.1}]
    assert (tmp_path / "m.md").read_text() == (tmp_path / "out" / "made.md").read_text() == made.markdown()
    for folder in (tmp_path, tmp_path / "out"):
        assert (folder / "made-tables.csv").read_text() == made.tables_csv()
        assert (folder / "made-criteria.csv").read_text() == made.criteria_csv()
        assert (folder / "made-numbers.csv").read_text().splitlines() == [
            "number,simulated,recorded,tolerance", f"{number},{2 * number},4,0.1",
        ]  # fmt: skip


def test_papers_are_found_by_their_modules() -> None:
    from gpusched_env.experiments.cli import app

    assert paper_names() == [
        "acs", "atos", "bwlock", "cluster-agent", "cluster-queue-agent", "colocation-agent", "concurrency", "cusync",
        "eclip", "fgd", "fgd-co-location", "fgd-lifetimes", "fikit", "fleet-agent", "fleet-blocks", "fleet-rates",
        "gpucolo", "gpucolo-fleet", "orion", "peers", "recordings", "reef", "shared-memory-agent", "spawn", "tally",
        "task-queue-agent", "time-per-token", "xsched",
    ]  # fmt: skip
    listed = CliRunner().invoke(app, ["reproduce"]).output.splitlines()
    for name, line in zip(paper_names(), listed, strict=True):
        paper = find_paper(name)
        assert paper.name == name
        assert line == f"{name}: {paper.introduction().splitlines()[0]}"
        assert len(set(paper.cells())) == len(paper.cells())
    with refused(InputError, "did you mean 'fikit'"):
        find_paper("fikti")


def test_the_summary_of_recordings_names_the_worst_figure() -> None:
    assert recordings.Paper({1: [GOOD]}).summary_line() == (
        "OK: recordings: 0 of 0 predictions come out; worst alone, net: +2.0% (tolerance 3%)"
    )
    both = recordings.Paper({1: [GOOD, BAD]})
    assert both.summary_line().startswith("FAILED: recordings: 0 of 0 predictions come out; worst alone, other")
    assert "| other | 80 us | 100 us | -20.0% | 15% | off |" in both.markdown()
    assert [check["holds"] for check in both.as_dict()["checks"]] == [True, False]
    assert list(both.to_frame()["error"]) == pytest.approx([0.02, -0.2])


def test_time_sliced_processes_take_turns_as_recorded() -> None:
    """AlexNet beside VGG-16: both finish an iteration a turn, 2.29 ms (recorded)."""
    checks = TimeSlicedPair(("alexnet_infer_b1", "vgg16_infer_b8"), horizon_us=60_000.0).run("compiled")
    assert len(checks) == 2
    assert all(check.holds for check in checks), checks


def test_inference_beside_training_slows_as_recorded() -> None:
    checks = recordings.BesideTraining(horizon_us=60_000.0).run("compiled")
    assert len(checks) == 4
    assert all(check.holds for check in checks), checks


@pytest.mark.slow
def test_all_recordings_are_reproduced() -> None:
    assert [check for check in recordings.Paper.simulate(workers=1).checks() if not check.holds] == []
