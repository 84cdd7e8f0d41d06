"""Who makes the moves of a case: random ones, a shipped scheduler, or a script. They see the trusted side only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.episodes.session import begin
from gpusched_env.experiments.fuzz.case import Baseline, Player, RandomActions, RandomCommands, Script
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.moves import (
    Act,
    Among,
    BadWait,
    BudgetMove,
    CommandMove,
    LaunchMove,
    Move,
    PartitionMove,
    PreemptMove,
    RejectMove,
    ReshapeMove,
    Sms,
    SynchroniseMove,
    ThrottleMove,
    WaitMove,
    command_of,
    move_of,
    own_streams,
)
from gpusched_env.experiments.fuzz.shared_memory import any_budget, random_budget
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import MODES, ORDERS
from gpusched_env.scheduling.legality import open_streams
from gpusched_env.scheduling.synchronising import NEEDS
from gpusched_env.scheduling.view import View


@dataclass(frozen=True)
class ShownStep:
    """What one side of a duel shows after a step."""

    view: View
    over: bool
    """Whether the episode is; otherwise a move is due."""
    told: dict[str, Any] = field(default_factory=dict)
    """What an environment gives besides, by name."""
    mask: NDArray[np.bool_] | None = None
    """Legal actions of an environment; ``None``: commands are due."""
    launches: int = 0
    """How many actions after 0 are launches."""


NextMove = Callable[[ShownStep], Move]


def make_player(player: Player, problem: Problem, seed: int) -> NextMove:
    """What makes the next move, on a device or (random actions, and scripts) in an environment."""
    match player:
        case RandomCommands():
            return _RandomPlayer(player, problem)
        case RandomActions():
            dice = Dice(player.seed)
            return lambda shown: _random_act(player, dice, shown)
        case Baseline():
            scheduler, own = make_scheduler(player.name), own_streams(problem)
            begin(scheduler, problem, seed)
            return lambda shown: move_of(scheduler.decide(shown.view), shown.view, own)
        case Script():
            return _scripted(player, problem)


def action_of(act: Act, mask: NDArray[np.bool_]) -> int:
    """The action number that ``act`` means."""
    actions = np.flatnonzero(mask) if act.legal else np.arange(len(mask))
    return int(actions[act.pick % len(actions)])


class _RandomPlayer:
    """Weighted random commands."""

    def __init__(self, weights: RandomCommands, problem: Problem) -> None:
        self._w = weights
        self._dice = Dice(weights.seed)
        self._sms = problem.gpu.sms
        self._lowest = 1 - problem.gpu.priorities
        self._problem = problem
        self._own = own_streams(problem)
        self._restarts = problem.scenario.restart_us > 0.0
        """Whether partitions are of processes, not of launches."""

    def __call__(self, shown: ShownStep) -> Move:
        w, dice, view = self._w, self._dice, shown.view
        launchable = int((view.pending.launchable == 1.0).sum())
        preemptible = np.flatnonzero(view.running.preemptible == 1.0)
        synchronisable = int((view.pending.synchronisable == 1.0).sum())
        forms = view.pending.forms[view.pending.forms > 0.0]
        rejectable = int((view.jobs.rejectable == 1.0).sum())
        settable = np.flatnonzero(view.cores.settable == 1.0)
        throttlable = np.flatnonzero(view.tenants.throttlable == 1.0)
        legal: dict[type[CommandMove], bool] = {
            LaunchMove: launchable > 0,
            PreemptMove: len(preemptible) > 0,
            PartitionMove: True,
            RejectMove: rejectable > 0,
            SynchroniseMove: synchronisable > 0,
            ReshapeMove: len(forms) > 0,
            ThrottleMove: len(throttlable) > 0,
            BudgetMove: len(settable) > 0,
        }
        offered = {
            move.NAME: w.weights.get(move.NAME, move.WEIGHT) if any_legal else 0.0
            for move, any_legal in legal.items()
            if move.NAME in self._problem.scenario.commands
        }
        match dice.weighted({**offered, "illegal": w.illegal, "wait": w.weights.get("wait", 1.0)}):
            case "launch":
                priority = dice.integer(self._lowest, 0) if dice.chance(w.urgent) else None
                partition = self._partition() if not self._restarts and dice.chance(w.confined) else None
                pick = 0 if w.oldest > 0.0 and dice.chance(w.oldest) else dice.integer(0, launchable - 1)
                open_ = self._open(view, pick)
                stream = dice.pick(open_) if open_ and dice.chance(w.elsewhere) else None
                return LaunchMove(pick=pick, priority=priority, partition=partition, stream=stream)
            case "preempt":
                row = int(dice.pick(list(preemptible)))
                mode = dice.pick(MODES if view.running.idempotent[row] else MODES[:2])
                partition = self._partition() if mode == "save" and dice.chance(w.partial) else None
                return PreemptMove(pick=row, mode=mode, partition=partition)
            case "partition":
                return PartitionMove(
                    tenant=dice.integer(0, len(self._problem.programs) - 1), partition=self._partition()
                )
            case "reject":
                return RejectMove(pick=dice.integer(0, rejectable - 1))
            case "synchronise":
                return self._fitting(view, dice.integer(0, synchronisable - 1))
            case "reshape":
                pick = dice.integer(0, len(forms) - 1)
                return ReshapeMove(pick=pick, form=dice.integer(0, int(forms[pick]) - 1))
            case "throttle":
                return self._throttle(int(dice.pick(list(throttlable))))
            case "budget":
                return random_budget(dice, int(dice.pick(list(settable))))
            case "wait":
                return self._wait(view)
            case _:
                return self._anything()

    def _fitting(self, view: View, pick: int) -> SynchroniseMove:
        """Mostly a policy that the tiles of a synchronisable launch can be given."""
        pending, move = view.pending, self._synchronise(pick)
        row = np.flatnonzero(pending.synchronisable == 1.0)[pick]
        if not self._dice.chance(0.8):
            return move
        if NEEDS[int(pending.needs[row])] == "share":
            return replace(move, kind="share")
        kind = "row" if move.kind == "share" else move.kind
        stride = move.stride if self._dice.chance(0.5) else 1
        return replace(move, kind=kind, steps=int(pending.steps[row]), stride=stride)

    def _synchronise(self, pick: int, among: Among = "synchronisable") -> SynchroniseMove:
        """A policy by rows or tiles, which mostly fits, or another one."""
        dice = self._dice
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

    def _throttle(self, tenant: int) -> ThrottleMove:
        """A pause of a few waits, now and then none; it may be the one that the tenant has already."""
        dice, w = self._dice, self._w
        pause_us = 0.0 if dice.chance(0.3) else w.wait_us * dice.pick((1.0, 4.0, 20.0 * dice.uniform(0.0, 1.0)))
        return ThrottleMove(tenant=tenant, pause_us=pause_us)

    def _open(self, view: View, pick: int) -> list[int]:
        """Which of the scheduler's own streams take a launchable launch: all, but in a window not any."""
        if self._problem.window is None:
            return list(range(len(self._own)))
        row = view.pending.array[np.flatnonzero(view.pending.launchable == 1.0)[pick]]
        return [self._own.index(stream) for stream in open_streams(row, view, self._problem)]

    def _partition(self) -> Sms | None:
        dice = self._dice
        if dice.chance(0.2):
            return None
        return dice.integer(0, self._sms - 1), dice.log_integer(1, self._sms)

    def _wait(self, view: View) -> WaitMove:
        # Without a limit and with nothing under way, the episode would often end in a deadlock.
        dice, w = self._dice, self._w
        if not dice.chance(w.bounded if len(view.running) else 0.9):
            return WaitMove()
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
        dice, w = self._dice, self._w
        among: Among = dice.pick(("pending", "running", "none"))
        # Not drawn where nobody needs tiles, so that such episodes stay what they were before there were any.
        if "synchronise" in self._problem.scenario.commands and dice.chance(0.3):
            return self._synchronise(dice.integer(0, 7), dice.pick(("pending", "running", "none")))
        if "reshape" in self._problem.scenario.commands and dice.chance(0.2):
            among = dice.pick(("reshapable", "pending", "running", "none"))
            return ReshapeMove(among=among, pick=dice.integer(0, 7), form=dice.integer(-1, 3))
        if "throttle" in self._problem.scenario.commands and dice.chance(0.2):
            tenant = dice.integer(-1, len(self._problem.programs))
            return ThrottleMove(tenant=tenant, pause_us=dice.pick((None, -1.0, math.inf, 0.0, w.wait_us, 1e15)))
        if "budget" in self._problem.scenario.commands and dice.chance(0.2):
            return any_budget(dice, len(self._problem.scenario.cores.cores) if self._problem.scenario.cores else 0)
        match dice.pick(("launch", "launch", "launch", "preempt", "preempt", "partition", "reject", "wait")):
            case "launch":
                priority = dice.pick((None, dice.integer(self._lowest - 1, 1)))
                stream = dice.pick((None, dice.integer(-1 - len(self._problem.streams), 4)))
                pick, partition = dice.integer(0, 7), self._any_partition()
                among = dice.pick((among, "launchable"))
                return LaunchMove(among=among, pick=pick, priority=priority, partition=partition, stream=stream)
            case "reject":
                return RejectMove(among=dice.pick(("all", "none")), pick=dice.integer(0, 7))
            case "preempt":
                mode, partition = dice.pick(MODES), self._any_partition()
                return PreemptMove(among=among, pick=dice.integer(0, 7), mode=mode, partition=partition)
            case "partition":
                return PartitionMove(
                    tenant=dice.integer(-1, len(self._problem.programs)), partition=self._any_partition()
                )
            case _:
                return BadWait(past_us=dice.pick((0.0, 1e-6, 1.0)))

    def _any_partition(self) -> Sms | None:
        dice = self._dice
        if dice.chance(0.5):
            return None
        return dice.integer(-1, self._sms), dice.integer(0, self._sms + 1)


def _random_act(player: RandomActions, dice: Dice, shown: ShownStep) -> Act:
    mask = shown.mask
    assert mask is not None
    if dice.chance(player.illegal):
        return Act(pick=dice.integer(0, len(mask) - 1), legal=False)
    choices = int(mask.sum())
    if choices == 1 or dice.chance(player.wait):
        return Act()
    if dice.chance(player.launch):
        launches = int(mask[1 : 1 + shown.launches].sum())
        return Act(pick=dice.integer(1, launches) if launches else 0)
    return Act(pick=dice.integer(1, choices - 1))


def _scripted(script: Script, problem: Problem) -> NextMove:
    """Given moves in turn, without those that mean nothing there; then the default."""
    own, moves = own_streams(problem), iter(script.moves)

    def next_move(shown: ShownStep) -> Move:
        mask = shown.mask
        for move in moves:
            if isinstance(move, Act) if mask is not None else command_of(move, shown.view, own) is not None:
                return move
        if mask is not None:
            return Act(pick=int(script.then == "launch" and mask[1 : 1 + shown.launches].any()))
        launchable = (shown.view.pending.launchable == 1.0).any()
        return LaunchMove() if script.then == "launch" and launchable else WaitMove()

    return next_move
