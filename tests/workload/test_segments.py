"""What waits for what by memory: array operations against all pairs, and what the check costs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.hardware.clock import to_ps
from gpusched_env.workload.memory import check_us, conflict, conflicts, dependencies
from gpusched_env.workload.workload import Segment


@dataclass(frozen=True)
class Touching:
    reads: tuple[Segment, ...] | None = ()
    writes: tuple[Segment, ...] | None = ()


FIRST = Segment(3, 0, 64)


def segments() -> st.SearchStrategy[Segment]:
    """Few storages and bytes, so that they meet; some segments are empty."""
    bounds = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted)
    return st.builds(lambda storage, ends: Segment(storage, *ends), st.integers(0, 2), bounds)


def operations(most: int = 10) -> st.SearchStrategy[list[Touching]]:
    some = st.lists(segments(), max_size=3).map(tuple)
    known = st.builds(Touching, some, some)
    unknown = st.builds(Touching, st.none() | some, st.none())
    return st.lists(st.one_of(known, known, known, unknown), max_size=most)


@pytest.mark.parametrize(
    ("older", "newer", "why"),
    [
        (Touching(writes=(FIRST,)), Touching(reads=(Segment(3, 0, 99),)), "read after write of bytes 0 to 64"),
        (Touching(writes=(FIRST,)), Touching(writes=(Segment(3, 32, 99),)), "write after write of bytes 32 to 64"),
        (
            Touching(reads=(Segment(3, 8, 64),)),
            Touching(writes=(Segment(3, 0, 9),)),
            "write after read of bytes 8 to 9",
        ),
    ],
)
def test_a_conflict_is_named(older: Touching, newer: Touching, why: str) -> None:
    assert conflict(older, newer) == f"{why} of storage 3"
    assert [list(found) for found in conflicts([older, newer])] == [[], [0]]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (Touching(reads=(Segment(0, 0, 64),)), Touching(reads=(Segment(0, 0, 64),))),
        (Touching(writes=(Segment(0, 0, 64),)), Touching(reads=(Segment(0, 64, 99),))),
        (Touching(writes=(Segment(0, 0, 64),)), Touching(reads=(Segment(1, 0, 64),))),
        (Touching(writes=(Segment(0, 0, 64),)), Touching(writes=(Segment(0, 32, 32),))),
        (Touching(), Touching(writes=(Segment(0, 0, 64),))),
    ],
    ids=["both read", "side by side", "other storage", "nothing of it", "nothing at all"],
)
def test_what_shares_no_written_byte_does_not_conflict(older: Touching, newer: Touching) -> None:
    assert conflict(older, newer) == conflict(newer, older) == ""
    assert dependencies([older, newer]) == [(), ()]


def test_memory_that_is_not_known_is_all_of_it() -> None:
    known = Touching(reads=(Segment(0, 0, 1),))
    for unknown in (Touching(reads=None), Touching(writes=None)):
        assert conflict(known, unknown) == conflict(unknown, known) == "memory that is not known"
        assert dependencies([known, known, unknown, known, known]) == [(), (), (0, 1), (2,), (2,)]


@given(operations())
def test_arrays_find_what_all_pairs_do(ops: list[Touching]) -> None:
    expected = [[older for older in range(newer) if conflict(ops[older], ops[newer])] for newer in range(len(ops))]
    assert [found.tolist() for found in conflicts(ops)] == expected


@given(operations())
def test_what_is_left_out_of_the_dependencies_follows_from_the_others(ops: list[Touching]) -> None:
    """The transitive reduction: all that conflicts is reached, and nothing that is named is reached in another way."""
    named = dependencies(ops)
    reached: list[set[int]] = []
    for waits in named:
        reached.append(set(waits).union(*(reached[older] for older in waits)))
    needed: list[set[int]] = []
    for older in conflicts(ops):
        needed.append(set(older.tolist()).union(*(needed[place] for place in older.tolist())))
    assert reached == needed
    for waits in named:
        assert list(waits) == sorted(set(waits))
        for older in waits:
            assert not any(older in reached[other] for other in waits if other != older)


def test_nothing_waits_for_nothing() -> None:
    assert (conflicts([]), dependencies([])) == ([], [])


@pytest.mark.parametrize(("window", "segments", "ns"), [(16, 6, 410), (16, 10, 700), (32, 6, 510), (32, 10, 1640)])
def test_a_check_costs_what_was_published(window: int, segments: int, ns: int) -> None:
    """Durvasula et al., Table II; equal to the last picosecond."""
    assert to_ps(check_us(window, segments)) == 1000 * ns


@given(st.integers(1, 1024), st.integers(0, 200))
def test_more_to_check_never_costs_less(window: int, segments: int) -> None:
    cost_us = check_us(window, segments)
    assert 0.0 < cost_us <= check_us(window + 1, segments)
    assert cost_us <= check_us(window, segments + 1)
