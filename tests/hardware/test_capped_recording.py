"""What was recorded of a client that is held to some SMs, whose grid waits for room there."""

from __future__ import annotations

import gzip
import json
from importlib import resources
from typing import Any

import pytest

PATH = resources.files("gpusched_env.data") / "measurements" / "h200" / "capped.jsonl.gz"
SMALL_US = 7.9
"""A kernel of the chain of four blocks alone."""


def rows() -> list[dict[str, Any]]:
    _, *found = map(json.loads, gzip.decompress(PATH.read_bytes()).splitlines())
    return found


def chain_us(row: dict[str, Any]) -> list[float]:
    """Times of the short kernels, which come behind the long one."""
    return row["duration_us"][1:]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_grid_that_waits_for_its_own_sms_holds_up_nobody_elsewhere(share: float) -> None:
    held = [row for row in rows() if row["share"] == share and row["launches"][1]["grid"] == 4]
    assert {row["launches"][1]["priority"] for row in held} == {0, -5}
    assert max(max(chain_us(row)) for row in held) < 1.1 * SMALL_US


def test_a_grid_that_waits_for_any_sm_holds_up_what_comes_behind_it() -> None:
    free, *_ = (row for row in rows() if row["share"] is None and row["launches"][0]["kind"] == "compute")
    long_us, (first_us, *_) = free["duration_us"][0], chain_us(free)
    assert (long_us > 2000.0, first_us > 10.0 * SMALL_US) == (True, True)
    assert free["measured"][1]["start_us"] > 0.9 * long_us
