"""Kernels of tenants that share a GPU, or of one program: the game of all scenarios."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpusched_env.baselines.ranges import ranges_of
from gpusched_env.baselines.registered import options_of
from gpusched_env.baselines.registry import SCHEDULERS, honest_names, means, scheduler_names
from gpusched_env.episodes.cautions import cautions
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import (
    Game,
    GameValidation,
    RankedField,
    RankingTerms,
    SchedulerGroup,
    TunedField,
)
from gpusched_env.experiments.lib.names import (
    all_schedulers,
    check_scheduler,
    expanded,
    new_device,
    new_scheduler,
    sees_truth,
)
from gpusched_env.experiments.lib.trained import is_learned, learned_file
from gpusched_env.experiments.lib.workers import Progress, Shared
from gpusched_env.experiments.ranking.bound import ALONE, has_bound
from gpusched_env.experiments.ranking.episodes import (
    EpisodeCost,
    RankedEpisode,
    RunCell,
    Workloads,
    cells_of,
    variants_of,
)
from gpusched_env.experiments.ranking.made import ALONE_ORIGIN, Fingerprints, Origin, data_hash, made_by, origin_of
from gpusched_env.experiments.settings import apply_settings
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.scenarios.variants import scenario_variants

if TYPE_CHECKING:
    from gpusched_env.agents.training.config import TrainingConfig
    from gpusched_env.experiments.fuzz.run import Fuzzing
    from gpusched_env.experiments.ranking.result import Ranking

PLAY: Final = ("gpusched_env.episodes.session", "gpusched_env.episodes.metrics", "gpusched_env.scenarios.building")
"""Modules that play an episode on a device."""


@dataclass(frozen=True)
class KernelGrid:
    """Scenarios, or variants of them."""

    problems: dict[tuple[str, str], Scenario]
    """The problems, by scenario and variant."""
    devices: Sequence[str] = ("compiled",)
    bounded: Sequence[str] = ()
    """Scenarios whose cost with every tenant alone is wanted too."""

    @property
    def variants(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for scenario, variant in self.problems:
            found.setdefault(scenario, []).append(variant)
        return found

    @cached_property
    def task(self) -> Callable[[RankedEpisode], EpisodeCost]:
        return RunCell(Shared(self.problems))

    def groups(self, schedulers: Sequence[str], seeds: Sequence[int]) -> list[list[RankedEpisode]]:
        """One by one: a problem is quickly built."""
        return [[cell] for cell in cells_of(self.problems, schedulers, self.devices, seeds, self.bounded)]


class Kernels:
    """See :class:`gpusched_env.experiments.games.game.Game`."""

    kind = "kernels"
    plain_gpu = "pass-through"
    algorithm = "maskable-ppo"
    unseen: Workloads = "held_out"
    schedulers = SCHEDULERS

    @property
    def groups(self) -> list[SchedulerGroup]:
        return [
            SchedulerGroup(
                "Tenants that share a GPU",
                "What a GPU does by itself comes first, then rules and published systems.",
                scheduler_names(windowed=False),
            ),
            SchedulerGroup(
                "One program's kernels",
                "For scenarios whose launches pass a window (`KernelGraph`): which kernel goes next.",
                scheduler_names(windowed=True),
            ),
        ]

    def means(self, scheduler: str) -> tuple[Sequence[str], Sequence[str]]:
        return means(scheduler)

    def sees_truth(self, scheduler: str) -> bool:
        return sees_truth(scheduler)

    def mean(self, costs: Sequence[float]) -> float:
        return statistics.fmean(costs)

    def ranked(self, terms: RankingTerms) -> RankedField:
        loaded = {name: apply_settings(load_scenario(name), terms.settings) for name in terms.scenarios}
        schedulers = _ranked_schedulers(terms)
        for device in terms.devices:
            new_device(device)
        problems = {
            (name, variant.name): variant
            for name, scenario in loaded.items()
            for variant in variants_of(scenario, terms.workloads, terms.gpu)
        }
        for variant in problems.values():
            for scheduler in schedulers:
                check_scheduler(scheduler, variant)
        bounded = [name for name, scenario in loaded.items() if has_bound(scenario)]
        return RankedField(
            schedulers=schedulers,
            grid=KernelGrid(problems, terms.devices, bounded),
            bounded=bounded,
            remarks=_cautions(problems),
            made=made_of(problems, terms.devices, schedulers, _policies(terms.scenarios, schedulers)),
        )

    def remarks(self, ranking: Ranking) -> dict[str, list[str]]:
        return {}

    def tuned(self, scenario: Any, schedulers: Sequence[str] | None, first_seed: int, seeds: int) -> TunedField:
        """The search for options on the variants of the scenario's training set."""
        loaded = load_scenario(scenario)
        problems = {(loaded.name, variant.name): variant for variant in scenario_variants(loaded, "train")}
        names = honest_names(loaded.window is not None, hardware=False) if schedulers is None else schedulers
        for name in names:
            check_scheduler(name, loaded)
        made = {name: new_scheduler(name) for name in names}
        return TunedField(
            grid=KernelGrid(problems),
            seeds=list(range(first_seed, first_seed + seeds)),
            ranges={name: ranges_of(scheduler) for name, scheduler in made.items()},
            defaults={name: options_of(type(scheduler)) for name, scheduler in made.items()},
            check=lambda spec: check_scheduler(spec, loaded),
            made=made_of(problems, KernelGrid.devices, names, {}),
        )

    def configured(self, scenario: str | Scenario, given: dict[str, Any], gpu: str | None) -> TrainingConfig:
        from gpusched_env.agents.training.config import config_of, defaults_for

        loaded = load_scenario(scenario, **({"gpu": gpu} if gpu else {}))
        defaults = defaults_for(loaded.name, given.get("algo"))
        try:
            return config_of({**defaults, **given, "scenario": loaded})
        except InputError as error:
            if not defaults or "algo" in given:
                raise
            raise InputError(
                f"{error} ({loaded.name} has settings of its own, for {defaults['algo']}; --algo names another)"
            ) from error

    def baselines(self, config: TrainingConfig) -> list[str]:
        return honest_names(config.scenario.window is not None, hardware=False)

    def validation(self, config: TrainingConfig) -> GameValidation:
        from gpusched_env.agents.training.environments import training_scenarios, validation_seeds

        scenarios, seeds = training_scenarios(config), validation_seeds(config)
        problems = {(config.name, scenario.name): scenario for scenario in scenarios}
        return GameValidation(
            seeds=seeds,
            problems=[msgspec.json.encode(scenario, order="sorted").decode() for scenario in scenarios],
            episodes=len(scenarios) * len(seeds),
            costs=lambda names, *how: _costs(scenarios, names, seeds, *how),
            made=lambda names: made_of(problems, KernelGrid.devices, names, _policies([config.scenario], names)),
        )

    @property
    def fuzzing(self) -> Fuzzing:
        from gpusched_env.experiments.fuzz.run import KERNELS

        return KERNELS


GAME: Final[Game] = Kernels()


def _ranked_schedulers(terms: RankingTerms) -> list[str]:
    """The schedulers that are named, or by default all that every one of the scenarios has."""
    loaded = [load_scenario(name) for name in terms.scenarios]
    asked = terms.schedulers
    given = [all_schedulers(of) if asked is None else expanded(asked, of) for of in loaded]
    return [name for name in given[0] if all(name in names for names in given)]


def _cautions(problems: dict[tuple[str, str], Scenario]) -> dict[str, list[str]]:
    """The cautions for each scenario, each once."""
    found: dict[str, list[str]] = {}
    for (name, _), variant in problems.items():
        known = found.setdefault(name, [])
        known += [remark for remark in cautions(build_problem(variant)) if remark not in known]
    return found


def _policies(scenarios: Sequence[str | Scenario], schedulers: Sequence[str]) -> dict[str, dict[str, str]]:
    """Hashes of trained schedulers' policies, by scenario."""
    from gpusched_env.agents.manifest import file_hash
    from gpusched_env.agents.shipped import shipped_file

    found: dict[str, dict[str, str]] = {}
    for scenario in scenarios:
        for scheduler in filter(is_learned, schedulers):
            file = learned_file(scheduler) or shipped_file(load_scenario(scenario))
            found.setdefault(scenario if isinstance(scenario, str) else scenario.name, {})[scheduler] = file_hash(file)
    return found


def made_of_one(scenario: Scenario, device: str, schedulers: Sequence[str], variant: str = "") -> Fingerprints:
    """The hashes of what makes episodes of one problem; ``variant``: what it is called, if not as its scenario."""
    problems = {(scenario.name, variant or scenario.name): scenario}
    return made_of(problems, [device], schedulers, _policies([scenario], schedulers))


def made_of(
    problems: Mapping[tuple[str, str], Scenario],
    devices: Sequence[str],
    schedulers: Sequence[str],
    policies: Mapping[str, Mapping[str, str]],
) -> Fingerprints:
    """The hashes of what makes episodes; ``problems``: by scenario and variant; ``policies``: those of trained ones."""
    origins: dict[str, dict[str, Origin]] = {}
    data: dict[str, dict[str, str]] = {}
    for (scenario, variant), problem in problems.items():
        data.setdefault(scenario, {})[variant] = data_hash(problem)
        if scenario not in origins:
            made = {name: new_scheduler(name, problem) for name in schedulers}
            origins[scenario] = {name: origin_of(name, of, SCHEDULERS, problem.name) for name, of in made.items()}
            origins[scenario] |= {ALONE: ALONE_ORIGIN} if has_bound(problem) else {}
    played = {device: [type(new_device(device)).__module__, *PLAY] for device in devices}
    return made_by(played, origins, data=data, weights=policies)


def _costs(
    scenarios: Sequence[Scenario],
    schedulers: list[str],
    seeds: list[int],
    on_progress: Progress,
    workers: int | None,
) -> dict[str, list[float]]:
    """Scenario by scenario.

    Raises:
        KeyboardInterrupt: an interrupt cut it short.
    """
    from gpusched_env.experiments.compare import compare

    costs: dict[str, list[float]] = {name: [] for name in schedulers}
    for number, scenario in enumerate(scenarios):
        done = number * len(schedulers) * len(seeds)

        def tell(finished: int, share: float, number: int = number, done: int = done) -> None:
            on_progress(done + finished, (number + share) / len(scenarios))

        comparison = compare(scenario, schedulers, seeds, workers=workers, on_progress=tell)
        if comparison.interrupted:
            raise KeyboardInterrupt
        for run in comparison.runs:
            costs[run.scheduler].append(run.metrics.cost)
    return costs
