"""Policies that decide without torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.actor import Actor
from gpusched_env.agents.network import KNOBS, MLP, PAIRS, RELEASE, RULE, SERVE, SLOTS, scratch_size
from gpusched_env.agents.policies.sizes import (
    KnobSizes,
    MlpSizes,
    PairSizes,
    ReleaseSizes,
    RuleSizes,
    ServeSizes,
    Sizes,
)
from gpusched_env.agents.policy_file import PolicyInfo, Weights, read_policy
from gpusched_env.agents.slot_places import places
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.batch_state import Tables
from gpusched_env.envs.features import TABLES
from gpusched_env.envs.observations import Observation
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Offer


class ExportedPolicy:
    """The actor of a trained policy as plain arrays, evaluated in compiled code (float32, as torch does)."""

    def __init__(self, info: PolicyInfo, weights: Weights) -> None:
        """``weights``: arrays as :meth:`~gpusched_env.agents.policies.sizes.SlotSizes.shapes` names them."""
        self.info = info
        flat = [np.ascontiguousarray(weights[name].T).ravel() for name in info.network.shapes(info.actions)]
        self.weights: NDArray[np.float32] = np.concatenate(flat)
        self.sizes = _numbers_of(info.network, info.actions)

    @classmethod
    def load(cls, path: str | Path) -> ExportedPolicy:
        """The policy of a file.

        Raises:
            InputError: as :func:`~gpusched_env.agents.policy_file.read_policy`.
        """
        return cls(*read_policy(path))

    def layout_for(self, scenario: Offer, slots: int | None = None) -> ActionLayout:
        """The actions with which it decides in ``scenario``.

        Args:
            slots: tenant rows; ``None``: those of the training for an ``mlp``, as many as tenants for ``slots``.

        Raises:
            InputError: the scenario does not offer the commands, or offers other stream priorities, streams or ways of
                preempting than the policy was trained with, or has too many tenants or another look-ahead than it can
                have.
        """
        mine = self.info.actions
        fixed = isinstance(self.info.network, MlpSizes)
        if slots is None:
            slots = mine.slots if fixed else len(scenario.tenants)
        theirs = ActionLayout.of(scenario, slots, mine.running_slots, mine.interval_us, futures=mine.futures)
        for field in _NAMES:
            if getattr(theirs, field) != getattr(mine, field) and (getattr(mine, field) or field not in _COMMANDS):
                raise InputError(
                    f"the policy, trained on {self.info.scenario}, has {_NAMES[field]} {getattr(mine, field)}; "
                    f"scenario {scenario.name} offers {getattr(theirs, field)}"
                )
        if fixed and theirs.lookahead != mine.lookahead:
            raise InputError(
                f"the policy is an mlp for a look-ahead of {mine.lookahead}; that of scenario {scenario.name} is "
                f"{theirs.lookahead}"
            )
        if fixed and slots != mine.slots:
            raise InputError(f"the policy is an mlp for {mine.slots} tenant rows and cannot have {slots}")
        if len(scenario.tenants) > slots:
            raise InputError(
                f"the policy has {slots} tenant rows; scenario {scenario.name} has {len(scenario.tenants)} tenants"
            )
        return replace(mine, slots=slots, lookahead=theirs.lookahead)

    def act(self, observations: Observation, masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The best action in each of ``n`` states.

        Args:
            observations: tables with a first axis of ``n``; but for an ``mlp`` any number of tenant rows, and any
                look-ahead.
            masks: legal actions, shape ``(n, actions)``.

        Raises:
            InputError: masks of another shape.
        """
        actions, _ = self._act(observations, masks, masked=self.info.masked)
        return actions

    def numbers(self, observations: Observation) -> NDArray[np.float32]:
        """Of each action, also illegal ones, what the policy goes by (logit or value), shape ``(n, actions)``."""
        everything = np.ones((len(observations["device"]), self._layout(observations).n), np.bool_)
        _, numbers = self._act(observations, everything, masked=False)
        return numbers

    def actor(self, slots: int) -> Actor:
        """For compiled code, with working memory for states with ``slots`` pending rows."""
        return Actor(self.sizes, self.weights, self.info.masked, np.zeros(scratch_size(self.sizes, slots), np.float32))

    def _layout(self, observations: Observation) -> ActionLayout:
        slots = observations["tenants"].shape[1]
        return replace(self.info.actions, slots=slots, lookahead=observations["pending"].shape[1] // slots)

    def _act(
        self, observations: Observation, masks: NDArray[np.bool_], *, masked: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        from gpusched_env.agents.forward import act_batch

        count, pending_slots = observations["pending"].shape[:2]
        if masks.shape != (count, self._layout(observations).n):
            raise InputError(
                f"masks have shape {masks.shape}; for these observations it is {(count, self._layout(observations).n)}"
            )
        actions = np.zeros(count, np.int64)
        numbers = np.zeros(masks.shape, np.float32)
        actor = self.actor(pending_slots)._replace(masked=masked)
        tables = Tables(**{name: np.ascontiguousarray(observations[name], np.float32) for name in TABLES})
        act_batch(actor, np.ones(count, np.bool_), tables, masks, numbers, actions)
        return actions, numbers


_NAMES = {
    "stream_priorities": "stream priorities",
    "streams": "streams of the scheduler's own:",
    "modes": "preemption modes",
    "quarters": "partition sizes",
    "pauses": "pauses",
    "rejects": "rejections:",
    "synchronises": "synchronisation of tiles:",
    "reshapes": "forms:",
}
"""Fields of a layout that a policy cannot change, in words."""
_COMMANDS = ("modes", "quarters", "pauses", "rejects", "synchronises", "reshapes")
"""Those of commands, which a policy that has none of them leaves alone where a scenario offers them."""


def _numbers_of(network: Sizes, layout: ActionLayout) -> NDArray[np.int64]:
    """``sizes`` of :mod:`gpusched_env.agents.network`."""
    found: list[Any]
    if isinstance(network, MlpSizes):
        tables = list(TABLES)
        widths = [shape[0] for name, shape in network.shapes(layout).items() if name.endswith("bias")]
        inputs = network.shapes(layout)["0.weight"][1]
        found = [MLP, network.activation == "relu", *map(tables.index, network.inputs), inputs, *widths]
    elif isinstance(network, RuleSizes):
        launches = layout.choices("launch")
        found = [RULE, launches, network.modes, network.quarters, *layout.stream_priorities]
    elif isinstance(network, ReleaseSizes):
        found = [RELEASE, layout.choices("launch")]
    elif isinstance(network, ServeSizes):
        found = [SERVE, layout.choices("serve")]
    elif isinstance(network, PairSizes):
        commands = ("launch", "synchronise", "reshape", "preempt")
        found = [PAIRS, *(layout.choices(command) for command in commands)]
    elif isinstance(network, KnobSizes):
        before = (layout.first("throttle") - 1) // layout.slots
        found = [KNOBS, layout.choices("partition"), before, layout.choices("throttle")]
    else:
        found = [SLOTS, network.launches, network.modes, network.quarters, network.rejections]
        found += [network.width, network.heads, network.synchronisations, network.forms, *places(network, layout)]
    return np.array(found, np.int64)
