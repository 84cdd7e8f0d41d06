"""Action numbers, their commands, and the mask."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.envs import masking
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.scheduling.commands import Command, Launch, Partition, Preempt, SetPartition, Wait
from gpusched_env.scheduling.view import View

ViewMaker = Callable[..., View]

LAYOUT = ActionLayout(
    slots=2, running_slots=2, stream_priorities=(0, -1), modes=("drain", "reset"), quarters=(1, 2, 3, 4)
)


@pytest.fixture
def busy(make_view: ViewMaker) -> View:
    return make_view(
        pending=[{"id": 7, "tenant": 1}, {"id": 9, "tenant": 1, "launchable": 0}],
        running=[{"id": 3, "tenant": 0, "idempotent": 0}, {"id": 4, "tenant": 1, "started": 0}],
    )


def decode(view: View, action: int) -> Command:
    return LAYOUT.decode(action, view, wait_us=50.0)


def test_numbers_follow_the_documented_order(busy: View) -> None:
    assert LAYOUT.n == 1 + 2 * 2 + 2 * 2 + 2 * 4
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
    assert LAYOUT.describe(0) == "wait"
    assert LAYOUT.describe(4) == "launch the pending kernel of tenant 1 at stream priority -1"
    assert LAYOUT.describe(6) == "preempt the kernel in running slot 0: reset"
    assert LAYOUT.describe(15) == "confine tenant 1 to 3/4 of the SMs"


def test_mask_by_hand(busy: View) -> None:
    legal = LAYOUT.mask(busy)
    assert legal.dtype == np.bool_
    # Wait; tenant 1's launches; draining the started kernel (it is not idempotent); any partition
    # but the whole GPU, which both tenants have.
    assert list(np.flatnonzero(legal)) == [0, 3, 4, 5, 9, 10, 11, 13, 14, 15]


def test_a_tenant_can_go_back_to_the_whole_gpu(make_view: ViewMaker) -> None:
    view = make_view(
        tenants=[{"partition_first": 0, "partition_sms": 66}, {"partition_first": 66, "partition_sms": 66}]
    )
    assert list(np.flatnonzero(LAYOUT.mask(view))) == [0, 9, 11, 12, 13, 15, 16]


def test_a_kernel_being_preempted_cannot_be_preempted(make_view: ViewMaker) -> None:
    view = make_view(running=[{"id": 3, "preempting": 1}, {"id": 4, "tenant": 1, "preempting": 0}])
    assert list(np.flatnonzero(LAYOUT.mask(view)[5:9]) + 5) == [7, 8]


@pytest.mark.parametrize(("action", "slot"), [(1, "pending slot 0"), (7, "running slot 1")])
def test_an_empty_slot_names_itself(make_view: ViewMaker, action: int, slot: str) -> None:
    view = make_view(pending=[{"tenant": 1}], running=[{"id": 3}])
    with pytest.raises(IllegalCommand, match=slot):
        decode(view, action)


@pytest.mark.parametrize("action", [-1, LAYOUT.n])
def test_numbers_outside_are_refused(busy: View, action: int) -> None:
    with pytest.raises(InputError, match=f"action {action} is not in 0..16"):
        decode(busy, action)
    with pytest.raises(InputError):
        LAYOUT.describe(action)


@given(seed=st.integers(0, 2**32), slots=st.integers(3, 5))
def test_mask_agrees_with_the_rules_on_any_view(random_view: Callable[[int, int], View], seed: int, slots: int) -> None:
    layout = ActionLayout(slots, 4, (0, -1, -2), ("drain", "save", "reset"), (1, 2, 3, 4))
    view = random_view(seed, 3)
    legal = layout.mask(view)
    assert legal[0]
    for action in range(layout.n):
        try:
            command = layout.decode(action, view, wait_us=1.0)
        except IllegalCommand:
            assert not legal[action]
        else:
            assert legal[action] == allowed(command, view), layout.describe(action)


def allowed(command: Command, view: View) -> bool:
    """The legality rules, in Python and from the command alone."""
    if isinstance(command, Launch):
        return bool(view.pending.launchable[list(view.pending.id).index(command.kernel)])
    if isinstance(command, Preempt):
        row = list(view.running.id).index(command.kernel)
        reset_allowed = command.mode != "reset" or view.running.idempotent[row] == 1
        return bool(view.running.preemptible[row] == 1 and reset_allowed)
    if isinstance(command, SetPartition):
        wanted = command.partition or Partition(0, view.sms)
        now = view.tenants.partition_first[command.tenant], view.tenants.partition_sms[command.tenant]
        changed = now != (wanted.first, wanted.sms)
        return changed and bool(view.tenants.partitionable[command.tenant])
    return True


@pytest.mark.parametrize(("sms", "sizes"), [(132, [33, 66, 99, 132]), (10, [2, 5, 7, 10]), (1, [1, 1, 1, 1])])
def test_partition_sizes_round_down_to_at_least_one(sms: int, sizes: list[int]) -> None:
    assert [masking.partition_sms(sms, quarters) for quarters in (1, 2, 3, 4)] == sizes


def test_commands_go_back_to_their_actions(busy: View) -> None:
    # Waits all count as action 0; 1, 2: tenant 0 has no kernel.
    for action in set(range(LAYOUT.n)) - {1, 2}:
        assert LAYOUT.action_of(decode(busy, action), busy) == action
    assert LAYOUT.action_of(Wait(), busy) == 0


@pytest.mark.parametrize(
    "command",
    [
        Launch(9),
        Launch(7, priority=-2),
        Launch(7, partition=Partition(0, 33)),
        Preempt(3, "save"),
        Preempt(7, "drain"),
        SetPartition(0, Partition(1, 33)),
    ],
    ids=["not shown", "priority", "own partition", "mode", "not running", "partition"],
)
def test_a_command_that_is_not_on_offer_has_no_action(busy: View, command: Command) -> None:
    assert LAYOUT.action_of(command, busy) is None
