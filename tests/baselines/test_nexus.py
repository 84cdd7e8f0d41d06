"""Nexus on instances worked out by hand: four SMs of one block, no latencies."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.nexus import Nexus, batches
from gpusched_env.errors import InputError
from tests.baselines.instances import spans
from tests.baselines.test_clockwork import OFFERED, of, order, rejected
from tests.devices.problems import problem
from tests.refusals import refused


def test_batches_are_what_comes_in_the_shortest_cycle() -> None:
    """One request in 100 us and a time of 50: three are within 450 us, after 300. One in 300 within 1,000: two, after
    600. In the 300 us that both share come three and one."""
    assert batches([1 / 100, 1 / 300], [450.0, 1000.0], [50.0, 50.0]) == [3, 1]
    assert batches([0.0, 1 / 300], [math.inf, 1000.0], [50.0, 50.0]) == [1, 2]


def test_tenants_take_turns(tmp_path: Path) -> None:
    """Rates of a backlog are not known: a request each."""
    built = problem(tmp_path, *(of(10.0, 10.0, slo_us=500.0, jobs=2) for _ in range(3)), commands=OFFERED)
    assert order(Nexus(), built) == [0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]


def test_sessions_by_themselves_share_the_gpu(tmp_path: Path) -> None:
    built = problem(tmp_path, *(of(10.0, 10.0, slo_us=500.0) for _ in range(2)), commands=OFFERED)
    assert [start for _, start, _, _ in spans(Nexus(), built)] == [0.0, 10.0, 20.0, 30.0]
    assert [start for _, start, _, _ in spans(Nexus(parallel=True), built)] == [0.0, 20.0, 10.0, 30.0]


def test_what_would_be_late_is_dropped(tmp_path: Path) -> None:
    """At 60 us the second request of 50 would end after its deadline."""
    built = problem(tmp_path, of(60.0, slo_us=200.0), of(50.0, slo_us=105.0), commands=OFFERED)
    assert rejected(Nexus(), built) == [(1, 0, 60.0)]
    assert rejected(Nexus(reject=False), built) == []


@pytest.mark.parametrize("options", [{"margin": 0.0}, {"parallel": 1}, {"reject": "no"}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with refused(InputError, "nexus"):
        Nexus(**options)
