"""Paella on instances worked out by hand: four SMs of one block, no latencies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.paella import Paella
from gpusched_env.errors import InputError
from tests.baselines.instances import launches, spans
from tests.devices.problems import K, problem
from tests.refusals import refused


def test_the_job_with_the_least_time_left_goes_first(tmp_path: Path) -> None:
    """40 us, and 10: the short job is through first, although it came last."""
    built = problem(tmp_path, {"ops": [K(4, 20.0)] * 2}, {"ops": [K(4, 10.0)]})
    assert [start for _, start, _, _ in spans(Paella(extra=0), built)] == [10.0, 30.0, 0.0]


def test_a_kernel_waits_until_its_blocks_fit(tmp_path: Path) -> None:
    """Three of four SMs are taken until 10 us: a kernel of one block fits, one of two does not."""
    built = problem(tmp_path, {"ops": [K(3, 10.0)]}, {"ops": [K(1, 12.0)]}, {"ops": [K(2, 15.0)]})
    assert launches(Paella(extra=0), built, 1) == [0.0]
    # It is looked at when the first kernel ends.
    assert launches(Paella(extra=0), built, 2) == [10.0]
    assert launches(Paella(extra=1), built, 2) == [0.0]


def test_nothing_overtakes_the_first_job(tmp_path: Path) -> None:
    """The job with the least left needs all SMs; the one block of the other would fit beside what runs."""
    built = problem(tmp_path, {"ops": [K(3, 5.0)]}, {"ops": [K(4, 8.0)]}, {"ops": [K(1, 20.0)]})
    assert [start for _, start, _, _ in spans(Paella(extra=0), built)] == [0.0, 5.0, 13.0]


def test_a_tenant_that_waited_too_long_goes_first(tmp_path: Path) -> None:
    """Each launch of the others is half a launch that it waited: after two it is its turn."""
    short = {"ops": [K(4, 10.0)], "jobs": 5}
    built = problem(tmp_path, {"ops": [K(4, 30.0)]}, short)
    assert spans(Paella(extra=0), built)[0][1] == 50.0
    assert spans(Paella(extra=0, unfairness=1.0), built)[0][1] == 20.0


@pytest.mark.parametrize("options", [{"unfairness": 0.0}, {"extra": -1}, {"depth": 0}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with refused(InputError, "paella"):
        Paella(**options)
