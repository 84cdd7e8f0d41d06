"""Whole episodes of the launch rule, without Python between their decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached
from gpusched_env.errors import DeadlockError
from gpusched_env.games.child_launches.agents.rule import launch_number
from gpusched_env.games.child_launches.devices.compiled.loop import ASKS, DONE, decide_and_run_on, run_on
from gpusched_env.games.child_launches.devices.compiled.state import new_state
from gpusched_env.games.child_launches.environment.encoding import WIDTH, EncodedMachine, costs_of, encode, monitored
from gpusched_env.games.child_launches.problem import LaunchProblem

Singles = NDArray[np.float32]

HOPELESS: Final = 20.0
"""An episode that takes so many times as long as the flat version is broken off, and counts as that."""
BROKEN_OFF: Final = -1


@cached(nogil=True)
def play_on(state: Any, costs: EncodedMachine, weights: Singles, columns: Singles, limit_ps: int) -> int:
    """From the beginning of an application to its end, a deadlock or a time; gives the status of the loop."""
    status = run_on(state)
    while status == ASKS:
        encode(state.request[0], monitored(state.monitor[0]), costs, columns)
        status = decide_and_run_on(state, launch_number(weights, columns) >= 0.0)
        if state.core[0].now_ps > limit_ps:
            return BROKEN_OFF
    return int(status)


@dataclass(frozen=True, slots=True)
class PlayedLaunches:
    """What an episode came to."""

    cost: float
    """Time over that of the flat version."""
    children: int
    decisions: int


def play_launches(weights: Singles, problem: LaunchProblem, flat_ps: int) -> PlayedLaunches:
    """An episode of the launch rule.

    Args:
        weights: ``value``.
        problem: what is run.
        flat_ps: how long it takes without launches.

    Raises:
        DeadlockError: the application cannot go on.
    """
    state = new_state(problem)
    columns = np.zeros(WIDTH, np.float32)
    status = play_on(state, costs_of(problem.machine), weights, columns, int(HOPELESS * flat_ps))
    if status not in (DONE, BROKEN_OFF):
        raise DeadlockError(f"{problem.name}: nothing can happen any more after {state.core[0]['now_ps'] / 1e6:.6g} us")
    totals = state.totals[0]
    return PlayedLaunches(float(state.core[0]["now_ps"] / flat_ps), int(totals["spawned"]), int(totals["decisions"]))
