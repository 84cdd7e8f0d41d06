"""Every law of task queues gives the same in plain Python and in compiled code, bit by bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import strategies as st

from gpusched_env.games.task_queues.hardware import machine as laws
from tests.hardware.laws import amount, check_law, few, laws_of, some, times_ps

LAWS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "served": st.tuples(times_ps, times_ps, times_ps),
    "moved_ps": st.tuples(amount, some),
    "missed": st.tuples(some, some),
    "readable": st.tuples(few, few, few),
    "published": st.tuples(few, few, few),
    "slots_of": st.tuples(amount),
    "rounds_of": st.tuples(few, st.integers(1, 32)),
    "edges_in_round": st.integers(1, 64).flatmap(lambda n: st.tuples(amount, st.just(n), st.integers(0, n - 1))),
    "crowded": st.tuples(times_ps, st.floats(1.0, 8.0), amount, st.integers(1, 32), few, times_ps),
    "polled_at": st.tuples(times_ps, amount, times_ps),
}
"""Arguments by law."""


@pytest.mark.parametrize(("name", "law"), list(laws_of(laws)))
def test_plain_and_compiled_are_equal(name: str, law: Callable[..., Any]) -> None:
    check_law(law, LAWS[name])
