"""Moves that give jobs up."""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.experiments.fuzz.moves.move import (
    UNKNOWN,
    Among,
    AmongJobs,
    CommandMove,
    Drawing,
    place_of,
    rows_among,
)
from gpusched_env.scheduling.commands import Reject
from gpusched_env.scheduling.view import View


class RejectMove(CommandMove, frozen=True, kw_only=True, tag="reject"):
    """Reject a job: row ``pick`` (counted round) of those ``among``; legal only for rejectable ones."""

    NAME = "reject"
    LEGAL = ("jobs", "rejectable")
    ANY_SHARE = 1

    among: AmongJobs = "rejectable"
    pick: int = 0

    def command(self, view: View, own: Sequence[int]) -> Reject | None:
        if self.among == "none":
            return Reject(self.pick % len(view.tenants), UNKNOWN)
        jobs = rows_among(self.among, view)
        return Reject(*(int(n) for n in jobs[self.pick % len(jobs), :2])) if len(jobs) else None

    @classmethod
    def of(cls, command: Reject, view: View, own: Sequence[int]) -> RejectMove:
        return cls(pick=place_of("rejectable", view, command.tenant, command.job))

    @classmethod
    def draw(cls, drawing: Drawing, view: View) -> RejectMove:
        return cls(pick=drawing.dice.integer(0, len(cls.legal_rows(view)) - 1))

    @classmethod
    def draw_any(cls, drawing: Drawing, among: Among) -> RejectMove:
        dice = drawing.dice
        return cls(among=dice.pick(("all", "none")), pick=dice.integer(0, 7))


MOVE = RejectMove
