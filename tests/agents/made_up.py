"""Exported policies with random weights, and their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from gpusched_env.agents.exported import ExportedPolicy, untrained_policy
from gpusched_env.agents.policy_file import write_policy
from gpusched_env.scenarios.scenario import Scenario, load_scenario


def made_up(
    scenario: Scenario | str,
    kind: Literal["slots", "mlp", "rule", "release", "serve", "pairs", "knobs"] = "slots",
    **described: Any,
) -> ExportedPolicy:
    """A policy as if from a training of 1,000 decisions."""
    resolved = load_scenario(scenario) if isinstance(scenario, str) else scenario
    return untrained_policy(resolved, kind, **{"algorithm": "maskable-ppo", "timesteps": 1000, **described})


def written(policy: ExportedPolicy, path: Path) -> Path:
    """The file of a policy, its weights taken apart again."""
    weights, at = {}, 0
    for name, shape in policy.info.network.shapes(policy.info.actions).items():
        size = int(np.prod(shape))
        weights[name] = policy.weights[at : at + size].reshape(shape[::-1]).T.copy()
        at += size
    write_policy(path, policy.info, weights)
    return path
