"""What can be tuned: the schedulers of a scenario on its training workloads, those of child launches on random ones."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from gpusched_env.agents.training.config import LaunchTraining
from gpusched_env.agents.training.dynamic_parallelism import applications, geometric_mean
from gpusched_env.baselines.dynamic_parallelism.registry import (
    CLAIRVOYANT,
    launch_scheduler_names,
    launch_scheduler_options,
    make_launch_scheduler,
)
from gpusched_env.baselines.ranges import Ranges, ranges_of
from gpusched_env.baselines.registry import honest_names
from gpusched_env.baselines.spec import options_of
from gpusched_env.envs.dynamic_parallelism.playing import RANDOM
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.launch_names import DYNAMIC_PARALLELISM
from gpusched_env.experiments.lib.names import check_scheduler, new_scheduler, sees_truth
from gpusched_env.experiments.lib.workers import Shared
from gpusched_env.experiments.ranking.dynamic_parallelism import run_launch_cell
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode, RunCell
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scenarios.variants import scenario_variants


class Subject(Protocol):
    """Schedulers by name, their ranges, and the episodes that a trial is the mean of."""

    name: str
    variants: list[str]
    ranges: dict[str, Ranges]
    """By scheduler; empty where there is nothing to tune."""

    @property
    def task(self) -> Callable[[RankedEpisode], EpisodeCost]:
        """What worker processes do."""
        ...

    def defaults(self, scheduler: str) -> Mapping[str, Any]:
        """Options of a scheduler."""
        ...

    def check(self, spec: str) -> None:
        """Raises InputError if the options do not fit."""
        ...

    def groups(self, specs: Sequence[str], seeds: Sequence[int]) -> list[list[RankedEpisode]]:
        """Episodes of a round, those together that one process should run."""
        ...

    def mean(self, costs: Sequence[float]) -> float:
        """Of a trial's episodes."""
        ...


def _plain(name: str, clairvoyant: bool) -> str:
    if "(" in name:
        raise InputError(f"{name}: name the scheduler alone, its options are searched")
    if clairvoyant:
        raise InputError(f"{name}: is told the truth, and no rule that could be tuned")
    return name


class OfTenants:
    """Schedulers of kernels on the variants of a scenario's training set."""

    def __init__(self, scenario: Scenario, schedulers: Sequence[str] | None) -> None:
        """
        Raises:
            InputError: no workload sets; an unknown scheduler, one with options, or one that is told the truth.
        """
        self._scenario = scenario
        self.name = scenario.name
        problems = {(scenario.name, variant.name): variant for variant in scenario_variants(scenario, "train")}
        self.variants = [variant for _, variant in problems]
        self.task: Callable[[RankedEpisode], EpisodeCost] = RunCell(Shared(problems))
        names = honest_names(scenario.window is not None, hardware=False) if schedulers is None else schedulers
        for name in names:
            self.check(name)
        made = {_plain(name, sees_truth(name)): new_scheduler(name) for name in names}
        self.ranges = {name: ranges_of(scheduler) for name, scheduler in made.items()}
        self._defaults = {name: options_of(type(scheduler)) for name, scheduler in made.items()}

    def defaults(self, scheduler: str) -> Mapping[str, Any]:
        return self._defaults[scheduler]

    def check(self, spec: str) -> None:
        check_scheduler(spec, self._scenario)

    def groups(self, specs: Sequence[str], seeds: Sequence[int]) -> list[list[RankedEpisode]]:
        """One by one: a problem is quickly built."""
        episodes = itertools.product(self.variants, seeds, specs)
        return [[RankedEpisode(self.name, variant, spec, "compiled", seed)] for variant, seed, spec in episodes]

    def mean(self, costs: Sequence[float]) -> float:
        return statistics.fmean(costs)


class OfLaunches:
    """Schedulers of child launches on random applications, not on the benchmarks that results are about."""

    name = DYNAMIC_PARALLELISM

    def __init__(self, schedulers: Sequence[str] | None) -> None:
        """
        Raises:
            InputError: an unknown scheduler, one with options, or one that is told the truth.
        """
        known = [name for name in launch_scheduler_names() if name not in CLAIRVOYANT]
        todays = [name for name in known if not getattr(make_launch_scheduler(name), "hardware", False)]
        names = todays if schedulers is None else schedulers
        self.task = run_launch_cell
        self.variants = [RANDOM]
        self.ranges = {_plain(name, name in CLAIRVOYANT): ranges_of(make_launch_scheduler(name)) for name in names}

    @staticmethod
    def seeds(first: int, count: int) -> list[int]:
        """Of the first applications from ``first`` on that are no larger than those that agents are trained on."""
        found = applications(itertools.count(first), count, LaunchTraining().requests)
        return [int(problem.name.rpartition("-")[2]) for problem, _ in found]

    def defaults(self, scheduler: str) -> Mapping[str, Any]:
        return launch_scheduler_options(scheduler)

    def check(self, spec: str) -> None:
        make_launch_scheduler(spec)

    def groups(self, specs: Sequence[str], seeds: Sequence[int]) -> list[list[RankedEpisode]]:
        """Those of an application together: it takes longer to make than to run."""
        return [[RankedEpisode(self.name, RANDOM, spec, "compiled", seed) for spec in specs] for seed in seeds]

    def mean(self, costs: Sequence[float]) -> float:
        """Geometric: costs are ratios."""
        return geometric_mean(costs)
