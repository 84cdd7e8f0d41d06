"""A published figure beside two of ours, between which the truth lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpusched_env.experiments.lib.criteria import Criterion, missed_by
from gpusched_env.experiments.lib.verdicts import as_row, range_text


@dataclass(frozen=True)
class Bracketed:
    """A published range, and our figures with memory that is used again and with memory of its own."""

    what: str
    low: float
    high: float
    again: float
    own: float
    slack: float = 0.0
    bracket: bool = False
    """Whether the published range may also lie between the two."""

    @property
    def holds(self) -> bool:
        least, most = sorted((self.again, self.own))
        inside = self.bracket and least <= self.high and most >= self.low
        return inside or any(self.low - self.slack <= ours <= self.high + self.slack for ours in (self.again, self.own))

    def as_criterion(self) -> Criterion:
        low, high = self.low - self.slack, self.high + self.slack
        miss = 0.0 if self.holds else min(missed_by(ours, low, high) for ours in (self.again, self.own))
        return Criterion(self.what, f"{self.again:.3g}, {self.own:.3g}", range_text(low, high), miss, self.holds)


def shown(check: Bracketed) -> dict[str, Any]:
    """A row of the table."""
    published = f"{check.low:g}" if check.low == check.high else f"{check.low:g} to {check.high:g}"
    return {**as_row(check), "published": published}
