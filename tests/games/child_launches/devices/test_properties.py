"""What holds for any application and any decisions."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.games.child_launches.device import SERIALISE, SPAWN, LaunchDevice
from gpusched_env.games.child_launches.devices.compiled.device import CompiledWarpDevice
from gpusched_env.games.child_launches.devices.reference import ReferenceWarpDevice
from gpusched_env.games.child_launches.experiments.fuzz_cases import LaunchCase, Request, ThreadWork, draw_launches
from gpusched_env.games.child_launches.experiments.fuzzing import play_launches
from gpusched_env.games.child_launches.problem import LaunchProblem
from tests.games.child_launches.devices.toys import kernel, toy

CASES = st.builds(draw_launches, st.integers(0, 2**32), st.integers(0, 2**32))
EPISODES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def play(device: LaunchDevice, problem: LaunchProblem, seed: int, share: float) -> dict[int, bool]:
    """Decide at random; what was asked and answered."""
    dice, answers = Dice(seed), {}
    view = device.reset(problem)
    while view is not None:
        assert view.request not in answers, "asked twice"
        answers[view.request] = dice.chance(share)
        device.apply(SPAWN if answers[view.request] else SERIALISE)
        view = device.advance()
    return answers


def without_deadlocks(case: LaunchCase) -> LaunchCase:
    return msgspec.structs.replace(case, parents="leave", held_until="blocks")


def decided(problem: LaunchProblem, launched: set[int]) -> set[int]:
    """Requests above the threshold of all threads that ran on their own: the host's, and those of launched children."""
    tables, asked = problem.tables, set()
    threads = [
        thread
        for row in tables.kernels
        for thread in range(int(row["first_thread"]), int(row["first_thread"] + row["threads"]))
    ]
    while threads:
        thread = threads.pop()
        for request in range(int(tables.first_request[thread]), int(tables.first_request[thread + 1])):
            if tables.work[request] > problem.threshold:
                asked.add(request)
            first = int(tables.first_child[request])
            if request in launched and first >= 0:
                threads += range(first, first + int(tables.items[request]))
    return asked


@EPISODES
@given(CASES)
def test_both_devices_do_the_same(case: LaunchCase) -> None:
    assert play_launches(case, CompiledWarpDevice, ReferenceWarpDevice).difference is None


@EPISODES
@given(CASES, st.integers(0, 1000), st.floats(0, 1))
def test_every_request_is_launched_refused_or_done_by_its_thread(case: LaunchCase, seed: int, share: float) -> None:
    device, problem = CompiledWarpDevice(), without_deadlocks(case).problem()
    answers = play(device, problem, seed, share)
    totals, launches, tables = device.totals, device.launches, problem.tables
    children = launches[launches["parent"] >= 0]
    launched = set(children["request"].tolist())
    assert len(launched) == len(children) == totals["spawned"]
    assert launched <= {request for request, spawns in answers.items() if spawns}
    assert totals["spawned"] + totals["refused"] == sum(answers.values())
    assert totals["decisions"] == len(answers)
    assert set(answers) == decided(problem, launched)
    # Everything has left.
    assert totals["resident_blocks"] == 0
    monitor, core = device.state.monitor[0], device.state.core[0]
    assert (monitor["inside"], monitor["running"], monitor["blocks"]) == (0, 0, children["blocks"].sum())
    assert (core["live_warps"], core["children"], core["in_use"], core["lines"]) == (0, 0, 0, 0)
    # The host's kernels have their blocks, and children as many as their items need.
    host = launches[launches["parent"] < 0]
    kernels = tables.kernels
    assert host["blocks"].tolist() == (-(-kernels["threads"] // kernels["block_threads"])).tolist()
    number = np.searchsorted(host["created_ps"], children["created_ps"], side="right") - 1
    size = kernels["child_threads"][number]
    assert children["blocks"].tolist() == (-(-tables.items[children["request"]] // size)).tolist()
    # Times come in order, and nothing finishes before its children.
    times = np.stack([launches[f"{name}_ps"] for name in ("created", "queued", "started", "ended", "finished")])
    assert (times[0] >= 0).all()
    assert (np.diff(times, axis=0) >= 0).all()
    assert (children["finished_ps"] <= launches["finished_ps"][children["parent"]]).all()
    assert host["created_ps"][1:].tolist() == host["finished_ps"][:-1].tolist()
    assert device.time_ps == host["finished_ps"][-1]


SMALL = st.integers(0, 5)
LEAVES = st.builds(lambda items, iterations: Request(items=items, iterations=iterations), st.integers(1, 32), SMALL)
LEAF_THREADS = st.builds(
    lambda base, made: ThreadWork(base=base, requests=tuple(made)), SMALL, st.lists(LEAVES, max_size=2)
)
NESTED = st.builds(lambda threads: Request(threads=tuple(threads)), st.lists(LEAF_THREADS, min_size=1, max_size=32))
THREADS = st.builds(
    lambda base, made: ThreadWork(base=base, requests=tuple(made)), SMALL, st.lists(LEAVES | NESTED, max_size=3)
)


@settings(max_examples=100, deadline=None)
@given(st.lists(THREADS, min_size=1, max_size=32), st.integers(0, 1000), st.integers(2, 6))
def test_residency_of_warps_is_that_of_launches_of_one_warp(threads: list[ThreadWork], seed: int, queues: int) -> None:
    for device in (ReferenceWarpDevice(), CompiledWarpDevice()):
        play(device, toy(kernel(*threads), hardware_queues=queues), seed, 0.7)
        launches = device.launches
        assert launches["blocks"].max() == 1
        assert device.totals["warp_ps"] == (launches["ended_ps"] - launches["started_ps"]).sum()


@EPISODES
@given(CASES, st.sampled_from([2, 3, 5, 32]))
def test_queues_that_are_given_back_never_end_in_a_deadlock(case: LaunchCase, queues: int) -> None:
    problem = without_deadlocks(case).problem()
    device = CompiledWarpDevice()
    play(device, problem.with_launches(replace(problem.machine.launches, hardware_queues=queues)), 0, 1.0)
    assert device.totals["resident_blocks"] == 0


@EPISODES
@given(CASES)
def test_enough_queues_never_end_in_a_deadlock(case: LaunchCase) -> None:
    problem = msgspec.structs.replace(case, parents="leave", held_until="children").problem()
    queues = problem.asking + 2
    device = CompiledWarpDevice()
    play(device, problem.with_launches(replace(problem.machine.launches, hardware_queues=queues)), 0, 1.0)
    assert device.totals["resident_blocks"] == 0
