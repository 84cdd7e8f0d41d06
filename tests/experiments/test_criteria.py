"""Criteria of pages: what each is worth, how far it is missed, and what is stored of it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.criteria import (
    Criterion,
    CriterionMark,
    Kind,
    counted_of,
    criteria_csv,
    mark_of,
    marks_table,
    missed_by,
    missed_of,
    read_criteria,
    tally_of,
    worst_of,
)
from gpusched_env.experiments.papers import find_paper, paper_names, stored_table
from tests.refusals import refused

DOCS = Path(__file__).parents[2] / "docs"
JUDGED = [name for name in paper_names() if (DOCS / f"{name}-criteria.csv").is_file()]


def test_every_paper_with_marks_has_stored_criteria() -> None:
    assert [name for name in paper_names() if find_paper(name).marks] == JUDGED


@pytest.mark.parametrize("name", JUDGED)
def test_each_criterion_has_one_mark_and_each_mark_a_criterion(name: str) -> None:
    marks = find_paper(name).marks
    names = [one.name for one in read_criteria(DOCS / f"{name}-criteria.csv")]
    assert len(names) == len(set(names))
    used = {mark_of(criterion, marks) for criterion in names}
    assert [mark.criteria for mark in marks if mark not in used] == []


@pytest.mark.parametrize("name", JUDGED)
def test_each_mark_has_its_reason_in_a_sentence(name: str) -> None:
    assert [mark.criteria for mark in find_paper(name).marks if not mark.reason.endswith(".")] == []


def test_one_table_has_all_papers_from_what_is_stored() -> None:
    rows = {row[0]: row[1:] for row in stored_table(DOCS).rows}
    assert list(rows) == JUDGED
    assert all(int(held) <= int(counted) <= int(of) for counted, held, of, *_ in rows.values())


def test_a_table_needs_stored_criteria(tmp_path: Path) -> None:
    (tmp_path / "bwlock-criteria.csv").write_text(
        criteria_csv([Criterion("histo, three Cortex hogs", "5.21", "2.5 to 3.5", 0.328, False)])
    )
    (row,) = stored_table(tmp_path).rows
    assert row == ("bwlock", "1", "0", "1", "histo, three Cortex hogs", "5.21", "2.5 to 3.5")
    with refused(InputError, "no criteria of papers", "--docs"):
        stored_table(tmp_path / "nowhere")


SOME = (
    Criterion("size, large", "2", "0 to 1", 0.5, False),
    Criterion("size, small", "1", "0 to 1", 0.0, True),
    Criterion("order", "a before b", "so", math.nan, None),
)
MARKS = (
    CriterionMark("size, *", Kind.PREDICTED, "It was open."),
    CriterionMark("order", Kind.FITTED, "It was chosen by it."),
)


def test_only_what_was_predicted_counts() -> None:
    assert counted_of(SOME, MARKS) == [*SOME[:2]]
    assert mark_of("order", MARKS) == MARKS[1]


def test_what_does_not_come_out_is_said_worst_first() -> None:
    off = [Criterion(f"speed {n}", f"{n}", "at most 0", n / 10, False) for n in range(1, 9)]
    marks = [CriterionMark(one.name, Kind.PREDICTED, "It was open.") for one in off]
    said = missed_of(off, marks)
    assert said == (
        "Did not come out: speed 8 (8 for at most 0); speed 7 (7 for at most 0); speed 6 (6 for at most 0); "
        "speed 5 (5 for at most 0); speed 4 (4 for at most 0); 3 more."
    )
    claim = Criterion("claim", "seen", "so", math.nan, False)
    undecided = Criterion("other", "seen", "so", math.nan, None)
    marks = [
        CriterionMark("speed *", Kind.PREDICTED, "It was open."),
        CriterionMark("claim", Kind.PREDICTED, "It was open."),
    ]
    marks.append(CriterionMark("other", Kind.PREDICTED, "It was open."))
    assert missed_of([claim, *off, undecided], marks) == "Did not come out: speed ... (8 of 8); claim; 1 undecided."


def test_what_does_not_count_is_not_missed() -> None:
    marks = (CriterionMark("*", Kind.FITTED, "It was chosen by it."),)
    assert missed_of(SOME, marks) == "Did not come out: nothing that counts."


def test_what_numpy_compared_counts_like_any_truth() -> None:
    compared = [
        Criterion("size, large", "2", "0 to 1", 0.5, np.float64(2.0) <= 1.0),
        Criterion("size, small", "1", "0 to 1", 0.0, np.float64(1.0) <= 1.0),
    ]
    assert tally_of(compared, MARKS) == "1 of 2 predictions come out"
    assert worst_of(compared) is compared[0]
    assert marks_table(compared, MARKS).rows[0][:2] == ("size, ...", "1 of 2")


@pytest.mark.parametrize(("name", "count"), [("weight", 0), ("size, *", 2)])
def test_a_criterion_without_a_mark_or_with_several_is_named(name: str, count: int) -> None:
    with pytest.raises(LookupError, match=f"'{name[:4]}.* has {count} marks, must have one"):
        mark_of(name, (*MARKS, CriterionMark("size, [*]", Kind.VACUOUS, "Any would pass.")))


@pytest.mark.parametrize(
    ("ours", "low", "high", "miss"),
    [
        (1.5, 1.0, 2.0, 0.0),
        (4.0, 1.0, 2.0, 0.5),
        (1.0, 2.0, math.inf, 0.5),
        (-0.5, 0.0, 1.0, 1.0),
        (-1.0, 1.0, 2.0, 2.0),
    ],
)
def test_a_miss_is_relative_to_the_larger_of_figure_and_end(ours: float, low: float, high: float, miss: float) -> None:
    assert missed_by(ours, low, high) == miss


def test_the_worst_is_what_is_missed_by_most() -> None:
    assert worst_of(SOME) == SOME[0]
    assert worst_of(SOME[1:]) is None


def test_what_is_stored_is_read_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "made-criteria.csv").write_text(criteria_csv(SOME))
    found = read_criteria(tmp_path / "made-criteria.csv")
    assert found[:2] == [*SOME[:2]]
    assert math.isnan(found[2].miss)
    assert found[2].name == "order"
