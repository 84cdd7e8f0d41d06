"""Moves that give kernels other forms."""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.experiments.fuzz.moves.move import Among, CommandMove, Drawing, kernel_at, place_of
from gpusched_env.scheduling.commands import Reshape
from gpusched_env.scheduling.view import View


class ReshapeMove(CommandMove, frozen=True, kw_only=True, tag="reshape"):
    """Give a kernel another form: row ``pick`` (counted round) of those ``among``."""

    NAME = "reshape"
    OF = "forms"
    LEGAL = ("pending", "forms")
    WEIGHT = 1.0
    DRAWN_WEIGHTS = (0.5, 3.0, 10.0)

    among: Among = "reshapable"
    pick: int = 0
    form: int = 0

    def command(self, view: View, own: Sequence[int]) -> Reshape | None:
        kernel = kernel_at(self.among, self.pick, view)
        return None if kernel is None else Reshape(kernel, self.form)

    @classmethod
    def of(cls, command: Reshape, view: View, own: Sequence[int]) -> ReshapeMove:
        return cls(pick=place_of("reshapable", view, command.launch), form=command.form)

    @classmethod
    def draw(cls, drawing: Drawing, view: View) -> ReshapeMove:
        rows = cls.legal_rows(view)
        pick = drawing.dice.integer(0, len(rows) - 1)
        return cls(pick=pick, form=drawing.dice.integer(0, int(view.pending.forms[rows[pick]]) - 1))

    @classmethod
    def draw_any(cls, drawing: Drawing, among: Among) -> ReshapeMove:
        dice = drawing.dice
        among = dice.pick(("reshapable", "pending", "running", "none"))
        return cls(among=among, pick=dice.integer(0, 7), form=dice.integer(-1, 3))


MOVE = ReshapeMove
