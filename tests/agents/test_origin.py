"""What agents are called by."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpusched_env.agents.policy_file import METADATA
from gpusched_env.agents.shipped import FOLDER, ORIGINS, origin
from gpusched_env.errors import InputError
from tests.refusals import refused


def policy(path: Path, algorithm: str, *weights: float) -> Path:
    told = np.frombuffer(f'{{"algorithm": "{algorithm}", "seed": 1}}'.encode(), np.uint8)
    np.savez(path, **{METADATA: told, "value": np.array(weights, np.float32)})
    return path


def test_an_agent_is_called_by_how_it_came_about(tmp_path: Path) -> None:
    path = tmp_path / "policy.npz"
    assert origin(policy(path, "cma-es", 0.0, 0.5)) == "searched rule"
    assert origin(policy(path, "maskable-ppo", 0.5)) == "learned by reinforcement, maskable-ppo"
    assert origin(policy(path, "cma-es", 0.0, 0.0)) == "rule without weights"
    with refused(InputError, "exported"):
        origin(Path(__file__))


def test_no_shipped_agent_is_called_what_it_is_not() -> None:
    """One has zeros for weights; none has learned by reinforcement."""
    found = {path.stem: origin(path) for path in FOLDER.glob("*.npz")}
    assert found["ServingFleetSlice"] == "rule without weights"
    assert found["ServingPoisson"] == "distilled planner"
    assert set(found.values()) <= {*ORIGINS.values(), "rule without weights", "learned by reinforcement, reinforce"}
    assert found["ClusterPlacement"] == "learned by reinforcement, reinforce"
