"""Who makes the moves of a case, and the two sides that they are made on: a device, or an environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.episodes.session import begin
from gpusched_env.errors import DeadlockError, IllegalCommand
from gpusched_env.experiments.fuzz.case import Baseline, Case, Player, RandomActions, RandomCommands, Script
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.moves import COMMAND_MOVES, Move, command_of, move_of, own_streams
from gpusched_env.experiments.fuzz.moves.launch import LaunchMove
from gpusched_env.experiments.fuzz.moves.move import Among, Drawing
from gpusched_env.experiments.fuzz.moves.others import Act, BadWait, WaitMove
from gpusched_env.hardware.specs import gpu_names, load_gpu
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.view import View
from gpusched_env.workload.tenant import ClosedLoop, Tenant


@dataclass(frozen=True)
class ShownStep:
    """What one side of a duel shows after a step."""

    view: View
    over: bool
    """Whether the episode is; otherwise a move is due."""
    told: dict[str, Any] = field(default_factory=dict)
    """What an environment gives besides its view, by name."""
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
    """A player of weighted random commands."""

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


class Side:
    """A device that is given commands."""

    may_raise: tuple[type[Exception], ...] = (IllegalCommand, DeadlockError)
    """Anything else is a finding."""

    def __init__(self, device: Device, problem: Problem, case: Case) -> None:
        self.device = device
        self.saved: Any = None
        """What :meth:`save` kept."""
        self._problem = problem
        self._case = case
        self._own = own_streams(problem)

    def reset(self, seed: int) -> ShownStep:
        keep = self._case.snapshot is not None
        return self._shown(self.device.reset(self._problem, seed, record=self._case.record, snapshots=keep))

    def meaning(self, move: Move, shown: ShownStep) -> Any:
        """The command or action that ``move`` means there; ``None`` if there is no such kernel."""
        return command_of(move, shown.view, self._own)

    def step(self, action: Any) -> ShownStep:
        """Carry out what a move means."""
        self.device.apply(action)
        return self._shown(self.device.advance())

    def now(self) -> ShownStep:
        """What the device shows of itself, whether or not it waits for a decision."""
        return ShownStep(self.device.view(), over=True)

    def save(self) -> None:
        """Keep what :meth:`restore` needs to come back."""
        self.saved = self.device.snapshot()

    def restore(self) -> ShownStep:
        return self._shown(self.device.restore(self.saved))

    def _shown(self, view: View | None) -> ShownStep:
        return self.now() if view is None else ShownStep(view, over=False)


class EnvSide(Side):
    """An environment, which takes any action: its mask offers nothing that a device refuses."""

    may_raise: tuple[type[Exception], ...] = (DeadlockError,)

    def __init__(self, device: Device, problem: Problem, case: Case) -> None:
        options = case.env
        assert options is not None
        batched = isinstance(device, CompiledDevice) and not options.views
        self._env = GpuSchedulingEnv(
            _stand_in(problem.scenario),
            device="compiled" if batched else device,
            slots=options.slots,
            running_slots=options.running_slots,
            wait_us=options.wait_us,
            record=case.record,
            interval_us=0.0,
            commands=problem.scenario.commands,
        )
        # An environment is made of names; GPU and workloads of a case have none.
        self._env.scenario, self._env.problem = problem.scenario, problem
        super().__init__(self._env.device, problem, case)
        layout = self._env.layout
        self._launches = layout.pending_slots * layout.choices("launch")

    def reset(self, seed: int) -> ShownStep:
        return self._told(*self._env.reset(seed=seed))

    def meaning(self, move: Move, shown: ShownStep) -> int:
        assert isinstance(move, Act)
        assert shown.mask is not None
        return action_of(move, shown.mask)

    def step(self, action: Any) -> ShownStep:
        observation, reward, terminated, truncated, info = self._env.step(action)
        end = (terminated, truncated)
        return self._told(observation, info, over=any(end), reward=reward, end=end)

    def save(self) -> None:
        self.saved = self._env.save_state()

    def restore(self) -> ShownStep:
        return self._told(*self._env.restore_state(self.saved))

    def _told(self, observation: dict[str, Any], info: dict[str, Any], *, over: bool = False, **more: Any) -> ShownStep:
        told = {f"observation.{name}": values for name, values in observation.items()} | {"info": info} | more
        return ShownStep(self._env.view, over, told, info["action_mask"] == 1, self._launches)


def _stand_in(scenario: Scenario) -> Scenario:
    """A scenario of shipped parts with the same actions and as many tenants: whatever shapes the spaces is kept."""
    gpu = max(gpu_names(), key=lambda name: load_gpu(name).priorities)
    tenants = tuple(Tenant(name=t.name, workload="toy_batch", arrivals=ClosedLoop()) for t in scenario.tenants)
    return msgspec.structs.replace(scenario, gpu=gpu, tenants=tenants)
