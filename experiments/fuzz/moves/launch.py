"""Moves that launch kernels."""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.experiments.fuzz.moves.move import (
    UNKNOWN,
    Among,
    CommandMove,
    Drawing,
    Sms,
    kernel_at,
    partition_of,
    place_of,
    sms_of,
)
from gpusched_env.scheduling.commands import Launch
from gpusched_env.scheduling.commands.launch import open_streams
from gpusched_env.scheduling.view import View


class LaunchMove(CommandMove, frozen=True, kw_only=True, tag="launch"):
    """Launch a kernel: row ``pick`` (counted round) of those ``among``; legal only for launchable ones."""

    NAME = "launch"
    OF = "every"
    LEGAL = ("pending", "launchable")
    WEIGHT = 4.0
    ANY_SHARE = 3

    among: Among = "launchable"
    pick: int = 0
    priority: int | None = None
    """Priority of the launch; ``None``: its stream's."""
    partition: Sms | None = None
    stream: int | None = None
    """A stream of the scheduler's own (counted round); -1 and below: row 0 and up of all streams. ``None``: its own."""

    def command(self, view: View, own: Sequence[int]) -> Launch | None:
        kernel, stream = kernel_at(self.among, self.pick, view), self.stream
        if kernel is None:
            return None
        if stream is not None:
            stream = -1 - stream if stream < 0 else own[stream % len(own)] if own else UNKNOWN
        return Launch(kernel, self.priority, partition_of(self.partition), stream)

    @classmethod
    def of(cls, command: Launch, view: View, own: Sequence[int]) -> LaunchMove:
        row = command.stream
        return cls(
            pick=place_of("launchable", view, command.launch),
            priority=command.priority,
            partition=sms_of(command.partition),
            stream=None if row is None else own.index(row) if row in own else -1 - row,
        )

    @classmethod
    def draw(cls, drawing: Drawing, view: View) -> LaunchMove:
        w, dice, problem = drawing.weights, drawing.dice, drawing.problem
        priority = dice.integer(1 - problem.gpu.priorities, 0) if dice.chance(w.urgent) else None
        # Where tenants are processes that are started anew, partitions are theirs.
        confined = not problem.scenario.restart_us > 0.0 and dice.chance(w.confined)
        partition = drawing.partition() if confined else None
        oldest = w.oldest > 0.0 and dice.chance(w.oldest)
        pick = 0 if oldest else dice.integer(0, len(cls.legal_rows(view)) - 1)
        open_ = _open(drawing, view, pick)
        stream = dice.pick(open_) if open_ and dice.chance(w.elsewhere) else None
        return cls(pick=pick, priority=priority, partition=partition, stream=stream)

    @classmethod
    def draw_any(cls, drawing: Drawing, among: Among) -> LaunchMove:
        dice = drawing.dice
        priority = dice.pick((None, dice.integer(-drawing.problem.gpu.priorities, 1)))
        stream = dice.pick((None, dice.integer(-1 - len(drawing.problem.streams), 4)))
        pick, partition = dice.integer(0, 7), drawing.any_partition()
        among = dice.pick((among, "launchable"))
        return cls(among=among, pick=pick, priority=priority, partition=partition, stream=stream)


def _open(drawing: Drawing, view: View, pick: int) -> list[int]:
    """Which of the scheduler's own streams take a launchable launch: all, but in a window not any."""
    if drawing.problem.window is None:
        return list(range(len(drawing.own)))
    row = view.pending.array[LaunchMove.legal_rows(view)[pick]]
    return [drawing.own.index(stream) for stream in open_streams(row, view, drawing.problem)]


MOVE = LaunchMove
