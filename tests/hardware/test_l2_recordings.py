"""The two constants of the L2 are those that its recordings give, on either half of the networks."""

from __future__ import annotations

import gzip
import itertools
import json
from importlib import resources
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from gpusched_env.hardware.l2 import FADES, HOLDS
from gpusched_env.hardware.specs import load_gpu

CAPACITY_MIB = load_gpu("h200-sxm").l2_bytes / 2**20
STEPS = itertools.product(np.arange(20.0, 56.0, 1.0), (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 25.0))
GRID: list[tuple[float, float]] = [(holds / CAPACITY_MIB, fades / CAPACITY_MIB) for holds, fades in STEPS]


class Emptied(NamedTuple):
    """A network behind reads of other memory."""

    footprint_mib: float
    read_mib: NDArray[np.float64]
    lost: NDArray[np.float64]
    """Share of what the largest reads cost it."""


def networks() -> list[Emptied]:
    """Those that lose something: by their kernels and by a replay."""
    path = resources.files("gpusched_env.data") / "measurements" / "h200" / "cache.jsonl.gz"
    found = []
    for row in map(json.loads, gzip.decompress(path.read_bytes()).splitlines()[1:]):
        replay = np.array(row["behind_us"]) / row["behind_us"][0] - 1.0
        whole = np.median(replay[-4:])
        if sum(row["cold_us"]) > 1.025 * sum(row["warm_us"]) and whole > 0.05:
            footprint_mib = (row["weight_bytes"] + row["other_bytes"]) / 2**20
            lost = np.clip(replay[1:] / whole, 0.0, 1.2)
            found.append(Emptied(footprint_mib, np.array(row["behind_mib"][1:], float), lost))
    return found


def error(holds: float, fades: float, some: list[Emptied]) -> float:
    """Mean distance of the law, spelled out with other constants, from what was measured."""

    def of(one: Emptied) -> float:
        beyond = np.maximum(0.0, one.footprint_mib + one.read_mib - holds * CAPACITY_MIB)
        return float(np.mean(np.abs(1.0 - np.exp(-beyond / (fades * CAPACITY_MIB)) - one.lost)))

    return float(np.mean([of(one) for one in some]))


@pytest.mark.parametrize("half", [0, 1])
def test_either_half_of_the_networks_gives_the_constants(half: int) -> None:
    some = networks()[half::2]
    assert len(some) == 4
    best = min(GRID, key=lambda pair: error(pair[0], pair[1], some))
    assert best == pytest.approx((HOLDS, FADES))


def test_the_law_tells_more_than_that_all_is_lost_or_nothing() -> None:
    some = networks()
    reached = error(HOLDS, FADES, some)
    assert reached < 0.15
    assert reached < 0.5 * min(error(1e9, FADES, some), error(-1e9, FADES, some))
