"""Whole days of the fleet rule, without Python between their decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policy_file import Weights
from gpusched_env.compiling import cached
from gpusched_env.games.fleet.agents.rule import CONTROL, beside, gpu_for, gpu_to_empty
from gpusched_env.games.fleet.co_location import CONTROLS, NOW
from gpusched_env.games.fleet.device import FleetRun
from gpusched_env.games.fleet.environment.encoding import WIDTH
from gpusched_env.games.fleet.problem import FleetProblem
from gpusched_env.games.fleet.state import WAITS, new_state
from gpusched_env.games.fleet.windows import advance, in_use, put, take


@cached(nogil=True)
def play_on(
    fleet: Any, rates: Any, weights: Any, control: int, times_us: Any, moves: bool, counts: Any, row: Any
) -> int:
    """From the beginning of a day to its horizon; gives the number of decisions.

    Args:
        times_us: between two reports, and of a restart.
        moves: whether jobs are moved.
        counts: as of :func:`gpusched_env.games.fleet.windows.run_windows`.
    """
    first = arrived = decisions = 0
    for report in range(counts.shape[1]):
        while arrived < len(fleet.training) and fleet.arrival_us[arrived] <= fleet.clock[NOW]:
            arrived += 1
        waiting = 0
        for job in range(first, arrived):
            if fleet.gpu_of[job] != WAITS:
                continue
            gpu = gpu_for(fleet, rates, weights, job, row)
            decisions += 1
            if gpu == WAITS:
                waiting += 1
                continue
            put(fleet, job, gpu)
        if waiting == 0:
            first = arrived
        old = gpu_to_empty(fleet, rates, weights, row) if moves else WAITS
        while old != WAITS and fleet.count[old] > 0:
            job = fleet.slots[old, fleet.count[old] - 1]
            gpu = beside(fleet, rates, weights, job, old, row)
            decisions += 1
            if gpu == WAITS:
                break
            take(fleet, old, fleet.count[old] - 1)
            fleet.ready_us[job] = fleet.clock[NOW] + times_us[1]
            put(fleet, job, gpu)
        counts[0, report] = in_use(fleet, 0)
        for gpu in range(len(fleet.count)):
            counts[1, report] += fleet.count[gpu]
        counts[2, report] = waiting
        advance(fleet, control, rates, times_us[0], times_us[1])
    return decisions


def flat(weights: Weights) -> NDArray[np.float32]:
    """All weights in one row, as the rule takes them."""
    return np.concatenate([weights["place"].ravel(), weights["move"]]).astype(np.float32)


def play_day(
    weights: NDArray[np.float32], problem: FleetProblem, *, control: str = CONTROL, moves: bool = True
) -> tuple[FleetRun, int]:
    """A day of the fleet rule, and its decisions.

    Args:
        weights: as of :func:`flat`.
        problem: its GPUs and jobs.
        control: what runs on each GPU.
        moves: whether jobs are moved.
    """
    state, counts = new_state(problem), np.zeros((3, -(-problem.horizon_us // problem.report_us)), np.int64)
    times_us = (problem.report_us, problem.restart_us)
    row = np.zeros(WIDTH, np.float32)
    decisions = play_on(state, problem.rates, weights, CONTROLS.index(control), times_us, moves, counts, row)
    return FleetRun(problem, state, [], *counts), int(decisions)


@cached()
def gpu_for_compiled(fleet: Any, rates: Any, weights: Any, job: int, row: Any) -> int:
    """:func:`~gpusched_env.games.fleet.agents.rule.gpu_for`, compiled."""
    return gpu_for(fleet, rates, weights, job, row)


@cached()
def gpu_to_empty_compiled(fleet: Any, rates: Any, weights: Any, row: Any) -> int:
    """:func:`~gpusched_env.games.fleet.agents.rule.gpu_to_empty`, compiled."""
    return gpu_to_empty(fleet, rates, weights, row)


@cached()
def beside_compiled(fleet: Any, rates: Any, weights: Any, job: int, but: int, row: Any) -> int:
    """:func:`~gpusched_env.games.fleet.agents.rule.beside`, compiled."""
    return beside(fleet, rates, weights, job, but, row)
