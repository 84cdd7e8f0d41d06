"""SM partitions in groups, as a GPU hands them out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.devices.cuda.resources import groups_of


@pytest.mark.parametrize(
    ("first", "sms", "place"),
    [
        (0, 132, (0, 16)),
        (0, 66, (0, 8)),
        (66, 66, (8, 16)),
        (0, 33, (0, 4)),
        (99, 33, (12, 16)),
        (0, 1, (0, 1)),
        (131, 1, (15, 16)),
    ],
)
def test_a_partition_has_the_groups_that_come_nearest(first: int, sms: int, place: tuple[int, int]) -> None:
    assert groups_of(first, sms, 132, 16) == place


@given(st.integers(2, 132), st.data())
def test_partitions_are_never_empty_and_those_apart_stay_apart(sms: int, data: st.DataObject) -> None:
    groups = data.draw(st.integers(2, sms))
    cut = data.draw(st.integers(1, sms - 1))
    low, high = groups_of(0, cut, sms, groups), groups_of(cut, sms - cut, sms, groups)
    assert 0 <= low[0] < low[1] <= groups
    assert 0 <= high[0] < high[1] <= groups
    # Only a partition smaller than half a group shares the one that it gets.
    assert low[1] <= high[0] or min(cut, sms - cut) * groups < sms
