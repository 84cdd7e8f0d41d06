"""Setting budgets of CPU cores."""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.experiments.fuzz.moves.move import Among, CommandMove, Drawing
from gpusched_env.scheduling.commands import SetBudget
from gpusched_env.scheduling.view import View
from gpusched_env.workload.cores.spec import MOST_EVENTS


class BudgetMove(CommandMove, frozen=True, kw_only=True, tag="budget"):
    """Give a core of the CPU a budget."""

    NAME = "budget"
    OF = "cores"
    LEGAL = ("cores", "settable")
    WEIGHT = 0.5

    core: int = 0
    events: int = 1
    always: bool = False

    def command(self, view: View, own: Sequence[int]) -> SetBudget:
        return SetBudget(self.core, self.events, self.always)

    @classmethod
    def of(cls, command: SetBudget, view: View, own: Sequence[int]) -> BudgetMove:
        return cls(core=command.core, events=command.events, always=command.always)

    @classmethod
    def draw(cls, drawing: Drawing, view: View) -> BudgetMove:
        """A budget that most hogs spend, or none."""
        dice = drawing.dice
        core = dice.pick(cls.legal_rows(view))
        events = MOST_EVENTS if dice.chance(0.1) else dice.log_integer(1, 50_000)
        return cls(core=core, events=events, always=dice.chance(0.5))

    @classmethod
    def draw_any(cls, drawing: Drawing, among: Among) -> BudgetMove:
        dice, cores = drawing.dice, drawing.problem.scenario.cores
        events = dice.pick((0, -1, 1, MOST_EVENTS, MOST_EVENTS + 1))
        core = dice.integer(-1, len(cores.cores) if cores else 0)
        return cls(core=core, events=events, always=dice.chance(0.5))


MOVE = BudgetMove
