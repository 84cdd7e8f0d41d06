"""Where the slot network's arrays begin: in its flat weights, and in the memory that compiled code works in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import IntEnum, auto

from gpusched_env.agents.policies.sizes import COMMON_FEATURES, SLOT_FEATURES, Shapes, SlotSizes
from gpusched_env.envs.actions import ActionLayout

FIRST = 9
"""Entry of ``sizes`` (:mod:`gpusched_env.agents.network`) with the first place; before it are the sizes themselves."""


class WeightAt(IntEnum):
    """Entries of ``sizes`` with places in the weights, named as :meth:`SlotSizes.shapes` names the arrays.

    An array that a network does not have begins where the next one does.
    """

    ENCODER_SLOTS_WEIGHT = FIRST
    ENCODER_SLOTS_BIAS = auto()
    ENCODER_COMMON_WEIGHT = auto()
    POOL_QUERIES_WEIGHT = auto()
    TELL_WEIGHT = auto()
    MIX_WEIGHT = auto()
    MIX_BIAS = auto()
    WEIGH_WEIGHT = auto()
    WEIGH_BIAS = auto()
    WAIT_WEIGHT = auto()
    WAIT_BIAS = auto()
    LAUNCH_WEIGHT = auto()
    LAUNCH_BIAS = auto()
    JOIN_WEIGHT = auto()
    JOIN_BIAS = auto()
    PREEMPT_WEIGHT = auto()
    PREEMPT_BIAS = auto()
    PARTITION_WEIGHT = auto()
    PARTITION_BIAS = auto()
    REJECT_WEIGHT = auto()
    REJECT_BIAS = auto()
    RESHAPE_WEIGHT = auto()
    RESHAPE_BIAS = auto()
    SYNCHRONISE_WEIGHT = auto()
    SYNCHRONISE_BIAS = auto()


class MemoryAt(IntEnum):
    """Entries of ``sizes`` with places in the working memory without any slot; :data:`A_SLOT` after each, what a slot
    adds to it."""

    ROWS = FIRST + len(WeightAt)
    COMMON = auto()
    SHARED = auto()
    TOKENS = auto()
    SCORES = auto()
    POOLED = auto()
    TOLD = auto()
    MIXED = auto()
    END = auto()


A_SLOT = len(MemoryAt)


def work_shapes(width: int, heads: int, slots: int) -> Shapes:
    """Arrays of the working memory for ``slots`` pending slots, by name and in order."""
    return {
        "rows": (slots, SLOT_FEATURES),
        "common": (COMMON_FEATURES,),
        "shared": (width,),
        "tokens": (slots, width),
        "scores": (slots, heads),
        "pooled": (heads, width),
        "told": (width,),
        "mixed": (width,),
    }


def places(network: SlotSizes, layout: ActionLayout) -> list[int]:
    """The entries of ``sizes`` from :data:`FIRST` on; ``layout`` has no part in them."""
    found = _begins(network.shapes(layout), (place.name for place in WeightAt))
    none, one = (
        _begins(work_shapes(network.width, network.heads, slots), (table.name for table in MemoryAt))
        for slots in (0, 1)
    )
    return [*found, *none, *(after - before for before, after in zip(none, one, strict=True))]


def _begins(shapes: Shapes, names: Iterable[str]) -> list[int]:
    """Where arrays of ``names`` begin that lie one after the other in this order."""
    lengths = {name.replace(".", "_").upper(): math.prod(shape) for name, shape in shapes.items()}
    found = []
    at = 0
    for name in names:
        found.append(at)
        at += lengths.pop(name, 0)
    assert not lengths, f"arrays without a place: {', '.join(lengths)}"
    return found
