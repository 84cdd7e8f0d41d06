"""Who makes the moves of a case: random ones, a shipped scheduler, or a script. They see the trusted side only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.episodes.session import begin
from gpusched_env.experiments.fuzz.case import Baseline, Player, RandomActions, RandomCommands, Script
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.moves import COMMAND_MOVES, Move, command_of, move_of, own_streams
from gpusched_env.experiments.fuzz.moves.launch import LaunchMove
from gpusched_env.experiments.fuzz.moves.move import Among, Drawing
from gpusched_env.experiments.fuzz.moves.others import Act, BadWait, WaitMove
from gpusched_env.scenarios.problem import Problem
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
        self._drawing = Drawing(weights, Dice(weights.seed), problem, own_streams(problem))
        offered = problem.scenario.commands
        self._moves = {name: move for name, move in COMMAND_MOVES.items() if name in offered}

    def __call__(self, shown: ShownStep) -> Move:
        w, drawing, view = self._w, self._drawing, shown.view
        offered = {
            name: w.weights.get(move.NAME, move.WEIGHT) if move.legal_rows(view) else 0.0
            for name, move in self._moves.items()
        }
        drawn = drawing.dice.weighted({**offered, "illegal": w.illegal, "wait": w.weights.get("wait", 1.0)})
        if drawn == "illegal":
            return self._anything()
        return WaitMove.draw(drawing, view) if drawn == "wait" else self._moves[drawn].draw(drawing, view)

    def _anything(self) -> Move:
        """A command that is often not legal, or not offered."""
        dice = self._drawing.dice
        among: Among = dice.pick(("pending", "running", "none"))
        for move in self._moves.values():
            if move.ANY_SHARE == 0 and dice.chance(move.ANY_CHANCE):
                return move.draw_any(self._drawing, among)
        shares = [name for name, move in COMMAND_MOVES.items() for _ in range(move.ANY_SHARE)]
        drawn = dice.pick((*shares, "wait"))
        if drawn == "wait":
            return BadWait(past_us=dice.pick((0.0, 1e-6, 1.0)))
        return COMMAND_MOVES[drawn].draw_any(self._drawing, among)


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
