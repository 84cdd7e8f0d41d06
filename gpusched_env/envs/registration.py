"""Environment ids: every shipped scenario is ``gpusched/<Scenario>-v0``."""

from __future__ import annotations

import gymnasium

from gpusched_env.scenarios.scenario import scenario_names

NAMESPACE = "gpusched"
VERSION = 0
ENTRY_POINT = "gpusched_env.envs.env:GpuSchedulingEnv"
VECTOR_ENTRY_POINT = "gpusched_env.envs.vector_env:GpuSchedulingVectorEnv"
"""Strings, so that registering imports neither the environments nor Numba."""


def env_id(scenario: str) -> str:
    """The id of a shipped scenario's environment."""
    return f"{NAMESPACE}/{scenario}-v{VERSION}"


def env_ids() -> list[str]:
    """All registered ids of this package, sorted."""
    return [env_id(scenario) for scenario in scenario_names()]


def register_envs() -> None:
    """Register every shipped scenario; what is registered already stays as it is."""
    for scenario in scenario_names():
        if env_id(scenario) not in gymnasium.registry:
            # The horizon truncates, so there is no TimeLimit: max_episode_steps stays unset.
            gymnasium.register(
                id=env_id(scenario),
                entry_point=ENTRY_POINT,
                vector_entry_point=VECTOR_ENTRY_POINT,
                kwargs={"scenario": scenario},
            )
