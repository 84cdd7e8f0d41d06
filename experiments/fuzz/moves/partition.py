"""Moves that confine tenants."""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.experiments.fuzz.moves.move import Among, CommandMove, Drawing, Sms, partition_of, sms_of
from gpusched_env.scheduling.commands import SetPartition
from gpusched_env.scheduling.view import View


class PartitionMove(CommandMove, frozen=True, kw_only=True, tag="partition"):
    """Confine a tenant to a partition, ``None``: to none."""

    NAME = "partition"
    # Of any tenant: what was set at this instant already is refused.
    LEGAL = ("tenants", "partition_sms")
    WEIGHT = 0.2
    ANY_SHARE = 1

    tenant: int = 0
    partition: Sms | None = None

    def command(self, view: View, own: Sequence[int]) -> SetPartition:
        return SetPartition(self.tenant, partition_of(self.partition))

    @classmethod
    def of(cls, command: SetPartition, view: View, own: Sequence[int]) -> PartitionMove:
        return cls(tenant=command.tenant, partition=sms_of(command.partition))

    @classmethod
    def draw(cls, drawing: Drawing, view: View) -> PartitionMove:
        return cls(tenant=drawing.dice.integer(0, drawing.tenants - 1), partition=drawing.partition())

    @classmethod
    def draw_any(cls, drawing: Drawing, among: Among) -> PartitionMove:
        return cls(tenant=drawing.dice.integer(-1, drawing.tenants), partition=drawing.any_partition())


MOVE = PartitionMove
