"""Columns that an observation adds: plans of all jobs, forms of kernels, and what synchronised tiles would save."""

from __future__ import annotations

import math
from typing import Final

from gpusched_env.compiling import cached, called
from gpusched_env.envs.encoding import (
    COUNT_HALF,
    ID,
    NO_KERNEL,
    TILES_HALF,
    Features,
    Floats,
    clip,
    log_us,
    producer_of,
    saturate,
    soft_sign,
)
from gpusched_env.envs.features import PendingFeature, TenantFeature
from gpusched_env.hardware.tiles import (
    COLUMN_MAJOR,
    GROUPED,
    KERNEL,
    MATRIX,
    NATIVE,
    NEEDS_SHARE,
    ROW,
    SHARE,
    STRIDED,
    TILE,
    Pair,
)
from gpusched_env.planning.plans import PlanColumn
from gpusched_env.planning.tiles import FREE, blocks_of, is_predictable, pair_us
from gpusched_env.scheduling.view import PendingColumn, TenantColumn


@cached()
def encode_plan(plan: Floats, tenants: Floats, time_us: float, out: Features) -> None:
    """Write the columns from ``EARNS`` on of the table of tenants.

    Args:
        plan: of :func:`~gpusched_env.planning.plans.plan_oldest` and then of
            :func:`~gpusched_env.planning.lookahead.look_ahead`.
        tenants: a View's table.
        time_us: the present.
        out: shape ``(slots, len(TenantFeature))``.
    """
    for tenant in range(tenants.shape[0]):
        row = plan[tenant]
        out[tenant, TenantFeature.EARNS] = saturate(row[PlanColumn.EARNS], 1.0)
        out[tenant, TenantFeature.OLDEST_LEFT] = log_us(row[PlanColumn.LEFT_US])
        out[tenant, TenantFeature.OLDEST_KEPT] = row[PlanColumn.KEPT]
        out[tenant, TenantFeature.OLDEST_KEPT_DEAR] = row[PlanColumn.KEPT_DEAR]
        out[tenant, TenantFeature.LOST] = saturate(row[PlanColumn.LOST], COUNT_HALF)
        out[tenant, TenantFeature.KEPT_LEFT] = log_us(row[PlanColumn.KEPT_US])
        out[tenant, TenantFeature.AHEAD] = soft_sign(row[PlanColumn.AHEAD])
        out[tenant, TenantFeature.AHEAD_ALONE] = soft_sign(row[PlanColumn.AHEAD_ALONE])
        if row[PlanColumn.PRESENT] > 0.0 and row[PlanColumn.DEADLINE_US] < math.inf:
            laxity_us = row[PlanColumn.DEADLINE_US] - time_us - row[PlanColumn.LEFT_US]
            slo_us = tenants[tenant, TenantColumn.SLO_US]
            out[tenant, TenantFeature.OLDEST_LAXITY] = clip(laxity_us / slo_us)
            out[tenant, TenantFeature.OLDEST_SPARE] = clip((laxity_us - row[PlanColumn.AHEAD_US]) / slo_us)


Shape = tuple[float, float, float, float, float]
"""What a kernel is in a form: duration, rows, columns, slices and blocks an SM."""
OWN: Final = 0
"""The form in which a kernel is, in place of a form's number, which is counted from 1."""
SHOWN_WIDTH: Final = int(PendingColumn.FORM2_US - PendingColumn.FORM1_US)
WIDTH: Final = int(PendingFeature.FORM2_PROFILED - PendingFeature.FORM1_PROFILED)
"""Columns of a form, in a view and in an observation."""


@cached()
def encode_forms(shown: Floats, sms: int, scratch: Floats, out: Features) -> None:
    """Write the columns from ``FORM1_PROFILED`` on of the table of pending launches.

    Args:
        shown: as for :func:`~gpusched_env.envs.encoding.encode`.
        sms: SMs of the GPU.
        scratch: of shape :data:`~gpusched_env.planning.tiles.SCRATCH`, written.
        out: shape ``(pending slots, len(PendingFeature))``, zeros in these columns.
    """
    for slot in range(shown.shape[0]):
        count = int(shown[slot, PendingColumn.FORMS]) if shown[slot, ID] != NO_KERNEL else 0
        own_us = _together_us(shown, slot, OWN, sms, scratch) if count > 0 else 0.0
        for form in range(1, count + 1):
            us, rows, columns, slices, per_sm = _shape(shown[slot], form)
            first = PendingFeature.FORM1_PROFILED + (form - 1) * WIDTH
            per_sm = max(1.0, per_sm)
            out[slot, first] = log_us(us)
            out[slot, first + 1] = saturate(rows * columns * slices, per_sm * sms)
            out[slot, first + 2] = 1.0 / per_sm
            out[slot, first + 3] = saturate(rows, TILES_HALF)
            out[slot, first + 4] = saturate(columns, TILES_HALF)
            out[slot, first + 5] = saturate(slices, COUNT_HALF)
            if own_us > 0.0 and us > 0.0:
                out[slot, first + 6] = clip(1.0 - _together_us(shown, slot, form, sms, scratch) / own_us)


@called
def _shape(row: Floats, form: int) -> Shape:
    """What a kernel is in a form."""
    if form == OWN:
        grid = row[PendingColumn.ROWS], row[PendingColumn.COLUMNS], row[PendingColumn.SLICES]
        return row[PendingColumn.PROFILED_US], grid[0], grid[1], grid[2], row[PendingColumn.BLOCKS_PER_SM]
    at = PendingColumn.FORM1_US + (form - 1) * SHOWN_WIDTH
    return row[at], row[at + 1], row[at + 2], row[at + 3], row[at + 4]


@called
def _together_us(shown: Floats, slot: int, form: int, sms: int, scratch: Floats) -> float:
    """Time of a kernel in a form with its producer and with its consumer, or alone where it has neither; 0: unknown."""
    found_us = 0.0
    producer = producer_of(shown, slot) if shown[slot, PendingColumn.SYNCHRONISABLE] == 1.0 else -1
    if producer >= 0:
        found_us += _best_us(shown[producer], shown[slot], -1, form, sms, scratch)
    for other in range(shown.shape[0]):
        is_consumer = shown[other, ID] != NO_KERNEL and shown[other, PendingColumn.PRODUCER] == shown[slot, ID]
        if is_consumer and shown[other, PendingColumn.SYNCHRONISABLE] == 1.0:
            found_us += _best_us(shown[slot], shown[other], form, -1, sms, scratch)
    if found_us == 0.0:
        found_us = _shape(shown[slot], form)[0]
    return found_us if found_us > 0.0 else 0.0


@called
def _best_us(made: Floats, used: Floats, made_form: int, used_form: int, sms: int, scratch: Floats) -> float:
    """Time of a pair one of whose kernels (-1) takes the form that is best for both."""
    best_us = math.inf
    open_ = made if made_form < 0 else used
    for form in range(int(open_[PendingColumn.FORMS]) + 1):
        first = _shape(made, form if made_form < 0 else made_form)
        second = _shape(used, form if used_form < 0 else used_form)
        best_us = min(best_us, _pair_us(used, first, second, sms, scratch))
    return best_us if best_us < math.inf else 0.0


@called
def _pair_us(used: Floats, first: Shape, second: Shape, sms: int, scratch: Floats) -> float:
    """Time of a pair in two forms, by row or in stream order; infinite if one of them was never measured."""
    in_order_us = first[0] + second[0]
    if not in_order_us > 0.0:
        return math.inf
    needs, fold = int(used[PendingColumn.NEEDS]), int(max(1.0, used[PendingColumn.FOLD]))
    pair = Pair(
        SHARE if needs == NEEDS_SHARE else ROW, 1, int(first[1]), int(first[2]), int(second[1]), int(second[2]),
        int(second[3]), needs, fold, 0.0,
    )  # fmt: skip
    made = blocks_of(int(first[1] * first[2] * first[3]), sms * int(max(1.0, first[4])), first[0])
    reads = blocks_of(int(second[1] * second[2] * second[3]), sms * int(max(1.0, second[4])), second[0])
    if not is_predictable(pair, made, reads):
        return in_order_us
    beside_us: float = pair_us(pair, made, reads, FREE, NATIVE, scratch)
    return min(in_order_us, beside_us)


POLICIES: Final = (ROW, TILE, STRIDED, MATRIX)
ORDERS: Final = (NATIVE, GROUPED, COLUMN_MAJOR)
"""Orders of tiles: by block number, without a counter, and those that differ from it in more than what that costs."""


@cached()
def encode_gains(shown: Floats, sms: int, scratch: Floats, out: Features) -> None:
    """Write the columns from ``GAIN_ROW`` on of the table of pending launches.

    Args:
        shown: as for :func:`~gpusched_env.envs.encoding.encode`.
        sms: SMs of the GPU.
        scratch: of shape :data:`~gpusched_env.planning.tiles.SCRATCH`, written.
        out: shape ``(pending slots, len(PendingFeature))``, zeros in these columns.
    """
    for slot in range(shown.shape[0]):
        if shown[slot, ID] == NO_KERNEL or shown[slot, PendingColumn.SYNCHRONISABLE] == 0.0:
            continue
        producer = producer_of(shown, slot)
        # Durations that were never measured are NaN.
        if producer >= 0 and shown[producer, PendingColumn.PROFILED_US] + shown[slot, PendingColumn.PROFILED_US] > 0.0:
            _encode_pair(shown[producer], shown[slot], sms, scratch, out[slot])


@called
def _encode_pair(producer: Floats, consumer: Floats, sms: int, scratch: Floats, row: Features) -> None:
    first, second = _blocks(producer, sms), _blocks(consumer, sms)
    in_order = _pair(producer, consumer, KERNEL)
    if not is_predictable(in_order, first, second):
        return
    alone_us = pair_us(in_order, first, second, FREE, NATIVE, scratch)
    folded = in_order.needs != NEEDS_SHARE and in_order.fold > 1
    for number in range(len(POLICIES) * len(ORDERS)):
        policy, order = POLICIES[number % len(POLICIES)], ORDERS[number // len(POLICIES)]
        column = PendingFeature.GAIN_ROW + number
        if in_order.needs == NEEDS_SHARE and policy != ROW:
            continue
        if policy == MATRIX and not folded:
            row[column] = row[PendingFeature.GAIN_ROW + number - (len(POLICIES) - 1)]
        elif order == GROUPED and not folded:
            row[column] = row[column - len(POLICIES)]
        elif policy == STRIDED and not folded:
            row[column] = row[column - 1]
        else:
            pair = _pair(producer, consumer, SHARE if in_order.needs == NEEDS_SHARE else policy)
            row[column] = clip(1.0 - pair_us(pair, first, second, FREE, order, scratch) / alone_us)


@called
def _blocks(kernel: Floats, sms: int):  # type: ignore[no-untyped-def]  # mypy does not know what Numba makes of it.
    slots = sms * int(max(1.0, kernel[PendingColumn.BLOCKS_PER_SM]))
    return blocks_of(int(kernel[PendingColumn.BLOCKS]), slots, kernel[PendingColumn.PROFILED_US])


@called
def _pair(producer: Floats, consumer: Floats, policy: int) -> Pair:
    columns, fold = int(producer[PendingColumn.COLUMNS]), int(max(1.0, consumer[PendingColumn.FOLD]))
    return Pair(
        policy, columns // fold if policy == STRIDED else 1, int(producer[PendingColumn.ROWS]), columns,
        int(consumer[PendingColumn.ROWS]), int(consumer[PendingColumn.COLUMNS]), int(consumer[PendingColumn.SLICES]),
        int(consumer[PendingColumn.NEEDS]), fold, 0.0,
    )  # fmt: skip
