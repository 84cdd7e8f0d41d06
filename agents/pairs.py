"""The rule of pairs (:mod:`gpusched_env.agents.policies.pairs`) in compiled code: one number an action.

Waiting has 0, what the rule wants to do a number above 0, everything else one of at most 0. Pairs are synchronised
before anything is launched.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policies.pairs import (
    SHAPES,
    FormTerm,
    OrderTerm,
    PolicyRow,
    PolicyTerm,
    PreemptTerm,
    ReleaseTerm,
    WaitTerm,
)
from gpusched_env.compiling import called
from gpusched_env.envs.encoding import LOG_SCALE
from gpusched_env.envs.features import PendingFeature, RunningFeature, TenantFeature
from gpusched_env.hardware.tiles import COLUMN_MAJOR, GROUPED, NATIVE

Singles = NDArray[np.float32]
Ints = NDArray[np.int64]

POLICY_SHAPE = SHAPES["policy"][::-1]
ORDER_SHAPE = SHAPES["order"][::-1]
"""Of the weights ``policy`` and ``order``, transposed."""
ORDER_AT = math.prod(POLICY_SHAPE)
WAIT_AT = ORDER_AT + math.prod(ORDER_SHAPE)
RELEASE_AT = WAIT_AT + len(WaitTerm)
FORM_AT = RELEASE_AT + len(ReleaseTerm)
PREEMPT_AT = FORM_AT + len(FormTerm)
"""Where the weights ``order``, ``wait``, ``release``, ``form`` and ``preempt`` begin; ``policy`` comes first."""
FORM_WIDTH = int(PendingFeature.FORM2_PROFILED - PendingFeature.FORM1_PROFILED)
"""Columns of a form."""
POLICIES = len(PolicyRow)
FIRST = 1000.0
"""Added to what comes before any launch."""
FORMS_FIRST = 3000.0
"""Added to what comes before any pair."""
PREEMPT_FIRST = 9000.0
"""Added to what comes before everything else."""
TILES = 8.0
"""Half of the column ``WAITS``."""
MOST = 100.0
"""No term is larger."""


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
                + weights[RELEASE_AT + ReleaseTerm.ONE]
                + weights[RELEASE_AT + ReleaseTerm.CONSUMER] * consumer
                + weights[RELEASE_AT + ReleaseTerm.DURATION] * 4.0 * row[PendingFeature.PROFILED]
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
    """``x`` of ``x / (1 + x)``."""
    return saturated / (1.0 - min(saturated, 0.9999))
