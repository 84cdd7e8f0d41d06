"""Policies that decide without torch: arrays that compiled code works on, and the decision itself.

Policies with random weights are for benchmarks and tests.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numba import boolean, float32, float64, int64, types
from numpy.typing import NDArray

from gpusched_env.agents.network import (
    KNOBS,
    MLP,
    PAIRS,
    RELEASE,
    RULE,
    SERVE,
    SLOTS,
    Ints,
    Singles,
    numbers_of,
    scratch_size,
)
from gpusched_env.agents.policies.registry import RULES
from gpusched_env.agents.policies.sizes import (
    KnobSizes,
    MlpSizes,
    PairSizes,
    ReleaseSizes,
    RuleSizes,
    ServeSizes,
    Sizes,
    SlotSizes,
    places,
)
from gpusched_env.agents.policy_file import PolicyInfo, Weights, current_columns, read_policy
from gpusched_env.compiling import called, native
from gpusched_env.devices.compiled.memory import put_and_get
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.batch_state import ObservationTables
from gpusched_env.envs.encoding import Bools, Floats, encode, gather_pending, gather_running
from gpusched_env.envs.extra_columns import encode_forms, encode_gains, encode_plan
from gpusched_env.envs.features import TABLES, Scalar
from gpusched_env.envs.numbering import fill_mask
from gpusched_env.envs.observations import RUNNING_SLOTS, Observation
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Offer
from gpusched_env.scenarios.scenario import Scenario


class Actor(NamedTuple):
    """An exported policy, and what one thread works in."""

    sizes: Ints
    """Sizes of the network, as :mod:`gpusched_env.agents.network` has them."""
    weights: Singles
    masked: bool
    """Whether only legal actions compete; otherwise an illegal one that wins is a wait, as in training."""
    scratch: Singles
    """Working memory of the network: as many numbers as :func:`~gpusched_env.agents.network.scratch_size` says."""


class Slots(NamedTuple):
    """What the slots of a View's actions are, and what they show of it."""

    lookahead: int
    """Pending slots of a tenant."""
    slices: Ints
    """Rows of the slices: ``rows`` of a :class:`~gpusched_env.envs.numbering.SliceLayout`."""
    choices: Ints
    pending: Floats
    """Rows of the pending slots, written by :func:`~gpusched_env.envs.encoding.gather_pending`."""
    running: Floats
    """Rows of the running slots, written by :func:`~gpusched_env.envs.encoding.gather_running`, which uses
    :attr:`seen`."""
    seen: Bools
    tiles: Floats
    """Scratch of :func:`~gpusched_env.envs.extra_columns.encode_gains`; empty where no tiles can be synchronised."""


class Workspace(NamedTuple):
    """All that an actor decides on Views with."""

    actor: Actor
    slots: Slots
    scalars: Floats
    """Scalars of the View, shape ``(len(Scalar),)``."""
    tables: ObservationTables
    """The observation, written at each decision."""
    legal: Bools
    """Which actions are legal, written at each decision, shape ``(actions,)``."""
    numbers: Singles
    """What the policy goes by, written at each decision, shape ``(actions,)``."""


@called
def _best(out: Singles, mask: Bools, masked: bool) -> int:
    """The action with the greatest number: among the legal ones, or an illegal one as a wait."""
    best = 0
    for action in range(1, out.size):
        if (mask[action] or not masked) and out[action] > out[best]:
            best = action
    return best if mask[best] else 0


@native()
def act_batch(
    actor: Actor, active: Bools, tables: ObservationTables, legal: Bools, numbers: Singles, actions: Ints
) -> None:
    """Decide in many environments.

    Args:
        active: ``(n,)``; elsewhere nothing is written.
        tables: observations, first axis ``n``.
        legal: ``(n, actions)``.
        numbers: written, ``(n, actions)``; those of illegal actions may be left out if only legal ones compete.
        actions: written, ``(n,)``.
    """
    for e in range(actions.size):
        if active[e]:
            numbers_of(
                actor.sizes, actor.weights, tables.pending[e], tables.running[e], tables.tenants[e], tables.device[e],
                actor.scratch, legal[e], not actor.masked, numbers[e],
            )  # fmt: skip
            actions[e] = _best(numbers[e], legal[e], actor.masked)


_matrix, _vector, _mask = float32[:, ::1], float32[::1], boolean[::1]
_shown, _rows = float64[:, ::1], int64[:, ::1]
_table = types.Array(float64, 2, "C", readonly=True)
_actor = types.NamedTuple((int64[::1], _vector, boolean, _vector), Actor)
_slots = types.NamedTuple((int64, _rows, _rows, _shown, _shown, _mask, _shown), Slots)
_tables = types.NamedTuple((_matrix, _matrix, _matrix, _vector), ObservationTables)


_workspace = types.NamedTuple((_actor, _slots, float64[::1], _tables, _mask, _vector), Workspace)
_put, _workspace_at = put_and_get(_workspace)


@native(types.void(int64, _workspace))
def put_workspace(address: int, workspace: Workspace) -> None:
    """Put a workspace at an address, for :class:`~gpusched_env.devices.compiled.memory.Kept`."""
    _put(address, workspace)


@native(int64(int64, _table, _table, _table, _shown))
def act_on_view(address: int, pending: Floats, running: Floats, tenants: Floats, plan: Floats) -> int:
    """Decide on a View: show, encode, mask and act.

    Args:
        address: of a :class:`~gpusched_env.agents.exported.Workspace` that is kept.
        pending, running, tenants: the View's tables.
        plan: of :mod:`gpusched_env.planning.plans`; empty where every launch is a decision.
    """
    actor, slots, scalars, out, legal, numbers = _workspace_at(address)
    gather_pending(pending, slots.lookahead, slots.pending)
    gather_running(running, slots.seen, slots.running)
    encode(slots.pending, slots.running, tenants, scalars, out.pending, out.running, out.tenants, out.device)
    sms = int(scalars[Scalar.SMS])
    if slots.tiles.size > 0:
        encode_gains(slots.pending, sms, slots.tiles, out.pending)
        encode_forms(slots.pending, sms, slots.tiles, out.pending)
    if plan.size > 0:
        encode_plan(plan, tenants, scalars[Scalar.TIME_US], out.tenants)
    # Of CPU cores there are none: no network of a policy file sees their table.
    fill_mask(slots.slices, slots.choices, slots.pending, slots.running, tenants, tenants[:0], sms, legal)
    numbers_of(
        actor.sizes, actor.weights, out.pending, out.running, out.tenants, out.device, actor.scratch, legal,
        not actor.masked, numbers,
    )  # fmt: skip
    return _best(numbers, legal, actor.masked)


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
        """What the policy goes by (logit or value) for each action, also illegal ones, shape ``(n, actions)``."""
        everything = np.ones((len(observations["device"]), self._layout(observations).n), np.bool_)
        _, numbers = self._act(observations, everything, masked=False)
        return numbers

    def actor(self, slots: int) -> Actor:
        """The policy as compiled code takes it, with working memory for states with ``slots`` pending rows."""
        return Actor(self.sizes, self.weights, self.info.masked, np.zeros(scratch_size(self.sizes, slots), np.float32))

    def _layout(self, observations: Observation) -> ActionLayout:
        slots = observations["tenants"].shape[1]
        return replace(self.info.actions, slots=slots, lookahead=observations["pending"].shape[1] // slots)

    def _act(
        self, observations: Observation, masks: NDArray[np.bool_], *, masked: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:

        count, pending_slots = observations["pending"].shape[:2]
        if masks.shape != (count, self._layout(observations).n):
            raise InputError(
                f"masks have shape {masks.shape}; for these observations it is {(count, self._layout(observations).n)}"
            )
        actions = np.zeros(count, np.int64)
        numbers = np.zeros(masks.shape, np.float32)
        actor = self.actor(pending_slots)._replace(masked=masked)
        tables = ObservationTables(**{name: np.ascontiguousarray(observations[name], np.float32) for name in TABLES})
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
"""Fields of a layout for commands; a policy that has none of them leaves these alone where a scenario offers them."""


def _numbers_of(network: Sizes, layout: ActionLayout) -> NDArray[np.int64]:
    """Sizes of a network as :mod:`gpusched_env.agents.network` has them."""
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


RELUCTANCE = 3.0
"""What the number of waiting is lowered by, so that most kernels are launched."""


def untrained_policy(
    scenario: Scenario,
    kind: Literal["slots", "mlp", "rule", "release", "serve", "pairs", "knobs"] = "slots",
    *,
    slots: int | None = None,
    interval_us: float = 0.0,
    seed: int = 0,
    **described: Any,
) -> ExportedPolicy:
    """A policy for ``scenario`` that nothing has trained; most of the time it launches something.

    Args:
        slots: tenant rows; default: as many as tenants.
        interval_us: how long a decision stands; 0: every launch is one.
        described: fields of :class:`~gpusched_env.agents.policy_file.PolicyInfo` with other values.
    """
    layout = ActionLayout.of(
        scenario, slots if slots is not None else len(scenario.tenants), RUNNING_SLOTS, interval_us
    )
    network: Sizes
    last: str | None = "wait.bias"
    if kind in RULES:
        network, last = RULES[kind].of(layout), None
    elif kind == "mlp":
        network = MlpSizes(inputs=("device", "pending", "running", "tenants"), widths=(64, 64), activation="tanh")
        last = f"{len(network.widths)}.bias"
    else:
        network = SlotSizes.of(layout)
    rng = np.random.default_rng(seed)
    weights: Weights = {}
    for name, shape in network.shapes(layout).items():
        weights[name] = (rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32)
    if last is not None:
        weights[last][0] = -RELUCTANCE
    fields: dict[str, Any] = {
        "network": network,
        "columns": current_columns(),
        "actions": layout,
        "wait_us": 100.0,
        "masked": True,
        "algorithm": "none",
        "scenario": scenario.name,
    }
    return ExportedPolicy(PolicyInfo(**{**fields, **described}), weights)
