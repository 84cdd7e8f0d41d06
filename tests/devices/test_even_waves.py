"""Grids that keep fewer blocks on an SM than fit, worked out by hand on a GPU of 4 SMs that hold 8 blocks of theirs."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from gpusched_env.experiments.lib.play import play
from gpusched_env.hardware.occupancy import ANY_RESIDENTS
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.kernel import Kernel, Waves
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

DEVICES = ("reference", "compiled")
TOY = load_gpu("toy-4sm")
GPU = replace(TOY, limits=replace(TOY.limits, blocks=32))
EIGHTH = 128
"""Threads of a block of which 8 fit on an SM."""


def program(name: str, blocks: int, us: float, *, threads: int = EIGHTH, waves: Waves = "even") -> Workload:
    """One kernel a job, without contention."""
    kernel = Kernel(
        name=name, grid=(blocks, 1, 1), block=(threads, 1, 1), registers=32, duration_us=us, waves=waves,
        issue_fraction=0.0, dram_bytes=0.0,
    )  # fmt: skip
    ops = (Op(OpKind.KERNEL, 0.0, 0, us),)
    return Workload(
        name=name, gpu="toy-4sm", source="test", kernels=(kernel,), variants=(Variant(ops=ops),), iteration_us=(us,)
    )


def beside(*tenants: tuple[Workload, float]) -> Problem:
    """One job of each tenant, from when it starts."""
    rows = [
        {
            "name": workload.name, "workload": workload.name, "jobs": 1,
            "arrivals": {"kind": "periodic", "period_us": 1e3, "start_us": start_us},
        }
        for workload, start_us in tenants
    ]  # fmt: skip
    scenario = {"name": "waves", "summary": "test", "gpu": "toy-4sm", "tenants": rows, "horizon_us": 900.0}
    return build_problem(
        make_scenario(scenario), gpu=GPU, workloads={workload.name: workload for workload, _ in tenants}
    )


def spans(problem: Problem, device: str) -> Counter[tuple[str, int, float, float]]:
    """Blocks by tenant, SM, start and end, us."""
    timeline = play("pass-through", problem, seed=0, device=device, record="blocks").timeline
    kernels = [dict(zip(timeline.kernels.names, row, strict=True)) for row in timeline.kernels.array.tolist()]
    names = {int(one["id"]): problem.scenario.tenants[int(one["tenant"])].name for one in kernels}
    found: Counter[tuple[str, int, float, float]] = Counter()
    for row in timeline.blocks.array.tolist():
        one = dict(zip(timeline.blocks.names, row, strict=True))
        found[names[int(one["kernel"])], int(one["sm"]), one["started_us"], one["ended_us"]] += int(one["blocks"])
    return found


@pytest.mark.parametrize("device", DEVICES)
def test_a_kernel_of_two_waves_spreads_its_blocks_over_both(device: str) -> None:
    """56 blocks are 14 an SM: 7 and 7. In full waves they are 8 and 6, and the 24 of the second fill three SMs."""
    even = spans(beside((program("kernel", 56, 10.0), 0.0)), device)
    assert even == {("kernel", sm, start, start + 5.0): 7 for sm in range(4) for start in (0.0, 5.0)}
    full = spans(beside((program("kernel", 56, 10.0, waves="full"), 0.0)), device)
    assert full == {
        **{("kernel", sm, 0.0, 5.0): 8 for sm in range(4)},
        **{("kernel", sm, 5.0, 10.0): 8 for sm in range(3)},
    }


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("waves", "starts_us"), [("even", 10.0), ("full", 6.0)])
def test_no_sm_is_left_idle_in_the_last_wave(device: str, waves: Waves, starts_us: float) -> None:
    """What needs a whole SM finds one in a last wave that is partial, and none in one that is even."""
    whole = program("whole", 1, 3.0, threads=8 * EIGHTH)
    found = spans(beside((program("kernel", 56, 10.0, waves=waves), 0.0), (whole, 6.0)), device)
    assert [start for name, _, start, _ in found if name == "whole"] == [starts_us]


@pytest.mark.parametrize("device", DEVICES)
def test_the_slot_that_is_left_is_for_others(device: str) -> None:
    """With 7 of its blocks on an SM there is room for one of another, once the last one is handed out."""
    other = program("other", 4, 3.0)
    found = spans(beside((program("kernel", 56, 10.0), 0.0), (other, 1.0)), device)
    assert {key: blocks for key, blocks in found.items() if key[0] == "other"} == {
        ("other", sm, 5.0, 8.0): 1 for sm in range(4)
    }


@pytest.mark.parametrize("device", DEVICES)
def test_blocks_that_end_together_leave_one_after_the_other(device: str) -> None:
    """44 blocks: 6 an SM, then 20. SM 3 gets the last two as the first two of its six leave. The other four are still
    there when five blocks behind find room: two slots on each SM, so the fifth goes to SM 0 again."""
    other = program("other", 5, 3.0, waves="full")
    found = spans(beside((program("kernel", 44, 10.0), 0.0), (other, 1.0)), device)
    second = {sm: blocks for (name, sm, start, _), blocks in found.items() if name == "kernel" and start == 5.0}
    assert second == {0: 6, 1: 6, 2: 6, 3: 2}
    assert {sm: blocks for (name, sm, *_), blocks in found.items() if name == "other"} == {0: 2, 1: 1, 2: 1, 3: 1}


def test_profiled_times_alone_are_kept() -> None:
    """However few blocks an SM holds at a time."""
    for blocks, most in ((3, ANY_RESIDENTS), (5, 1), (8, 2), (33, 3), (44, 6), (56, 7), (100, 5)):
        problem = beside((program("kernel", blocks, 10.0), 0.0))
        (profile,) = problem.kernels
        assert (profile.block["residents"][0], profile.duration_us) == (most, 10.0)
        for device in DEVICES:
            assert max(end for *_, end in spans(problem, device)) == pytest.approx(10.0, abs=1e-5)
