"""Traces as they are played: cut, scaled, and as long as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_env.reading import checked
from gpusched_env.workload.tenant import Trace
from gpusched_env.workload.trace_replay import replay_of
from tests.refusals import refused

# Ten jobs in 100 us, as those of the last 10 us are as far apart as all are in the mean.
EVEN = tuple(10.0 * k for k in range(10))


def played(**fields: Any) -> tuple[list[float], float, float]:
    """Times and length in microseconds, jobs a second."""
    replay = replay_of(Trace(**{"times_us": EVEN} | fields))
    return (replay.times_ps / 1e6).tolist(), replay.span_ps / 1e6, replay.jobs_a_us * 1e6


def test_a_trace_is_played_at_its_own_speed() -> None:
    assert played() == ([10.0 * k for k in range(10)], 100.0, pytest.approx(1e5))
    # 10 us pass before the first, and 20 us lie between any two.
    assert played(times_us=(10.0, 20.0, 50.0)) == ([10.0, 20.0, 50.0], 70.0, pytest.approx(3e6 / 70.0))


def test_speed_and_mean_rate_are_factors_on_the_rate() -> None:
    assert played(speed=4.0) == ([2.5 * k for k in range(10)], 25.0, pytest.approx(4e5))
    assert played(mean_rate_per_s=2e5) == ([5.0 * k for k in range(10)], 50.0, pytest.approx(2e5))
    assert played(mean_rate_per_s=2e5, speed=0.5)[2] == pytest.approx(1e5)
    # Of what is cut out: two jobs in 80 us.
    assert played(mean_rate_per_s=1e6, from_us=75.0, to_us=155.0) == ([0.125, 0.375], 2.0, pytest.approx(1e6))


def test_a_cut_begins_and_ends_where_it_says() -> None:
    assert played(from_us=20.0, to_us=40.0) == ([0.0, 10.0], 20.0, pytest.approx(1e5))
    assert played(from_us=15.0)[0] == [10.0 * k - 15.0 for k in range(2, 10)]
    lengths = {"prompts": tuple(range(1, 11)), "answers": tuple(range(11, 21))}
    replay = replay_of(Trace(times_us=EVEN, from_us=20.0, to_us=40.0, **lengths))
    assert replay.prompts is not None
    assert replay.answers is not None
    assert (replay.prompts.tolist(), replay.answers.tolist()) == ([3, 4], [13, 14])


def test_a_trace_of_one_time_has_no_rate() -> None:
    assert played(times_us=(5.0, 5.0)) == ([5.0, 5.0], 5.0, pytest.approx(4e5))
    assert played(times_us=(0.0, 0.0)) == ([0.0, 0.0], 0.0, 0.0)
    assert played(times_us=(0.0, 0.0), to_us=8.0, at_end="repeats")[1:] == (8.0, pytest.approx(2.5e5))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"times_us": (0.0,), "at_end": "repeats"}, "all requests come at one time, so that the trace has no rate"),
        ({"times_us": (0.0,), "mean_rate_per_s": 1.0}, "give to_us"),
        ({"from_us": 100.0}, "no request from 100 to inf us; the trace goes from 0 to 90 us"),
        ({"from_us": 11.0, "to_us": 12.0}, "no request from 11 to 12 us"),
        ({"speed": 1e-11}, r"is 1e\+13 us long as it is played, must be at most 1e\+12 us; cut it"),
        ({"speed": 1e300, "at_end": "repeats"}, "the whole trace comes at one time; lower speed"),
        ({"mean_rate_per_s": 1e-300}, "must be at most"),
    ],
)
def test_what_cannot_be_played_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        played(**fields)


def test_a_long_file_is_played_in_part(tmp_path: Path) -> None:
    """BurstGPT lasts for four months."""
    path = tmp_path / "burst.csv"
    path.write_text("time_s,prompt\n1,5\n1e7,6\n10000001,7\n")
    with refused(InputError, "burst.csv", "played"):
        replay_of(Trace(file=str(path)))
    replay = replay_of(Trace(file=str(path), from_us=1e13))
    assert replay.times_ps.tolist() == [0, 1_000_000_000_000]
    assert replay.prompts is not None
    assert replay.prompts.tolist() == [6, 7]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "a trace has a file or times_us, one of them"),
        ({"file": "a", "times_us": [1.0]}, "one of them"),
        ({"times_us": [2.0, 1.0]}, "times_us must be in order"),
        ({"times_us": [-1.0]}, r"times_us\[0\]: Expected `float` >= 0.0"),
        ({"times_us": [1e13]}, "Expected `float` <= 1000000000000.0"),
        ({"times_us": [1.0], "prompts": [1, 2]}, "prompts has 2 lengths, must have 1, as times_us"),
        ({"file": "a", "answers": [1]}, "those of a file are in the file"),
        ({"times_us": [1.0], "from_us": 5.0, "to_us": 5.0}, "to_us is 5, must be after from_us 5"),
        ({"times_us": [1.0], "speed": 0.0}, "speed: Expected `float` > 0.0"),
        ({"times_us": [1.0], "window": "last"}, "window: Invalid enum value 'last'"),
    ],
)
def test_fields_are_checked(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked({"kind": "trace", **fields}, Trace, "arrivals")
