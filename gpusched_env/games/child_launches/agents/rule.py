"""The launch rule: SPAWN's comparison, corrected by a linear function of what its controller sees.

A child is launched if ``log(t_parent / t_child) + value . terms`` is at least 0, with SPAWN's two estimates of how long
the thread and the child would take (column ``ADVANTAGE``; 0 as long as no child has ended). With all weights 0 that is
SPAWN. The terms are what SPAWN leaves out or takes for granted: that a warp waits for its slowest lane anyway, so that
work below what another lane does itself costs nothing; that children wait for one of 32 hardware queues, where few
blocks run; that the first children end late, when thousands have been launched; that while parents wait for an SM, a
stalled warp leaves it to others.

Terms are near -2 to 2. ``ln``: the natural logarithm of one plus a count or a time in cycles, over 4.
"""

from __future__ import annotations

import enum
import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import procedure
from gpusched_env.games.child_launches.environment.encoding import LOG_SCALE
from gpusched_env.games.child_launches.environment.features import WORST, LaunchFeature

Singles = NDArray[np.float32]

LN: Final = LOG_SCALE / 4.0
"""From a column's logarithm to ``ln``."""


class SpawnTerm(enum.IntEnum):
    """Of the weights ``value``."""

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
    """The same of child warps."""
    RUNNING = enum.auto()
    """``ln`` of the child blocks that run on average; 0 as long as none has ended."""
    UNKNOWN = enum.auto()
    """1 as long as no child block has ended."""
    UNKNOWN_INSIDE = enum.auto()
    """``INSIDE`` as long as no child block has ended."""
    PARENT_BLOCKS = enum.auto()
    """``ln`` of the blocks of the host's kernel that are not on an SM yet."""
    PARENTS = enum.auto()
    """1 if there are any."""
    RESIDENT_WARPS = enum.auto()
    """Share of the slots."""
    RESIDENT_BLOCKS = enum.auto()
    """Share of the slots."""
    QUEUES = enum.auto()
    """Share of hardware queues in use."""
    PAID = enum.auto()
    """1 if another lane of the warp launches: the call's fixed cost is paid."""
    CALLS = enum.auto()
    """Lanes that call, of 32."""
    LEFT = enum.auto()
    """Of these, those that are asked about later."""
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
    """At least 0: launch.

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
