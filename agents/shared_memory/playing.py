"""Plays mixes in the environment, many at a time, each with weights of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.shared_memory.rule import Singles, actions
from gpusched_env.data.memory_mixes import memory_mix
from gpusched_env.devices.compiled.layout import DECIDE
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.observations import RUNNING_SLOTS
from gpusched_env.envs.setup import lay_out
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario, override
from gpusched_env.scenarios.variants import replaced
from gpusched_env.scheduling.commands import SetBudget

SCENARIO = "SharedMemory"
WAIT_US = 100.0


def mix_problem(seed: int, *, held_out: bool = False) -> Problem:
    """A generated mix of the scenario."""
    scenario = load_scenario(SCENARIO)
    change = replaced(scenario, {"frames": memory_mix(seed, held_out=held_out)})
    return build_problem(override(scenario, **change))


def play_mixes(weights: Singles, problems: Sequence[Problem]) -> tuple[NDArray[np.float64], int]:
    """Costs of episodes, one a problem, and the number of decisions.

    Args:
        weights: ``(problems, WEIGHTS)``, or ``(WEIGHTS,)`` for all.
        problems: of the scenario.
    """
    scenario = problems[0].scenario
    layout = lay_out(scenario, slots=None, running_slots=RUNNING_SLOTS, interval_us=scenario.interval_us)
    batch = EnvBatch(len(problems), layout, wait_us=WAIT_US)
    first, decisions = layout.first(SetBudget.NAME), 0
    for e, problem in enumerate(problems):
        batch.begin(e, problem, 0)
    batch.run()
    while (open_ := batch.reasons == DECIDE).any():
        decisions += int(open_.sum())
        batch.step(actions(weights, batch.observations, batch.masks, first))
    costs = batch.costs.copy()
    batch.close()
    return costs, decisions
