"""Fleets as devices: compiled, as plain Python, and in shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.lib.names import device_from
from gpusched_env.games.fleet.device import Fleet, FleetRun, run_fleet
from gpusched_env.games.fleet.dispatcher import Command, Dispatcher, FleetView
from gpusched_env.games.fleet.environment.encoding import CANDIDATES, WIDTH, encode, encode_compiled
from gpusched_env.games.fleet.experiments.cluster import run_in_shards
from gpusched_env.games.fleet.experiments.levels import BlockLevel
from gpusched_env.games.fleet.problem import FleetProblem
from gpusched_env.games.fleet.stepping.compiled import advance_compiled
from gpusched_env.games.fleet.windows import advance


class CompiledFleet:
    """Compiled code; rules run in one piece."""

    simulator = "compiled"
    """Of GPUs that are simulated block by block."""
    scheduler = ""
    """On these; none: GPUs follow the rates."""

    advances: Callable[..., None] = staticmethod(advance_compiled)
    encodes: Callable[..., None] = staticmethod(encode_compiled)

    def reset(self, problem: FleetProblem, control: str) -> FleetView:
        """Time 0."""
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
        """To the next report."""
        return self.fleet.advance()

    def rows(self, view: FleetView, job: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """What an environment shows of a job."""
        rows, gpus = np.zeros((CANDIDATES + 1, WIDTH), np.float32), np.zeros(CANDIDATES + 1, np.int64)
        self.encodes(view.shown, self.fleet.problem.rates, job, rows, gpus)
        return rows, gpus

    def run(self, dispatcher: Dispatcher, problem: FleetProblem) -> FleetRun:
        """A rule to the horizon."""
        return run_fleet(dispatcher, problem, blocks=None if self.level is None else self.level(problem))


class PlainFleet(CompiledFleet):
    """The same text as plain Python; rules are asked for each command, as any dispatcher."""

    simulator = "reference"

    advances = staticmethod(advance)
    encodes = staticmethod(encode)

    def run(self, dispatcher: Dispatcher, problem: FleetProblem) -> FleetRun:
        blocks = None if self.level is None else self.level(problem)
        return run_fleet(dispatcher, problem, compiled=False, asked=True, blocks=blocks)


class ShardedFleet(CompiledFleet):
    """Compiled code; rules run in two shards."""

    def run(self, dispatcher: Dispatcher, problem: FleetProblem) -> FleetRun:
        return run_in_shards(dispatcher, problem, min(2, problem.gpus), blocks=self.level)


DEVICES: Final = {"reference": PlainFleet, "compiled": CompiledFleet, "shards": ShardedFleet}


def new_fleet_device(source: str | Callable[[], Any]) -> CompiledFleet:
    """A device from its name or factory.

    Raises:
        InputError: no device of that name.
    """
    device: CompiledFleet = device_from(source, _shipped)
    return device


def _shipped(name: str) -> CompiledFleet:
    if name not in DEVICES:
        raise InputError(f"unknown device {name!r} of fleets; {did_you_mean(name, DEVICES)}")
    return DEVICES[name]()
