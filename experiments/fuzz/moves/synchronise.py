"""Moves that synchronise tiles."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.moves.move import Among, CommandMove, Drawing, kernel_at, place_of
from gpusched_env.scheduling.commands import ORDERS, PolicyKind, Synchronise, TileOrder, TilePolicy
from gpusched_env.scheduling.synchronising import NEEDS
from gpusched_env.scheduling.view import View


class SynchroniseMove(CommandMove, frozen=True, kw_only=True, tag="synchronise"):
    """Synchronise the tiles of a kernel: row ``pick`` (counted round) of those ``among``."""

    NAME = "synchronise"
    OF = "tiles"
    LEGAL = ("pending", "synchronisable")
    WEIGHT = 2.0
    DRAWN_WEIGHTS = (0.5, 3.0, 10.0)
    ANY_CHANCE = 0.3

    among: Among = "synchronisable"
    pick: int = 0
    kind: PolicyKind = "row"
    stride: int = 1
    steps: int = 1
    reorder: bool = False
    order: TileOrder = "native"
    wait_kernel: bool = False

    def command(self, view: View, own: Sequence[int]) -> Synchronise | None:
        kernel = kernel_at(self.among, self.pick, view)
        policy = TilePolicy(self.kind, self.stride, self.steps, self.reorder)
        return None if kernel is None else Synchronise(kernel, policy, self.order, self.wait_kernel)

    @classmethod
    def of(cls, command: Synchronise, view: View, own: Sequence[int]) -> SynchroniseMove:
        policy = command.policy
        return cls(
            pick=place_of("synchronisable", view, command.consumer),
            kind=policy.kind,
            stride=policy.stride,
            steps=policy.steps,
            reorder=policy.reorder,
            order=command.order,
            wait_kernel=command.wait_kernel,
        )

    @classmethod
    def draw(cls, drawing: Drawing, view: View) -> SynchroniseMove:
        """Mostly with a policy that the tiles can be given."""
        dice, pending = drawing.dice, view.pending
        rows = cls.legal_rows(view)
        pick = dice.integer(0, len(rows) - 1)
        move = _policy(dice, "synchronisable", pick)
        row = rows[pick]
        if not dice.chance(0.8):
            return move
        if NEEDS[int(pending.needs[row])] == "share":
            return replace(move, kind="share")
        kind = "row" if move.kind == "share" else move.kind
        stride = move.stride if dice.chance(0.5) else 1
        return replace(move, kind=kind, steps=int(pending.steps[row]), stride=stride)

    @classmethod
    def draw_any(cls, drawing: Drawing, among: Among) -> SynchroniseMove:
        pick = drawing.dice.integer(0, 7)
        return _policy(drawing.dice, drawing.dice.pick(("pending", "running", "none")), pick)


def _policy(dice: Dice, among: Among, pick: int) -> SynchroniseMove:
    """A policy by rows or tiles, which mostly fits, or another one."""
    return SynchroniseMove(
        among=among,
        pick=pick,
        kind=dice.weighted({"row": 3.0, "tile": 3.0, "strided": 2.0, "matrix": 1.0, "share": 1.0}),
        stride=dice.integer(1, 6),
        steps=dice.weighted({1: 4.0, 3: 1.0, 9: 1.0}),
        reorder=dice.chance(0.3),
        order=dice.pick(ORDERS),
        wait_kernel=dice.chance(0.3),
    )


MOVE = SynchroniseMove
