"""The rule: which pending kernel to launch, on how much of the GPU, how urgently.

What it reads, and the rule in compiled code.
"""

from __future__ import annotations

import enum
import math

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import called, inlined
from gpusched_env.envs.encoding import COUNT_HALF, LOG_SCALE, Bools
from gpusched_env.envs.features import PendingFeature, RunningFeature, TenantFeature


class Situation(enum.IntEnum):
    """How a tenant stands to more urgent ones: rows of ``launch`` and ``share``."""

    RUNNING = 0
    """A more urgent tenant has launched, unfinished kernels."""
    ACTIVE = enum.auto()
    """A more urgent tenant has a job in the system, none a launched kernel: between kernels, or about to begin."""
    IDLE = enum.auto()
    """No more urgent tenant has a job."""


class LaunchTerm(enum.IntEnum):
    """Columns of ``launch``."""

    ONE = 0
    DURATION = enum.auto()
    """Profiled duration of the kernel, minus 1."""
    FELLOWS = enum.auto()
    """Launched, unfinished kernels of tenants that are not more urgent, its own included: at most 8, over 2."""
    FELLOWS_LEFT = enum.auto()
    """Predicted time left of ``FELLOWS``, summed."""
    BLOCK_DURATION = enum.auto()
    """Profiled duration over the waves of blocks: for how long a block holds its SM; minus 1."""
    SMS = enum.auto()
    """SMs that it would use on the empty GPU, of all."""
    DRAM = enum.auto()
    """Profiled share of DRAM bandwidth."""
    SUFFERED = enum.auto()
    """What more urgent tenants suffered lately: ``5 ln`` of the greatest of their mean slowdowns, 0 to 2."""


class ShareTerm(enum.IntEnum):
    """Columns of ``share``; terms as in :class:`LaunchTerm`."""

    ONE = 0
    DURATION = enum.auto()
    BLOCK_DURATION = enum.auto()
    SMS = enum.auto()
    DRAM = enum.auto()
    SUFFERED = enum.auto()


class LevelTerm(enum.IntEnum):
    """Entries of ``level``."""

    DURATION = 0
    BLOCK_DURATION = enum.auto()
    VALUE = enum.auto()
    """``ln`` of what a delay of one of the tenant's jobs costs: its weight over its turnaround alone in ms."""
    JOBS = enum.auto()
    """``ln`` of the tenant's jobs in the system, which a delay of the first one delays, too."""
    JOB_LEFT = enum.auto()
    """``ln`` of the profiled device time left of the job, in ms, at least 0.001."""
    SLOWDOWN = enum.auto()
    """Slowdown that the job has coming, as ``2 x / (1 + x)``, minus 1."""
    SLACK = enum.auto()
    """``pending.SLACK`` of the observation."""


READS: dict[str, tuple[str, ...]] = {
    "pending": (
        "LAUNCHABLE", "URGENCY", "PROFILED", "WAVES", "SMS", "DRAM", "JOB_SLOWDOWN", "JOB_LEFT", "SLACK",
        "MORE_URGENT_LAUNCHED", "MORE_URGENT_ACTIVE",
    ),
    "running": ("TENANT", "STREAM_URGENCY"),
    "tenants": (
        "PRESENT", "URGENCY", "WEIGHT", "ALONE", "JOBS", "LAUNCHED", "LAUNCHED_LEFT", "MEAN_SLOWDOWN", "PARTITION_SMS",
    ),
}  # fmt: skip
"""Columns of an observation that the rule reads, by name: others may come and go."""

SHAPES: dict[str, tuple[int, ...]] = {
    "launch": (len(Situation), len(LaunchTerm)),
    "share": (len(Situation), len(ShareTerm)),
    "level": (len(LevelTerm),),
}
"""Shapes of the weights, by name."""


@called
def owner(running: NDArray[np.float32], kernel: int, slots: int) -> int:
    """Slot of a launched kernel's tenant; -1 for an empty row, which is a row of zeros.

    Args:
        running: table of the observation.
        kernel: its row.
        slots: tenant rows.
    """
    return int(running[kernel, RunningFeature.TENANT] * slots + 0.5) - 1


Singles = NDArray[np.float32]
Ints = NDArray[np.int64]

LAUNCH_SHAPE = (len(LaunchTerm), len(Situation))
SHARE_SHAPE = (len(ShareTerm), len(Situation))
"""Shapes of the weights ``launch`` and ``share``, transposed."""
SHARE_AT = math.prod(LAUNCH_SHAPE)
LEVEL_AT = SHARE_AT + math.prod(SHARE_SHAPE)
"""Where the weights ``share`` and ``level`` begin; ``launch`` comes first."""
MANY = 8.0
"""More kernels than this make no difference."""
WHOLE = 4.4
"""Share without weights: a whole GPU, in quarters, with a margin."""
CLASS = 1000.0
"""Factor on a tenant's urgency, beyond the launch values of one class."""
SURE = 50.0
"""The greatest launch value."""


@called
def _microseconds(log: float) -> float:
    return math.expm1(log * LOG_SCALE)


@called
def _log(microseconds: float) -> float:
    return 4.0 * math.log1p(microseconds) / LOG_SCALE


@called
def _ratio(saturated: float) -> float:
    """The number ``x``, from ``x / (1 + x)``."""
    return saturated / (1.0 - min(saturated, 0.9999))


@called
def _count(saturated: float) -> float:
    return COUNT_HALF * _ratio(saturated)


@called
def _round(value: float, low: int, high: int) -> int:
    return int(min(max(math.floor(value + 0.5), low), high))


@called
def rule_numbers(
    priorities: Ints,
    launches: int,
    quarters: int,
    first_partition: int,
    weights: Singles,
    pending: Singles,
    running: Singles,
    tenants: Singles,
    mask: Bools,
    out: Singles,
) -> None:
    """Write one number an action.

    Args:
        priorities: stream priorities on offer.
        launches: actions of a pending slot; those of its program's stream come first, one a priority.
        quarters: partition sizes on offer, 4 or none.
        first_partition: the first action that sets a partition.
        weights: arrays of :data:`~gpusched_env.agents.policies.rule.SHAPES` one after the other, transposed.
        pending, running, tenants: of the observation.
        mask: legal actions.
        out: written.
    """
    launch_weights = weights[:SHARE_AT].reshape(LAUNCH_SHAPE)
    share_weights = weights[SHARE_AT:LEVEL_AT].reshape(SHARE_SHAPE)
    level_weights = weights[LEVEL_AT:]
    out[:] = -1.0
    out[0] = 0.0
    slots = tenants.shape[0]
    lookahead = pending.shape[0] // slots
    for place in range(pending.shape[0]):
        slot = place // lookahead
        row = pending[place]
        if row[PendingFeature.LAUNCHABLE] < 0.5:
            continue
        most_urgent, slowdown, fellows, fellows_left_us = _others(tenants, row[PendingFeature.URGENCY])
        profiled_us = _microseconds(row[PendingFeature.PROFILED])
        duration = _log(profiled_us) - 1.0
        block = _log(profiled_us / max(1.0, _ratio(row[PendingFeature.WAVES]))) - 1.0
        launch = 1.0
        share = WHOLE
        if not most_urgent:
            situation = _situation(row)
            suffered = min(5.0 * math.log(slowdown), 2.0)
            beside, left = min(fellows, MANY), _log(fellows_left_us)
            launch += _launch_terms(launch_weights, situation, row, duration, block, suffered, beside, left)
            share += _share_terms(share_weights, situation, row, duration, block, suffered)
        wanted = launch if launch <= 0.0 else min(launch, SURE) + CLASS * row[PendingFeature.URGENCY]
        if quarters:
            size = _round(share, 1, quarters)
            action = first_partition + slot * quarters + size - 1
            # A partition is of whole SMs, rounded down.
            if mask[action] and abs(tenants[slot, TenantFeature.PARTITION_SMS] - size / quarters) > 0.5 / quarters:
                out[action] = wanted
                continue
        level = _launched_level(priorities, slots, slot, running)
        if level < 0:
            level = _level(priorities.size, level_weights, duration, block, row, tenants[slot])
        out[1 + place * launches + level] = wanted


@inlined
def _others(tenants: Singles, urgency: float) -> tuple[bool, float, float, float]:
    """Whether no tenant is more urgent, the greatest slowdown of one that is, and of all others how many kernels are
    launched and how long these still take (us)."""
    most_urgent, slowdown = True, 1.0
    fellows, fellows_left_us = 0.0, 0.0
    for other in range(tenants.shape[0]):
        if tenants[other, TenantFeature.PRESENT] < 0.5:
            continue
        if tenants[other, TenantFeature.URGENCY] > urgency:
            most_urgent = False
            slowdown = max(slowdown, _ratio(tenants[other, TenantFeature.MEAN_SLOWDOWN]))
        else:
            fellows += _count(tenants[other, TenantFeature.LAUNCHED])
            fellows_left_us += _microseconds(tenants[other, TenantFeature.LAUNCHED_LEFT])
    return most_urgent, slowdown, fellows, fellows_left_us


@inlined
def _situation(row: Singles) -> int:
    """Situation of a pending kernel beside tenants that are more urgent."""
    if row[PendingFeature.MORE_URGENT_LAUNCHED] > 0.5:
        return int(Situation.RUNNING.value)
    if row[PendingFeature.MORE_URGENT_ACTIVE] > 0.5:
        return int(Situation.ACTIVE.value)
    return int(Situation.IDLE.value)


@inlined
def _launch_terms(
    weights: Singles,
    situation: int,
    row: Singles,
    duration: float,
    block: float,
    suffered: float,
    fellows: float,
    fellows_left: float,
) -> float:
    return float(
        weights[LaunchTerm.ONE, situation]
        + weights[LaunchTerm.DURATION, situation] * duration
        + weights[LaunchTerm.FELLOWS, situation] * fellows / 2.0
        + weights[LaunchTerm.FELLOWS_LEFT, situation] * fellows_left
        + weights[LaunchTerm.BLOCK_DURATION, situation] * block
        + weights[LaunchTerm.SMS, situation] * row[PendingFeature.SMS]
        + weights[LaunchTerm.DRAM, situation] * row[PendingFeature.DRAM]
        + weights[LaunchTerm.SUFFERED, situation] * suffered
    )


@inlined
def _share_terms(
    weights: Singles, situation: int, row: Singles, duration: float, block: float, suffered: float
) -> float:
    return float(
        weights[ShareTerm.ONE, situation]
        + weights[ShareTerm.DURATION, situation] * duration
        + weights[ShareTerm.BLOCK_DURATION, situation] * block
        + weights[ShareTerm.SMS, situation] * row[PendingFeature.SMS]
        + weights[ShareTerm.DRAM, situation] * row[PendingFeature.DRAM]
        + weights[ShareTerm.SUFFERED, situation] * suffered
    )


@called
def _launched_level(priorities: Ints, slots: int, slot: int, running: Singles) -> int:
    """Number of the stream priority that a launched, unfinished kernel of the tenant has; -1 if none is shown."""
    for kernel in range(running.shape[0]):
        if owner(running, kernel, slots) == slot:
            urgency = _ratio(running[kernel, RunningFeature.STREAM_URGENCY])
            for level in range(priorities.size):
                if abs(urgency + priorities[level]) < 0.5:
                    return level
    return -1


@called
def _level(priorities: int, weights: Singles, duration: float, block: float, row: Singles, tenant: Singles) -> int:
    """Number of the stream priority for a pending kernel.

    Args:
        priorities: how many are on offer.
        weights: ``level``.
        duration, block: its terms.
        row, tenant: of the observation.
    """
    value = _ratio(tenant[TenantFeature.WEIGHT]) * 1e3 / _microseconds(tenant[TenantFeature.ALONE])
    jobs = _count(tenant[TenantFeature.JOBS])
    job_left_ms = 1e-3 * _microseconds(row[PendingFeature.JOB_LEFT])
    level = (
        priorities
        - 1
        - _round(1.0 / row[PendingFeature.URGENCY] - 1.0, 0, priorities - 1)
        + weights[LevelTerm.DURATION] * duration
        + weights[LevelTerm.BLOCK_DURATION] * block
        + weights[LevelTerm.VALUE] * math.log(max(value, 1e-6))
        + weights[LevelTerm.JOBS] * math.log(max(jobs, 1.0))
        + weights[LevelTerm.JOB_LEFT] * math.log(max(job_left_ms, 1e-3))
        + weights[LevelTerm.SLOWDOWN] * (2.0 * row[PendingFeature.JOB_SLOWDOWN] - 1.0)
        + weights[LevelTerm.SLACK] * row[PendingFeature.SLACK]
    )
    return _round(level, 0, priorities - 1)
