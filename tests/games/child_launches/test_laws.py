"""Every law of warps gives the same in plain Python and in compiled code, bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from gpusched_env.games.child_launches.hardware import warp_machine as warps
from tests.hardware.laws import check_law, laws_of, share, some, times_ps

demands = st.integers(0, 1 << 62)
LAWS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "cycles_to_ps": st.tuples(some, some),
    "demand": st.tuples(some, some),
    "stretch": st.tuples(demands, some, demands, some, demands),
    "clock_now": st.tuples(some, times_ps, share, times_ps),
    "time_of": st.tuples(some, some, times_ps, st.floats(1e-6, 1.0), times_ps),
}
"""Arguments by law."""


@pytest.mark.parametrize(("name", "law"), list(laws_of(warps)))
def test_plain_and_compiled_are_equal(name: str, law: Callable[..., Any]) -> None:
    check_law(law, LAWS[name])
