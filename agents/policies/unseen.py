"""Tables of observations that only networks on all columns see: those of policy files have no inputs for them."""

from __future__ import annotations

from gpusched_env.envs.action_fields import ActionFields


def unseen(layout: ActionFields) -> str:
    """What decisions are about that stands in such a table: ``knobs`` or ``budgets``; empty: nothing."""
    if layout.knobs:
        return "knobs"
    return "budgets" if layout.budgets else ""
