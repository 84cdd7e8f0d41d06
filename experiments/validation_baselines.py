"""What hand-written schedulers cost on the episodes that a training is validated on."""

from __future__ import annotations

import statistics
from pathlib import Path

import msgspec

from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.environments import training_scenarios, validation_seeds
from gpusched_env.baselines.registry import honest_names
from gpusched_env.baselines.spec import split_specs
from gpusched_env.errors import InputError
from gpusched_env.experiments.compare import compare
from gpusched_env.experiments.lib.names import sees_truth
from gpusched_env.experiments.lib.terminal import progress_bar

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
    path = out / STORED
    known: dict[str, float] = {}
    if path.is_file():
        try:
            stored = msgspec.json.decode(path.read_bytes(), type=_Stored)
        except msgspec.DecodeError as error:
            raise InputError(f"{path}: not what a training wrote ({error}); remove it") from error
        if (stored.seeds, stored.scenarios) == (seeds, described):
            known = stored.costs
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
        out.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.encode(_Stored(seeds=seeds, scenarios=described, costs=known)))
    return {name: known[name] for name in names}
