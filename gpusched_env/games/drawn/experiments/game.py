"""Drawn scenarios, as experiments ask for them: rankings of schedulers on a split.

A variant is a scenario of a split, its arrivals are a seed, and the cost of several is the mean of logarithms of costs.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import numpy as np
from msgspec import Meta

from gpusched_env.errors import DeadlockError, IllegalCommand, InputError
from gpusched_env.experiments.games.game import (
    Game,
    GameValidation,
    RankedField,
    RankingTerms,
    SchedulerGroup,
    TunedField,
)
from gpusched_env.experiments.games.kernels import PLAY
from gpusched_env.experiments.games.own import DEVICE, NamedProblems, OwnGame
from gpusched_env.experiments.lib.names import new_device
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.workers import Progress, run_all
from gpusched_env.experiments.pictures import GameFilm
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.games.drawn.agent.trainer import ChoiceTraining
from gpusched_env.games.drawn.environment.env import RuleFeature
from gpusched_env.games.drawn.environment.rules import RULES
from gpusched_env.games.drawn.experiments.opponents import NAME, NAMED, PLAIN
from gpusched_env.games.drawn.problems.splits import FROZEN, TRAIN, drawn, frozen, names_of
from gpusched_env.reading import checked, parse_yaml
from gpusched_env.scenarios.problem import Problem
from gpusched_env.sources import ROOT, hash_of

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.run import Fuzzing
    from gpusched_env.experiments.ranking.made import Fingerprints
    from gpusched_env.experiments.ranking.result import Ranking


class Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ``--set KEY=VALUE`` of a ranking may say."""

    split: str = TRAIN
    scenarios: Annotated[int, Meta(ge=1, le=FROZEN)] = FROZEN
    """How many of the split, from the first on."""


def asked(settings: Sequence[str]) -> Asked:
    """What the settings of a ranking say.

    Raises:
        InputError: an unknown key, or no such split.
    """
    pairs = (setting.partition("=") for setting in settings)
    return checked({key.strip(): parse_yaml(value, f"--set {key}") for key, _, value in pairs}, Asked, "--set")


def run_drawn_cell(cell: RankedEpisode) -> EpisodeCost:
    """The task of worker processes."""
    try:
        episode = play(NAMED.new(cell.scheduler), _problem(cell.variant), cell.seed, device=cell.device)
    except (IllegalCommand, DeadlockError) as error:
        raise type(error)(f"{cell.variant}, {cell.scheduler}: {error}") from error
    return EpisodeCost(cell, episode.metrics.cost)


@functools.lru_cache(1)
def _problem(name: str) -> Problem:
    return drawn(name).problem()


class OneByOne(NamedProblems):
    """Scenario by scenario, so that an interrupt leaves whole ones, with all seeds."""

    def groups(self, schedulers: Sequence[str], seeds: Sequence[int]) -> list[list[RankedEpisode]]:
        by_seed = super().groups(schedulers, seeds)
        return [group for place in range(len(self.names)) for group in by_seed[place :: len(self.names)]]


class DrawnGame(OwnGame):
    """See :class:`gpusched_env.experiments.games.game.Game`."""

    title = "Drawn scenarios"
    about = "the kernels of tenants on GPUs that nobody has seen."
    plain_gpu = PLAIN
    named = NAMED
    task = staticmethod(run_drawn_cell)
    ranked_on = tuple(names_of(TRAIN))
    drawn = f"{TRAIN}-0"
    play = (*PLAY, type(new_device(DEVICE)).__module__)
    training = ChoiceTraining
    algorithm = "all-actions-gradient"
    trained_for = "all drawn GPUs"

    @property
    def groups(self) -> list[SchedulerGroup]:
        """None of its own: those of tenants that share a GPU."""
        return []

    def ranked(self, terms: RankingTerms) -> RankedField:
        """The ranking on a split."""
        of = asked(terms.settings)
        names = tuple(names_of(of.split, of.scenarios))
        field = super().ranked(replace(terms, settings=()))
        hashes = {
            name: f"{kept.hash}{_networks()[:4]}" for name, kept in zip(names, frozen().get(of.split, []), strict=False)
        }
        return RankedField(
            schedulers=field.schedulers,
            grid=OneByOne(NAME, names, self.task),
            made=msgspec.structs.replace(field.made, data={NAME: hashes}),
        )

    def remarks(self, ranking: Ranking) -> dict[str, list[str]]:
        return {NAME: ["Cost: the mean of logarithms over scenarios counts; page *Drawn* has it with intervals."]}

    def tuned(self, scenario: Any, schedulers: Sequence[str] | None, first_seed: int, seeds: int) -> TunedField:
        """
        Raises:
            InputError: a search of its own plays many scenarios a little before it plays few a lot.
        """
        raise InputError(f"{NAME} has a search of its own: gpusched lab drawn-tune")

    def baselines(self, config: Any) -> list[str]:
        """The rules that the agent chooses among."""
        return list(RULES)

    def validation(self, config: ChoiceTraining) -> GameValidation:
        """Scenarios that are drawn behind those that are trained on, one a seed."""
        from gpusched_env.games.drawn.agent.validation import validation_names

        seeds = self.validation_seeds(config)
        names = validation_names(seeds)

        def costs(schedulers: list[str], on_progress: Progress, workers: int | None) -> dict[str, list[float]]:
            episodes = list(zip(names, seeds, strict=True))
            cells = [RankedEpisode(NAME, name, each, DEVICE, seed) for name, seed in episodes for each in schedulers]
            found: dict[str, list[float]] = {scheduler: [] for scheduler in schedulers}
            for episode in run_all(self.task, cells, workers, on_progress):
                found[episode.cell.scheduler].append(max(episode.cost, drawn(episode.cell.variant).floor))
            return found

        return GameValidation(
            seeds=seeds,
            problems=names,
            episodes=len(seeds),
            costs=costs,
            made=lambda schedulers: self._made({name: self.named.new(name) for name in schedulers}),
        )

    @property
    def fuzzing(self) -> Fuzzing:
        """
        Raises:
            InputError: its devices are those of all scenarios.
        """
        raise InputError(f"{NAME} has the devices of scenarios: gpusched lab fuzz without a game compares these")


def made_of(schedulers: Sequence[str]) -> Fingerprints:
    """The hashes of what episodes of schedulers are made by, whatever the scenario."""
    return DrawnGame()._made({name: NAMED.new(name) for name in schedulers})


@functools.cache
def _networks() -> str:
    """The hash of all recorded networks."""
    return hash_of((ROOT / "data" / "workloads").iterdir())


def _cheapest_so_far(observation: Any, _: object) -> int:
    """Each rule once, then the one that cost least so far."""
    rules = observation["rules"]
    return int(np.argmin(np.where(rules[:, RuleFeature.USED] > 0.0, rules[:, RuleFeature.COST], -1.0)))


FILM: Final = GameFilm(
    env="Drawn-v0",
    options={"split": "train-6"},
    choose=_cheapest_so_far,
    title="A drawn scenario: each rule for a millisecond, then the one that cost least",
    frames=3,
)
GAME: Final[Game] = DrawnGame()
