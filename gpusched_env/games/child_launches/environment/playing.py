"""An application under way on a device: what an environment asks and tells it."""

from __future__ import annotations

import functools
from typing import Final

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.child_launches.device import LaunchDevice
from gpusched_env.games.child_launches.devices import make_launch_device
from gpusched_env.games.child_launches.devices.compiled.device import CompiledWarpDevice
from gpusched_env.games.child_launches.devices.compiled.loop import ASKS, DEADLOCK
from gpusched_env.games.child_launches.environment.encoding import Singles, costs_of, encode
from gpusched_env.games.child_launches.environment.stepping import step
from gpusched_env.games.child_launches.hardware.warp_machine import WarpMachine
from gpusched_env.games.child_launches.problem import LaunchProblem, launch_problem
from gpusched_env.games.child_launches.view import SERIALISE, SPAWN, RequestView
from gpusched_env.games.child_launches.workload.randomised import random_benchmark
from gpusched_env.games.child_launches.workload.suite import BENCHMARKS, benchmark

RANDOM: Final = "random"
"""In place of a benchmark's name: another random application for each seed."""
KEPT: Final = 16
"""Problems that are kept, so that an episode of the same is not made again."""


def check_benchmark(name: str) -> str:
    """``name``, if it is that of a benchmark or :data:`RANDOM`.

    Raises:
        InputError: it is not.
    """
    if name not in (RANDOM, *BENCHMARKS):
        raise InputError(f"benchmark is {name!r}; {did_you_mean(name, (RANDOM, *BENCHMARKS))}")
    return name


@functools.lru_cache(KEPT)
def episode_problem(name: str, seed: int, machine: WarpMachine) -> tuple[LaunchProblem, int]:
    """A benchmark on the input of ``seed``, and how long its flat version takes, ps.

    Raises:
        InputError: no such benchmark.
    """
    made = random_benchmark(seed) if name == RANDOM else benchmark(name, seed)
    problem = launch_problem(made, machine)
    return problem, flat_ps(problem)


def flat_ps(problem: LaunchProblem) -> int:
    """How long the application takes if it launches nothing."""
    device = CompiledWarpDevice()
    device.reset(problem.flat())
    return device.time_ps


class PlayedApplication:
    """On any device: views are made and encoded in Python."""

    def __init__(self, device: LaunchDevice) -> None:
        self.device = device
        self.asks = False
        """Whether a request waits for its answer."""

    def begin(self, problem: LaunchProblem, out: Singles) -> None:
        """Start, and run to the first request, whose columns are written."""
        self._costs = costs_of(problem.machine)
        self._show(self.device.reset(problem), out)

    def answer(self, spawn: bool, out: Singles) -> None:
        """Run to the next request.

        Raises:
            DeadlockError: nothing can happen any more.
        """
        self.device.apply(SPAWN if spawn else SERIALISE)
        self._show(self.device.advance(), out)

    def _show(self, view: RequestView | None, out: Singles) -> None:
        self.asks = view is not None
        if view is not None:
            encode(view, view, self._costs, out)


class CompiledApplication(PlayedApplication):
    """On the compiled device: one call a decision."""

    device: CompiledWarpDevice

    def __init__(self) -> None:
        super().__init__(CompiledWarpDevice())

    def answer(self, spawn: bool, out: Singles) -> None:
        status = step(self.device.state, spawn, self._costs, out)
        self.asks = status == ASKS
        if status == DEADLOCK:
            self.device.reached(status)


def make_application(device: str) -> PlayedApplication:
    """On the device of that name.

    Raises:
        InputError: there is none.
    """
    return CompiledApplication() if device == "compiled" else PlayedApplication(make_launch_device(device))
