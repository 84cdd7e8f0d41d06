"""Where compiled code finds the slot network's arrays."""

from __future__ import annotations

import pytest

from gpusched_env.agents.policies import sizes
from gpusched_env.agents.policies.sizes import A_SLOT, FIRST, MemoryAt, SlotSizes, WeightAt, places, work_shapes
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

LAYOUT = ActionLayout.of(load_scenario("Toy"), slots=2, running_slots=2)


def entries(network: SlotSizes) -> list[int]:
    return [0] * FIRST + places(network, LAYOUT)


def test_weights_lie_one_after_the_other() -> None:
    found = entries(SlotSizes(priorities=3, modes=2, quarters=4, rejections=1, width=8, heads=2))
    token, common, kernel = sizes.SLOT_FEATURES, sizes.COMMON_FEATURES, sizes.KERNEL_FEATURES
    assert found[WeightAt.ENCODER_SLOTS_WEIGHT] == 0
    assert found[WeightAt.ENCODER_SLOTS_BIAS] == 8 * token
    assert found[WeightAt.POOL_QUERIES_WEIGHT] == 8 * token + 8 + 8 * common
    assert found[WeightAt.WAIT_BIAS] - found[WeightAt.TELL_WEIGHT] == 2 * (8 * 16) + 8 * 8 + 8 + 8 + 8
    assert found[WeightAt.JOIN_BIAS] - found[WeightAt.JOIN_WEIGHT] == 8 * (kernel + 8)
    assert found[WeightAt.REJECT_BIAS] - found[WeightAt.PARTITION_WEIGHT] == 4 * 8 + 4 + 8


def test_arrays_that_are_not_there_take_no_place() -> None:
    found = entries(SlotSizes(priorities=3, rejections=1, width=8, heads=2))
    after = found[WeightAt.LAUNCH_BIAS] + 3
    assert [found[place] for place in WeightAt if WeightAt.JOIN_WEIGHT <= place <= WeightAt.REJECT_WEIGHT] == [
        after
    ] * 7


def test_working_memory_grows_with_slots() -> None:
    found = entries(SlotSizes(priorities=1, width=8, heads=2))
    at = [found[table] + 5 * found[table + A_SLOT] for table in MemoryAt]
    token, common = sizes.SLOT_FEATURES, sizes.COMMON_FEATURES
    shared = 5 * token + common
    assert at == [
        0, 5 * token, shared, shared + 8, shared + 48, shared + 58, shared + 74, shared + 82, shared + 90,
    ]  # fmt: skip


def test_an_array_without_a_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "gpusched_env.agents.policies.sizes.work_shapes",
        lambda width, heads, slots: {**work_shapes(width, heads, slots), "extra": (1,)},
    )
    with refused(AssertionError, "EXTRA"):
        entries(SlotSizes(priorities=1))
