"""What the blocks of launches reported, as the figures of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Blocks = NDArray[np.int64]
"""(blocks, 3) of one launch: start and end, ns since the release of all streams, and the SM."""


@dataclass(frozen=True, slots=True)
class BlockFigures:
    """Of one launch; times in us since the release."""

    start_us: float
    """First block's start."""
    end_us: float
    """Last block's end."""
    block_us: float
    """Mean residency of a block."""
    block_us_p95: float
    last_start_us: float
    sms: float
    """That had a block."""

    @property
    def duration_us(self) -> float:
        return self.end_us - self.start_us


NAMES = tuple(BlockFigures.__dataclass_fields__)


def figures(blocks: Blocks) -> BlockFigures:
    """Of one launch in one repetition."""
    start, end, sm = blocks.T
    resident = end - start
    return BlockFigures(
        start_us=start.min() / 1e3,
        end_us=end.max() / 1e3,
        block_us=resident.mean() / 1e3,
        block_us_p95=float(np.percentile(resident, 95)) / 1e3,
        last_start_us=start.max() / 1e3,
        sms=float(len(np.unique(sm))),
    )


def medians(repetitions: Sequence[BlockFigures]) -> dict[str, float]:
    """Median of every figure of one launch over its repetitions, us with three decimals."""
    return {name: _rounded(np.median([getattr(one, name) for one in repetitions])) for name in NAMES}


def measured(repetitions: Sequence[Sequence[BlockFigures]]) -> dict[str, Any]:
    """The fields ``measured`` and ``end_min_max_us`` of a scenario's row.

    Args:
        repetitions: figures of every launch, in each of them.
    """
    by_launch = list(zip(*repetitions, strict=True))
    ends = [[one.end_us for one in launch] for launch in by_launch]
    return {
        "measured": [medians(launch) for launch in by_launch],
        "end_min_max_us": [[_rounded(min(each)), _rounded(max(each))] for each in ends],
    }


def solo(repetitions: Sequence[BlockFigures]) -> dict[str, float]:
    """The field ``solo`` of a kernel's row: medians over its repetitions."""
    found = medians(repetitions)
    duration_us = _rounded(np.median([one.duration_us for one in repetitions]))
    return {"duration_us": duration_us, **{name: found[name] for name in ("block_us", "block_us_p95", "sms")}}


def _rounded(value_us: Any) -> float:
    return round(float(value_us), 3)
