"""Policies with random weights: as fast as trained ones, for benchmarks and tests."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.policies.registry import RULES
from gpusched_env.agents.policies.sizes import MlpSizes, Sizes, SlotSizes
from gpusched_env.agents.policy_file import PolicyInfo, Weights, current_columns
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.observations import RUNNING_SLOTS
from gpusched_env.scenarios.scenario import Scenario

RELUCTANCE = 3.0
"""Taken from the number of waiting, so that most kernels are launched."""


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
    network: Sizes = SlotSizes.of(layout)
    last: str | None = "wait.bias"
    if kind in RULES:
        network, last = RULES[kind].of(layout), None
    elif kind == "mlp":
        network = MlpSizes(inputs=("device", "pending", "running", "tenants"), widths=(64, 64), activation="tanh")
        last = f"{len(network.widths)}.bias"
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
