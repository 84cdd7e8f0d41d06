"""What an observation adds where tiles can be synchronised: what each policy and order is predicted to save."""

from __future__ import annotations

from typing import Final

from gpusched_env.compiling import cached, called
from gpusched_env.envs.encoding import ID, NO_KERNEL, Features, Floats, clip, producer_of
from gpusched_env.envs.features import PendingFeature
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
from gpusched_env.planning.tiles import FREE, blocks_of, is_predictable, pair_us
from gpusched_env.scheduling.view import PendingColumn

POLICIES: Final = (ROW, TILE, STRIDED, MATRIX)
ORDERS: Final = (NATIVE, GROUPED, COLUMN_MAJOR)
"""By number without a counter, and those that differ from it in more than what the counter costs."""


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
