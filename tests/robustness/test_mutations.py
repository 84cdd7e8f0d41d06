"""Files that somebody has damaged or forged are read, or refused in one sentence."""

from __future__ import annotations

import pytest

from tests.robustness.attacked import ATTACKED, MOST_BYTES, REFUSED, attack, most_bytes, unchanged

FEW, MANY = 4, 100


@pytest.mark.long
@pytest.mark.parametrize("name", ATTACKED)
def test_a_few_mutations(name: str) -> None:
    assert unchanged(name) == ""
    check(name, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKED)
def test_many_mutations(name: str) -> None:
    check(name, MANY)


def check(name: str, count: int) -> None:
    before = most_bytes()
    found = {seed: attack(name, seed) for seed in range(count)}
    assert {seed: said for seed, said in found.items() if said not in ("", REFUSED)} == {}
    assert most_bytes() <= max(before, MOST_BYTES)
