"""What games besides that of kernels have in common: problems by name and seed, played on one device."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from gpusched_env.agents.manifest import file_hash
from gpusched_env.agents.shipped import shipped_names
from gpusched_env.agents.training.config import defaults_for
from gpusched_env.agents.training.trainer import GameTraining, game_training_of
from gpusched_env.baselines.ranges import ranges_of
from gpusched_env.baselines.registered import Registered
from gpusched_env.baselines.tuning import PREFIX as TUNED
from gpusched_env.baselines.tuning import tuned_names, tuned_spec
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import GameValidation, RankedField, RankingTerms, SchedulerGroup, TunedField
from gpusched_env.experiments.lib.names import with_groups
from gpusched_env.experiments.lib.trained import LEARNED, agent_file, is_learned
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode, Workloads
from gpusched_env.experiments.ranking.made import made_by, origin_of

if TYPE_CHECKING:
    from gpusched_env.experiments.ranking.made import Fingerprints

S = TypeVar("S")

DEVICE: Final = "compiled"


@dataclass(frozen=True)
class NamedSchedulers(Generic[S]):
    """Schedulers of a game by name: written by hand, tuned (``tuned:NAME``) or learned."""

    game: str
    by_hand: Registered[S]
    learned: Callable[[Path | None], S]
    """Makes the agent in a file, or the shipped one."""

    def new(self, name: str) -> S:
        """A scheduler from its name.

        Raises:
            InputError: there is none, or no agent.
        """
        if is_learned(name):
            return self.learned(agent_file(name))
        return self.by_hand.make(tuned_spec(name, self.game) if name.startswith(TUNED) else name)

    def defaults(self) -> list[str]:
        """All hand-written ones, those with tuned options, and the shipped agent if there is one."""
        shipped = [LEARNED] if self.game in shipped_names() else []
        return [*self.by_hand.names(), *tuned_names(self.game), *shipped]


@dataclass(frozen=True)
class NamedProblems:
    """A :class:`~gpusched_env.experiments.games.game.GameGrid` of problems by name, each drawn by every seed."""

    game: str
    names: tuple[str, ...]
    task: Callable[[RankedEpisode], EpisodeCost]

    @property
    def variants(self) -> dict[str, list[str]]:
        return {self.game: list(self.names)}

    def groups(self, schedulers: Sequence[str], seeds: Sequence[int]) -> list[list[RankedEpisode]]:
        """Episodes in groups of one problem, as it takes about as long to draw as to play; seed by seed."""
        return [
            [RankedEpisode(self.game, name, scheduler, DEVICE, seed) for scheduler in schedulers]
            for seed in seeds
            for name in self.names
        ]


class OwnGame(ABC):
    """See :class:`gpusched_env.experiments.games.game.Game`."""

    title: ClassVar[str]
    """The title of the page of its schedulers."""
    about: ClassVar[str]
    """What the game's schedulers decide."""
    plain_gpu: ClassVar[str]
    algorithm: ClassVar[str] = "cma-es"
    unseen: ClassVar[Workloads] = "own"
    """Options are searched on random problems, not on those of rankings."""
    named: ClassVar[NamedSchedulers[Any]]
    ranked_on: ClassVar[tuple[str, ...]]
    """Names of the problems of rankings."""
    drawn: ClassVar[str]
    """Name of random problems, on which options are searched."""
    play: ClassVar[tuple[str, ...]]
    """Modules that play an episode."""
    training: ClassVar[type[GameTraining]]
    trained_for: ClassVar[str] = "one GPU"

    @staticmethod
    @abstractmethod
    def task(cell: RankedEpisode) -> EpisodeCost:
        """What worker processes do."""

    @property
    def kind(self) -> str:
        return self.title.lower()

    @property
    def schedulers(self) -> Registered[Any]:
        return self.named.by_hand

    @property
    def groups(self) -> list[SchedulerGroup]:
        return [SchedulerGroup(self.title, f"For `{self.named.game}`: {self.about}", self.schedulers.names())]

    def means(self, scheduler: str) -> None:
        return None

    def sees_truth(self, scheduler: str) -> bool:
        return bool(getattr(self.named.new(scheduler), "clairvoyant", False))

    def mean(self, costs: Sequence[float]) -> float:
        """Geometric: costs are ratios."""
        return math.exp(sum(map(math.log, costs)) / len(costs))

    def ranked(self, terms: RankingTerms) -> RankedField:
        """The ranking on the game's ranked problems, each as every seed draws it."""
        name, asked = self.named.game, (terms.workloads, terms.gpu, tuple(terms.settings), tuple(terms.devices))
        if len(terms.scenarios) > 1 or asked != ("own", None, (), (DEVICE,)):
            raise InputError(f"{name} is ranked by itself, as it is, on the {DEVICE} device")
        asked_for = ["default"] if terms.schedulers is None else terms.schedulers
        defaults = self.named.defaults
        names = with_groups(asked_for, {"default": defaults, "all": defaults, "tuned": lambda: tuned_names(name)})
        made = {each: self.named.new(each) for each in names}
        weights = {each: file_hash(found.file) for each, found in made.items() if is_learned(each)}
        return RankedField(
            schedulers=names, grid=self._grid(self.ranked_on), made=self._made(made, weights={name: weights})
        )

    def tuned(self, scenario: Any, schedulers: Sequence[str] | None, first_seed: int, seeds: int) -> TunedField:
        """The search for options on random problems."""
        return self.tuned_on(schedulers, list(range(first_seed, first_seed + seeds)))

    def tuned_on(self, schedulers: Sequence[str] | None, seeds: list[int]) -> TunedField:
        """What is searched of the schedulers' options, on the random problems that seeds draw."""
        by_hand = self.schedulers
        names = self.baselines(None) if schedulers is None else schedulers
        return TunedField(
            grid=self._grid((self.drawn,)),
            seeds=seeds,
            ranges={name: ranges_of(by_hand.make(name)) for name in names},
            defaults={name: by_hand.options(name) for name in names},
            check=by_hand.make,
            made=self._made({name: by_hand.make(name) for name in names}),
        )

    def configured(self, scenario: str, given: dict[str, Any], gpu: str | None) -> GameTraining:
        if gpu is not None:
            raise InputError(f"--gpu: {self.named.game} is trained for {self.trained_for}")
        # Random problems are drawn in any case.
        own = {name: value for name, value in given.items() if name != "variants"}
        return game_training_of(self.training, {**defaults_for(self.named.game), **own})

    def baselines(self, config: Any) -> list[str]:
        """Also those whose options are searched unless told otherwise."""
        return self.schedulers.honest(hardware=False)

    def validation(self, config: Any) -> GameValidation:
        seeds = self.validation_seeds(config)
        return GameValidation(
            seeds=seeds,
            problems=[self.drawn],
            episodes=len(seeds),
            costs=lambda names, on_progress, _: self._costs(seeds, names, on_progress),
            made=lambda names: self._made({name: self.named.new(name) for name in names}),
        )

    def validation_seeds(self, config: Any) -> list[int]:
        """Of the random problems that a training of this configuration is validated on."""
        from gpusched_env.agents.training.environments import validation_seeds

        return validation_seeds(config)

    def _costs(self, seeds: list[int], schedulers: list[str], on_progress: Progress) -> dict[str, list[float]]:
        """On random problems, by scheduler."""
        cells = [cell for group in self._grid((self.drawn,)).groups(schedulers, seeds) for cell in group]
        costs: dict[str, list[float]] = {name: [] for name in schedulers}
        for done, cell in enumerate(cells, 1):
            costs[cell.scheduler].append(self.task(cell).cost)
            on_progress(done, done / len(cells))
        return costs

    def _grid(self, problems: tuple[str, ...]) -> NamedProblems:
        return NamedProblems(self.named.game, problems, self.task)

    def _made(self, schedulers: dict[str, Any], **more: Any) -> Fingerprints:
        origins = {each: origin_of(each, found, self.schedulers, self.named.game) for each, found in schedulers.items()}
        return made_by({DEVICE: self.play}, {self.named.game: origins}, **more)
