"""What an observation adds where kernels can be given other forms: grids, times, occupancies, and what each saves.

A form is judged with the pairs that its kernel makes: a list schedule of the blocks, by row or in stream order,
whichever is shorter, with the other kernel in that of its own forms that then suits it best.
"""

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
)
from gpusched_env.envs.features import PendingFeature
from gpusched_env.hardware.tiles import NATIVE, NEEDS_SHARE, ROW, SHARE, Pair
from gpusched_env.planning.tiles import FREE, blocks_of, is_predictable, pair_us
from gpusched_env.scheduling.view import PendingColumn

Shape = tuple[float, float, float, float, float]
"""Duration, rows, columns, slices and blocks an SM of a kernel in a form."""
OWN: Final = 0
"""In place of a form, which are counted from 1: that in which a kernel is."""
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
