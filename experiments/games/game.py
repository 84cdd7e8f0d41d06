"""What experiments ask of a game, and the game of a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from gpusched_env.baselines.ranges import Ranges
from gpusched_env.baselines.registered import Registered
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode, Workloads
from gpusched_env.experiments.ranking.made import Fingerprints
from gpusched_env.scenarios.games import GAMES, KERNELS, load_room, rooms_of

if TYPE_CHECKING:
    from gpusched_env.agents.training.config import Training
    from gpusched_env.experiments.fuzz.run import Fuzzing
    from gpusched_env.experiments.ranking.result import Ranking


class GameGrid(Protocol):
    """Problems of a game, on which schedulers are run with several seeds."""

    @property
    def variants(self) -> dict[str, list[str]]:
        """Names of the problems, by scenario."""
        ...

    @property
    def task(self) -> Callable[[RankedEpisode], EpisodeCost]:
        """What worker processes do."""
        ...

    def groups(self, schedulers: Sequence[str], seeds: Sequence[int]) -> list[list[RankedEpisode]]:
        """Every episode, those together that one process should run.

        In an order in which an interrupt leaves the schedulers on equal footing.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class RankingTerms:
    """What a ranking is to be of, as :func:`gpusched_env.experiments.ranking.run.rank` takes it."""

    scenarios: Sequence[str]
    schedulers: Sequence[str] | None
    workloads: Workloads
    gpu: str | None
    devices: Sequence[str]
    settings: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class RankedField:
    """Schedulers that are ranked, and what they are ranked on."""

    schedulers: list[str]
    grid: GameGrid
    bounded: list[str] = field(default_factory=list)
    """Scenarios whose cost with every tenant alone is among the episodes."""
    remarks: dict[str, list[str]] = field(default_factory=dict)
    """What to know of each scenario's figures."""
    made: Fingerprints
    """What its episodes are made by."""


@dataclass(frozen=True, kw_only=True)
class TunedField:
    """Schedulers whose options are searched, and what they are searched on."""

    grid: GameGrid
    seeds: list[int]
    """Seeds of each problem."""
    ranges: dict[str, Ranges]
    """Ranges of options by scheduler; empty where there is nothing to tune."""
    defaults: dict[str, Mapping[str, Any]]
    """Default options of each scheduler."""
    check: Callable[[str], object]
    """Raises InputError if a scheduler's options do not fit."""
    made: Fingerprints
    """What its episodes are made by."""


@dataclass(frozen=True, kw_only=True)
class GameValidation:
    """The episodes that a training is validated on."""

    seeds: list[int]
    problems: list[str]
    """Descriptions of what is played with these seeds: equal if the episodes are."""
    episodes: int
    """Number of episodes of each scheduler."""
    costs: Callable[[list[str], Progress, int | None], dict[str, list[float]]]
    """Finds the cost of every episode, by scheduler, with so many worker processes (``None``: one a CPU core)."""
    made: Callable[[list[str]], Fingerprints]
    """What episodes of these schedulers are made by."""


@dataclass(frozen=True)
class SchedulerGroup:
    """Schedulers that stand together on their page."""

    title: str
    about: str
    names: list[str]


class Game(Protocol):
    """A kind of problems and the schedulers that play it."""

    @property
    def kind(self) -> str:
        """What the game's schedulers are schedulers of: ``child launches``."""
        ...

    @property
    def plain_gpu(self) -> str:
        """The scheduler that stands for a GPU without any."""
        ...

    @property
    def algorithm(self) -> str:
        """The algorithm of trainings, unless told otherwise."""
        ...

    @property
    def unseen(self) -> Workloads:
        """The workloads that no search for options has seen."""
        ...

    @property
    def schedulers(self) -> Registered[Any]:
        """The game's hand-written schedulers."""
        ...

    @property
    def groups(self) -> list[SchedulerGroup]:
        """All hand-written schedulers, as their page shows them."""
        ...

    def means(self, scheduler: str) -> tuple[Sequence[str], Sequence[str]] | None:
        """What a hand-written scheduler reads, and what it may do besides launching; ``None``: nothing is declared."""
        ...

    def sees_truth(self, scheduler: str) -> bool:
        """Whether a scheduler, by its name, is told the truth.

        Raises:
            InputError: there is no such scheduler.
        """
        ...

    def mean(self, costs: Sequence[float]) -> float:
        """The mean of the costs of several episodes."""
        ...

    def ranked(self, terms: RankingTerms) -> RankedField:
        """Schedulers and problems of a ranking.

        Raises:
            InputError: unknown names, or what the game has not.
        """
        ...

    def remarks(self, ranking: Ranking) -> dict[str, list[str]]:
        """What a complete ranking comes to, a sentence each, by scenario."""
        ...

    def tuned(self, scenario: Any, schedulers: Sequence[str] | None, first_seed: int, seeds: int) -> TunedField:
        """Schedulers and problems of a search for options.

        Args:
            scenario: of the game.
            schedulers: names; ``None``: all of today's GPUs that know no more than a scheduler can.
            first_seed: of the episodes.
            seeds: how many of each problem.

        Raises:
            InputError: an unknown scheduler, or one with options; no problems to tune on.
        """
        ...

    def configured(self, scenario: str, given: dict[str, Any], gpu: str | None) -> Training:
        """A training with what is ``given``, else with the scenario's own settings where it has some.

        Raises:
            InputError: unknown names, invalid values.
        """
        ...

    def baselines(self, config: Any) -> list[str]:
        """Schedulers that a training is compared with, if nobody says which: honest ones of today's GPUs."""
        ...

    def validation(self, config: Any) -> GameValidation:
        """The episodes that a training is validated on."""
        ...

    @property
    def fuzzing(self) -> Fuzzing:
        """How devices of the game are fuzzed."""
        ...


def game_of(problem: object) -> Game:
    """The game of its name, or of a scenario, its name or file."""
    found: Game = load_room(rooms_of(problem).game)
    return found


def common_game(problems: Sequence[object]) -> Game:
    """The game that all ``problems`` are of; without any, that of scenarios.

    Raises:
        InputError: they are of several.
    """
    apart = [problem for problem in problems if rooms_of(problem) != rooms_of(problems[0])]
    if apart:
        raise InputError(f"{problems[0]} and {apart[0]} are different games: each is ranked by itself")
    return game_of(problems[0] if problems else None)


def games() -> dict[str, Game]:
    """All of them, by name; that of scenarios comes first and has none."""
    found: list[tuple[str, Game]] = [("", load_room(KERNELS.game)), *((name, game_of(name)) for name in GAMES)]
    return dict(found)
