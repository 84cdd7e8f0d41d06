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
MOVED: Final = {
    "gpusched_env.agents.dynamic_parallelism": f"{_CHILD_LAUNCHES}.agents",
    "gpusched_env.agents.training.dynamic_parallelism": f"{_CHILD_LAUNCHES}.agents.training",
    "gpusched_env.baselines.dynamic_parallelism": f"{_CHILD_LAUNCHES}.baselines",
    "gpusched_env.devices.dynamic_parallelism": f"{_CHILD_LAUNCHES}.devices",
    "gpusched_env.dynamic_parallelism": _CHILD_LAUNCHES,
    "gpusched_env.envs.dynamic_parallelism": f"{_CHILD_LAUNCHES}.environment",
    "gpusched_env.experiments.dynamic_parallelism": f"{_CHILD_LAUNCHES}.experiments",
    "gpusched_env.experiments.measure.applications": f"{_CHILD_LAUNCHES}.measure.applications",
    "gpusched_env.experiments.measure.child_launches": f"{_CHILD_LAUNCHES}.measure.child_launches",
    "gpusched_env.experiments.measure.dynamic_parallelism": f"{_CHILD_LAUNCHES}.measure.program",
    "gpusched_env.experiments.measure.overflow": f"{_CHILD_LAUNCHES}.measure.overflow",
    "gpusched_env.experiments.measure.prediction": f"{_CHILD_LAUNCHES}.measure.prediction",
    "gpusched_env.experiments.measure.running": f"{_CHILD_LAUNCHES}.measure.running",
    "gpusched_env.experiments.papers.spawn": f"{_CHILD_LAUNCHES}.papers.spawn",
    "gpusched_env.hardware.launch_costs": f"{_CHILD_LAUNCHES}.hardware.launch_costs",
    "gpusched_env.hardware.warp_machine": f"{_CHILD_LAUNCHES}.hardware.warp_machine",
    "gpusched_env.hardware.warps": f"{_CHILD_LAUNCHES}.hardware.warps",
    "gpusched_env.workload.dynamic_parallelism": f"{_CHILD_LAUNCHES}.workload",
    "gpusched_env.workload.dynamic_parallelism.graphs": "gpusched_env.workload.graphs",
}
"""New paths by old ones: of modules, or of packages with all below them that has no line of its own."""


def place_of(module: str) -> str:
    """Where a module is; that of one that has not moved is its name."""
    known, below = module, ""
    while known:
        if known in MOVED:
            return f"{MOVED[known]}{below}"
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
        """Of a module that has moved; ``None``: it has not, or its new place has gone."""
        place = place_of(fullname)
        if place == fullname or _spec(place) is None:
            return None
        warnings.warn(f"{fullname} has moved: import {place}", DeprecationWarning, stacklevel=2)
        return ModuleSpec(fullname, self, is_package=self.is_package(fullname))

    def exec_module(self, module: ModuleType) -> None:
        """Put the module itself under the old path, too."""
        sys.modules[module.__name__] = importlib.import_module(place_of(module.__name__))

    def is_package(self, fullname: str) -> bool:
        """Whether modules can be below it."""
        spec = _spec(place_of(fullname))
        return spec is not None and spec.submodule_search_locations is not None

    def get_code(self, fullname: str) -> CodeType | None:
        """For ``python -m``."""
        spec = _spec(place_of(fullname))
        return spec.loader.get_code(spec.name) if spec and isinstance(spec.loader, InspectLoader) else None

    def get_source(self, fullname: str) -> str | None:
        """Of the module itself."""
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
