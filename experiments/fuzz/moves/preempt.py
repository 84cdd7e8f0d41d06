"""Moves that preempt kernels."""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.experiments.fuzz.moves.move import (
    Among,
    CommandMove,
    Drawing,
    Sms,
    kernel_at,
    partition_of,
    place_of,
    sms_of,
)
from gpusched_env.scheduling.commands import MODES, Preempt, PreemptionMode
from gpusched_env.scheduling.view import View


class PreemptMove(CommandMove, frozen=True, kw_only=True, tag="preempt"):
    """Preempt a kernel: row ``pick`` (counted round) of those ``among``; ``partition``: where its blocks are saved."""

    NAME = "preempt"
    LEGAL = ("running", "preemptible")
    WEIGHT = 0.5
    DRAWN_WEIGHTS = (0.0, 0.3, 1.0)
    ANY_SHARE = 2

    among: Among = "running"
    pick: int = 0
    mode: PreemptionMode = "drain"
    partition: Sms | None = None

    def command(self, view: View, own: Sequence[int]) -> Preempt | None:
        kernel = kernel_at(self.among, self.pick, view)
        return None if kernel is None else Preempt(kernel, self.mode, partition_of(self.partition))

    @classmethod
    def of(cls, command: Preempt, view: View, own: Sequence[int]) -> PreemptMove:
        pick = place_of("running", view, command.launch)
        return cls(pick=pick, mode=command.mode, partition=sms_of(command.partition))

    @classmethod
    def draw(cls, drawing: Drawing, view: View) -> PreemptMove:
        dice = drawing.dice
        row = dice.pick(cls.legal_rows(view))
        mode = dice.pick(MODES if view.running.idempotent[row] else MODES[:2])
        partial = mode == "save" and dice.chance(drawing.weights.partial)
        return cls(pick=row, mode=mode, partition=drawing.partition() if partial else None)

    @classmethod
    def draw_any(cls, drawing: Drawing, among: Among) -> PreemptMove:
        mode, partition = drawing.dice.pick(MODES), drawing.any_partition()
        return cls(among=among, pick=drawing.dice.integer(0, 7), mode=mode, partition=partition)


MOVE = PreemptMove
