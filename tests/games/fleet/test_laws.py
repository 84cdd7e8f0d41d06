"""Every law of jobs on one GPU gives the same in plain Python and in compiled code, bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from gpusched_env.games.fleet import co_location
from tests.hardware.laws import check_law, laws_of, share, some

LAWS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "activity": st.tuples(share, st.one_of(st.just(0.0), some), some),
    "capped_speed": st.tuples(st.floats(0.01, 1.0), st.floats(0.1, 1.0), st.floats(0.2, 2.0)),
    "share_of_speed": st.tuples(some, st.floats(0.1, 1.0), st.floats(0.2, 2.0)),
    "iteration_stretch": st.tuples(share, some, st.one_of(st.just(0.0), some), some),
}
"""Arguments by law."""
NOT_LAWS = {
    "all_activity", "control_gpucolo", "control_gslice", "false_alarm_probability", "own_activity", "published_fleet",
    "set_shared_pace", "settle_controller", "shipped_rates", "sleep_of", "training_activity",
}  # fmt: skip
"""Functions of the module that work on tables of jobs, or read figures; any other one is a law."""


@pytest.mark.parametrize(("name", "law"), [(name, law) for name, law in laws_of(co_location) if name not in NOT_LAWS])
def test_plain_and_compiled_are_equal(name: str, law: Callable[..., Any]) -> None:
    check_law(law, LAWS[name])
