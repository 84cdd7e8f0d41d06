"""A fleet: what a dispatcher sees at a report and what it can say, the fleet that is simulated from report to
report, and runs of dispatchers on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import IllegalCommand, InputError, did_you_mean
from gpusched_env.games.fleet.blocks import BlockSimulatedFleet
from gpusched_env.games.fleet.co_location import CONTROLS, NOW
from gpusched_env.games.fleet.problem import CLIENTS, FINISHED, WAITS, FleetProblem, FleetState, GpuKind, new_state
from gpusched_env.games.fleet.stepping.compiled import advance_compiled, run_windows_compiled
from gpusched_env.games.fleet.windows import (
    TOLERANCE,
    PackingRule,
    advance,
    choose_gpu,
    in_use,
    place_job,
    remove_job,
    run_windows,
)
from gpusched_env.games.fleet.workload.jobs import JOB
from gpusched_env.hardware.power import energy_of_load_j
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scheduling.guards import OneThread, deep_copy, one_thread_at_a_time, read_only_copy
from gpusched_env.scheduling.legality import whole_number
from gpusched_env.scheduling.showing import Builders, Showing, read_field


@dataclass(frozen=True, slots=True)
class Place:
    """Put a job that waits on a GPU. Legal where its memory has room and there are clients left."""

    job: int
    gpu: int


@dataclass(frozen=True, slots=True)
class Move:
    """Put a job that is on a GPU on another one, where it restarts: it does nothing for ``restart_us``."""

    job: int
    gpu: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until the next report."""


Command = Place | Move | Wait
WAIT: Final = Wait()


def plain_command(command: Command) -> Command:
    """``command`` in Python's own numbers: what is checked is what is carried out.

    Raises:
        IllegalCommand: it is no command, or its numbers are not whole.
    """
    kind = type(command)
    if kind not in (Place, Move, Wait):
        raise IllegalCommand(f"{command!r} is no command of a fleet, which are Place, Move and Wait")
    return kind(**{name: whole_number(command, name, getattr(command, name)) for name in kind.__slots__})


VISIBLE_JOB_COLUMNS: Final = [name for name in JOB.names or () if name != "work_us"]  # Not for how long a job stays.
OF_JOBS: Final = FleetState._fields[: FleetState._fields.index("count")]
HIDDEN: Final = ("left_us", "ended_us")


class FleetView:
    """What a dispatcher sees at a report: arrivals so far, and what GPUs report. Its arrays are copies, each made when
    it is first read, which has to be before the next command.

    * ``now_us``; ``waiting``: jobs that have arrived and are on no GPU, in order of arrival.
    * Of jobs that have arrived, (jobs,): ``jobs``, with the columns of :data:`VISIBLE_JOB_COLUMNS`, and ``gpu_of``:
      the GPU of each, :data:`~gpusched_env.games.fleet.problem.WAITS` or ``FINISHED``.
    * Of GPUs, (GPUs,): ``count`` of jobs; ``load``, their utilisations over ``speed``; ``claimed_gb`` of ``size_gb``;
      ``sleep_us`` after an iteration; ``ratio``, the worst mean latency over SLO since the last report, 0 without any.
    """

    def __init__(self, place: tuple[int, int], now_us: int) -> None:
        """``place``: of the fleet (:mod:`gpusched_env.scheduling.showing`)."""
        self._place, self.now_us = place, now_us

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name not in VIEW_COLUMNS:
            raise AttributeError(name)
        copy = self.__dict__[name] = read_only_copy(read_field(self._place, name))
        return copy

    @cached_property
    def shown(self) -> FleetState:
        """All of this as flat arrays for compiled rules; what is not known (work left, ends, later jobs) is cut off."""
        return FleetState(*map(read_only_copy, read_field(self._place, "state")))

    def choose(self, job: int, rule: PackingRule) -> int:
        """The GPU that a rule has for a job, or :data:`~gpusched_env.games.fleet.problem.WAITS`."""
        return choose_gpu(self.shown, job, rule)


class ViewSource(NamedTuple):
    """What views of a fleet are made of."""

    known: NDArray[np.void]
    """What is known of all jobs, later ones too."""
    state: FleetState

    @property
    def arrived(self) -> int:
        """Number of jobs that have arrived."""
        return int(np.searchsorted(self.state.arrival_us, self.state.clock[NOW], side="right"))


def _cut_off(told: ViewSource) -> FleetState:
    ends = dict.fromkeys(OF_JOBS, told.arrived) | dict.fromkeys(HIDDEN, 0)
    columns = zip(FleetState._fields, told.state, strict=True)
    return FleetState(*(column[: ends.get(name)] for name, column in columns))


VIEW_COLUMNS: Final[Builders[ViewSource]] = {
    "waiting": lambda told: np.flatnonzero(told.state.gpu_of[: told.arrived] == WAITS),
    "jobs": lambda told: told.known[: told.arrived],
    "gpu_of": lambda told: told.state.gpu_of[: told.arrived],
    "count": lambda told: told.state.count,
    "load": lambda told: told.state.load,
    "claimed_gb": lambda told: told.state.claimed_gb,
    "size_gb": lambda told: told.state.size_gb,
    "speed": lambda told: told.state.speed,
    "sleep_us": lambda told: told.state.sleep_us,
    "ratio": lambda told: told.state.ratio,
}
"""Arrays of a view."""
BUILDERS: Final[Builders[ViewSource]] = {**VIEW_COLUMNS, "state": _cut_off}


class FleetDispatcher(Protocol):
    """Decides at each report, until it says ``WAIT``, which job goes to which GPU.

    One whose decisions are a :class:`~gpusched_env.games.fleet.windows.PackingRule` has it as ``rule``, and is run
    compiled.
    """

    control: str
    """What runs on each GPU, of :data:`~gpusched_env.games.fleet.co_location.CONTROLS`."""

    def reset(self, kinds: tuple[GpuKind, ...]) -> None:
        """Begin with a fleet of these GPUs."""

    def decide(self, view: FleetView) -> Command:
        """The next command of the dispatcher."""


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
                :class:`~gpusched_env.games.fleet.blocks.BlockSimulatedFleet`; or shards.

        Raises:
            InputError: there is no such control.
        """
        if control not in CONTROLS:
            raise InputError(f"no control {control!r} of a GPU; {did_you_mean(control, CONTROLS)}")
        self.problem, self._control = problem, CONTROLS.index(control)
        self._advance = advance
        self.log: list[FleetEvent] = []

    @one_thread_at_a_time
    def reset(self) -> FleetView:
        """Begin at time 0."""
        self.state: FleetState = new_state(self.problem)
        self._showing = Showing(ViewSource(self.problem.jobs[VISIBLE_JOB_COLUMNS], self.state), BUILDERS)
        self.log.clear()
        return self._view()

    @property
    def waiting(self) -> int:
        """Jobs that have arrived and are on no GPU."""
        return len(self._showing.made["waiting"])

    def _view(self) -> FleetView:
        return FleetView(self._showing.place, int(self.state.clock[NOW]))

    @one_thread_at_a_time
    def apply(self, command: Command) -> FleetView:
        """Carry out a command at this instant.

        Raises:
            IllegalCommand: it is none, or not legal now; nothing has changed.
        """
        command = plain_command(command)
        if isinstance(command, Wait):
            return self._view()
        self._check(command)
        self._showing.change()
        job, gpu = command.job, command.gpu
        now_us = int(self.state.clock[NOW])
        if isinstance(command, Move):
            old = int(self.state.gpu_of[job])
            remove_job(self.state, old, int(np.flatnonzero(self.state.slots[old, : self.state.count[old]] == job)[0]))
            self.state.ready_us[job] = now_us + self.problem.restart_us
        place_job(self.state, job, gpu)
        self.log.append(FleetEvent(now_us, "move" if isinstance(command, Move) else "place", job, gpu))
        return self._view()

    @one_thread_at_a_time
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
    """Events of dispatchers that are asked."""
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
        """GPUs in use, mean over all reports."""
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
        """The energy of all GPUs while they have jobs, by the power law of their kinds and by how busy they are; others
        are off.

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
    dispatcher: FleetDispatcher,
    problem: FleetProblem,
    *,
    compiled: bool = True,
    asked: bool = False,
    blocks: BlockSimulatedFleet | None = None,
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
    dispatcher.reset(deep_copy(problem.kinds))
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
