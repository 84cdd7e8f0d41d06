"""Numbers in sentences."""

from __future__ import annotations

import pytest

from gpusched_env.display.words import counted, duration


def test_one_is_no_plural() -> None:
    assert [counted(n, "seed") for n in (0, 1, 2, 1000)] == ["0 seeds", "1 seed", "2 seeds", "1,000 seeds"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0421, "0.042 s"),
        (4.26, "4.3 s"),
        (9.97, "10 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_a_duration_has_two_digits_or_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text
