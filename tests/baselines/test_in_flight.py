"""Rules that keep a few kernels in flight, on instances worked out by hand: four SMs of one block."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusched_env.baselines.fifo import Fifo
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.baselines.sjf import ShortestJobFirst
from gpusched_env.errors import InputError
from tests.baselines.instances import spans
from tests.baselines.test_sjf_clairvoyant import longer
from tests.devices.problems import K, problem
from tests.refusals import refused


@pytest.mark.parametrize(("in_flight", "starts_us"), [(1, 200.0), (2, 100.0), (3, 0.0)])
def test_kernels_share_the_gpu_in_the_order_of_issue(tmp_path: Path, in_flight: int, starts_us: float) -> None:
    """Both kernels of the first tenant were issued before the second tenant's; in its stream they go one by one."""
    built = problem(tmp_path, {"ops": [K(2, 100.0), K(2, 100.0)]}, {"ops": [K(2, 50.0)]})
    rows = spans(Fifo(in_flight), built)
    assert rows == [(0, 0.0, 100.0, 0), (0, 100.0, 200.0, 0), (1, starts_us, starts_us + 50.0, 0)]


def test_a_second_kernel_in_flight_hides_its_launch(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 100.0)] * 2}, gpu={"timing": {"launch_latency_us": 10.0}})
    assert spans(Fifo(), built) == [(0, 10.0, 110.0, 0), (0, 120.0, 220.0, 0)]
    assert spans(Fifo(in_flight=2), built) == [(0, 10.0, 110.0, 0), (0, 110.0, 210.0, 0)]


def test_the_two_shortest_jobs_go_beside_each_other(tmp_path: Path) -> None:
    """Of 100, 60 and 30 us by their profiles; the last one will take 120 us, which one of both rules is told."""
    built = longer(problem(tmp_path, *({"ops": [K(2, us)]} for us in (100.0, 60.0, 30.0))), 2, 4.0)
    assert [start for _, start, _, _ in spans(ShortestJobFirst(in_flight=2), built)] == [60.0, 0.0, 0.0]
    told = make_scheduler("sjf-clairvoyant", in_flight=2)
    assert [start for _, start, _, _ in spans(told, built)] == [0.0, 0.0, 60.0]


@pytest.mark.parametrize("name", ["fifo", "sjf", "sjf-clairvoyant", "wfq"])
def test_no_kernel_in_flight_is_refused(name: str) -> None:
    with refused(InputError, "in_flight is 0", "least 1"):
        make_scheduler(name, in_flight=0)
