"""Columns of observations that a policy has never seen: they have no part in what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.action_fields import ActionFields
from gpusched_env.envs.features import PendingFeature, RunningFeature

Columns = Mapping[str, Sequence[str]]
"""Names of columns by table of an observation."""
ENCODERS = ("encoder.slots.weight", "encoder.common.weight")


def with_new_columns(
    weights: dict[str, NDArray[np.float32]], columns: Columns, now: Columns
) -> dict[str, NDArray[np.float32]]:
    """Weights of a slot network for today's columns: those that came after it have weight 0.

    Args:
        weights: ``(width, inputs)`` of the encoders, by name, and all others.
        columns: of the observations that it was trained on.
        now: of today's.

    Returns:
        ``weights`` themselves where the columns are the same, one is gone, or their order is another.
    """
    same_tables = columns.keys() == now.keys()
    if columns == now or not same_tables or not all(_in_order(columns[table], now[table]) for table in now):
        return weights
    found = dict(weights)
    for name, theirs, mine in zip(ENCODERS, _inputs(columns), _inputs(now), strict=True):
        old = weights.get(name)
        if old is None or old.ndim != 2 or old.shape[1] != len(theirs):
            return weights
        place = {column: number for number, column in enumerate(mine)}
        found[name] = np.zeros((old.shape[0], len(mine)), old.dtype)
        found[name][:, [place[column] for column in theirs]] = old
    return found


def _in_order(some: Sequence[str], of: Sequence[str]) -> bool:
    """Whether ``some`` are among ``of``, in the same order."""
    rest = iter(of)
    return all(name in rest for name in some)


def _inputs(columns: Columns) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """What the two encoders of a slot network read: of a slot, and of all together. Owners say only whose a row is."""
    pending = [("pending", name) for name in columns["pending"] if name != PendingFeature.TENANT.name]
    running = [("running", name) for name in columns["running"] if name != RunningFeature.TENANT.name]
    tenants = [("tenants", name) for name in columns["tenants"]]
    device = [("device", name) for name in columns["device"]]
    return pending + tenants + running, device + running


def unseen(layout: ActionFields) -> str:
    """What decisions are about that stands in such a table: ``knobs`` or ``budgets``; empty: nothing."""
    if layout.knobs:
        return "knobs"
    return "budgets" if layout.budgets else ""
