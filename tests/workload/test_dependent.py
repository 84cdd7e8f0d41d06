"""Chains of kernels that need each other's tiles."""

from __future__ import annotations

import pytest

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem, load_workload
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.dependent import TiledKernel, dependent_workload
from gpusched_env.workload.workload import OpKind, Workload
from tests.refusals import refused


def problem(workload: Workload) -> Problem:
    tenant = {"name": "t", "workload": workload.name, "arrivals": {"kind": "backlog"}, "jobs": 1}
    scenario = make_scenario(
        {
            "name": "test",
            "gpu": workload.gpu,
            "tenants": [tenant],
            "variation": False,
            "lookahead": 8,
            "horizon_us": 1e7,
        }
    )
    return build_problem(scenario, workloads={workload.name: workload})


def test_kernels_take_the_durations_that_they_are_given() -> None:
    gpu = load_gpu("v100")
    kernels = [TiledKernel(4, 24, 1, 1446.18), TiledKernel(4, 48, 1, 1174.7), TiledKernel(2, 90, 1, 300.0, 4)]
    built = problem(dependent_workload("products", gpu, kernels))
    assert [round(profile.duration_us, 6) for profile in built.kernels] == [1446.18, 1174.7, 300.0]
    assert [profile.footprint.blocks_per_sm for profile in built.kernels] == [1, 1, 4]
    assert [kernel.waves(gpu.sms) for kernel in kernels] == [2, 3, 1]


def test_a_host_may_wait_for_each() -> None:
    made = dependent_workload("pair", load_gpu("v100"), [TiledKernel(1, 1, 1, 10.0)] * 2, launched="waited-for")
    assert [op.kind for op in made.variants[0].ops] == [OpKind.KERNEL, OpKind.SYNC] * 2


def test_in_order_all_are_in_one_stream_and_need_no_tiles() -> None:
    kernels = [TiledKernel(1, 1, 1, 10.0), TiledKernel(1, 1, 1, 10.0, whole=(0,))]
    made = dependent_workload("pair", load_gpu("v100"), kernels, launched="in-order")
    launches = [op for op in made.variants[0].ops if op.kind is OpKind.KERNEL]
    assert [(op.stream, op.tiles) for op in launches] == [(0, -1)] * 2
    assert made.variants[0].ops[-1].kind is OpKind.SYNC
    assert not any(op.kind is OpKind.WAIT for op in made.variants[0].ops)


def test_a_kernel_that_needs_the_whole_of_one_starts_behind_it() -> None:
    """Three of one block each: the third needs the second's tile, and all of the first, which is the longest."""
    kernels = [TiledKernel(1, 1, 1, us, whole=whole) for us, whole in ((100.0, ()), (10.0, ()), (10.0, (0,)))]
    loose = [TiledKernel(1, 1, 1, us) for us in (100.0, 10.0, 10.0)]
    gpu = load_gpu("toy-4sm")
    ends = [
        run_episode(
            make_scheduler("cusync(policy=row)"),
            problem(dependent_workload("three", gpu, made)),
            make_device("reference"),
            0,
            record="kernels",
        )
        for made in (kernels, loose)
    ]
    starts = [episode.timeline.kernels.column("started_us").max() for episode in ends]
    assert starts[0] >= 100.0 > starts[1]


def test_a_kernel_needs_the_whole_of_earlier_ones_only() -> None:
    with refused(InputError, "kernel 0", "kernel 1"):
        dependent_workload(
            "pair", load_gpu("v100"), [TiledKernel(1, 1, 1, 10.0, whole=(1,)), TiledKernel(1, 1, 1, 10.0)]
        )


def test_an_sm_holds_one_to_four_blocks() -> None:
    with refused(InputError, "5 blocks", "SM", "be 1 to 4"):
        dependent_workload("pair", load_gpu("v100"), [TiledKernel(1, 1, 1, 10.0, 5)])


def test_random_chains_are_the_same_for_a_seed_and_run_on_both_devices() -> None:
    for seed in range(12):
        made = load_workload(f"chain(seed={seed})")
        assert made.variants == load_workload(f"chain(seed={seed},gpu=v100-sxm)").variants
        ends = {
            run_episode(make_scheduler("cusync"), problem(made), make_device(device), 0).end_us
            for device in ("reference", "compiled")
        }
        assert len(ends) == 1
        assert ends.pop() < 1.2 * made.iteration_us[0] + 20.0


def test_jobs_draw_one_of_several_chains() -> None:
    made = load_workload("chain(seed=3,count=5)")
    assert len(made.variants) == len(made.iteration_us) == 5
    alone = load_workload("chain(seed=3)")
    kernels = len(alone.kernels)
    # The first one is what the seed gives alone.
    assert [k.grid for k in made.kernels[:kernels]] == [k.grid for k in alone.kernels]
    used = [op.index for variant in made.variants for op in variant.ops if op.kind is OpKind.KERNEL]
    assert used == list(range(len(made.kernels)))
    assert len(made.stream_priorities) == max(
        sum(op.kind is OpKind.KERNEL for op in variant.ops) for variant in made.variants
    )
    problem(made)


def test_random_convolutions_are_equal_and_many_rows_high() -> None:
    for seed in range(10):
        kernels = load_workload(f"chain(seed={seed},kind=convolutions)").kernels
        assert len(kernels) in (2, 4)
        assert len({(kernel.grid, kernel.duration_us) for kernel in kernels}) == 1
        columns, rows, slices = kernels[0].grid
        assert columns in (1, 2, 4, 8)
        assert 1 <= rows * columns <= 800 + columns
        assert 1 <= slices <= 4


@pytest.mark.parametrize(
    ("name", "said"), [("chain(seed=x)", "seed"), ("chain", "expected chain"), ("chain(seed=1,rows=3)", "rows")]
)
def test_names_that_cannot_be_read_are_refused(name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_workload(name)
