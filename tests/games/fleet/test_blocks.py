"""A fleet block by block: worked by hand, and each of its GPUs is a plain device."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.blocks import gpu_problem
from gpusched_env.games.fleet.device import Fleet, FleetRun, Place, Wait, run_fleet
from gpusched_env.games.fleet.experiments.levels import run_in_shards
from gpusched_env.games.fleet.problem import GpuKind
from tests.games.fleet.block_fleets import DEVICES, LOG, MS, RATIOS, REPORT_US, Moving, blocks, sleepy, worked_by_hand


@pytest.mark.parametrize("device", ["reference", "compiled"])
def test_two_gpus_three_jobs_a_sleep_and_a_move(tmp_path: Path, device: str) -> None:
    problem = worked_by_hand(tmp_path)
    run = run_fleet(Moving(), problem, blocks=blocks(problem, device))
    assert run.log == LOG
    assert run.level == "blocks"
    assert run.used.tolist() == [1, 2, 2, 1]
    np.testing.assert_allclose(run.state.served_us, [250 * MS, 0, 0])
    latencies_ms = (17.5 * 100 + 15.0 * 100 + 19.0 * 50) / 12.0
    assert run.state.ratio_us[0] == pytest.approx(latencies_ms * MS)
    assert run.late_requests == 1.0
    assert run.training_stretch == pytest.approx((388 + 90) / (160 + 90))


@pytest.mark.parametrize("device", ["reference", "compiled"])
def test_what_it_reports(tmp_path: Path, device: str) -> None:
    problem = worked_by_hand(tmp_path)
    dispatcher, fleet = Moving(), Fleet(problem, advance=blocks(problem, device))
    dispatcher.reset(problem.kinds)
    view, seen, left = fleet.reset(), [], []
    while view is not None:
        while not isinstance(command := dispatcher.decide(view), Wait):
            view = fleet.apply(command)
        view = fleet.advance()
        seen.append(tuple(fleet.state.ratio.tolist()))
        left.append(fleet.state.left_us[1] / MS)
    np.testing.assert_allclose(seen, np.array(RATIOS) / 12.0)
    assert left == [100.0, 60.0, 40.0, 0.0]


@pytest.mark.parametrize("shards", [1, 2])
def test_in_shards_it_is_the_same(tmp_path: Path, shards: int) -> None:
    problem = worked_by_hand(tmp_path)
    run = run_in_shards(Moving(), problem, shards, blocks=functools.partial(blocks, device="compiled"))
    assert (run.log, run.level) == (LOG, "blocks")
    same(run_fleet(Moving(), problem, blocks=blocks(problem, "compiled")), run)


@pytest.mark.long
def test_on_ray_it_is_the_same(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    problem = worked_by_hand(tmp_path)
    run = run_in_shards(Moving(), problem, 2, "local", functools.partial(blocks, device="compiled"))
    assert run.log == LOG


def same(one: FleetRun, other: FleetRun) -> None:
    """To the last bit."""
    np.testing.assert_array_equal(one.used, other.used)
    for name in ("gpu_of", "left_us", "ended_us", "served_us", "ratio_us", "late_us", "sleep_us", "share", "busy_us"):
        np.testing.assert_array_equal(getattr(one.state, name), getattr(other.state, name), err_msg=name)


@pytest.mark.parametrize("device", ["reference", "compiled"])
def test_a_gpu_whose_jobs_never_move_is_a_plain_device(tmp_path: Path, device: str) -> None:
    """All jobs there from the beginning: step by step what a plain episode of the same tenants has."""
    whole = worked_by_hand(tmp_path)
    jobs = whole.jobs.copy()
    jobs["arrival_us"], jobs["work_us"], jobs["memory_gb"] = 0, 1e9, 0.1
    problem = replace(whole, jobs=jobs)
    made = blocks(problem, device)
    fleet = Fleet(problem, advance=made)
    fleet.reset()
    for job in range(3):
        fleet.apply(Place(job, 0))
    for _ in range(4):
        fleet.advance()
    steps = made.gpus[0].timeline.jobs.array
    alone = gpu_problem(problem, problem.kinds[0])
    tenants = tuple(
        msgspec.structs.replace(tenant, arrivals=msgspec.structs.replace(tenant.arrivals, start_us=0.0))
        for tenant in alone.scenario.tenants
    )
    scenario = msgspec.structs.replace(alone.scenario, tenants=tenants, horizon_us=4.0 * REPORT_US)
    programs = tuple(replace(program, tenant=tenant) for program, tenant in zip(alone.programs, tenants, strict=True))
    plain = run_episode(sleepy("shared"), replace(alone, scenario=scenario, programs=programs), DEVICES[device](), 0)
    np.testing.assert_array_equal(steps, plain.timeline.jobs.array)
    assert len(steps) > 15


@pytest.mark.parametrize(
    ("programs", "error"),
    [
        ((), "by hand: job 0 has no program; block by block each of the 3 jobs needs the name of a workload"),
        (("vgg16_infer_b8", "", "vgg16_infer_b8"), "by hand: job 1 has no program"),
        (("vgg16_infer_b8",) * 4, "by hand: there are 4 programs for 3 jobs; must be one for each"),
        (
            ("vgg16_infer_b8", "vgg_infer", "vgg16_infer_b8"),
            r"GPUs of kind toy: .*tenants\[1\].workload: .*'vgg_infer'",
        ),
    ],
)
def test_a_job_that_cannot_be_run_is_named(tmp_path: Path, programs: tuple[str, ...], error: str) -> None:
    problem = replace(worked_by_hand(tmp_path), programs=programs)
    with pytest.raises(InputError, match=error):
        blocks(problem, "compiled")


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (GpuKind("toy", 1, 1.0, spec="toy-5sm"), "by hand: GPUs of kind toy: unknown GPU 'toy-5sm'"),
        (GpuKind("toy", 1, 80.0, spec="toy-4sm"), "GPUs of kind toy: memory_gb is 80, toy-4sm has 1;"),
    ],
)
def test_a_gpu_that_cannot_be_simulated_is_named(tmp_path: Path, kind: GpuKind, error: str) -> None:
    problem = replace(worked_by_hand(tmp_path), kinds=(kind,))
    with pytest.raises(InputError, match=error):
        blocks(problem, "compiled")
