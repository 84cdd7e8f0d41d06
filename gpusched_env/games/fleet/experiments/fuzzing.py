"""A case of a fleet on two devices: both get the same commands, and all that they show is compared.

A case on which they differ is made simpler.

Besides, on the trusted one: memory is not claimed twice or beyond what there is, each job is on one GPU at most, what
has ended has no work left, and no more is late than was asked for.

Devices are the compiled fleet, plain Python, and shards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.fuzz.compare import DuelComparison, outcome_of
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.outcome import Outcome
from gpusched_env.experiments.fuzz.run import Fuzzing
from gpusched_env.experiments.fuzz.stored import TreeShrinker
from gpusched_env.games.fleet.baselines.packing import Packing
from gpusched_env.games.fleet.device import (
    WAIT,
    Command,
    Fleet,
    FleetDispatcher,
    FleetRun,
    FleetView,
    Move,
    Place,
    run_fleet,
)
from gpusched_env.games.fleet.environment.encoding import CANDIDATES, WIDTH, encode, encode_compiled
from gpusched_env.games.fleet.experiments.fuzz_cases import FleetCase, FleetCounterexample, draw_fleet
from gpusched_env.games.fleet.experiments.levels import BlockLevel, run_in_shards
from gpusched_env.games.fleet.problem import CLIENTS, FINISHED, WAITS, FleetProblem, FleetState
from gpusched_env.games.fleet.stepping.compiled import advance_compiled
from gpusched_env.games.fleet.windows import PackingRule, advance


class CompiledFleet:
    """Compiled code; rules run in one piece."""

    simulator = "compiled"
    """Simulator of GPUs that are simulated block by block."""
    scheduler = ""
    """Scheduler on those GPUs; none: GPUs follow the rates."""

    advances: Callable[..., None] = staticmethod(advance_compiled)
    encodes: Callable[..., None] = staticmethod(encode_compiled)

    def reset(self, problem: FleetProblem, control: str) -> FleetView:
        """Begin at time 0."""
        self.fleet = Fleet(problem, control, self.advances if self.level is None else self.level(problem))
        return self.fleet.reset()

    @property
    def level(self) -> BlockLevel | None:
        """How GPUs are simulated; ``None``: they follow the rates."""
        return BlockLevel(self.simulator, scheduler=self.scheduler) if self.scheduler else None

    def apply(self, command: Command) -> FleetView:
        """Carry out a command."""
        return self.fleet.apply(command)

    def advance(self) -> FleetView | None:
        """Advance to the next report."""
        return self.fleet.advance()

    def rows(self, view: FleetView, job: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """What an environment shows of a job."""
        rows, gpus = np.zeros((CANDIDATES + 1, WIDTH), np.float32), np.zeros(CANDIDATES + 1, np.int64)
        self.encodes(view.shown, self.fleet.problem.rates, job, rows, gpus)
        return rows, gpus

    def run(self, dispatcher: FleetDispatcher, problem: FleetProblem) -> FleetRun:
        """A rule to the horizon."""
        return run_fleet(dispatcher, problem, blocks=None if self.level is None else self.level(problem))


class PlainFleet(CompiledFleet):
    """The text of compiled code as plain Python; rules are asked for each command, as any dispatcher."""

    simulator = "reference"

    advances = staticmethod(advance)
    encodes = staticmethod(encode)

    def run(self, dispatcher: FleetDispatcher, problem: FleetProblem) -> FleetRun:
        blocks = None if self.level is None else self.level(problem)
        return run_fleet(dispatcher, problem, compiled=False, asked=True, blocks=blocks)


class ShardedFleet(CompiledFleet):
    """Compiled code; rules run in two shards."""

    def run(self, dispatcher: FleetDispatcher, problem: FleetProblem) -> FleetRun:
        return run_in_shards(dispatcher, problem, min(2, problem.gpus), blocks=self.level)


DEVICES: Final = {"reference": PlainFleet, "compiled": CompiledFleet, "shards": ShardedFleet}


def make_fleet(name: str) -> CompiledFleet:
    """A new one of :data:`DEVICES`.

    Raises:
        InputError: no such device.
    """
    if name not in DEVICES:
        raise InputError(f"unknown device {name!r} of fleets; {did_you_mean(name, DEVICES)}")
    return DEVICES[name]()


MakeFleet = Callable[[], CompiledFleet]
OF_RULES: Final = ("gpu_of", "left_us", "ended_us", "served_us", "ratio_us", "late_us", "ready_us")
"""Columns that a run in shards collects, too."""
ROUNDING: Final = 1e-6


def play_fleet(case: FleetCase, device: MakeFleet, against: MakeFleet) -> Outcome:
    """Run ``case`` on a new ``device`` and on one that is trusted, and compare.

    Raises:
        InputError: the case is not a valid problem.
    """
    return outcome_of(_FleetDuel(case, device, against))


class _FleetDuel:
    """A case, the trusted device and the one under test."""

    def __init__(self, case: FleetCase, device: MakeFleet, against: MakeFleet) -> None:
        self.case = case
        self.problem = case.problem()
        self.devices = (against(), device())
        """The trusted one comes first, here and in all pairs."""
        for made in self.devices:
            made.scheduler = case.scheduler
        self.comparison = DuelComparison()
        self.outcome = Outcome(features=_contents(case))
        self.dice = Dice(case.seed)

    def run(self) -> None:
        """Play the case; raises ``Differs`` where the devices do."""
        if self.case.rule is not None:
            self._follow(self.case.rule)
            return
        views = self._views("reset", lambda device: device.reset(self.problem, self.case.control))
        while views is not None:
            self._compare()
            self._command(views[0])
            views = self._views("advance", lambda device: device.advance())
        self._compare()
        self._count(self.devices[0].fleet.state)

    def _follow(self, rule: PackingRule) -> None:
        dispatcher = Packing()
        dispatcher.control, dispatcher.rule = self.case.control, rule
        expected, found = (device.run(dispatcher, self.problem) for device in self.devices)
        for name in ("used", "running", "waiting"):
            self.comparison.close("counts", name, getattr(expected, name), getattr(found, name))
        for name in OF_RULES:
            self.comparison.close("state", name, getattr(expected.state, name), getattr(found.state, name))
        self._hold(expected.state, expected)
        self._count(expected.state)

    def _command(self, view: FleetView) -> None:
        """Some of the jobs are placed, some moved; each is looked at first."""
        for job in view.waiting.tolist():
            self._misuse()
            if self.dice.chance(self.case.placed):
                self._look(job)
                self._give(Place(job, self._gpu(job)))
        for job in np.flatnonzero(self.devices[0].fleet.state.gpu_of >= 0).tolist():
            if self.dice.chance(self.case.moved):
                self._misuse()
                self._give(Move(job, self._gpu(job)))

    def _gpu(self, job: int) -> int:
        """Mostly one with room."""
        state = self.devices[0].fleet.state
        room = (state.size_gb - state.claimed_gb >= state.memory_gb[job]) & (state.count < CLIENTS)
        there = np.flatnonzero(room & (np.arange(len(room)) != state.gpu_of[job])).tolist()
        return self.dice.pick(there or [0])

    def _misuse(self) -> None:
        if self.dice.chance(self.case.misused):
            kind = Place if self.dice.chance(0.5) else Move
            self._give(kind(self.dice.integer(-1, len(self.case.jobs)), self.dice.integer(-1, self.problem.gpus)))

    def _look(self, job: int) -> None:
        pairs = [device.rows(device.apply(WAIT), job) for device in self.devices]
        for name, expected, found in zip(("rows", "candidates"), *pairs, strict=True):
            self.comparison.close("observation", name, expected, found)

    def _give(self, command: Command) -> None:
        self.comparison.step += 1
        if self._views(repr(command), lambda device: device.apply(command)) is None:
            self.outcome.features.add("refusals")
        else:
            self.outcome.counts[type(command).__name__] += 1

    def _views(
        self, what: str, call: Callable[[CompiledFleet], FleetView | None]
    ) -> tuple[FleetView, FleetView] | None:
        """The same on both devices; ``None``: the end, or an error."""
        views = self.comparison.both(self.devices, what, call)
        if isinstance(views, Exception):
            return None
        expected, found = views
        self.comparison.equal("end", what, expected is None, found is None)
        return None if expected is None else views

    def _compare(self) -> None:
        expected, found = (device.fleet for device in self.devices)
        self.comparison.time_us = float(expected.state.clock[0])
        for name in FleetState._fields:
            self.comparison.close("state", name, getattr(expected.state, name), getattr(found.state, name))
        self.comparison.equal("log", "log", expected.log, found.log)
        self._hold(expected.state)

    def _hold(self, state: FleetState, run: FleetRun | None = None) -> None:
        """Check what is true of every fleet."""
        there = {gpu: state.slots[gpu, : state.count[gpu]].tolist() for gpu in range(len(state.count))}
        placed = [job for jobs in there.values() for job in jobs]
        self._true("a job is on one GPU at most", len(placed) == len(set(placed)))
        self._true(
            "jobs are where GPUs have them", all(state.gpu_of[j] == g for g, jobs in there.items() for j in jobs)
        )
        self._true("no other job is on a GPU", int((state.gpu_of >= 0).sum()) == len(placed))
        claimed = np.array([sum(state.memory_gb[job] for job in jobs) for jobs in there.values()])
        self._true("claims are those of the jobs", bool(np.abs(claimed - state.claimed_gb).max() < ROUNDING))
        self._true("memory is there", bool((claimed <= state.size_gb + ROUNDING).all()))
        ended = state.gpu_of == FINISHED
        self._true("what has ended has nothing left", bool((state.left_us[ended] <= 0.0).all()))
        self._true("what has ended did so after it came", bool((state.ended_us >= state.arrival_us)[ended].all()))
        self._true("what has not ended has no end", bool((state.ended_us[~ended] == -1).all()))
        asked_us = self.problem.jobs["work_us"] - state.left_us
        self._true(
            "no more is late than was asked", bool((state.late_us <= asked_us + ROUNDING * (1 + asked_us)).all())
        )
        if run is not None:
            self._true("GPUs in use are in the fleet or its last unit", int(run.used.max()) < self.problem.gpus + 3)

    def _true(self, what: str, holds: bool) -> None:
        self.comparison.equal("invariant", what, True, holds)

    def _count(self, state: FleetState) -> None:
        self.outcome.counts["jobs"] += len(state.training)
        self.outcome.counts["jobs finished"] += int((state.gpu_of == FINISHED).sum())
        happened = {
            "jobs finish": (state.gpu_of == FINISHED).any(),
            "jobs wait": (state.gpu_of == WAITS).any(),
            "training sleeps": (state.sleep_us > 0).any(),
            "smaller shares": (state.share < 1.0).any(),
            "late requests": (state.late_us > 0).any(),
            "restarts": (state.ready_us > 0).any(),
        }
        self.outcome.features.update(name for name, there in happened.items() if there)


def _contents(case: FleetCase) -> set[str]:
    """What a case contains."""
    there = {
        f"control {case.control}": True,
        "a rule" if case.rule is not None else "random commands": True,
        "several kinds of GPUs": len(case.kinds) > 1,
        "noise": case.rates.noise > 0.0,
        "block by block": bool(case.scheduler),
    }
    return {name for name, present in there.items() if present}


class FleetShrinker(TreeShrinker[FleetCase]):
    """A greedy shrinker, as that of the other devices."""

    LISTS = ("jobs", "kinds")
    OPTIONS = r"jobs/\d+/(?!arrival).*|kinds/\d+/.*|restart_us|rule|placed|moved|misused|seed|control|scheduler"
    NUMBERS = r"jobs/.*|kinds/.*|rates/.*|reports|report_us|restart_us|placed|moved|misused|seed"


FLEETS: Final = Fuzzing(make_fleet, draw_fleet, play_fleet, FleetShrinker, FleetCounterexample)
