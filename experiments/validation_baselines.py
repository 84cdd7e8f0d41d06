"""What hand-written schedulers cost on the episodes that a training is validated on."""

from __future__ import annotations

import statistics
from pathlib import Path

import msgspec

from gpusched_env.agents.files import replacing, writing_to
from gpusched_env.agents.training.config import LaunchTraining, TrainingConfig
from gpusched_env.agents.training.dynamic_parallelism import geometric_mean, validation_applications
from gpusched_env.agents.training.environments import training_scenarios, validation_seeds
from gpusched_env.baselines.dynamic_parallelism.registry import launch_scheduler_names, make_launch_scheduler
from gpusched_env.baselines.registry import honest_names
from gpusched_env.baselines.spec import split_specs
from gpusched_env.devices.dynamic_parallelism.compiled.device import CompiledWarpDevice
from gpusched_env.dynamic_parallelism.scheduler import run_application
from gpusched_env.errors import InputError
from gpusched_env.experiments.compare import compare
from gpusched_env.experiments.lib.names import sees_truth
from gpusched_env.experiments.lib.terminal import progress_bar
from gpusched_env.reading import decoded, read_bytes

STORED = "baselines.json"


class _Stored(msgspec.Struct, kw_only=True):
    """``baselines.json``: costs by scheduler, and of which episodes."""

    seeds: list[int]
    scenarios: list[str]
    costs: dict[str, float]


def baseline_costs(config: TrainingConfig, schedulers: str, out: Path) -> dict[str, float]:
    """Mean costs by scheduler, over all validation episodes of all training variants.

    They are kept in ``out``, so that a training that goes on does not simulate them again.

    Args:
        config: has the scenario, its variants, and the number of validation seeds.
        schedulers: names, separated by commas; ``all`` that are registered (but clairvoyant ones), or ``none``.
        out: folder of the training.

    Raises:
        InputError: unknown scheduler, or a clairvoyant one.
    """
    if schedulers == "none":
        return {}
    names = split_specs(schedulers)
    if schedulers == "all":
        names = honest_names(config.scenario.window is not None, hardware=False)
    bounds = [name for name in names if sees_truth(name)]
    if bounds:
        raise InputError(f"{', '.join(bounds)}: is told the truth, and no baseline for an agent that is not")
    scenarios, seeds = training_scenarios(config), validation_seeds(config)
    described = [msgspec.json.encode(scenario, order="sorted").decode() for scenario in scenarios]
    known = _known(out, seeds, described)
    missing = [name for name in names if name not in known]
    if missing:
        costs: dict[str, list[float]] = {name: [] for name in missing}
        episodes = len(missing) * len(seeds)
        with progress_bar(len(scenarios) * episodes, "baseline episode", "baselines") as tell:
            for number, scenario in enumerate(scenarios):
                done = number * episodes

                def update(finished: int, share: float, number: int = number, done: int = done) -> None:
                    tell(done + finished, (number + share) / len(scenarios))

                comparison = compare(scenario, missing, seeds, on_progress=update)
                if comparison.interrupted:
                    raise KeyboardInterrupt
                for run in comparison.runs:
                    costs[run.scheduler].append(run.metrics.cost)
        known |= {name: statistics.fmean(values) for name, values in costs.items()}
        _store(out, seeds, described, known)
    return {name: known[name] for name in names}


def launch_baseline_costs(config: LaunchTraining, schedulers: str, out: Path) -> dict[str, float]:
    """The same for dynamic parallelism: geometric means of times over those of the flat versions.

    ``all``: those that run on the GPU as it is, and know no more than a controller can.
    """
    if schedulers == "none":
        return {}
    names = split_specs(schedulers)
    if schedulers == "all":
        made = {name: make_launch_scheduler(name) for name in launch_scheduler_names()}
        special = ("hardware", "clairvoyant")
        names = [name for name, made_one in made.items() if not any(getattr(made_one, mark, False) for mark in special)]
    applications = validation_applications(config)
    seeds = list(range(len(applications)))
    described = [problem.name for problem, _ in applications]
    known = _known(out, seeds, described)
    missing = [name for name in names if name not in known]
    with progress_bar(len(missing) * len(applications), "baseline episode", "baselines") as tell:
        for number, name in enumerate(missing):
            costs = []
            for problem, flat in applications:
                run = run_application(make_launch_scheduler(name), problem, CompiledWarpDevice())
                costs.append(run.time_ps / flat)
                done = number * len(applications) + len(costs)
                tell(done, done / (len(missing) * len(applications)))
            known[name] = geometric_mean(costs)
    if missing:
        _store(out, seeds, described, known)
    return {name: known[name] for name in names}


def _known(out: Path, seeds: list[int], described: list[str]) -> dict[str, float]:
    """What is stored of these episodes."""
    path = out / STORED
    if not path.is_file():
        return {}
    stored = decoded(read_bytes(path), _Stored, f"{path}: not what a training wrote, remove it")
    return stored.costs if (stored.seeds, stored.scenarios) == (seeds, described) else {}


def _store(out: Path, seeds: list[int], described: list[str], costs: dict[str, float]) -> None:
    content = _Stored(seeds=seeds, scenarios=described, costs=costs)
    with writing_to(out):
        out.mkdir(parents=True, exist_ok=True)
        with replacing(out / STORED) as partial:
            partial.write_bytes(msgspec.json.encode(content))
