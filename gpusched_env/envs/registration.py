"""Environment ids: every shipped scenario is ``gpusched/<Scenario>-v0``, and so is one's own once registered.

Those of :data:`SECOND` are ``-v1``: they have the second version of the laws
(:attr:`Scenario.physics <gpusched_env.scenarios.scenario.Scenario.physics>`), by which kernels that were recorded on
another GPU take other times. Their ``-v0`` still play as they did.

So are the games whose problems are no scenarios (:mod:`gpusched_env.scenarios.games`), with environments of their own.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Final

import gymnasium

from gpusched_env.errors import InputError
from gpusched_env.scenarios.games import KERNELS, places_of
from gpusched_env.scenarios.scenario import add_scenario, load_scenario, scenario_names

NAMESPACE = "gpusched"
SECOND: Final = (
    "DependentKernelsShared",
    "KernelGraph",
    "ServingFleetSlice",
    "ServingLanguageModel",
    "ServingOverload",
)
"""Shipped scenarios of the second version of the laws."""
OTHERWISE_FIRST: Final = {"ServingOverload": "first/ServingOverload.yaml"}
"""Files, in the folder of scenarios, of those whose ``-v0`` differs in more than that version."""
ENTRY_POINT = KERNELS.env
VECTOR_ENTRY_POINT = "gpusched_env.envs.vector_env:GpuSchedulingVectorEnv"
"""Strings, so that registering imports neither the environments nor Numba."""


COLOCATION = "Colocation"
"""Whose environment is that of the scenario below by another id: knobs of training beside a service."""
OF_COLOCATION = "ServingColocated"


def env_id(scenario: str) -> str:
    """The id of the environment of a scenario or another game, the newest."""
    return f"{NAMESPACE}/{scenario}-v{int(scenario in SECOND)}"


def env_ids() -> list[str]:
    """Ids of scenarios, sorted."""
    return [env_id(scenario) for scenario in scenario_names()]


def register_envs() -> None:
    """Register every shipped scenario and all other games; what is registered already stays as it is."""
    for name, env in places_of("env").items():
        if env_id(name) not in gymnasium.registry:
            gymnasium.register(id=env_id(name), entry_point=env)
    for scenario in scenario_names():
        if env_id(scenario) not in gymnasium.registry:
            _register(env_id(scenario), scenario)
    for scenario in SECOND:
        first = f"{NAMESPACE}/{scenario}-v0"
        if first not in gymnasium.registry:
            file = OTHERWISE_FIRST.get(scenario)
            source = scenario if file is None else str(resources.files("gpusched_env.scenarios") / file)
            _register(first, source, physics=1)
    if env_id(COLOCATION) not in gymnasium.registry:
        _register(env_id(COLOCATION), OF_COLOCATION)


def register(path: str | Path) -> str:
    """Give a scenario file an id: ``gymnasium.make(register("mine.yaml"))``.

    The id is ``gpusched/<name>-v0``, with single and vector environments; ``load_scenario`` knows the scenario by its
    name from then on, in this process. Environments read the file when they are made. Registering a file again, edited
    or not, is fine.

    Returns:
        the id.

    Raises:
        InputError: the file does not hold a valid scenario, its name is another scenario's, or no id can hold it.
    """
    name = load_scenario(Path(path).absolute()).name
    if not re.fullmatch(r"[\w:.-]+", name):
        raise InputError(f"{path}: name is {name!r}; an id takes letters, digits and any of _ : . -")
    add_scenario(path)
    gymnasium.registry.pop(env_id(name), None)
    _register(env_id(name), str(Path(path).absolute()))
    return env_id(name)


def _register(name: str, source: str, **fields: object) -> None:
    # The horizon truncates, so there is no TimeLimit: max_episode_steps stays unset.
    gymnasium.register(
        id=name,
        entry_point=ENTRY_POINT,
        vector_entry_point=VECTOR_ENTRY_POINT,
        kwargs={"scenario": source, **fields},
    )
