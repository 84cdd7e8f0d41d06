"""Action numbers, their commands, and the mask."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.numbering import slice_layout_of
from gpusched_env.envs.slices import SLICES, partition_sms
from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.planning.interval import Serve
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scenarios.tenant_program import Stream
from gpusched_env.scheduling.commands import (
    COMMANDS,
    Command,
    Launch,
    Partition,
    Preempt,
    Reject,
    SetPartition,
    Synchronise,
    TilePolicy,
    Wait,
)
from gpusched_env.scheduling.legality import check_command
from gpusched_env.scheduling.view import View
from tests.envs.conftest import build_view
from tests.refusals import refused

ViewMaker = Callable[..., View]

LAYOUT = ActionLayout(
    slots=2, running_slots=2, stream_priorities=(0, -1), modes=("drain", "reset"), quarters=(1, 2, 3, 4), rejects=True
)


@pytest.fixture
def busy(make_view: ViewMaker) -> View:
    return make_view(
        pending=[{"id": 7, "tenant": 1}, {"id": 9, "tenant": 1, "launchable": 0}],
        running=[{"id": 3, "tenant": 0, "idempotent": 0}, {"id": 4, "tenant": 1, "started": 0}],
        jobs=[{"tenant": 0, "job": 5}, {"tenant": 1, "job": 2}, {"tenant": 1, "job": 3}, {"tenant": 1, "job": 4}],
    )


def decode(view: View, action: int, layout: ActionLayout = LAYOUT, streams: tuple[Stream, ...] = ()) -> Command:
    return layout.decode(action, view, wait_us=50.0, streams=streams)


def test_numbers_follow_the_documented_order(busy: View) -> None:
    assert LAYOUT.n == 1 + 2 * 2 + 2 * 2 + 2 * 4 + 2 * 2
    assert LAYOUT.space().n == LAYOUT.n
    assert decode(busy, 0) == Wait(550.0)
    assert decode(busy, 3) == Launch(7, priority=0)
    assert decode(busy, 4) == Launch(7, priority=-1)
    assert decode(busy, 5) == Preempt(3, "drain")
    assert decode(busy, 6) == Preempt(3, "reset")
    assert decode(busy, 7) == Preempt(4, "drain")
    assert decode(busy, 9) == SetPartition(0, Partition(0, 33))
    assert decode(busy, 12) == SetPartition(0, None)
    assert decode(busy, 13) == SetPartition(1, Partition(99, 33))
    assert decode(busy, 15) == SetPartition(1, Partition(33, 99))
    assert decode(busy, 17) == Reject(0, 5)
    assert decode(busy, 19) == Reject(1, 2)
    assert decode(busy, 20) == Reject(1, 4)
    assert LAYOUT.describe(0) == "wait"
    assert LAYOUT.describe(4) == "launch the pending kernel of tenant 1: stream priority -1"
    assert LAYOUT.describe(4, ("a", "b")) == "launch the pending kernel of b: stream priority -1"
    assert LAYOUT.describe(6) == "preempt the kernel in running slot 0: reset"
    assert LAYOUT.describe(15) == "confine tenant 1: 3/4 of the SMs"
    assert LAYOUT.describe(20) == "reject a job of tenant 1: the newest"


def test_a_wait_takes_whole_picoseconds_as_in_compiled_code() -> None:
    """As microseconds, the end would be 8.2268795 less a rounding error."""
    view = build_view(time_us=7.424192)
    assert LAYOUT.decode(0, view, wait_us=0.8026875000000002) == Wait(8.22688)


def test_pending_slots_are_windows_of_the_tenants(make_view: ViewMaker) -> None:
    layout = ActionLayout(2, 1, (0, -1), lookahead=3)
    view = make_view(
        pending=[
            {"id": 4, "tenant": 0, "launchable": 0},
            {"id": 6, "tenant": 0},
            {"id": 5, "tenant": 1},
        ]
    )
    assert layout.n == 1 + 2 * 3 * 2
    assert layout.select(view).pending[:, 0].tolist() == [4, 6, -1, 5, -1, -1]
    assert decode(view, 3, layout) == Launch(6, priority=0)
    assert decode(view, 8, layout) == Launch(5, priority=-1)
    assert np.flatnonzero(layout.mask(view)).tolist() == [0, 3, 4, 7, 8]
    assert layout.describe(4) == "launch pending kernel 1 of tenant 0: stream priority -1"
    assert layout.tenant_of("launch", 2) == 0
    assert layout.tenant_of("launch", 3) == 1
    with refused(IllegalCommand, "action 5", "slot 2"):
        decode(view, 5, layout)


def test_launches_into_streams_of_the_scheduler_s_own(make_view: ViewMaker) -> None:
    layout = ActionLayout(2, 1, (0, -1), streams=2)
    streams = (Stream(0, 0), Stream(1, -3), Stream(1, 0), Stream(-1, 0), Stream(-1, 0))
    view = make_view(pending=[{"id": 7, "tenant": 0, "stream": 0, "preempted": 1}, {"id": 9, "tenant": 1, "stream": 1}])
    assert layout.n == 1 + 2 * 6
    commands = [Launch(9, p, stream=s) for s in (None, 3, 4) for p in (0, -1)]
    assert [decode(view, action, layout, streams) for action in range(7, 13)] == commands
    assert [layout.action_of(command, view, streams=streams) for command in commands] == list(range(7, 13))
    # A preempted kernel goes back to its place.
    assert np.flatnonzero(layout.mask(view)).tolist() == [0, 1, 2, *range(7, 13)]
    assert layout.action_of(Launch(9, 0, stream=1), view, streams=streams) == 7, "its own, by name"
    assert layout.action_of(Launch(7), view, streams=streams) == 1, "at the priority of its stream"
    assert layout.action_of(Launch(9), view, streams=streams) is None, "-3 is not on offer"
    assert (
        layout.describe(12) == "launch the pending kernel of tenant 1: stream priority -1 in the scheduler's stream 1"
    )
    with refused(InputError, "2 streams", "scheduler's"):
        decode(view, 9, layout)


def test_partial_saves_free_sms_away_from_the_tenant_s_own_side(make_view: ViewMaker) -> None:
    layout = ActionLayout(2, 2, (0,), ("save-part", "save"))
    view = make_view(running=[{"id": 3, "tenant": 0}, {"id": 4, "tenant": 1}])
    assert layout.n == 1 + 2 + 2 * 4
    assert [decode(view, action, layout) for action in range(3, 7)] == [
        Preempt(3, "save", Partition(99, 33)),
        Preempt(3, "save", Partition(66, 66)),
        Preempt(3, "save", Partition(33, 99)),
        Preempt(3, "save"),
    ]
    assert decode(view, 7, layout) == Preempt(4, "save", Partition(0, 33))
    assert layout.describe(8) == "preempt the kernel in running slot 1: save on 2/4 of the SMs"
    for action in range(3, 11):
        assert layout.action_of(decode(view, action, layout), view) == action
    assert layout.action_of(Preempt(3, "save", Partition(0, 33)), view) is None, "the other side is not on offer"
    whole = replace(layout, modes=("save",))
    assert whole.action_of(Preempt(3, "save", Partition(99, 33)), view) is None, "not the whole kernel's action"


def test_mask_by_hand(busy: View) -> None:
    legal = LAYOUT.mask(busy)
    assert legal.dtype == np.bool_
    # Wait; tenant 1's launches; draining the started kernel (it is not idempotent); any partition
    # but the whole GPU, which both tenants have; tenant 0 has one job, which is not offered twice.
    assert list(np.flatnonzero(legal)) == [0, 3, 4, 5, 9, 10, 11, 13, 14, 15, 17, 19, 20]


def test_a_tenant_can_go_back_to_the_whole_gpu(make_view: ViewMaker) -> None:
    view = make_view(
        tenants=[{"partition_first": 0, "partition_sms": 66}, {"partition_first": 66, "partition_sms": 66}]
    )
    assert list(np.flatnonzero(LAYOUT.mask(view))) == [0, 9, 11, 12, 13, 15, 16]


def test_a_kernel_being_preempted_and_a_graph_cannot_be_preempted(make_view: ViewMaker) -> None:
    view = make_view(running=[{"id": 3, "preempting": 1}, {"id": 4, "tenant": 1, "preempting": 0}])
    assert list(np.flatnonzero(LAYOUT.mask(view)[5:9]) + 5) == [7, 8]
    view = make_view(running=[{"id": 3, "nodes": 12}, {"id": 4, "tenant": 1}])
    assert list(np.flatnonzero(LAYOUT.mask(view)[5:9]) + 5) == [7, 8]


@pytest.mark.parametrize(
    ("action", "what"),
    [
        (1, "pending slot 0 has nothing to launch"),
        (7, "running slot 1 has nothing to preempt"),
        (19, "tenant slot 1 has nothing to reject"),
    ],
)
def test_an_empty_slot_names_itself(make_view: ViewMaker, action: int, what: str) -> None:
    view = make_view(pending=[{"tenant": 1}], running=[{"id": 3}])
    with pytest.raises(IllegalCommand, match=f"action {action}: {what}"):
        decode(view, action)


@pytest.mark.parametrize("action", [-1, LAYOUT.n])
def test_numbers_outside_are_refused(busy: View, action: int) -> None:
    with refused(InputError, action, "in 0", "action"):
        decode(busy, action)
    with pytest.raises(InputError):
        LAYOUT.describe(action)


@functools.cache
def problem(lookahead: int, streams: int) -> Problem:
    """What offers everything; the tenants of a made-up view have a stream each, whatever its own tenants have."""
    built = build_problem(
        load_scenario(
            "Toy",
            commands=["launch", "preempt", "partition", "reject"],
            preemption=["drain", "save", "reset", "save-part"],
            stream_priorities=[0],
            lookahead=lookahead,
            streams=streams,
        )
    )
    own = [Stream(-1, 0)] * streams
    return replace(built, streams=(*(Stream(tenant, 0) for tenant in range(3)), *own))


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32), slots=st.integers(3, 5), lookahead=st.sampled_from([1, 2, 5]), streams=st.integers(0, 2)
)
def test_the_mask_is_what_legality_accepts_on_any_view(
    random_view: Callable[[int, int], View], seed: int, slots: int, lookahead: int, streams: int
) -> None:
    built = problem(lookahead, streams)
    layout = ActionLayout.of(built.scenario, slots, 4)
    view = random_view(seed, 3)
    legal = layout.mask(view)
    assert legal[0]
    for action in range(layout.n):
        try:
            command = decode(view, action, layout, built.streams)
        except IllegalCommand:
            assert not legal[action]
            continue
        before = layout.action_of(command, view, streams=built.streams)
        if isinstance(command, Reject) and before != action:
            assert not legal[action], "its oldest job is its newest: not offered twice"
            continue
        if isinstance(command, Launch) and consumes(view, command.launch):
            # A device lets it go before its producer.
            assert accepted(command, view, built) or not legal[action]
            continue
        assert legal[action] == accepted(command, view, built), layout.describe(action)


def consumes(view: View, launch: int) -> bool:
    """Whether the tiles of a launch are synchronised with those of another that has not ended."""
    return bool(((view.pending.id == launch) & (view.pending.policy > 0) & (view.pending.producer >= 0)).any())


def accepted(command: Command, view: View, built: Problem) -> bool:
    try:
        check_command(command, view, built, operation_of=pytest.fail)
    except IllegalCommand:
        return False
    return True


@settings(deadline=None)
@given(seed=st.integers(0, 2**32), lookahead=st.sampled_from([1, 3]), streams=st.integers(0, 2))
def test_commands_of_any_view_go_back_to_their_actions(
    random_view: Callable[[int, int], View], seed: int, lookahead: int, streams: int
) -> None:
    built = problem(lookahead, streams)
    layout = ActionLayout.of(built.scenario, 4, 4)
    view = random_view(seed, 3)
    for action in np.flatnonzero(layout.mask(view)).tolist():
        command = decode(view, action, layout, built.streams)
        assert layout.action_of(command, view, streams=built.streams) == action


def test_every_command_but_the_wait_has_a_slice() -> None:
    """And what is said of an interval has one, which is no command of a device."""
    assert {part.command for part in SLICES} | {Wait} == {*COMMANDS, Serve}


def test_tiles_are_synchronised_by_policy_order_and_wait_kernel(make_view: ViewMaker) -> None:
    layout = ActionLayout(1, 1, (0,), lookahead=3, synchronises=True)
    pair = {"id": 6, "producer": 4, "needs": 0, "fold": 2, "steps": 9, "synchronisable": 1, "launchable": 0}
    share = {"id": 8, "producer": 6, "needs": 2, "fold": 1, "steps": 1, "synchronisable": 1, "launchable": 0}
    view = make_view(pending=[{"id": 4, "columns": 12}, pair, share])
    ways = 4 * 4 * 2
    assert (layout.n, layout.choices("synchronise")) == (1 + 3 + 3 * ways, ways)
    first = layout.first("synchronise") + ways
    assert [decode(view, first + choice, layout) for choice in (0, 1, 2, 8, 21)] == [
        Synchronise(6, TilePolicy("row", reorder=True)),
        Synchronise(6, TilePolicy("row", reorder=True), wait_kernel=True),
        Synchronise(6, TilePolicy("row", reorder=True), "row-major"),
        Synchronise(6, TilePolicy("tile", steps=9, reorder=True)),
        Synchronise(6, TilePolicy("strided", stride=6, reorder=True), "grouped", wait_kernel=True),
    ]
    # What needs a share of the tiles waits once.
    assert decode(view, first + ways + 7, layout) == Synchronise(
        8, TilePolicy("share", reorder=True), "column-major", wait_kernel=True
    )
    legal = np.flatnonzero(layout.mask(view)).tolist()
    assert legal == [0, 1, *range(first, first + ways), *range(first + ways, first + ways + 8)]
    for action in legal[2:]:
        assert layout.action_of(decode(view, action, layout), view) == action
    assert layout.action_of(Synchronise(6, TilePolicy("row")), view) is None, "loads are always reordered"
    assert layout.describe(first + 21) == (
        "synchronise the tiles of pending kernel 1 of tenant 0: by strided, order grouped, with a wait kernel"
    )
    with pytest.raises(IllegalCommand, match=f"action {first - 1}: pending slot 0 has nothing to synchronise"):
        decode(view, first - 1, layout)


def test_a_pair_whose_producer_is_not_shown_is_left_alone(make_view: ViewMaker) -> None:
    layout = ActionLayout(1, 1, (0,), lookahead=3, synchronises=True)
    view = make_view(pending=[{"id": 6, "producer": 4, "needs": 0, "fold": 1, "steps": 1, "synchronisable": 1}])
    assert np.flatnonzero(layout.mask(view)).tolist() == [0, 1]


def test_what_a_scenario_does_not_offer_has_no_actions() -> None:
    layout = ActionLayout.of(load_scenario("Toy"), 2, 8)
    assert layout.parts() == [("launch", 2)]
    assert slice_layout_of(layout).n == layout.n == 3
    assert [layout.choices(name) for name in ("launch", "preempt", "partition", "reject")] == [1, 0, 0, 0]


@pytest.mark.parametrize(("sms", "sizes"), [(132, [33, 66, 99, 132]), (10, [2, 5, 7, 10]), (1, [1, 1, 1, 1])])
def test_partition_sizes_round_down_to_at_least_one(sms: int, sizes: list[int]) -> None:
    compiled = njit(lambda sms, quarters: partition_sms(sms, quarters))
    assert [compiled(sms, quarters) for quarters in (1, 2, 3, 4)] == sizes


def test_commands_go_back_to_their_actions(busy: View) -> None:
    # Waits all count as action 0; 1, 2: tenant 0 has no kernel; 18: its one job has the action before.
    for action in set(range(LAYOUT.n)) - {1, 2, 18}:
        assert LAYOUT.action_of(decode(busy, action), busy) == action
    assert LAYOUT.action_of(decode(busy, 18), busy) == 17
    assert LAYOUT.action_of(Wait(), busy) == 0
    assert LAYOUT.action_of(SetPartition(1, Partition(7, 132)), busy) == 16, "all SMs are no confinement"


@pytest.mark.parametrize(
    "command",
    [
        Launch(9),
        Launch(7, priority=-2),
        Launch(7, partition=Partition(0, 33)),
        Preempt(3, "save"),
        Preempt(7, "drain"),
        SetPartition(0, Partition(1, 33)),
        Reject(1, 3),
        Reject(0, -1),
    ],
    ids=["not shown", "priority", "own partition", "mode", "not running", "partition", "in between", "no job"],
)
def test_a_command_that_is_not_on_offer_has_no_action(busy: View, command: Any) -> None:
    assert LAYOUT.action_of(command, busy) is None
