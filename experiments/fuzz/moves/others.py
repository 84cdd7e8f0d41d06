"""Moves that are no command of a scenario: waits, and actions of environments."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpusched_env.experiments.fuzz.moves.move import AnyMove, Drawing
from gpusched_env.scheduling.commands import Wait
from gpusched_env.scheduling.view import View


class WaitMove(AnyMove, frozen=True, kw_only=True, tag="wait"):
    """Wait until ``until_us``, but not into the past; ``None``: without limit."""

    until_us: float | None = None

    def command(self, view: View, own: Sequence[int]) -> Wait:
        return Wait(math.inf if self.until_us is None else max(self.until_us, view.time_us))

    @classmethod
    def of(cls, command: Wait) -> WaitMove:
        """The move that means a wait."""
        return cls(until_us=command.until_us if math.isfinite(command.until_us) else None)

    @classmethod
    def draw(cls, drawing: Drawing, view: View) -> WaitMove:
        """A random wait."""
        # Without a limit and with nothing under way, the episode would often end in a deadlock.
        dice, w = drawing.dice, drawing.weights
        if not dice.chance(w.bounded if len(view.running) else 0.9):
            return cls()
        how = dice.weighted({"short": 5.0, "round": 3.0, "now": 1.0})
        if how == "now":
            return cls(until_us=view.time_us)
        if how == "short":
            return cls(until_us=view.time_us + dice.exponential(w.wait_us))
        # A multiple of a round number: likely to coincide with something.
        grid = float(f"{w.wait_us:.0e}")
        return cls(until_us=(math.floor(view.time_us / grid) + dice.integer(1, 2)) * grid)


class BadWait(AnyMove, frozen=True, kw_only=True, tag="bad-wait"):
    """A wait that no device may accept: until ``past_us`` before the present time; 0: until NaN."""

    past_us: float = 0.0

    def command(self, view: View, own: Sequence[int]) -> Wait:
        return Wait(view.time_us - self.past_us if self.past_us > 0.0 else math.nan)


class Act(AnyMove, frozen=True, kw_only=True, tag="act"):
    """An action of the environment: number ``pick`` (counted round) of the legal ones, or of all."""

    pick: int = 0
    legal: bool = True
