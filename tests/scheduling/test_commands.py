"""A command in numbers: each has a field of its own name, and nothing is lost on the way there and back."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.scheduling.commands import (
    COMMANDS,
    Command,
    Launch,
    Partition,
    Preempt,
    Reject,
    Reshape,
    SetBudget,
    SetPartition,
    Synchronise,
    Throttle,
    TilePolicy,
    Wait,
)
from gpusched_env.scheduling.legality import COMMAND_RECORD, command_of, offered_bits, write_numbers

IN_NUMBERS: list[tuple[Command, dict[str, int]]] = [
    (Launch(7), {"code": 0, "launch": 7, "priority": 1, "stream": -1, "first_sm": 0, "sms": 0}),
    (
        Launch(7, -2, Partition(3, 4), 5),
        {"code": 0, "launch": 7, "priority": -2, "stream": 5, "first_sm": 3, "sms": 4},
    ),
    (Preempt(7, "reset"), {"code": 1, "launch": 7, "mode": 2, "first_sm": 0, "sms": 0}),
    (SetPartition(1, Partition(3, 4)), {"code": 2, "tenant": 1, "first_sm": 3, "sms": 4}),
    (SetPartition(1, None), {"code": 2, "tenant": 1, "first_sm": 0, "sms": 0}),
    (Reject(1, 30), {"code": 3, "tenant": 1, "job": 30}),
    (
        Synchronise(7, TilePolicy("tile", steps=9, reorder=True), "grouped", wait_kernel=True),
        {"code": 4, "launch": 7, "policy": 3, "policy_size": 9, "reorder": 1, "order": 2, "wait_kernel": 1},
    ),
    (
        Synchronise(7, TilePolicy("strided", stride=6)),
        {"code": 4, "launch": 7, "policy": 4, "policy_size": 6, "reorder": 0, "order": 0, "wait_kernel": 0},
    ),
    (Reshape(7, 2), {"code": 5, "launch": 7, "form": 2}),
    (Throttle(1, 2.5), {"code": 6, "tenant": 1, "pause_ps": 2_500_000}),
    (SetBudget(2, 100, always=True), {"code": 7, "core": 2, "events": 100, "always": 1}),
    (Wait(3.0), {"code": 8, "until_ps": 3_000_000}),
]


@pytest.mark.parametrize(("command", "numbers"), IN_NUMBERS, ids=[str(command) for command, _ in IN_NUMBERS])
def test_a_command_has_numbers_by_name(command: Command, numbers: dict[str, int]) -> None:
    given = np.zeros(1, COMMAND_RECORD)
    write_numbers(command, given.view(np.int64))
    assert {name: given[name][0] for name in numbers} == numbers
    assert not any(given[name][0] for name in COMMAND_RECORD.names or () if name not in numbers)
    assert command_of(given[0]) == command


def test_a_wait_without_limit_stays_one() -> None:
    given = np.zeros(1, COMMAND_RECORD)
    write_numbers(Wait(), given.view(np.int64))
    assert command_of(given[0]) == Wait()


def test_launches_are_named_in_timelines() -> None:
    about = {type(command): command.launch_id for command, _ in IN_NUMBERS}
    assert about == {**dict.fromkeys(COMMANDS, -1), Launch: 7, Preempt: 7, Synchronise: 7, Reshape: 7}


def test_what_is_on_offer_has_a_bit_for_each_code() -> None:
    assert offered_bits(("launch", "reject", "budget")) == 0b10001001
