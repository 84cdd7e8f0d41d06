"""The launch rule: SPAWN's comparison, corrected by a linear function of what its controller sees.

A child is launched if ``log(t_parent / t_child) + value . terms`` is at least 0, with SPAWN's two estimates of how long
the thread and the child would take (column ``ADVANTAGE``; 0 as long as no child has ended). With all weights 0 that is
SPAWN. The terms are what SPAWN leaves out or takes for granted: that a warp waits for its slowest lane anyway, so that
work below what another lane does itself costs nothing; that children wait for one of 32 hardware queues, where few
blocks run; that the first children end late, when thousands have been launched; that while parents wait for an SM, a
stalled warp leaves it to others.

Terms are near -2 to 2. ``ln``: the natural logarithm of one plus a count or a time in cycles, over 4.

Below the rule are the file of its weights, whole episodes that are played in compiled code, and the trained rule as a
scheduler.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policy_file import GamePolicyInfo
from gpusched_env.agents.shipped import FOLDER
from gpusched_env.agents.training.folder import policy_file
from gpusched_env.compiling import native, procedure
from gpusched_env.errors import DeadlockError
from gpusched_env.games.child_launches.device import SERIALISE, SPAWN, Decision, LaunchKnowledge, RequestView
from gpusched_env.games.child_launches.devices.compiled.device import ASKS, DONE, decide_and_run_on, run_on
from gpusched_env.games.child_launches.devices.compiled.state import new_state
from gpusched_env.games.child_launches.environment.requests import (
    LOG_SCALE,
    WIDTH,
    WORST,
    EncodedMachine,
    LaunchFeature,
    costs_of,
    encode,
    monitored,
)
from gpusched_env.games.child_launches.problem import LaunchProblem, Transformations

Singles = NDArray[np.float32]

LN: Final = LOG_SCALE / 4.0
"""Factor from a column's logarithm to ``ln``."""


class SpawnTerm(enum.IntEnum):
    """What the weights ``value`` stand for."""

    ONE = 0
    WORK = enum.auto()
    """``ln`` of the work, less 1."""
    ITEMS = enum.auto()
    """``ln`` of the child's threads, less 1."""
    INSIDE = enum.auto()
    """``ln`` of the child blocks in the system."""
    WAITING = enum.auto()
    """``ln`` of the children without a hardware queue."""
    BLOCK = enum.auto()
    """``ln`` of the mean residency of child blocks, less 2; 0 as long as none has ended."""
    WARP = enum.auto()
    """``ln`` of the mean residency of child warps, less 2; 0 as long as none has ended."""
    RUNNING = enum.auto()
    """``ln`` of the child blocks that run on average; 0 as long as none has ended."""
    UNKNOWN = enum.auto()
    """1 as long as no child block has ended."""
    UNKNOWN_INSIDE = enum.auto()
    """``INSIDE`` as long as no child block has ended."""
    PARENT_BLOCKS = enum.auto()
    """``ln`` of the blocks of the host's kernel that are not on an SM yet."""
    PARENTS = enum.auto()
    """1 if any block of the host's kernel is not on an SM yet."""
    RESIDENT_WARPS = enum.auto()
    """Share of the slots for warps that are taken."""
    RESIDENT_BLOCKS = enum.auto()
    """Share of the slots for blocks that are taken."""
    QUEUES = enum.auto()
    """Share of hardware queues in use."""
    PAID = enum.auto()
    """1 if another lane of the warp launches: the call's fixed cost is paid."""
    CALLS = enum.auto()
    """Lanes that call, of 32."""
    LEFT = enum.auto()
    """Lanes that call and are asked about later, of 32."""
    OF_LARGEST = enum.auto()
    """Work over the largest work among the lanes that call."""
    COVERED = enum.auto()
    """Largest work that a lane of the warp does itself, over this work, at most 1: at 1 it costs nothing to do it."""
    NESTING = enum.auto()
    """0 for threads of the host's kernel, 1 for those of a child, 4/3 for those of its children."""


READS: Final = (
    *("WORK", "ITEMS", "LARGEST", "SERIAL", "CALLS", "LEFT", "SPAWNED", "NESTING", "KNOWN", "INSIDE", "MEAN_RUNNING"),
    *("BLOCK", "WARP", "WAITING", "QUEUES", "RESIDENT_BLOCKS", "RESIDENT_WARPS", "PARENT_BLOCKS", "ADVANTAGE"),
)
"""Columns of an observation that the rule reads."""
SHAPES: Final[dict[str, tuple[int, ...]]] = {"value": (len(SpawnTerm),)}
"""Weights by name."""


@procedure
def launch_number(weights: Singles, columns: Any) -> float:
    """The number of the rule; at least 0: launch.

    Args:
        weights: ``value``.
        columns: of the observation.
    """
    work = math.expm1(columns[LaunchFeature.WORK] * LOG_SCALE)
    largest = math.expm1(columns[LaunchFeature.LARGEST] * LOG_SCALE)
    serial = math.expm1(columns[LaunchFeature.SERIAL] * LOG_SCALE)
    inside = LN * columns[LaunchFeature.INSIDE]
    parents = columns[LaunchFeature.PARENT_BLOCKS]
    number: float = (
        WORST * columns[LaunchFeature.ADVANTAGE]
        + weights[SpawnTerm.ONE]
        + weights[SpawnTerm.WORK] * (LN * columns[LaunchFeature.WORK] - 1.0)
        + weights[SpawnTerm.ITEMS] * (LN * columns[LaunchFeature.ITEMS] - 1.0)
        + weights[SpawnTerm.INSIDE] * inside
        + weights[SpawnTerm.WAITING] * LN * columns[LaunchFeature.WAITING]
        + weights[SpawnTerm.PARENT_BLOCKS] * LN * parents
        + weights[SpawnTerm.PARENTS] * (1.0 if parents > 0.0 else 0.0)
        + weights[SpawnTerm.RESIDENT_WARPS] * columns[LaunchFeature.RESIDENT_WARPS]
        + weights[SpawnTerm.RESIDENT_BLOCKS] * columns[LaunchFeature.RESIDENT_BLOCKS]
        + weights[SpawnTerm.QUEUES] * columns[LaunchFeature.QUEUES]
        + weights[SpawnTerm.PAID] * (1.0 if columns[LaunchFeature.SPAWNED] > 0.0 else 0.0)
        + weights[SpawnTerm.CALLS] * columns[LaunchFeature.CALLS]
        + weights[SpawnTerm.LEFT] * columns[LaunchFeature.LEFT]
        + weights[SpawnTerm.OF_LARGEST] * work / max(largest, 1.0)
        + weights[SpawnTerm.COVERED] * min(serial / max(work, 1.0), 1.0)
        + weights[SpawnTerm.NESTING] * 2.0 * columns[LaunchFeature.NESTING]
    )
    if columns[LaunchFeature.KNOWN] > 0.0:
        number += weights[SpawnTerm.BLOCK] * (LN * columns[LaunchFeature.BLOCK] - 2.0)
        number += weights[SpawnTerm.WARP] * (LN * columns[LaunchFeature.WARP] - 2.0)
        number += weights[SpawnTerm.RUNNING] * LN * columns[LaunchFeature.MEAN_RUNNING]
    else:
        number += weights[SpawnTerm.UNKNOWN] + weights[SpawnTerm.UNKNOWN_INSIDE] * inside
    return number


class LaunchPolicyInfo(GamePolicyInfo, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a launch rule is, and where it comes from."""

    RULE = "launch rule"
    COUNTED = "weights"
    TERMS = tuple(term.name for term in SpawnTerm)
    SHAPES = SHAPES
    COLUMNS = LaunchFeature.__members__

    format: Literal["gpusched-launch-rule"] = "gpusched-launch-rule"
    terms: tuple[str, ...] = TERMS
    reads: tuple[str, ...] = READS
    program: Transformations = Transformations()
    """How applications were compiled in training."""


CUTOFF_FACTOR: Final = 20.0
"""An episode that takes so many times as long as the flat version is broken off, and counts as that."""
BROKEN_OFF: Final = -1


@native()
def play_to_end(state: Any, costs: EncodedMachine, weights: Singles, columns: Singles, limit_ps: int) -> int:
    """Play from the beginning of an application to its end, a deadlock or a time; gives the status of the loop."""
    status = run_on(state)
    while status == ASKS:
        encode(state.request[0], monitored(state.monitor[0]), costs, columns)
        status = decide_and_run_on(state, launch_number(weights, columns) >= 0.0)
        if state.core[0].now_ps > limit_ps:
            return BROKEN_OFF
    return int(status)


@dataclass(frozen=True, slots=True)
class PlayedLaunches:
    """The outcome of an episode."""

    cost: float
    """Time of the application over that of its flat version."""
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
    status = play_to_end(state, costs_of(problem.machine), weights, columns, int(CUTOFF_FACTOR * flat_ps))
    if status not in (DONE, BROKEN_OFF):
        raise DeadlockError(f"{problem.name}: nothing can happen any more after {state.core[0]['now_ps'] / 1e6:.6g} us")
    totals = state.totals[0]
    return PlayedLaunches(float(state.core[0]["now_ps"] / flat_ps), int(totals["spawned"]), int(totals["decisions"]))


NAME = "DynamicParallelism"


class LearnedLaunches:
    """A launch rule whose weights were searched on random applications."""

    def __init__(self, path: str | Path | None = None) -> None:
        """
        Args:
            path: of a file or of the folder of a training; ``None``: the agent that is shipped.

        Raises:
            InputError: there is none, or it does not fit.
        """
        self.file = FOLDER / f"{NAME}.npz" if path is None else policy_file(Path(path))
        self.info, weights = LaunchPolicyInfo.read(self.file)
        self._weights = weights["value"]
        self._columns = np.zeros(WIDTH, np.float32)
        self.program = self.info.program
        """How applications are compiled, as in training."""

    def reset(self, knowledge: LaunchKnowledge, rng: np.random.Generator) -> None:
        """Take the launch costs of the GPU."""
        self._costs = costs_of(knowledge.machine)

    def decide(self, view: RequestView) -> Decision:
        """The decision by the sign of the rule's number."""
        encode(view, view, self._costs, self._columns)
        return SPAWN if launch_number(self._weights, self._columns) >= 0.0 else SERIALISE

    def describe(self) -> str:
        """A line about the scheduler."""
        return self.info.summary()
