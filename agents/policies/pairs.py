"""The rule of pairs: how, and whether, the tiles of two kernels are synchronised.

What it reads, and the rule in compiled code.
"""

from __future__ import annotations

import enum
import math

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import called
from gpusched_env.envs.encoding import LOG_SCALE
from gpusched_env.envs.features import PendingFeature, RunningFeature, TenantFeature
from gpusched_env.hardware.tiles import COLUMN_MAJOR, GROUPED, NATIVE


class PolicyRow(enum.IntEnum):
    """Rows of ``policy``, in the order of the actions."""

    ROW = 0
    TILE = enum.auto()
    STRIDED = enum.auto()
    MATRIX = enum.auto()


class PolicyTerm(enum.IntEnum):
    """Columns of ``policy``."""

    ONE = 0
    LAUNCHES = enum.auto()
    """10 us, of the time of both kernels: what the consumer need not wait for its launch."""
    BLOCKS = enum.auto()
    """A microsecond, of the time of a block of the consumer: what a post, or one wait, takes of it."""
    WAITS = enum.auto()
    """A microsecond, as ``BLOCKS``, times how often a block waits by tile."""
    ACTIVE = enum.auto()
    """1 if a more urgent tenant has a job in the system."""
    LATE = enum.auto()
    """1 if the producer will not start as soon as it is launched."""


class OrderRow(enum.IntEnum):
    """Rows of ``order``."""

    GROUPED = 0
    COLUMN_MAJOR = enum.auto()


class OrderTerm(enum.IntEnum):
    """Columns of ``order``."""

    ONE = 0
    BLOCKS = enum.auto()
    """A microsecond, of the time of a block of the consumer, as ``BLOCKS`` of ``policy``."""


class WaitTerm(enum.IntEnum):
    """Columns of ``wait``: of a wait kernel."""

    ONE = 0
    LAUNCHES = enum.auto()
    ACTIVE = enum.auto()
    """1 if a more urgent tenant has a job in the system, as ``ACTIVE`` of ``policy``."""


class PairReleaseTerm(enum.IntEnum):
    """Columns of ``release``: of a launch while a more urgent tenant has a job in the system; otherwise all are 0."""

    ONE = 0
    CONSUMER = enum.auto()
    """1 if its tiles are synchronised with its producer's."""
    DURATION = enum.auto()
    """Profiled duration, as 4 ln(1 + us) / ln(1 + 10^6)."""


class PreemptTerm(enum.IntEnum):
    """Columns of ``preempt``: of a kernel that has started, while a more urgent tenant has a job in the system."""

    ONE = 0
    CONSUMER = enum.auto()
    """1 if it waits for tiles."""
    LEFT = enum.auto()
    """Profiled time left, as ``DURATION`` of ``release``."""


class FormTerm(enum.IntEnum):
    """Columns of ``form``."""

    ONE = 0
    BLOCK = enum.auto()
    """10 times the natural logarithm of how many times as long a block takes as it does now."""
    DURATION = enum.auto()
    """How much longer the kernel takes alone, in per cent."""
    SLICES = enum.auto()
    """10 times the natural logarithm of how many times as many slices share a tile."""
    ACTIVE = enum.auto()
    """1 if a more urgent tenant has a job in the system."""
    ACTIVE_BLOCK = enum.auto()
    """``BLOCK`` while a more urgent tenant has a job in the system, else 0."""
    ACTIVE_DURATION = enum.auto()
    """``DURATION`` while a more urgent tenant has a job in the system, else 0."""


READS: dict[str, tuple[str, ...]] = {
    "pending": (
        "LAUNCHABLE", "PROFILED", "WAVES", "MORE_URGENT_ACTIVE", "SYNCHRONISABLE", "POLICY",
        "PRODUCER_PROFILED", "WAITS", "LATE",
        "GAIN_ROW", "GAIN_TILE", "GAIN_STRIDED", "GAIN_MATRIX",
        "GAIN_ROW_GROUPED", "GAIN_TILE_GROUPED", "GAIN_STRIDED_GROUPED", "GAIN_MATRIX_GROUPED",
        "GAIN_ROW_COLUMNS", "GAIN_TILE_COLUMNS", "GAIN_STRIDED_COLUMNS", "GAIN_MATRIX_COLUMNS",
        "SLICES",
        "FORM1_PROFILED", "FORM1_WAVES", "FORM1_SLICES", "FORM1_GAIN",
        "FORM2_PROFILED", "FORM2_WAVES", "FORM2_SLICES", "FORM2_GAIN",
        "FORM3_PROFILED", "FORM3_WAVES", "FORM3_SLICES", "FORM3_GAIN",
    ),
    "running": ("PRESENT", "URGENCY", "STARTED", "PREEMPTING", "LEFT", "POLICY"),
    "tenants": ("URGENCY", "JOBS"),
}  # fmt: skip
"""Columns of an observation that the rule reads, by name: others may come and go."""

SHAPES: dict[str, tuple[int, ...]] = {
    "policy": (len(PolicyRow), len(PolicyTerm)),
    "order": (len(OrderRow), len(OrderTerm)),
    "wait": (len(WaitTerm),),
    "release": (len(PairReleaseTerm),),
    "form": (len(FormTerm),),
    "preempt": (len(PreemptTerm),),
}
"""Shapes of the weights, by name."""


Singles = NDArray[np.float32]
Ints = NDArray[np.int64]

POLICY_SHAPE = SHAPES["policy"][::-1]
ORDER_SHAPE = SHAPES["order"][::-1]
"""Shapes of the weights ``policy`` and ``order``, transposed."""
ORDER_AT = math.prod(POLICY_SHAPE)
WAIT_AT = ORDER_AT + math.prod(ORDER_SHAPE)
RELEASE_AT = WAIT_AT + len(WaitTerm)
FORM_AT = RELEASE_AT + len(PairReleaseTerm)
PREEMPT_AT = FORM_AT + len(FormTerm)
"""Where the weights ``order``, ``wait``, ``release``, ``form`` and ``preempt`` begin; ``policy`` comes first."""
FORM_WIDTH = int(PendingFeature.FORM2_PROFILED - PendingFeature.FORM1_PROFILED)
"""Columns of a form in an observation."""
POLICIES = len(PolicyRow)
FIRST = 1000.0
"""What is added to numbers that come before any launch."""
FORMS_FIRST = 3000.0
"""What is added to numbers that come before any pair."""
PREEMPT_FIRST = 9000.0
"""What is added to numbers that come before everything else."""
TILES = 8.0
"""Waits that the column ``WAITS`` shows as one half."""
MOST = 100.0
"""The largest value that a term can have."""


@called
def pair_numbers(
    choices: Ints, weights: Singles, pending: Singles, running: Singles, tenants: Singles, out: Singles
) -> None:
    """Write one number an action.

    Args:
        choices: how many actions a slot has:

            * to launch what is pending; the first one is what the rule takes;
            * to synchronise it, which are the last actions: policies, each with orders, each without and with a wait
              kernel;
            * to give it a form, which are the last ones but those;
            * to preempt what runs, which follow the launches; the first one is what the rule takes.
        weights: arrays of :data:`~gpusched_env.agents.policies.pairs.SHAPES` one after the other, transposed.
        pending, running, tenants: of the observation.
        out: written.
    """
    out[:] = -1.0
    out[0] = 0.0
    slots = pending.shape[0]
    launches, synchronisations, forms, modes = choices[0], choices[1], choices[2], choices[3]
    # What is held back can be preempted, and what is not would be preempted again.
    released = -1.0 if modes > 0 else 1.0
    if modes > 0:
        _preemptions(weights, running, tenants, out[1 + slots * launches :: modes])
    for slot in range(slots):
        row = pending[slot]
        if row[PendingFeature.LAUNCHABLE] > 0.5:
            consumer = 1.0 if row[PendingFeature.POLICY] > 0.0 else 0.0
            out[1 + slot * launches] = 1.0 + row[PendingFeature.MORE_URGENT_ACTIVE] * (
                released
                - 1.0
                + weights[RELEASE_AT + PairReleaseTerm.ONE]
                + weights[RELEASE_AT + PairReleaseTerm.CONSUMER] * consumer
                + weights[RELEASE_AT + PairReleaseTerm.DURATION] * 4.0 * row[PendingFeature.PROFILED]
            )
        if forms > 0 and row[PendingFeature.FORM1_PROFILED] > 0.0:
            first = out.size - slots * synchronisations - (slots - slot) * forms
            _forms(weights, row, out[first : first + forms])
        if row[PendingFeature.SYNCHRONISABLE] > 0.5:
            first = out.size - (slots - slot) * synchronisations
            _ways(weights, row, out[first : first + synchronisations])


@called
def _preemptions(weights: Singles, running: Singles, tenants: Singles, out: Singles) -> None:
    """Write the numbers of preempting what runs."""
    urgency = 0.0
    for tenant in range(tenants.shape[0]):
        if tenants[tenant, TenantFeature.JOBS] > 0.0:
            urgency = max(urgency, tenants[tenant, TenantFeature.URGENCY])
    for slot in range(running.shape[0]):
        row = running[slot]
        started = row[RunningFeature.STARTED] > 0.5 and row[RunningFeature.PREEMPTING] < 0.5
        if row[RunningFeature.PRESENT] > 0.5 and started and row[RunningFeature.URGENCY] < urgency:
            consumer = 1.0 if row[RunningFeature.POLICY] > 0.0 else 0.0
            value = (
                1.0
                + weights[PREEMPT_AT + PreemptTerm.ONE]
                + weights[PREEMPT_AT + PreemptTerm.CONSUMER] * consumer
                + weights[PREEMPT_AT + PreemptTerm.LEFT] * 4.0 * row[RunningFeature.LEFT]
            )
            if value > 0.0:
                out[slot] = PREEMPT_FIRST + value


@called
def _ways(weights: Singles, row: Singles, out: Singles) -> None:
    """Write the numbers of the ways to synchronise a pair."""
    policy_weights = weights[:ORDER_AT].reshape(POLICY_SHAPE)
    order_weights = weights[ORDER_AT:WAIT_AT].reshape(ORDER_SHAPE)
    us, producer_us = _microseconds(row[PendingFeature.PROFILED]), _microseconds(row[PendingFeature.PRODUCER_PROFILED])
    launches = min(MOST, 1000.0 / max(us + producer_us, 1.0))
    # Whole waves, but for what is lost in single precision.
    waves = math.ceil(_ratio(row[PendingFeature.WAVES]) - 1e-3)
    blocks = min(MOST, 100.0 * max(1.0, waves) / max(us, 1.0))
    waits = min(MOST, blocks * TILES * _ratio(row[PendingFeature.WAITS]))
    late, active = row[PendingFeature.LATE], row[PendingFeature.MORE_URGENT_ACTIVE]
    wait = (
        2.0 * late
        - 1.0
        + weights[WAIT_AT + WaitTerm.ONE]
        + weights[WAIT_AT + WaitTerm.LAUNCHES] * launches
        + weights[WAIT_AT + WaitTerm.ACTIVE] * active
    )
    for policy in range(POLICIES):
        base = (
            policy_weights[PolicyTerm.ONE, policy]
            + policy_weights[PolicyTerm.LAUNCHES, policy] * launches
            + policy_weights[PolicyTerm.BLOCKS, policy] * blocks
            + policy_weights[PolicyTerm.WAITS, policy] * waits
            + policy_weights[PolicyTerm.ACTIVE, policy] * active
            + policy_weights[PolicyTerm.LATE, policy] * late
        )
        for number, order in enumerate((NATIVE, GROUPED, COLUMN_MAJOR)):
            value = base + 100.0 * row[PendingFeature.GAIN_ROW + number * POLICIES + policy]
            if number > 0:
                value += order_weights[OrderTerm.ONE, number - 1] + order_weights[OrderTerm.BLOCKS, number - 1] * blocks
            way = 2 * (policy * (out.size // (2 * POLICIES)) + order)
            # A pair is worth it or not whether or not it needs a wait kernel.
            if value > 0.0:
                out[way] = FIRST + value
                out[way + 1] = FIRST + value + wait


@called
def _forms(weights: Singles, row: Singles, out: Singles) -> None:
    """Write the numbers of the forms that a kernel may be given."""
    us, active = _microseconds(row[PendingFeature.PROFILED]), row[PendingFeature.MORE_URGENT_ACTIVE]
    waves = math.ceil(_ratio(row[PendingFeature.WAVES]) - 1e-3)
    slices = max(_ratio(row[PendingFeature.SLICES]), 0.25)
    for form in range(out.size):
        first = PendingFeature.FORM1_PROFILED + form * FORM_WIDTH
        form_us = _microseconds(row[first])
        if form_us > 0.0 and us > 0.0:
            form_waves = math.ceil(_ratio(row[first + 1]) - 1e-3)
            block = 10.0 * math.log(form_us / max(form_waves, 1.0) * max(waves, 1.0) / us)
            longer = max(-MOST, min(MOST, 100.0 * (form_us / us - 1.0)))
            more_slices = 10.0 * math.log(max(_ratio(row[first + 5]), 0.25) / slices)
            value = (
                100.0 * row[first + 6]
                + weights[FORM_AT + FormTerm.ONE]
                + weights[FORM_AT + FormTerm.BLOCK] * block
                + weights[FORM_AT + FormTerm.DURATION] * longer
                + weights[FORM_AT + FormTerm.SLICES] * more_slices
                + active
                * (
                    weights[FORM_AT + FormTerm.ACTIVE]
                    + weights[FORM_AT + FormTerm.ACTIVE_BLOCK] * block
                    + weights[FORM_AT + FormTerm.ACTIVE_DURATION] * longer
                )
            )
            if value > 0.0:
                out[form] = FORMS_FIRST + value


@called
def _microseconds(log: float) -> float:
    return math.expm1(log * LOG_SCALE)


@called
def _ratio(saturated: float) -> float:
    """The number ``x``, from ``x / (1 + x)``."""
    return saturated / (1.0 - min(saturated, 0.9999))
