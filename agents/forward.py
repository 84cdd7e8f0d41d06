"""Exported policies in compiled code: from an observation, or from a View's tables, to an action."""

from __future__ import annotations

from numba import boolean, float32, float64, int64, types

from gpusched_env.agents.network import Ints, Singles, numbers_of
from gpusched_env.compiling import cached, called
from gpusched_env.envs.encoding import Bools, Floats, encode, gather_pending, gather_running
from gpusched_env.envs.features import Scalar
from gpusched_env.envs.numbering import fill_mask
from gpusched_env.envs.planning import encode_plan


@called
def _best(out: Singles, mask: Bools, masked: bool) -> int:
    """The action with the greatest number: among the legal ones, or an illegal one as a wait."""
    best = 0
    for action in range(1, out.size):
        if (mask[action] or not masked) and out[action] > out[best]:
            best = action
    return best if mask[best] else 0


_matrix, _vector = float32[:, ::1], float32[::1]
_table = types.Array(float64, 2, "C", readonly=True)


@cached(nogil=True)
def act_batch(
    sizes: Ints,
    weights: Singles,
    masked: bool,
    active: Bools,
    pending: Singles,
    running: Singles,
    tenants: Singles,
    device: Singles,
    masks: Bools,
    scratch: Singles,
    numbers: Singles,
    actions: Ints,
) -> None:
    """Decide in many environments.

    Args:
        masked: whether only legal actions compete; otherwise an illegal one that wins is a wait, as in training.
        active: ``(n,)``; elsewhere nothing is written.
        pending, running, tenants, device: observations, first axis ``n``.
        masks: ``(n, actions)``.
        scratch: as many as :func:`scratch_size` says.
        numbers: written, ``(n, actions)``; those of illegal actions may be left out if ``masked``.
        actions: written, ``(n,)``.
    """
    for e in range(actions.size):
        if active[e]:
            numbers_of(
                sizes, weights, pending[e], running[e], tenants[e], device[e], scratch, masks[e], not masked, numbers[e]
            )  # fmt: skip
            actions[e] = _best(numbers[e], masks[e], masked)


@cached(
    int64(
        int64[::1], _vector, boolean, _table, _table, _table, float64[::1], int64, int64[:, ::1], int64[:, ::1],
        float64[:, ::1], float64[:, ::1], boolean[::1], float64[:, ::1], _matrix, _matrix, _matrix,
        _vector, boolean[::1], _vector, _vector,
    )
)  # fmt: skip
def act_on_view(
    sizes: Ints,
    weights: Singles,
    masked: bool,
    view_pending: Floats,
    view_running: Floats,
    view_tenants: Floats,
    scalars: Floats,
    lookahead: int,
    slices: Ints,
    choices: Ints,
    shown_pending: Floats,
    shown_running: Floats,
    seen: Bools,
    plan: Floats,
    pending: Singles,
    running: Singles,
    tenants: Singles,
    device: Singles,
    mask: Bools,
    scratch: Singles,
    numbers: Singles,
) -> int:
    """Decide on a View: show, encode, mask and act; arrays after ``choices`` are written, but ``plan``: empty
    where every launch is a decision, else of :mod:`gpusched_env.planning.plans`."""
    gather_pending(view_pending, lookahead, shown_pending)
    gather_running(view_running, seen, shown_running)
    encode(shown_pending, shown_running, view_tenants, scalars, pending, running, tenants, device)
    if plan.size > 0:
        encode_plan(plan, view_tenants, scalars[Scalar.TIME_US], tenants)
    sms = int(scalars[Scalar.SMS])
    fill_mask(slices, choices, shown_pending, shown_running, view_tenants, sms, mask)
    numbers_of(sizes, weights, pending, running, tenants, device, scratch, mask, not masked, numbers)
    return _best(numbers, mask, masked)
