"""Where options are searched: each range is of an option, and has its default."""

from __future__ import annotations

import pytest

from gpusched_env.baselines.ranges import Choice, ranges_of
from gpusched_env.baselines.registry import default_options, make_scheduler, scheduler_names


@pytest.mark.parametrize("name", scheduler_names())
def test_a_range_has_the_default_and_its_ends_are_accepted(name: str) -> None:
    defaults = default_options(name)
    for option, range_ in ranges_of(make_scheduler(name)).items():
        ends = range_.values if isinstance(range_, Choice) else (range_.low, range_.high)
        if isinstance(range_, Choice):
            assert defaults[option] in ends
        else:
            # None: as the machine has it.
            assert defaults[option] is None or range_.low <= defaults[option] <= range_.high
            assert range_.low > 0 or not range_.log
        for value in ends:
            make_scheduler(name, **{option: value})
