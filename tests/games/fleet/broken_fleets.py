"""Fleets with one fault each, for the fuzzer to find."""

from __future__ import annotations

from typing import Any

from gpusched_env.games.fleet.device import Command, FleetDispatcher, FleetRun, FleetView, Move
from gpusched_env.games.fleet.experiments.fuzzing import PlainFleet
from gpusched_env.games.fleet.problem import FleetProblem
from gpusched_env.games.fleet.windows import advance


class Restless(PlainFleet):
    """Jobs that are moved do not restart."""

    def apply(self, command: Command) -> FleetView:
        view = super().apply(command)
        if isinstance(command, Move):
            self.fleet.state.ready_us[command.job] = 0
        return view


class Late(PlainFleet):
    """Ends are a microsecond late."""

    @staticmethod
    def advances(fleet: Any, *args: Any) -> None:
        before = fleet.ended_us.copy()
        advance(fleet, *args)
        fleet.ended_us[fleet.ended_us != before] += 1


class Claiming(PlainFleet):
    """Memory of jobs that have ended stays claimed."""

    @staticmethod
    def advances(fleet: Any, *args: Any) -> None:
        before = fleet.claimed_gb.copy()
        advance(fleet, *args)
        fleet.claimed_gb[:] = before


class Idle(PlainFleet):
    """Rules see no queue."""

    def run(self, dispatcher: FleetDispatcher, problem: FleetProblem) -> FleetRun:
        found = super().run(dispatcher, problem)
        found.waiting[:] = 0
        return found
