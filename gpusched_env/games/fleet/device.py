"""A fleet that is simulated, report by report, and runs of dispatchers on it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import IllegalCommand, InputError, did_you_mean
from gpusched_env.games.fleet.blocks import Blocks
from gpusched_env.games.fleet.co_location import CONTROLS, NOW
from gpusched_env.games.fleet.dispatcher import (
    BUILDERS,
    KNOWN,
    Command,
    Dispatcher,
    FleetView,
    Move,
    Place,
    Told,
    Wait,
    plain,
)
from gpusched_env.games.fleet.problem import FleetProblem
from gpusched_env.games.fleet.state import CLIENTS, FINISHED, WAITS, FleetState, new_state
from gpusched_env.games.fleet.stepping.compiled import advance_compiled, run_windows_compiled
from gpusched_env.games.fleet.windows import TOLERANCE, PackingRule, advance, in_use, put, run_windows, take
from gpusched_env.hardware.power import energy_of_load_j
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scheduling.one_thread import OneThread, alone
from gpusched_env.scheduling.sealed import copied
from gpusched_env.scheduling.showing import Showing


class FleetEvent(NamedTuple):
    """A line of the log."""

    time_us: int
    what: str
    """``place``, ``move``, ``sleep`` or ``finish``."""
    job: int
    """-1: of a GPU."""
    gpu: int
    sleep_us: int = 0


class Fleet(OneThread):
    """A simulated fleet. Use: ``view = reset()``, then ``apply(command)`` and ``view = advance()`` until ``None``."""

    def __init__(self, problem: FleetProblem, control: str = "shared", advance: Any = advance_compiled) -> None:
        """
        Args:
            problem: its GPUs and jobs.
            control: what runs on each GPU.
            advance: to the next report: rates, compiled or the same text as plain Python;
                :class:`~gpusched_env.games.fleet.blocks.Blocks`; or shards.

        Raises:
            InputError: there is no such control.
        """
        if control not in CONTROLS:
            raise InputError(f"no control {control!r} of a GPU; {did_you_mean(control, CONTROLS)}")
        self.problem, self._control = problem, CONTROLS.index(control)
        self._advance = advance
        self.log: list[FleetEvent] = []

    @alone
    def reset(self) -> FleetView:
        """Time 0."""
        self.state: FleetState = new_state(self.problem)
        self._showing = Showing(Told(self.problem.jobs[KNOWN], self.state), BUILDERS)
        self.log.clear()
        return self._view()

    @property
    def waiting(self) -> int:
        """Jobs that have arrived and are on no GPU."""
        return len(self._showing.made["waiting"])

    def _view(self) -> FleetView:
        return FleetView(self._showing.place, int(self.state.clock[NOW]))

    @alone
    def apply(self, command: Command) -> FleetView:
        """Carry out a command at this instant.

        Raises:
            IllegalCommand: it is none, or not legal now; nothing has changed.
        """
        command = plain(command)
        if isinstance(command, Wait):
            return self._view()
        self._check(command)
        self._showing.change()
        job, gpu = command.job, command.gpu
        now_us = int(self.state.clock[NOW])
        if isinstance(command, Move):
            old = int(self.state.gpu_of[job])
            take(self.state, old, int(np.flatnonzero(self.state.slots[old, : self.state.count[old]] == job)[0]))
            self.state.ready_us[job] = now_us + self.problem.restart_us
        put(self.state, job, gpu)
        self.log.append(FleetEvent(now_us, "move" if isinstance(command, Move) else "place", job, gpu))
        return self._view()

    @alone
    def advance(self) -> FleetView | None:
        """The next report; ``None`` at the horizon, or when all jobs have finished."""
        state, problem = self.state, self.problem
        self._showing.change()
        before = state.gpu_of.copy(), state.sleep_us.copy()
        self._advance(state, self._control, problem.rates, problem.report_us, problem.restart_us)
        start_us = int(state.clock[NOW]) - problem.report_us
        for gpu in np.flatnonzero(before[1] != state.sleep_us).tolist():
            self.log.append(FleetEvent(start_us, "sleep", -1, gpu, round(state.sleep_us[gpu])))
        ended = np.flatnonzero((before[0] != FINISHED) & (state.gpu_of == FINISHED)).tolist()
        self.log += sorted(FleetEvent(int(state.ended_us[job]), "finish", job, int(before[0][job])) for job in ended)
        over = state.clock[NOW] >= problem.horizon_us or (state.gpu_of == FINISHED).all()
        return None if over else self._view()

    def _check(self, command: Place | Move) -> None:
        state, job, gpu = self.state, command.job, command.gpu
        if not 0 <= gpu < self.problem.gpus:
            raise IllegalCommand(f"{command}: the fleet has GPUs 0 to {self.problem.gpus - 1}")
        if not 0 <= job < len(state.training) or state.arrival_us[job] > state.clock[NOW]:
            raise IllegalCommand(f"{command}: no job {job} has arrived yet")
        where = int(state.gpu_of[job])
        if where == FINISHED:
            raise IllegalCommand(f"{command}: job {job} has finished")
        if isinstance(command, Place) and where != WAITS:
            raise IllegalCommand(f"{command}: job {job} is on GPU {where} and claims memory there; Move takes it off")
        if isinstance(command, Move) and where in (WAITS, gpu):
            raise IllegalCommand(f"{command}: job {job} is on {'no GPU yet' if where == WAITS else 'that GPU'}")
        free_gb, need_gb = float(state.size_gb[gpu] - state.claimed_gb[gpu]), float(state.memory_gb[job])
        if state.claimed_gb[gpu] + need_gb > state.size_gb[gpu]:  # As packing rules add, to the last bit.
            raise IllegalCommand(f"{command}: the job needs {need_gb:g} GB, GPU {gpu} has {free_gb:g} GB left")
        if state.count[gpu] >= CLIENTS:
            raise IllegalCommand(f"{command}: GPU {gpu} has {CLIENTS} clients already")


@dataclass(frozen=True, eq=False)
class FleetRun:
    """What a run left behind."""

    problem: FleetProblem
    state: FleetState
    log: list[FleetEvent]
    """Of dispatchers that are asked."""
    used: NDArray[np.int64]
    """(reports,) GPUs in use."""
    running: NDArray[np.int64]
    """(reports,) jobs on GPUs."""
    waiting: NDArray[np.int64]
    """(reports,) jobs that have arrived and are on none."""
    level: str = "rates"
    """How GPUs were simulated: a model of ``rates``, or ``blocks``."""

    @property
    def gpus(self) -> float:
        """In use, mean over all reports."""
        return float(self.used.mean())

    @property
    def violations(self) -> float:
        """Share of inference jobs that were served whose mean latency lies more than 2 % above their SLO."""
        served = self.state.served_us > 0
        late = self.state.ratio_us[served] > TOLERANCE * self.state.served_us[served]
        return float(late.mean()) if served.any() else math.nan

    @property
    def late_requests(self) -> float:
        """Share of all time asked for whose batches came during a restart, or in a report later than their SLO."""
        seen = self.state.served_us + self.state.late_us > 0
        asked_us = (self.problem.jobs["work_us"] - self.state.left_us)[seen].sum()
        return float(self.state.late_us[seen].sum() / asked_us) if seen.any() else math.nan

    @property
    def energy_j(self) -> float:
        """Of all GPUs while they have jobs, by the power law of their kinds and by how busy they are; others are off.

        A GPU whose jobs together have an activity of 1 takes its full power: an upper bound
        (:func:`~gpusched_env.hardware.power.energy_of_load_j`).
        """
        first, total = 0, 0.0
        for kind in self.problem.kinds:
            gpus = slice(first, first + kind.count)
            used_us, busy_us = self.state.used_us[gpus].sum(), self.state.busy_us[gpus].sum()
            total += energy_of_load_j(load_gpu(kind.spec), float(used_us), float(busy_us))
            first += kind.count
        return total

    @property
    def training_stretch(self) -> float:
        """Time that finished training spent on GPUs and in the queue, over that alone; mean weighted by work."""
        jobs, done = self.problem.jobs, (self.state.ended_us >= 0) & (self.problem.jobs["training"] == 1)
        took_us = (self.state.ended_us - jobs["arrival_us"])[done]
        return float(took_us.sum() / jobs["work_us"][done].sum()) if done.any() else math.nan


def run_fleet(
    dispatcher: Dispatcher,
    problem: FleetProblem,
    *,
    compiled: bool = True,
    asked: bool = False,
    blocks: Blocks | None = None,
) -> FleetRun:
    """Run a dispatcher to the horizon.

    Args:
        dispatcher: one that is a rule runs in one piece, unless ``asked``.
        problem: its GPUs and jobs.
        compiled: whether to run compiled code, or the same text as plain Python.
        asked: ask it for each command, as if it was no rule.
        blocks: simulate GPUs block by block, in place of rates.

    Raises:
        IllegalCommand: from the dispatcher.
    """
    fleet = Fleet(problem, dispatcher.control, blocks or (advance_compiled if compiled else advance))
    rule: PackingRule | None = getattr(dispatcher, "rule", None)
    view: FleetView | None = fleet.reset()
    reports = -(-problem.horizon_us // problem.report_us)
    counts, state = np.zeros((3, reports), np.int64), fleet.state
    if rule is not None and not asked and blocks is None:
        windows = run_windows_compiled if compiled else run_windows
        control = CONTROLS.index(dispatcher.control)
        windows(state, rule, control, problem.rates, problem.report_us, problem.restart_us, counts)
        return FleetRun(problem, state, fleet.log, *counts)
    dispatcher.reset(copied(problem.kinds))
    for report in range(reports):
        if view is None:
            break
        while not isinstance(command := dispatcher.decide(view), Wait):
            view = fleet.apply(command)
        counts[:, report] = in_use(state, 0 if rule is None else rule.unit), state.count.sum(), fleet.waiting
        view = fleet.advance()
    used, running, waiting = counts
    level = "rates" if blocks is None else blocks.level
    return FleetRun(problem, state, fleet.log, used, running, waiting, level)
