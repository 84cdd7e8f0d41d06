"""What both devices show and refuse: monitors, decisions, snapshots."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from gpusched_env.errors import GpuschedError, IllegalCommand, InputError
from gpusched_env.games.child_launches.device import NO_LIMIT, SERIALISE, SPAWN, LaunchDevice, RequestView
from gpusched_env.games.child_launches.experiments.fuzz_cases import Request, draw_launches
from tests.games.child_launches.devices.toys import PS, kernel, run, thread, toy
from tests.refusals import refused


def test_monitors_of_a_run_solved_by_hand(device: LaunchDevice) -> None:
    # Requests of one thread, asked at 150, 175, 1175, 3175, 3200 and 6200. Children run from 225 to 375 and, two
    # blocks, from 3250 to 5350; a window is 1,024 cycles.
    turns = (Request(items=32, iterations=5), 100, 200, Request(items=64, iterations=200), 300, 1)
    views = run(device, toy(kernel(thread(0, *turns))), [True, False, False, True, False])
    assert [view.now_ps / PS for view in views] == [150, 175, 1175, 3175, 3200, 6200]
    assert [view.inside for view in views] == [0, 1, 0, 0, 2, 0]
    assert [view.blocks_ended for view in views] == [0, 0, 1, 1, 1, 3]
    assert [view.block_ps / PS for view in views] == [0, 0, 150, 150, 150, (150 + 2100 + 2100) / 3]
    # An exponential mean: a sixteenth of the difference to 2,100, twice.
    assert [view.recent_block_ps / PS for view in views] == [0, 0, 150, 150, 150, 386.1328125]
    # 150 of 1,024 cycles; then 2 blocks for 846, 1,024 and 230 of them. The window before the third request is the
    # first, the one before the last the sixth.
    first, last = 150 / 1024, 460 / 1024
    assert [view.window_running for view in views] == [0, 0, first, 0, 0, last]
    assert [view.last_running for view in views] == [0, 0, first, first, first, last]
    mean = (first + 2 * 846 / 1024 + 2 + last) / 4
    assert [view.busy_running for view in views] == [0, 0, first, first, first, mean]
    assert [view.warp_ps / PS for view in views] == [0, 0, 150, 150, 150, 2100]
    assert [view.warp_1024_ps / PS for view in views] == [0, 0, 150, 150, 150, 1024]
    assert [view.warp_4096_ps / PS for view in views] == [0, 0, 150, 150, 150, 2100]


def test_counters_of_long_warps_stop(device: LaunchDevice) -> None:
    # The child takes 6,100 cycles from 225 on; the next request is asked at 10,175.
    [_, _, last] = run(device, toy(kernel(thread(0, 600, 1000, 1))), [True])
    assert (last.warp_ps, last.warp_1024_ps, last.warp_4096_ps) == (6100 * PS, 1024 * PS, 4096 * PS)


def test_monitors_count_what_runs_now(device: LaunchDevice) -> None:
    # Four of a child's threads ask, each in its own warp: three blocks of others are on SMs then.
    threads = tuple(thread(0, 1) for _ in range(4))
    views = run(device, toy(kernel(thread(0, Request(threads=threads)), thread(0, Request(items=64, iterations=9)))))
    assert [(v.nesting, v.inside, v.running, v.resident_blocks, v.resident_warps) for v in views] == [
        *((0, 0, 0, 1, 1), (0, 1, 0, 1, 1)),
        *((1, 3 + lane, 3, 3, 3) for lane in range(4)),
    ]
    assert [v.parent_blocks for v in views] == [0] * 6
    assert {v.room for v in views} == {NO_LIMIT}


def test_the_rest_of_a_host_s_kernel_is_shown(device: LaunchDevice) -> None:
    one = toy(kernel(*[thread(0, 1), *[thread()] * 31] * 18))
    assert [view.parent_blocks for view in run(device, one, [])] == [2] * 16 + [0] * 2


def test_what_is_refused_changes_nothing(device: LaunchDevice) -> None:
    problem = toy(kernel(thread(0, 2)))
    assert device.reset(problem) is not None
    with refused(IllegalCommand, "decision"):
        device.advance()
    for wrong in (None, True, "spawn", RequestView):
        with refused(IllegalCommand, "decision"):
            device.apply(wrong)  # type: ignore[arg-type]
    device.apply(SPAWN)
    with refused(IllegalCommand, "request"):
        device.apply(SERIALISE)
    with refused(GpuschedError, "decision"):
        device.snapshot()
    with refused(InputError, "snapshot"):
        device.restore("elsewhere")
    assert device.advance() is None
    assert device.time_ps == 345 * PS
    assert device.advance() is None
    with refused(IllegalCommand, "request"):
        device.apply(SPAWN)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("episode", [3, 7, 34, 68, 143])
def test_a_branch_is_the_same_again(device: LaunchDevice, episode: int, fresh: bool) -> None:
    problem = draw_launches(0, episode).problem()
    view = device.reset(problem)
    for _ in range(5):
        assert view is not None
        device.apply(SPAWN if view.request % 3 else SERIALISE)
        view = device.advance()
    saved = device.snapshot()
    here = (view, device.time_ps, device.totals.copy(), device.launches.tolist())
    first = _branch(device, view, 3)
    if fresh:
        saved, device = pickle.loads(pickle.dumps(saved)), type(device)()
    assert _branch(device, device.restore(saved), 2) != first
    view = device.restore(saved)
    assert (view, device.time_ps, device.totals.copy(), device.launches.tolist()) == here
    assert _branch(device, view, 3) == first


def _branch(device: LaunchDevice, view: RequestView | None, rare: int) -> list[Any]:
    """The rest of a run in which every few requests are not launched."""
    seen: list[Any] = []
    while view is not None:
        seen.append(view)
        device.apply(SPAWN if view.request % rare else SERIALISE)
        view = device.advance()
    return [*seen, device.time_ps, device.totals.tolist(), device.launches.tolist()]
