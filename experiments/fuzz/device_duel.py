"""A case played on two devices, compared after every command."""

from __future__ import annotations

import pickle
from dataclasses import fields
from typing import Any

import numpy as np

from gpusched_env.errors import DeadlockError, IllegalCommand
from gpusched_env.experiments.fuzz.case import Case, RandomCommands
from gpusched_env.experiments.fuzz.duel import Duel, MakeDevice, record
from gpusched_env.experiments.fuzz.moves import command_of, own_streams
from gpusched_env.experiments.fuzz.players import RandomPlayer, make_player
from gpusched_env.scheduling.commands import WAIT, Command, Preempt
from gpusched_env.scheduling.view import View

Views = tuple[View | None, View | None]


class DeviceDuel(Duel):
    """Applies the same commands, chosen on the trusted device's view, to both."""

    _commands: list[Command]
    """Those that were legal."""
    _snapshots: tuple[Any, Any] | None = None

    def __init__(self, case: Case, device: MakeDevice, against: MakeDevice) -> None:
        super().__init__(case, device, against)
        self.own = own_streams(self.problem)
        """Rows of the scheduler's own streams."""

    def run(self) -> None:
        """Play the case; raises ``Differs`` where the devices do."""
        case = self.case
        self._commands = []
        if case.before > 0:
            self._leave_unfinished()
        deadlock = False
        try:
            self._play()
        except DeadlockError:
            deadlock = True
            self.outcome.features.add("deadlock")
        self._look((None, None))
        self.compare_end()
        if self._snapshots is not None:
            self._play_again(deadlock)

    def _leave_unfinished(self) -> None:
        """Another episode, of which nothing may be left after a reset. Only errors count in it."""
        self.comparison.step = -1
        player = RandomPlayer(RandomCommands(seed=self.case.seed, illegal=0.0), self.problem)
        try:
            views: Views = self.both("reset", lambda d: d.reset(self.problem, self.case.seed + 1), self.devices)
            for _ in range(self.case.before):
                view, other = views
                if view is None or other is None:
                    return
                views = self._give(command_of(player.next(view), view, self.own) or WAIT)
        except (DeadlockError, IllegalCommand):
            return

    def _play(self) -> None:
        case, moves, comparison = self.case, self.outcome.moves, self.comparison
        player = make_player(case, self.problem)
        comparison.step = 0
        keep = case.snapshot is not None
        views: Views = self.both(
            "reset", lambda d: d.reset(self.problem, case.seed, record=case.record, snapshots=keep), self.devices
        )
        while True:
            self._look(views)
            view, other = views
            if view is None or other is None:
                self.outcome.features.add("workload done" if self.devices[0].done else "horizon")
                return
            if len(moves) >= case.most_commands:
                self.outcome.features.add("left after the most commands")
                return
            if case.snapshot is not None and self._snapshots is None and len(self._commands) == case.snapshot.step:
                self._snapshots = self.both("snapshot", lambda d: d.snapshot(), self.devices)
            move = player.next(view)
            moves.append(move)
            comparison.step = len(moves)
            command = command_of(move, view, self.own)
            if command is None:
                continue
            try:
                views = self._give(command, remember=True)
            except IllegalCommand:
                self._check_unchanged((view, other), command)
                continue
            if isinstance(command, Preempt) and command.partition is not None:
                self.outcome.features.add("blocks saved on some SMs")

    def _give(self, command: Command, *, remember: bool = False) -> Views:
        self.both(f"apply {command}", lambda d: d.apply(command), self.devices)
        if remember:
            self._commands.append(command)
        return self.both(f"advance after {command}", lambda d: d.advance(), self.devices)

    def _look(self, views: Views) -> None:
        view, other = views
        self.comparison.equal("end", "whether advance() gave a view", view is not None, other is not None)
        if view is not None and other is not None:
            self.compare_state((view, other))
        else:
            self.compare_state(self.both("view", lambda d: d.view(), self.devices))

    def _check_unchanged(self, before: tuple[View, View], command: Command) -> None:
        """A refused command has left both devices as they were."""
        self.outcome.features.add("refused commands")
        after = self.both("view", lambda d: d.view(), self.devices)
        for was, now in zip(before, after, strict=True):
            for field in fields(View):
                kept, value = getattr(was, field.name), getattr(now, field.name)
                if not np.array_equal(getattr(kept, "array", kept), getattr(value, "array", value), equal_nan=True):
                    self.comparison.differ("refusal", f"view.{field.name} after the refused {command}", kept, value)

    def _play_again(self, deadlock: bool) -> None:
        """From the snapshots on, the same commands lead to the same end."""
        plan, snapshots = self.case.snapshot, self._snapshots
        assert plan is not None
        assert snapshots is not None
        self.outcome.features.add("back to a snapshot")
        kept = record(self.devices[0]), record(self.devices[1])
        if plan.fresh:
            self.devices = self.makers[0](), self.makers[1]()
            snapshots = pickle.loads(pickle.dumps(snapshots[0])), pickle.loads(pickle.dumps(snapshots[1]))
        comparison = self.comparison
        comparison.phase = "played again from a snapshot: "
        comparison.step = plan.step
        by_device = dict(zip(map(id, self.devices), snapshots, strict=True))
        views: Views = self.both("restore", lambda d: d.restore(by_device[id(d)]), self.devices)
        deadlock_again = False
        try:
            self._look(views)
            for command in self._commands[plan.step :]:
                comparison.step += 1
                self._look(self._give(command))
        except DeadlockError:
            deadlock_again = True
        comparison.equal("restore", "a deadlock", deadlock, deadlock_again)
        self.compare_with_record(kept)
