"""Moves that let hosts sleep."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpusched_env.experiments.fuzz.moves.move import Among, CommandMove, Drawing
from gpusched_env.scheduling.commands import Throttle
from gpusched_env.scheduling.view import View


class ThrottleMove(CommandMove, frozen=True, kw_only=True, tag="throttle"):
    """Let a tenant's host sleep before each job; ``None``: for NaN."""

    NAME = "throttle"
    OF = "hosts"
    LEGAL = ("tenants", "throttlable")

    tenant: int = 0
    pause_us: float | None = 0.0

    def command(self, view: View, own: Sequence[int]) -> Throttle:
        return Throttle(self.tenant, math.nan if self.pause_us is None else self.pause_us)

    @classmethod
    def of(cls, command: Throttle, view: View, own: Sequence[int]) -> ThrottleMove:
        return cls(tenant=command.tenant, pause_us=command.pause_us)

    @classmethod
    def draw(cls, drawing: Drawing, view: View) -> ThrottleMove:
        """A pause of a few waits, now and then none; it may be the one that the tenant has already."""
        dice, wait_us = drawing.dice, drawing.weights.wait_us
        tenant = dice.pick(cls.legal_rows(view))
        pause_us = 0.0 if dice.chance(0.3) else wait_us * dice.pick((1.0, 4.0, 20.0 * dice.uniform(0.0, 1.0)))
        return cls(tenant=tenant, pause_us=pause_us)

    @classmethod
    def draw_any(cls, drawing: Drawing, among: Among) -> ThrottleMove:
        dice = drawing.dice
        tenant = dice.integer(-1, drawing.tenants)
        return cls(tenant=tenant, pause_us=dice.pick((None, -1.0, math.inf, 0.0, drawing.weights.wait_us, 1e15)))


MOVE = ThrottleMove
