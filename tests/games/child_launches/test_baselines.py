"""Schedulers of child launches, decision by decision and on a program that is solved by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.baselines.registry import (
    LAUNCH_SCHEDULERS,
    make_launch_scheduler,
)
from gpusched_env.games.child_launches.baselines.spawn import SpawnScheduler
from gpusched_env.games.child_launches.baselines.threshold import OfflineSearch, thresholds
from gpusched_env.games.child_launches.device import SERIALISE, SPAWN, LaunchKnowledge, RequestView
from gpusched_env.games.child_launches.devices import make_launch_device
from gpusched_env.games.child_launches.hardware.warp_machine import SPAWN_KEPLER
from gpusched_env.games.child_launches.problem import LaunchProblem, launch_problem
from gpusched_env.games.child_launches.scheduler import LaunchRun, run_application
from gpusched_env.games.child_launches.workload.launches import Benchmark, BlockShape, ParentKernel, threads_with_loops
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

PS = SPAWN_KEPLER.ps_per_cycle


def view(**changes: Any) -> RequestView:
    """Two lanes call; four child blocks of 1,000 cycles run on average, 10 are in the system."""
    fields: dict[str, Any] = {
        **dict.fromkeys(RequestView.__dataclass_fields__, 0),
        "work": 100,
        "items": 100,
        "blocks": 2,
        "calls": 2,
        "room": 1 << 40,
        "inside": 10,
        "running": 4,
        "blocks_ended": 20,
        "block_ps": 1000 * PS,
        "recent_block_ps": 1000 * PS,
        "window_running": 4.0,
        "last_running": 4.0,
        "busy_running": 4.0,
        "warp_ps": 500 * PS,
        "warp_1024_ps": 500 * PS,
        "warp_4096_ps": 500 * PS,
    }
    return RequestView(**{**fields, **changes})


def spawn(**options: Any) -> SpawnScheduler:
    scheduler = SpawnScheduler(**options)
    scheduler.reset(LaunchKnowledge(SPAWN_KEPLER, 0, aggregated=False), np.random.default_rng(0))
    return scheduler


def breaks_even(changes: dict[str, Any], **options: Any) -> float:
    """The warp time at which SPAWN is indifferent on :func:`view` with ``changes``, cycles."""
    low, high = 0.0, 1e6
    for _ in range(60):
        middle = (low + high) / 2
        times = dict.fromkeys(("warp_ps", "warp_1024_ps", "warp_4096_ps"), middle * PS)
        if spawn(**options).decide(view(**times, **changes)) is SPAWN:
            high = middle
        else:
            low = middle
    return high


def test_spawn_compares_overhead_queue_and_service_with_the_loop() -> None:
    """A x + b = 23,652 cycles; 12 blocks of 1,000 cycles at 4 at once take 3,000; 100 iterations."""
    assert breaks_even({}) == pytest.approx((23_652 + 3_000) / 100)
    assert breaks_even({"inside": 50}) == pytest.approx((23_652 + 13_000) / 100)
    assert breaks_even({"calls": 32}) == pytest.approx((1721 * 32 + 20210 + 3_000) / 100)
    assert breaks_even({"work": 50}) == pytest.approx((23_652 + 3_000) / 50)


@pytest.mark.parametrize(
    ("options", "changes", "queue"),
    [
        ({"block_time": "mean"}, {"block_ps": 2000 * PS}, 6_000),
        ({"block_time": "recent"}, {"recent_block_ps": 2000 * PS}, 6_000),
        ({"running": "busy"}, {"busy_running": 2.0}, 6_000),
        ({"running": "last"}, {"last_running": 2.0}, 6_000),
        ({"running": "window"}, {"window_running": 0.0}, 12_000),
        ({"running": "most"}, {"window_running": 0.0}, 12_000 / 208),
        ({"running": "most"}, {"window_running": 2.0}, 6_000),
    ],
)
def test_open_choices_change_the_queue(options: dict[str, Any], changes: dict[str, Any], queue: float) -> None:
    assert breaks_even(changes, **options) == pytest.approx((23_652 + queue) / 100)


@pytest.mark.parametrize(("lanes", "calls"), [("calling", 2), ("spawned", 1), ("one", 1)])
def test_open_choices_change_the_overhead(lanes: str, calls: int) -> None:
    assert breaks_even({}, lanes=lanes) == pytest.approx((1721 * calls + 20210 + 3_000) / 100)


@pytest.mark.parametrize("warp_time", ["residency", "within-1024", "within-4096"])
def test_open_choices_of_the_warp_time_read_one_counter(warp_time: str) -> None:
    column = {"residency": "warp_ps", "within-1024": "warp_1024_ps", "within-4096": "warp_4096_ps"}[warp_time]
    small = dict.fromkeys(("warp_ps", "warp_1024_ps", "warp_4096_ps"), 1.0)
    assert spawn(warp_time=warp_time).decide(view(**small)) is SERIALISE
    assert spawn(warp_time=warp_time).decide(view(**{**small, column: 500 * PS})) is SPAWN


def test_spawn_launches_everything_until_a_child_block_has_ended() -> None:
    cold = view(blocks_ended=0, work=1, inside=65_534)
    assert spawn().decide(cold) is SPAWN
    assert spawn().decide(replace(cold, inside=65_535)) is SERIALISE, "the queue holds 65,536 blocks"
    assert spawn(cold_blocks=208).decide(replace(cold, inside=206)) is SPAWN
    assert spawn(cold_blocks=208).decide(replace(cold, inside=207)) is SERIALISE


def test_spawn_stops_at_the_capacity() -> None:
    eager = view(work=10**9, inside=65_534)
    assert spawn().decide(eager) is SPAWN
    assert spawn().decide(replace(eager, inside=65_535)) is SERIALISE


# ---- on a program --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problem() -> LaunchProblem:
    """32 lanes with 10 iterations each, but one with 4,000: the whole warp waits for it unless it launches."""
    work = np.full(64, 10)
    work[[5, 40]] = 4000
    kernel = ParentKernel("parent", BlockShape(32, 32), BlockShape(64, 32), threads_with_loops(work))
    return launch_problem(Benchmark("SA-toy", (kernel,), threshold=5))


def run(spec: str, problem: LaunchProblem) -> LaunchRun:
    return run_application(make_launch_scheduler(spec), problem, make_launch_device("compiled"))


def test_flat_asks_nothing_and_takes_as_long_as_its_longest_lane(problem: LaunchProblem) -> None:
    found = run("flat", problem)
    assert (found.children, found.decisions) == (0, 0)
    alone = 4000 * problem.costs.iteration_cycles
    assert alone < found.cycles < 1.1 * alone


def test_static_thresholds_launch_what_is_above_them(problem: LaunchProblem) -> None:
    assert run("baseline-dp", problem).children == 64
    assert run("baseline-dp(threshold=10)", problem).children == 2
    assert run("baseline-dp(threshold=4000)", problem).children == 0


def test_offline_search_finds_the_best_threshold(problem: LaunchProblem) -> None:
    found = run("offline-search", problem)
    assert found.children == 2
    tried = [run(f"baseline-dp(threshold={threshold})", problem).time_ps for threshold in thresholds(problem)]
    assert found.time_ps == min(tried)
    assert OfflineSearch.clairvoyant


def test_spawn_is_between_the_static_thresholds(problem: LaunchProblem) -> None:
    found = run("spawn", problem)
    assert found.decisions == 64
    assert found.time_ps <= run("flat", problem).time_ps


def test_dtbl_needs_no_launch(problem: LaunchProblem) -> None:
    dtbl, dp = run("dtbl", problem), run("baseline-dp", problem)
    assert dtbl.children == dp.children == 64
    assert dp.cycles - dtbl.cycles > 20_210, "the launch calls of 32 lanes alone"


def test_aggregation_pays_for_one_launch_a_warp(problem: LaunchProblem) -> None:
    """32 lanes call: A x + b falls from 75,282 to 21,931 cycles."""
    apart, together = run("baseline-dp", problem), run("aggregation", problem)
    assert together.children == apart.children
    first_ps = [run.launches["started_ps"][run.launches["parent"] >= 0].min() for run in (apart, together)]
    saved_ps = first_ps[0] - first_ps[1]
    assert saved_ps / apart.problem.machine.ps_per_cycle == pytest.approx(31 * 1721, abs=1)


def test_coarsening_gives_blocks_more_work(problem: LaunchProblem) -> None:
    fine, coarse = run("aggregation(threshold=10)", problem), run("aggregation(threshold=10,coarsening=8)", problem)
    assert fine.launches["blocks"].max() == 63
    assert coarse.launches["blocks"].max() == 8
    assert coarse.children == fine.children


# ---- names ---------------------------------------------------------------------------------------------------


def test_every_scheduler_has_a_name_and_a_line() -> None:
    for name in LAUNCH_SCHEDULERS.names():
        assert LAUNCH_SCHEDULERS.describe(name).endswith(".")
    clairvoyant = [name for name in LAUNCH_SCHEDULERS.names() if LAUNCH_SCHEDULERS.is_clairvoyant(name)]
    assert clairvoyant == ["offline-search"]
    assert LAUNCH_SCHEDULERS.options("aggregation") == {"threshold": None, "coarsening": 1}


def test_the_command_line_lists_them() -> None:
    from gpusched_env.experiments.cli import app

    shown = CliRunner().invoke(app, ["list", "schedulers"]).output.partition("Of child launches")[2]
    for name in LAUNCH_SCHEDULERS.names():
        assert f"\n{name}" in shown
    assert "offline-search*" in shown


def test_comparing_tenants_on_it_says_what_to_use_instead() -> None:
    with refused(InputError, "gpusched"):
        load_scenario("DynamicParallelism")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("spwan", "did you mean 'spawn'"),
        ("spawn(running=often)", "running"),
        ("baseline-dp(threshold=-1)", "must be at least 0"),
        ("aggregation(coarsening=0)", "must be at least 1"),
        ("dtbl(speed=1)", "no option 'speed'"),
    ],
)
def test_refusals_name_what_is_wrong(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_launch_scheduler(spec)
