"""What kernels lose where the L2 has lost their data, worked out by hand on a GPU with 4 SMs and an L2 of 1 MiB."""

from __future__ import annotations

import math

import pytest

from gpusched_env.experiments.lib.play import play
from gpusched_env.hardware.l2 import FADES, HOLDS, keeps, l2_share_lost
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

MIB = 1 << 20
DEVICES = ("reference", "compiled")


def program(
    name: str, *, us: float = 10.0, cold: float = 0.0, footprint: int = 0, moves: float = 0.0, times: float = 1.0
) -> Workload:
    """One kernel of one block a job, which takes so many times as long as its mean."""
    kernel = Kernel(
        name=name,
        grid=(1, 1, 1),
        block=(1024, 1, 1),
        registers=32,
        duration_us=us,
        issue_fraction=0.0,
        dram_bytes=moves,
    )
    ops = (Op(OpKind.KERNEL, 0.0, 0, us * times, cold=cold),)
    return Workload(
        name=name, gpu="toy-4sm", source="test", kernels=(kernel,), variants=(Variant(ops=ops),), iteration_us=(us,),
        footprint_bytes=footprint,
    )  # fmt: skip


def beside(*tenants: tuple[Workload, float, int], launch: str = "eager") -> Problem:
    """A job every 100 us of each tenant, from when it starts, so many of them."""
    rows = [
        {
            "name": workload.name, "workload": workload.name, "jobs": jobs, "launch": launch,
            "arrivals": {"kind": "periodic", "period_us": 100.0, "start_us": start_us},
        }
        for workload, start_us, jobs in tenants
    ]  # fmt: skip
    scenario = {"name": "l2", "summary": "test", "gpu": "toy-4sm", "tenants": rows, "horizon_us": 1e4}
    return build_problem(make_scenario(scenario), workloads={workload.name: workload for workload, *_ in tenants})


def durations(problem: Problem, device: str) -> dict[str, list[float]]:
    """Of each tenant's kernels, us."""
    kernels = play("pass-through", problem, seed=0, device=device, record="kernels").timeline.kernels
    rows = [dict(zip(kernels.names, row, strict=True)) for row in kernels.array.tolist()]
    return {
        tenant.name: [row["ended_us"] - row["started_us"] for row in rows if row["tenant"] == number]
        for number, tenant in enumerate(problem.scenario.tenants)
    }


def lost(footprint: float, brought: float) -> float:
    """The law, spelled out."""
    return 1.0 - math.exp(-max(0.0, footprint + brought - HOLDS * MIB) / (FADES * MIB))


@pytest.mark.parametrize("device", DEVICES)
def test_what_others_bring_between_two_jobs_makes_the_second_one_longer(device: str) -> None:
    """The first job finds nothing. 500,000 bytes pass before the second one, nothing before the third."""
    kept, passing = program("kept", cold=0.5, footprint=400_000), program("passing", moves=500_000.0)
    found = durations(beside((kept, 0.0, 3), (passing, 50.0, 1)), device)
    second = 10.0 * (1.0 + 0.5 * lost(400_000, 500_000))
    assert 14.0 < second < 14.5
    assert found["kept"] == pytest.approx([15.0, second, 10.0], abs=1e-6)
    assert found["passing"] == pytest.approx([10.0])


@pytest.mark.parametrize("device", DEVICES)
def test_a_job_that_is_under_way_goes_on_as_it_began(device: str) -> None:
    """What is brought while a job runs counts against the next one."""
    kept, passing = program("kept", us=60.0, cold=0.5, footprint=700_000), program("passing", moves=9e5)
    found = durations(beside((kept, 0.0, 3), (passing, 120.0, 1)), device)
    assert found["kept"] == pytest.approx([90.0, 60.0, 60.0 * (1.0 + 0.5 * lost(700_000, 9e5))], abs=1e-6)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("footprint", "fits"), [(300_000, True), (600_000, False)])
def test_two_that_fit_together_stay_warm_and_two_that_do_not_drive_each_other_out(
    device: str, footprint: int, fits: bool
) -> None:
    """A program that finds everything brings nothing. One that has lost a share brings that share of its footprint."""
    both = [program(name, cold=1.0, footprint=footprint, moves=2.0 * footprint) for name in ("one", "other")]
    assert all(keeps(MIB, workload.footprint_bytes) for workload in both)
    found = durations(beside((both[0], 0.0, 3), (both[1], 50.0, 3)), device)
    # The other one's first job, all of whose data is missing, brings its footprint and no more.
    second = lost(footprint, footprint)
    other = lost(footprint, second * footprint)
    third = lost(footprint, other * footprint)
    assert found["one"] == pytest.approx([20.0, 10.0 * (1.0 + second), 10.0 * (1.0 + third)], abs=1e-6)
    assert found["other"][:2] == pytest.approx([20.0, 10.0 * (1.0 + other)], abs=1e-6)
    assert (third == 0.0) == fits


@pytest.mark.parametrize("device", DEVICES)
def test_what_does_not_fit_brings_all_that_it_moves(device: str) -> None:
    kept, large = program("kept", cold=0.5, footprint=400_000), program("large", footprint=2 * MIB, moves=450_000.0)
    found = durations(beside((kept, 0.0, 2), (large, 50.0, 1)), device)
    assert found["kept"][1] == pytest.approx(10.0 * (1.0 + 0.5 * lost(400_000, 450_000)), abs=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_a_launch_that_takes_longer_than_its_kernel_on_average_brings_as_much_more(device: str) -> None:
    kept, passing = program("kept", cold=0.5, footprint=400_000), program("passing", moves=200_000.0, times=2.0)
    found = durations(beside((kept, 0.0, 2), (passing, 50.0, 1)), device)
    assert found["kept"][1] == pytest.approx(10.0 * (1.0 + 0.5 * lost(400_000, 400_000)), abs=1e-6)


@pytest.mark.parametrize("device", DEVICES)
def test_nothing_changes_where_no_kernel_depends_on_the_l2(device: str) -> None:
    known, unknown = program("same", footprint=400_000, moves=1e5), program("same", moves=1e5)
    passing = program("passing", moves=500_000.0)
    assert not beside((known, 0.0, 3)).l2_matters
    assert durations(beside((known, 0.0, 3), (passing, 50.0, 1)), device) == durations(
        beside((unknown, 0.0, 3), (passing, 50.0, 1)), device
    )


@pytest.mark.parametrize("device", DEVICES)
def test_nodes_of_a_graph_depend_on_the_l2_as_kernels_do(device: str) -> None:
    kept, passing = program("kept", cold=0.5, footprint=400_000), program("passing", moves=500_000.0)
    found = durations(beside((kept, 0.0, 3), (passing, 50.0, 1), launch="graph"), device)
    assert found["kept"] == pytest.approx([15.0, 10.0 * (1.0 + 0.5 * lost(400_000, 500_000)), 10.0], abs=1e-6)


def test_the_law() -> None:
    """Nothing is lost while there is room; beyond that, 8 % of the capacity leave 1/e."""
    room = HOLDS * MIB
    assert l2_share_lost(MIB, 0.5 * room, 0.5 * room) == 0.0
    assert l2_share_lost(MIB, room, FADES * MIB) == pytest.approx(1.0 - 1.0 / math.e)
    assert l2_share_lost(MIB, 0.0, 100.0 * MIB) == pytest.approx(1.0)
    assert keeps(MIB, int(room))
    assert not keeps(MIB, int(room) + 1)
