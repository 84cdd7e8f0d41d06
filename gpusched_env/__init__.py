"""Scheduling kernels on a shared GPU: one contract, several devices behind it, and a Gymnasium face.

Importing the package registers the environments ``gpusched/<Scenario>-v0``. The names below load on
first use, so that the import stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gpusched_env.envs.registration import register, register_envs
from gpusched_env.moved import follow_old_paths

if TYPE_CHECKING:
    from gpusched_env.devices import make_device
    from gpusched_env.envs.env import GpuSchedulingEnv
    from gpusched_env.episodes.metrics import episode_metrics
    from gpusched_env.experiments.compare import compare, evaluate
    from gpusched_env.experiments.importing import import_trace
    from gpusched_env.experiments.lib.play import make_scheduler, run_episode
    from gpusched_env.experiments.load_curve.curve import load_sweep
    from gpusched_env.experiments.ranking.run import rank
    from gpusched_env.experiments.report.load import load_comparison
    from gpusched_env.scenarios.building import build_problem
    from gpusched_env.scenarios.scenario import load_scenario, scenario_names

__all__ = [
    "GpuSchedulingEnv",
    "build_problem",
    "compare",
    "episode_metrics",
    "evaluate",
    "import_trace",
    "load_comparison",
    "load_scenario",
    "load_sweep",
    "make_device",
    "make_scheduler",
    "rank",
    "register",
    "run_episode",
    "scenario_names",
]

__version__ = "0.2.0"

_HOMES = {
    "GpuSchedulingEnv": "gpusched_env.envs.env",
    "build_problem": "gpusched_env.scenarios.building",
    "compare": "gpusched_env.experiments.compare",
    "episode_metrics": "gpusched_env.episodes.metrics",
    "evaluate": "gpusched_env.experiments.compare",
    "import_trace": "gpusched_env.experiments.importing",
    "load_comparison": "gpusched_env.experiments.report.load",
    "load_sweep": "gpusched_env.experiments.load_curve.curve",
    "load_scenario": "gpusched_env.scenarios.scenario",
    "make_device": "gpusched_env.devices",
    "make_scheduler": "gpusched_env.experiments.lib.play",
    "rank": "gpusched_env.experiments.ranking.run",
    "run_episode": "gpusched_env.experiments.lib.play",
    "scenario_names": "gpusched_env.scenarios.scenario",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        return _lacking(name, error)


def _lacking(name: str, error: ModuleNotFoundError) -> Any:
    """What stands for a function that lacks a package of an extra: it can be named, and says so when it is called.

    Raises:
        ModuleNotFoundError: the package is no extra's.
    """
    from gpusched_env.errors import EXTRA_OF, InputError, needs

    missing = str(error.name).partition(".")[0]
    if missing not in EXTRA_OF:
        raise error

    def say(*_: Any, **__: Any) -> Any:
        raise InputError(needs(f"gpusched_env.{name}", missing)) from error

    say.__name__ = name
    return say


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


follow_old_paths()
register_envs()
