"""What a page is judged by: criteria with their outcomes, and the mark of each: what it is worth as evidence.

A page may pass a criterion that nothing could have failed. So each has a mark, given by hand before the page is made;
only those marked as predicted count.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from gpusched_env.display.table import NONE, Table
from gpusched_env.reading import table_rows


class Kind(StrEnum):
    """What a criterion is worth as evidence."""

    PREDICTED = "predicted"
    """It could have come out otherwise, and nothing of its own value was used."""
    FITTED = "fitted"
    """Its own value, or one that fixes it, was used for a constant."""
    DEFINITIONAL = "definitional"
    """It follows from an assumption, or from how the workload is made."""
    VACUOUS = "vacuous"
    """Its range is one that the control, with the mechanism off, passes too, or that any value would pass."""


@dataclass(frozen=True, slots=True)
class CriterionMark:
    """What one or several criteria of a page are worth."""

    criteria: str
    """Name of the criterion, or a pattern of several: ``*`` stands for any text."""
    kind: Kind
    reason: str
    control: str = ""
    """What stands beside it with something switched off, and what that comes to; empty: there is nothing."""

    def of(self, name: str) -> bool:
        """Whether it is the mark of a criterion."""
        return fnmatchcase(name, self.criteria)


@dataclass(frozen=True, slots=True)
class Criterion:
    """A criterion and its outcome, as it is stored beside a page."""

    name: str
    ours: str
    within: str
    """Where ours has to be, as text."""
    miss: float
    """How far outside of that ours lies, as :func:`missed_by` has it; NaN: it is no number."""
    holds: bool | None
    """``None``: it cannot be told."""


def missed_by(ours: float, low: float, high: float) -> float:
    """How far a figure lies outside of ``low`` to ``high``: over the larger of it and the nearest end, 0 (inside) to 2.

    So figures of any unit can be compared, and ends of 0 as well.
    """
    nearest = min(max(ours, low), high)
    return 0.0 if ours == nearest else abs(ours - nearest) / max(abs(ours), abs(nearest))


def mark_of(name: str, marks: Iterable[CriterionMark]) -> CriterionMark:
    """The mark of a criterion.

    Raises:
        LookupError: it has none, or several; names the criterion.
    """
    found = [mark for mark in marks if mark.of(name)]
    if len(found) != 1:
        raise LookupError(f"criterion {name!r} has {len(found)} marks, must have one")
    return found[0]


def counted_of(criteria: Iterable[Criterion], marks: Sequence[CriterionMark]) -> list[Criterion]:
    """The criteria that count: what was predicted."""
    return [one for one in criteria if mark_of(one.name, marks).kind is Kind.PREDICTED]


def worst_of(criteria: Iterable[Criterion]) -> Criterion | None:
    """The criterion that is missed by most; ``None``: none is missed, or by no number."""
    missed = [one for one in criteria if one.holds is not None and not one.holds and not math.isnan(one.miss)]
    return max(missed, key=lambda one: one.miss, default=None)


def tally_of(criteria: Iterable[Criterion], marks: Sequence[CriterionMark]) -> str:
    """How many of the criteria that count come out, in words."""
    counted = counted_of(criteria, marks)
    return f"{sum(bool(one.holds) for one in counted)} of {len(counted)} predictions come out"


def missed_of(criteria: Iterable[Criterion], marks: Sequence[CriterionMark]) -> str:
    """Which of the criteria that count do not come out, in a sentence: what misses by most first, the rest in number.

    Several that one mark stands for are named once.
    """
    counted = counted_of(criteria, marks)
    undecided = sum(one.holds is None for one in counted)
    missed = sorted((one for one in counted if one.holds is False), key=_farthest)
    alike: dict[str, list[Criterion]] = {}
    for one in missed:
        alike.setdefault(mark_of(one.name, marks).criteria, []).append(one)
    named = list(alike.items())[:NAMED]
    found = [_said(pattern, of, sum(fnmatchcase(one.name, pattern) for one in counted)) for pattern, of in named]
    more = len(missed) - sum(len(of) for _, of in named)
    found += [f"{more} more"] if more else []
    found += [f"{undecided} undecided"] if undecided else []
    return f"Did not come out: {'; '.join(found) or 'nothing that counts'}."


def _farthest(one: Criterion) -> tuple[bool, float]:
    """What is missed by most comes first, what is missed by no number last."""
    return math.isnan(one.miss), -one.miss


def _said(pattern: str, missed: Sequence[Criterion], of: int) -> str:
    """What of one mark does not come out: a criterion with its figure, or how many of how many."""
    if len(missed) > 1:
        return f"{pattern.replace('*', '...')} ({len(missed)} of {of})"
    one = missed[0]
    return one.name if math.isnan(one.miss) else f"{one.name} ({one.ours} for {one.within})"


def marks_table(criteria: Sequence[Criterion], marks: Sequence[CriterionMark]) -> Table:
    """A row a mark that some criteria have, what counts first; of criteria that it stands for, how many come out."""
    rows = []
    for mark in sorted(marks, key=lambda one: one.kind is not Kind.PREDICTED):
        held = [bool(one.holds) for one in criteria if mark_of(one.name, marks) is mark]
        if held:
            come_out = f"{sum(held)} of {len(held)}"
            rows.append((mark.criteria.replace("*", "..."), come_out, mark.kind, mark.control or NONE, mark.reason))
    heads = ("criterion", "come out", "worth", "control", "why")
    return Table("What counts", heads, rows, NOTE)


NOTE: Final = (
    "*Predicted*: it could have come out otherwise, and nothing of its own value was used; only these count. *Fitted*: "
    "its own value, or one that fixes it, was used for a constant. *Definitional*: it follows from an assumption, or "
    "from how the workload is made. *Vacuous*: the control passes as well, or any value would. *Control*: what else "
    "is judged by the same criterion."
)
NAMED: Final = 5
"""How many of the criteria that do not come out, or kinds of them, a page's beginning names."""
HEADS: Final = ("criterion", "ours", "within", "miss", "verdict")
VERDICTS: Final = {True: "holds", False: "off", None: "not scored"}


def criteria_csv(criteria: Iterable[Criterion]) -> str:
    """Criteria as they are stored beside a page, a row each."""
    written = io.StringIO()
    rows = ([one.name, one.ours, one.within, f"{one.miss:.3g}", VERDICTS[one.holds]] for one in criteria)
    csv.writer(written, lineterminator="\n").writerows([HEADS, *rows])
    return written.getvalue()


def read_criteria(path: Path) -> list[Criterion]:
    """What :func:`criteria_csv` wrote to a file."""
    found = {verdict: holds for holds, verdict in VERDICTS.items()}
    _, *rows = (cells for _, cells in table_rows(path.read_bytes(), str(path)))
    return [Criterion(name, ours, within, float(miss), found[verdict]) for name, ours, within, miss, verdict in rows]
