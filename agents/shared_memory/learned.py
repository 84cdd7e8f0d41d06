"""The agent of ``gpusched/SharedMemory-v0``: a small network that sets the budget of each CPU core, as a rule, in the
environment and as a scheduler.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.learned import Acting
from gpusched_env.data.parboil import memory_mix
from gpusched_env.devices.compiled.layout import DECIDE
from gpusched_env.envs.action_fields import BUDGETS
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.extra_tables import CoreFeature
from gpusched_env.envs.features import RunningFeature, TenantFeature
from gpusched_env.envs.observations import RUNNING_SLOTS, ObservationEncoder
from gpusched_env.envs.setup import lay_out
from gpusched_env.errors import InputError
from gpusched_env.reading import read_text
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario, override
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scenarios.variants import replaced
from gpusched_env.scheduling.commands import Command, SetBudget
from gpusched_env.scheduling.reads import OBSERVED, Reads
from gpusched_env.scheduling.view import View

Singles = NDArray[np.float32]
Tables = Mapping[str, Singles]

HIDDEN: Final = 8
INPUTS: Final = 14
SHAPES: Final[dict[str, tuple[int, ...]]] = {"first": (INPUTS, HIDDEN), "bias": (HIDDEN,), "last": (HIDDEN + 1,)}
"""Weights by name, one behind the other in a row."""
WEIGHTS: Final = sum(math.prod(shape) for shape in SHAPES.values())
LOG_OF_S: Final = math.log1p(1e6)
MS: Final = 1e-3
MOST: Final = 3.0
"""The largest input: what is beyond is cut."""


def inputs(tables: Tables) -> Singles:
    """What the network sees of each core, shape ``(environments, cores, INPUTS)``.

    Args:
        tables: of an observation, with a first axis of environments.
    """
    tenants, running, cores = (tables[name] for name in ("tenants", "running", "cores"))
    frame = tenants[:, 0]
    launched = running[:, :, RunningFeature.PRESENT] > 0.0
    started = launched & (running[:, :, RunningFeature.STARTED] > 0.0)
    left_us = np.where(launched, _us(running[:, :, RunningFeature.LEFT]), 0.0)
    demand = running[:, :, RunningFeature.DRAM]
    all_left_us = left_us.sum(1)
    slo_us = _us(frame[:, TenantFeature.SLO])
    has_job = frame[:, TenantFeature.JOBS] > 0.0
    until_us = frame[:, TenantFeature.OLDEST_SLACK] * slo_us
    hogs = _ratio(cores[:, :, CoreFeature.MISS_RATE])
    spare_us = until_us - all_left_us
    of_frames = np.stack(
        [
            has_job,
            (demand * started).max(1),
            (left_us * started).sum(1) * MS / 5.0,
            (demand * left_us).sum(1) / np.maximum(all_left_us, 1.0),
            all_left_us * MS / 20.0,
            spare_us / np.maximum(all_left_us, 500.0),
            spare_us * MS / 10.0,
            until_us > 0.0,
            hogs.sum(1) / 4.0,
            (hogs > 0.0).sum(1) / 4.0,
        ],
        axis=1,
    )
    of_cores = np.stack(
        [
            hogs,
            cores[:, :, CoreFeature.TASKS] > 0.5,
            cores[:, :, CoreFeature.NEXT_TICK],
            cores[:, :, CoreFeature.BUDGET],
        ],
        axis=2,
    )
    shared = np.broadcast_to(of_frames[:, None, :], (*cores.shape[:2], of_frames.shape[1]))
    seen: Singles = np.clip(np.concatenate([shared, of_cores], axis=2), -MOST, MOST).astype(np.float32)
    return seen


def levels(weights: Singles, tables: Tables) -> NDArray[np.int64]:
    """Which of the budgets on offer each core is to have, shape ``(environments, cores)``; -1: the one that it has.

    Args:
        weights: shape ``(WEIGHTS,)``, or ``(environments, WEIGHTS)``: of each its own.
        tables: as for :func:`inputs`.
    """
    seen = inputs(tables)
    rows = np.broadcast_to(weights, (len(seen), WEIGHTS))
    first, bias, last = _split(rows)
    hidden = np.tanh(np.matmul(seen, first) + bias[:, None])
    number = np.matmul(hidden, last[:, :-1, None])[:, :, 0] + last[:, -1:]
    top = len(BUDGETS) - 1
    level = np.rint(top / (1.0 + np.exp(-np.clip(number, -30.0, 30.0)))).astype(np.int64)
    misses = tables["cores"][:, :, CoreFeature.MISS_RATE] > 0.0
    return np.where(misses, level, -1)


def actions(weights: Singles, tables: Tables, legal: NDArray[np.bool_], first: int) -> NDArray[np.int64]:
    """The next action of each environment: a budget that is to change, of the first such core, or 0.

    Args:
        weights, tables: as for :func:`levels`.
        legal: shape ``(environments, actions)``.
        first: the first action that sets a budget.
    """
    wanted = levels(weights, tables)
    numbers = first + np.arange(wanted.shape[1]) * len(BUDGETS) + wanted
    possible = (wanted >= 0) & np.take_along_axis(legal, np.where(wanted >= 0, numbers, 0), axis=1)
    best = possible.argmax(1)[:, None]
    return np.where(possible.any(1), np.take_along_axis(numbers, best, axis=1)[:, 0], 0)


def _split(rows: Singles) -> list[Any]:
    found, at = [], 0
    for shape in SHAPES.values():
        size = math.prod(shape)
        found.append(rows[:, at : at + size].reshape(len(rows), *shape))
        at += size
    return found


def _us(logarithm: Singles) -> NDArray[np.float64]:
    """Microseconds, from a column of durations."""
    return np.expm1(logarithm.astype(np.float64) * LOG_OF_S)


def _ratio(column: Singles) -> NDArray[np.float64]:
    """The number ``x``, from a column of ``x / (1 + x)``."""
    return column / np.maximum(1.0 - column.astype(np.float64), 1e-6)


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


SHIPPED: Final = Path(__file__).with_name("weights.json")
PERIOD_US: Final = 1000.0


def read_weights(path: Path = SHIPPED) -> Singles:
    """The weights in a file of :mod:`~gpusched_env.agents.shared_memory.searching`.

    Raises:
        InputError: it cannot be read, or holds another number of weights.
    """
    try:
        weights = np.array(json.loads(read_text(path))["weights"], np.float32)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: no file of weights: {error}") from error
    if weights.shape != (WEIGHTS,):
        raise InputError(f"{path}: weights have shape {weights.shape}, must be ({WEIGHTS},)")
    return weights


class LearnedBudgets:
    """A trained network gives each core the budget that the present kernel and its deadline allow."""

    reads: Reads = OBSERVED
    set_up = SetUp(commands=("budget",))

    def __init__(self, path: str | Path | None = None) -> None:
        """
        Args:
            path: of the weights; ``None``: those that are shipped.

        Raises:
            InputError: as :func:`read_weights`.
        """
        self._weights = read_weights(SHIPPED if path is None else Path(path))

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """A new episode.

        Raises:
            InputError: no cores share the GPU's memory.
        """
        if knowledge.core_count == 0:
            raise InputError(f"scenario {knowledge.name}: no CPU cores share the GPU's memory; nothing has a budget")
        self._layout = ActionLayout.of(knowledge, len(knowledge.tenants), RUNNING_SLOTS, PERIOD_US)
        assert self._layout.budgets == BUDGETS
        self._encoder = ObservationEncoder.of(self._layout)
        self._first = self._layout.first(SetBudget.NAME)
        self._streams = knowledge.streams
        self._acting = Acting(self._layout, WAIT_US)
        self._acting.reset(knowledge)

    def decide(self, view: View) -> Command:
        """The next budget, or what is pending."""
        standing = self._acting.standing(view)
        if standing is not None:
            return standing
        shown = self._layout.select(view)
        observation = {name: table[None] for name, table in self._encoder.encode(view, shown).items()}
        legal = self._layout.mask(view, shown)[None]
        action = int(actions(self._weights, observation, legal, self._first)[0])
        return self._acting.command(action, view, self._streams, shown)
