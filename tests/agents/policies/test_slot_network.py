"""The slot network in torch and in compiled code, on made-up observations: any look-ahead, any commands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.policies.sizes import SlotSizes
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.features import DeviceFeature, PendingFeature, RunningFeature, TenantFeature
from gpusched_env.envs.observations import Observation, ObservationEncoder
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from tests.agents.made_up import made_up
from tests.refusals import refused

EVERYTHING: dict[str, Any] = {
    "commands": ["launch", "preempt", "partition", "reject", "synchronise"],
    "preemption": ["drain", "save-part"],
    "streams": 1,
}


def observations(layout: ActionLayout, count: int, seed: int) -> Observation:
    """Random values within the space, consistent where rows refer to each other; the last tenant slot is empty."""
    rng = np.random.default_rng(seed)
    space = ObservationEncoder.of(layout).space()
    tables = {
        name: rng.uniform(box.low, box.high, (count, *box.shape)).astype(np.float32)  # type: ignore[attr-defined]
        for name, box in space.items()
    }
    tables["tenants"][..., TenantFeature.PRESENT] = 1.0
    tables["tenants"][:, -1] = 0.0
    pending = tables["pending"]
    there = (rng.random(pending.shape[:2]) < 0.6) & (np.arange(pending.shape[1]) // layout.lookahead < layout.slots - 1)
    pending[..., PendingFeature.PRESENT] = 1.0
    pending[..., PendingFeature.TENANT] = (np.arange(pending.shape[1]) // layout.lookahead + 1) / layout.slots
    pending[~there] = 0.0
    running = tables["running"]
    running[..., RunningFeature.TENANT] = rng.integers(1, layout.slots, running.shape[:2]) / layout.slots
    running[:, -2:] = 0.0
    return tables


def torch_numbers(policy: ExportedPolicy, layout: ActionLayout, tables: Observation) -> Any:
    """What the network of an exported policy computes in torch."""
    import torch

    from gpusched_env.agents.policies.slots import SlotActor, TablesExtractor

    sizes: Any = policy.info.network
    actor = SlotActor(sizes)
    weights, at = {}, 0
    for name, shape in sizes.shapes(layout).items():
        size = int(np.prod(shape))
        weights[name] = torch.tensor(policy.weights[at : at + size].reshape(shape[::-1]).T.copy())
        at += size
    actor.load_state_dict(weights)
    space = ObservationEncoder.of(layout).space()
    with torch.no_grad():
        return actor(TablesExtractor(space)({name: torch.tensor(table) for name, table in tables.items()})).numpy()


@pytest.mark.parametrize("lookahead", [1, 3])
@pytest.mark.parametrize("offered", [{}, EVERYTHING], ids=["launches", "everything"])
def test_compiled_code_computes_what_torch_does(offered: dict[str, Any], lookahead: int) -> None:
    scenario = load_scenario("ThreeTenants", lookahead=lookahead, **offered)
    policy = made_up(scenario, "slots")
    layout = ActionLayout.of(scenario, 4, 8)
    tables = observations(layout, 6, seed=lookahead)
    expected = torch_numbers(policy, layout, tables)
    assert expected.shape == (6, layout.n)
    np.testing.assert_allclose(policy.numbers(tables), expected, atol=2e-5)


def test_masked_decisions_do_not_depend_on_what_is_left_out() -> None:
    scenario = load_scenario("ThreeTenants", lookahead=2, **EVERYTHING)
    policy = made_up(scenario, "slots")
    layout = ActionLayout.of(scenario, 4, 8)
    tables = observations(layout, 40, seed=7)
    rng = np.random.default_rng(0)
    masks = rng.random((40, layout.n)) < 0.2
    masks[:, 0] = True
    # Slots without a tenant or a launch have no legal actions.
    for of_launches in (masks[:, 1 : layout.first("preempt")], masks[:, layout.first("synchronise") :]):
        by_slot = of_launches.reshape(40, layout.pending_slots, -1)
        of_launches &= np.repeat(tables["pending"][..., PendingFeature.PRESENT] > 0.5, by_slot.shape[2], axis=1)
    for name in ("partition", "reject"):
        first, choices = layout.first(name), layout.choices(name)
        masks[:, first + 3 * choices : first + 4 * choices] = False
    numbers = policy.numbers(tables)
    expected = np.where(masks, numbers, -np.inf).argmax(axis=1)
    np.testing.assert_array_equal(policy.act(tables, masks), expected)


def test_a_window_with_one_launch_is_decided_as_one_without_look_ahead() -> None:
    """Further pending slots that are empty change nothing."""
    narrow: Scenario = load_scenario("ThreeTenants", commands=["launch", "partition"])
    policy = made_up(narrow, "slots")
    layout = ActionLayout.of(narrow, 4, 8)
    tables = observations(layout, 5, seed=3)
    wide = dict(tables)
    wide["pending"] = np.zeros((5, 8, tables["pending"].shape[2]), np.float32)
    wide["pending"][:, ::2] = tables["pending"]
    wide["device"] = tables["device"].copy()
    wide["device"][:, DeviceFeature.LAUNCHABLE] /= 2
    expected, found = policy.numbers(tables), policy.numbers(wide)
    priorities = layout.choices("launch")
    np.testing.assert_allclose(found[:, 0], expected[:, 0], atol=1e-5)
    kept = found[:, 1 : 1 + 8 * priorities].reshape(5, 4, 2, priorities)[:, :, 0].reshape(5, -1)
    np.testing.assert_allclose(kept, expected[:, 1 : 1 + 4 * priorities], atol=1e-5)
    np.testing.assert_allclose(found[:, 1 + 8 * priorities :], expected[:, 1 + 4 * priorities :], atol=1e-5)


def test_commands_without_outputs_are_refused() -> None:
    scenario = load_scenario("ServingColocated")
    layout = ActionLayout.of(scenario, len(scenario.tenants), 8, 1000.0)
    assert "throttle" in dict(layout.parts())
    with refused(InputError, "throttle"):
        SlotSizes.of(layout)
