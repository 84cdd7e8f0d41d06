"""Exported policies in compiled code: from an observation, or from a View's tables, to an action."""

from __future__ import annotations

from numba import boolean, float32, float64, int64, types

from gpusched_env.agents.actor import Actor, Slots, Workspace
from gpusched_env.agents.network import Ints, Singles, numbers_of
from gpusched_env.compiling import cached, called
from gpusched_env.devices.compiled.kept import keeping
from gpusched_env.envs.batch_state import Tables
from gpusched_env.envs.encoding import Bools, Floats, encode, gather_pending, gather_running
from gpusched_env.envs.features import Scalar
from gpusched_env.envs.forms import encode_forms
from gpusched_env.envs.numbering import fill_mask
from gpusched_env.envs.planning import encode_plan
from gpusched_env.envs.tiles import encode_gains


@called
def _best(out: Singles, mask: Bools, masked: bool) -> int:
    """The action with the greatest number: among the legal ones, or an illegal one as a wait."""
    best = 0
    for action in range(1, out.size):
        if (mask[action] or not masked) and out[action] > out[best]:
            best = action
    return best if mask[best] else 0


@cached(nogil=True)
def act_batch(actor: Actor, active: Bools, tables: Tables, legal: Bools, numbers: Singles, actions: Ints) -> None:
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
_tables = types.NamedTuple((_matrix, _matrix, _matrix, _vector), Tables)


_workspace = types.NamedTuple((_actor, _slots, float64[::1], _tables, _mask, _vector), Workspace)
_put, _workspace_at = keeping(_workspace)


@cached(types.void(int64, _workspace))
def put_workspace(address: int, workspace: Workspace) -> None:
    """For :class:`~gpusched_env.devices.compiled.kept.Kept` workspaces."""
    _put(address, workspace)


@cached(int64(int64, _table, _table, _table, _shown))
def act_on_view(address: int, pending: Floats, running: Floats, tenants: Floats, plan: Floats) -> int:
    """Decide on a View: show, encode, mask and act.

    Args:
        address: of a :class:`~gpusched_env.agents.actor.Workspace` that is kept.
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
