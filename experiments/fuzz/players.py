"""Who gives the commands of a case: random moves, a shipped scheduler, or a script. Reads the trusted device's view."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.experiments.fuzz.case import Baseline, Case, RandomActions, RandomCommands, Script
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.moves import (
    LAUNCH_MOVE,
    WAIT_MOVE,
    Act,
    Among,
    BadWait,
    LaunchMove,
    Move,
    PartitionMove,
    PreemptMove,
    RejectMove,
    Sms,
    WaitMove,
    command_of,
    move_of,
    own_streams,
)
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import PreemptionMode
from gpusched_env.scheduling.session import begin
from gpusched_env.scheduling.view import View

MODES: tuple[PreemptionMode, ...] = ("drain", "save", "reset")


class MovePlayer(Protocol):
    """Gives the next move on a device."""

    def next(self, view: View) -> Move: ...


def make_player(case: Case, problem: Problem) -> MovePlayer:
    """The player of a case that is played on devices."""
    match case.player:
        case RandomCommands():
            return RandomPlayer(case.player, problem)
        case Baseline():
            return SchedulerPlayer(case.player.name, problem, case.seed)
        case Script():
            return ScriptPlayer(case.player, problem)
        case RandomActions():
            raise TypeError("random actions need an environment")


class RandomPlayer:
    """Weighted random moves."""

    def __init__(self, weights: RandomCommands, problem: Problem) -> None:
        self._w = weights
        self._dice = Dice(weights.seed)
        self._sms = problem.gpu.sms
        self._lowest = 1 - problem.gpu.priorities
        self._tenants = len(problem.programs)
        self._streams = len(problem.streams)
        self._own = len(own_streams(problem))
        self._offered = problem.scenario.commands

    def next(self, view: View) -> Move:
        w, dice = self._w, self._dice
        launchable = int((view.pending.launchable == 1.0).sum())
        preemptible = np.flatnonzero(view.running.preemptible == 1.0)
        rejectable = int((view.jobs.rejectable == 1.0).sum())
        weights = {
            "launch": w.launch if launchable else 0.0,
            "preempt": w.preempt if len(preemptible) else 0.0,
            "partition": w.partition,
            "reject": w.reject if rejectable else 0.0,
        }
        offered = {kind: weight for kind, weight in weights.items() if kind in self._offered}
        kind = dice.weighted({**offered, "illegal": w.illegal, "wait": w.wait})
        if kind == "launch":
            return self._launch(launchable)
        if kind == "preempt":
            row = int(dice.pick(list(preemptible)))
            mode = dice.pick(MODES if view.running.idempotent[row] else MODES[:2])
            partition = self._partition() if mode == "save" and dice.chance(w.partial) else None
            return PreemptMove(pick=row, mode=mode, partition=partition)
        if kind == "partition":
            return PartitionMove(tenant=dice.integer(0, self._tenants - 1), partition=self._partition())
        if kind == "reject":
            return RejectMove(pick=dice.integer(0, rejectable - 1))
        return self._wait(view) if kind == "wait" else self._anything()

    def _launch(self, launchable: int) -> LaunchMove:
        dice = self._dice
        priority = dice.integer(self._lowest, 0) if dice.chance(self._w.urgent) else None
        partition = self._partition() if dice.chance(self._w.confined) else None
        stream = dice.integer(0, self._own - 1) if self._own and dice.chance(self._w.elsewhere) else None
        return LaunchMove(pick=dice.integer(0, launchable - 1), priority=priority, partition=partition, stream=stream)

    def _partition(self) -> Sms | None:
        dice = self._dice
        if dice.chance(0.2):
            return None
        return dice.integer(0, self._sms - 1), dice.log_integer(1, self._sms)

    def _wait(self, view: View) -> WaitMove:
        # Without a limit and with nothing under way, the episode would often end in a deadlock.
        dice, w = self._dice, self._w
        if not dice.chance(w.bounded if len(view.running) else 0.9):
            return WAIT_MOVE
        how = dice.weighted({"short": 5.0, "round": 3.0, "now": 1.0})
        if how == "now":
            return WaitMove(until_us=view.time_us)
        if how == "short":
            return WaitMove(until_us=view.time_us + dice.exponential(w.wait_us))
        # A multiple of a round number: likely to coincide with something.
        grid = float(f"{w.wait_us:.0e}")
        return WaitMove(until_us=(math.floor(view.time_us / grid) + dice.integer(1, 2)) * grid)

    def _anything(self) -> Move:
        """A command that is often not legal, or not offered."""
        dice = self._dice
        among: Among = dice.pick(("pending", "running", "none"))
        what = dice.pick(("launch", "launch", "launch", "preempt", "preempt", "partition", "reject", "wait"))
        if what == "launch":
            priority = dice.pick((None, dice.integer(self._lowest - 1, 1)))
            stream = dice.pick((None, dice.integer(-1 - self._streams, 4)))
            pick, partition = dice.integer(0, 7), self._any_partition()
            among = dice.pick((among, "launchable"))
            return LaunchMove(among=among, pick=pick, priority=priority, partition=partition, stream=stream)
        if what == "reject":
            return RejectMove(among=dice.pick(("all", "none")), pick=dice.integer(0, 7))
        if what == "preempt":
            mode, partition = dice.pick(MODES), self._any_partition()
            return PreemptMove(among=among, pick=dice.integer(0, 7), mode=mode, partition=partition)
        if what == "partition":
            return PartitionMove(tenant=dice.integer(-1, self._tenants), partition=self._any_partition())
        return BadWait(past_us=dice.pick((0.0, 1e-6, 1.0)))

    def _any_partition(self) -> Sms | None:
        dice = self._dice
        if dice.chance(0.5):
            return None
        return dice.integer(-1, self._sms), dice.integer(0, self._sms + 1)


class SchedulerPlayer:
    """A shipped scheduler, as in a session."""

    def __init__(self, name: str, problem: Problem, seed: int) -> None:
        self._scheduler = make_scheduler(name)
        self._own = own_streams(problem)
        begin(self._scheduler, problem, seed)

    def next(self, view: View) -> Move:
        return move_of(self._scheduler.decide(view), view, self._own)


class ScriptPlayer:
    """Given moves in turn, without those that find no kernel; then the default."""

    def __init__(self, script: Script, problem: Problem) -> None:
        self._own = own_streams(problem)
        self._moves: Iterator[Move] = iter(script.moves)
        self._then = script.then

    def next(self, view: View) -> Move:
        for move in self._moves:
            if command_of(move, view, self._own) is not None:
                return move
        return LAUNCH_MOVE if self._then == "launch" and (view.pending.launchable == 1.0).any() else WAIT_MOVE


class ActionPlayer:
    """Actions of the environment: random ones, or a script's."""

    def __init__(self, player: RandomActions | Script, launches: int) -> None:
        """``launches``: how many actions after 0 are launches."""
        self._player = player
        self._launches = launches
        if isinstance(player, RandomActions):
            self._dice = Dice(player.seed)
        else:
            self._moves = iter(player.moves)

    def next(self, mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Act:
        """``mask``: the legal actions."""
        player = self._player
        if isinstance(player, Script):
            for move in self._moves:
                if isinstance(move, Act):
                    return move
            legal = np.flatnonzero(mask[: 1 + self._launches])
            return Act(pick=1 if player.then == "launch" and len(legal) > 1 else 0)
        dice = self._dice
        if dice.chance(player.illegal):
            return Act(pick=dice.integer(0, len(mask) - 1), legal=False)
        choices = int(mask.sum())
        if choices == 1 or dice.chance(player.wait):
            return Act()
        if dice.chance(player.launch):
            launches = int(mask[1 : 1 + self._launches].sum())
            return Act(pick=dice.integer(1, launches) if launches else 0)
        return Act(pick=dice.integer(1, choices - 1))


def action_of(act: Act, mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> int:
    """The action number that ``act`` means."""
    if not act.legal:
        return act.pick % len(mask)
    legal = np.flatnonzero(mask)
    return int(legal[act.pick % len(legal)])
