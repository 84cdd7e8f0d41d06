"""Modules that have moved: an old path imports the module itself, with a warning that says the new one.

What was pickled under an old path loads. An old path works for one release after its line came into :data:`MOVED`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Final

_CHILD_LAUNCHES: Final = "gpusched_env.games.child_launches"
_FLEET: Final = "gpusched_env.games.fleet"
_TASK_QUEUES: Final = "gpusched_env.games.task_queues"
_JOINED: Final = {
    "gpusched_env.agents.exported": "actor forward untrained",
    "gpusched_env.agents.learned": "acting",
    "gpusched_env.agents.model_file": "export",
    "gpusched_env.agents.policies.new_columns": "unseen",
    "gpusched_env.agents.policies.slots": "tables slot_network",
    "gpusched_env.agents.policy_file": "game_policy",
    "gpusched_env.agents.rollout": "player",
    "gpusched_env.agents.shared_memory.learned": "rule playing",
    "gpusched_env.agents.shipped": "origin",
    "gpusched_env.agents.training.evolution": "rules",
    "gpusched_env.agents.training.learning": "first_weights",
    "gpusched_env.agents.training.trainer": "game_training",
    "gpusched_env.devices.compiled.sharing": "rates",
    "gpusched_env.devices.compiled.tiles": "forms",
    "gpusched_env.devices.reference.blocks": "grid rates",
    "gpusched_env.devices.reference.world": "clock",
    "gpusched_env.envs.single": "wrappers",
    "gpusched_env.envs.state": "replay",
    "gpusched_env.experiments.report.tables": "best",
    "gpusched_env.games.child_launches.agents.rule": "playing",
    "gpusched_env.games.child_launches.device": "timeline view",
    "gpusched_env.games.child_launches.hardware.warp_machine": "warps",
    "gpusched_env.games.child_launches.problem": "transformations",
    "gpusched_env.games.child_launches.workload.launches": "bodies",
    "gpusched_env.games.fleet.agents.rule": "playing",
    "gpusched_env.games.fleet.co_location": "rates",
    "gpusched_env.games.fleet.device": "dispatcher",
    "gpusched_env.games.fleet.workload.jobs": "generated",
    "gpusched_env.games.task_queues.hardware.machine": "laws",
    "gpusched_env.hardware.occupancy": "records",
    "gpusched_env.planning.in_time": "in_order",
    "gpusched_env.scenarios.launching": "windowed",
    "gpusched_env.scenarios.tenant_program": "stream",
    "gpusched_env.scheduling.contract": "scheduler device",
    "gpusched_env.scheduling.guards": "sealed",
    "gpusched_env.scheduling.reward": "costs",
    "gpusched_env.workload.host.states": "objects",
    "gpusched_env.workload.host.threads": "rejecting",
}
"""Modules that became part of another one of the same package: their names by its path."""
MOVED: Final = {
    **{f"{path.rpartition('.')[0]}.{name}": path for path, names in _JOINED.items() for name in names.split()},
    "gpusched_env.agents.knobs": "gpusched_env.agents.policies.knobs",
    "gpusched_env.agents.pairs": "gpusched_env.agents.policies.pairs",
    "gpusched_env.agents.release": "gpusched_env.agents.policies.release",
    "gpusched_env.agents.rows": "gpusched_env.agents.policies.rule",
    "gpusched_env.agents.rule": "gpusched_env.agents.policies.rule",
    "gpusched_env.agents.serve": "gpusched_env.agents.policies.serve",
    "gpusched_env.agents.slot_places": "gpusched_env.agents.policies.sizes",
    "gpusched_env.agents.dynamic_parallelism": f"{_CHILD_LAUNCHES}.agents",
    "gpusched_env.agents.fleet": f"{_FLEET}.agents",
    "gpusched_env.agents.task_queues": f"{_TASK_QUEUES}.agents",
    "gpusched_env.agents.training.dynamic_parallelism": f"{_CHILD_LAUNCHES}.training",
    "gpusched_env.agents.training.fleet": f"{_FLEET}.training",
    "gpusched_env.agents.training.task_queues": f"{_TASK_QUEUES}.training",
    "gpusched_env.baselines.dynamic_parallelism": f"{_CHILD_LAUNCHES}.baselines",
    "gpusched_env.baselines.fleet": f"{_FLEET}.baselines",
    "gpusched_env.baselines.task_queues": f"{_TASK_QUEUES}.baselines",
    "gpusched_env.data.fleet_rates": f"{_FLEET}.co_location",
    "gpusched_env.devices.dynamic_parallelism": f"{_CHILD_LAUNCHES}.devices",
    "gpusched_env.devices.task_queues": f"{_TASK_QUEUES}.devices",
    "gpusched_env.dynamic_parallelism": _CHILD_LAUNCHES,
    "gpusched_env.envs.dynamic_parallelism": f"{_CHILD_LAUNCHES}.environment",
    "gpusched_env.envs.fleet": f"{_FLEET}.environment",
    "gpusched_env.envs.task_queues": f"{_TASK_QUEUES}.environment",
    "gpusched_env.experiments.benchmarks.fleets": f"{_FLEET}.experiments.benchmarks",
    "gpusched_env.experiments.commands.fleet": f"{_FLEET}.experiments.command",
    "gpusched_env.experiments.dynamic_parallelism": f"{_CHILD_LAUNCHES}.experiments",
    "gpusched_env.experiments.fleet": f"{_FLEET}.experiments",
    "gpusched_env.experiments.measure.applications": f"{_CHILD_LAUNCHES}.measure.applications",
    "gpusched_env.experiments.measure.child_launches": f"{_CHILD_LAUNCHES}.measure.child_launches",
    "gpusched_env.experiments.measure.dynamic_parallelism": f"{_CHILD_LAUNCHES}.measure.program",
    "gpusched_env.experiments.measure.overflow": f"{_CHILD_LAUNCHES}.measure.child_launches",
    "gpusched_env.experiments.measure.prediction": f"{_CHILD_LAUNCHES}.measure.prediction",
    "gpusched_env.experiments.measure.running": f"{_CHILD_LAUNCHES}.measure.applications",
    "gpusched_env.experiments.papers.atos": f"{_TASK_QUEUES}.papers.atos",
    "gpusched_env.experiments.papers.fleet_agent": f"{_FLEET}.papers.fleet_agent",
    "gpusched_env.experiments.papers.fleet_blocks": f"{_FLEET}.papers.fleet_blocks",
    "gpusched_env.experiments.papers.fleet_rates": f"{_FLEET}.papers.fleet_rates",
    "gpusched_env.experiments.papers.gpucolo_fleet": f"{_FLEET}.papers.gpucolo_fleet",
    "gpusched_env.experiments.papers.spawn": f"{_CHILD_LAUNCHES}.papers.spawn",
    "gpusched_env.experiments.papers.task_queue_agent": f"{_TASK_QUEUES}.papers.task_queue_agent",
    "gpusched_env.experiments.task_queues": f"{_TASK_QUEUES}.experiments",
    "gpusched_env.fleet": _FLEET,
    "gpusched_env.hardware.co_location": f"{_FLEET}.co_location",
    "gpusched_env.hardware.launch_costs": f"{_CHILD_LAUNCHES}.hardware.warp_machine",
    "gpusched_env.hardware.task_links": f"{_TASK_QUEUES}.hardware.links",
    "gpusched_env.hardware.task_machine": f"{_TASK_QUEUES}.hardware.machine",
    "gpusched_env.hardware.task_queues": f"{_TASK_QUEUES}.hardware.machine",
    "gpusched_env.hardware.warp_machine": f"{_CHILD_LAUNCHES}.hardware.warp_machine",
    "gpusched_env.hardware.warps": f"{_CHILD_LAUNCHES}.hardware.warp_machine",
    "gpusched_env.planning.co_location": f"{_FLEET}.co_location",
    "gpusched_env.task_queues": _TASK_QUEUES,
    "gpusched_env.workload.dynamic_parallelism": f"{_CHILD_LAUNCHES}.workload",
    "gpusched_env.workload.dynamic_parallelism.graphs": "gpusched_env.workload.graphs",
    "gpusched_env.workload.fleet": f"{_FLEET}.workload",
    "gpusched_env.workload.task_queues": f"{_TASK_QUEUES}.suite",
}
"""New paths by old ones: of modules, or of packages with all below them that has no line of its own."""


def place_of(module: str) -> str:
    """Where a module is; that of one that has not moved is its name."""
    known, below = module, ""
    while known:
        if known in MOVED:
            return place_of(f"{MOVED[known]}{below}")
        known, _, name = known.rpartition(".")
        below = f".{name}{below}"
    return module


class OldPaths(MetaPathFinder, InspectLoader):
    """Finds modules by their old paths.

    It comes before Python's own finders, which would find what is below a moved package a second time.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a module that has moved; ``None``: it has not, or its new place has gone."""
        place = place_of(fullname)
        there = None if place == fullname else _spec(place)
        if there is None:
            return None
        warnings.warn(f"{fullname} has moved: import {place}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, self, origin=there.origin, is_package=self.is_package(fullname))

    def exec_module(self, module: ModuleType) -> None:
        """Put the module itself under the old path, too."""
        sys.modules[module.__name__] = importlib.import_module(place_of(module.__name__))

    def is_package(self, fullname: str) -> bool:
        """Whether modules can be below it."""
        spec = _spec(place_of(fullname))
        return spec is not None and spec.submodule_search_locations is not None

    def get_code(self, fullname: str) -> CodeType | None:
        """The code of a module at its new place, which ``python -m`` runs."""
        spec = _spec(place_of(fullname))
        return spec.loader.get_code(spec.name) if spec and isinstance(spec.loader, InspectLoader) else None

    def get_source(self, fullname: str) -> str | None:
        """The source of a module at its new place."""
        spec = _spec(place_of(fullname))
        return spec.loader.get_source(spec.name) if spec and isinstance(spec.loader, InspectLoader) else None


def _spec(place: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(place)
    except ModuleNotFoundError:
        return None


def follow_old_paths() -> None:
    """Let old paths be imported from now on."""
    sys.meta_path.insert(0, OldPaths())
