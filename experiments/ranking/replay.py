"""Result files played again, one or several: whether the simulator still says what it said."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import RankedField, RankingTerms, common_game
from gpusched_env.experiments.lib.files import held
from gpusched_env.experiments.lib.workers import run_grid
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.experiments.ranking.made import Fingerprints
from gpusched_env.experiments.ranking.result import TRADE, Ranking, read_ranking
from gpusched_env.experiments.ranking.run import Growing, reason

TOLERANCE: Final = 1e-12
"""Relative. Processors round sums in their own ways, which makes 1e-16 a term. A decision that comes out otherwise
moves kernels by microseconds: of an episode of a second, a millionth."""


@dataclass(frozen=True)
class ReplayedFigure:
    """A figure in the file and played again."""

    episode: RankedEpisode
    figure: str
    written: float
    played: float | None

    @property
    def is_exact(self) -> bool:
        """Whether both are equal to the last bit."""
        return self.written == self.played

    @property
    def is_close(self) -> bool:
        """Whether both are equal within :data:`TOLERANCE`."""
        return self.played is not None and math.isclose(self.written, self.played, rel_tol=TOLERANCE)

    def __str__(self) -> str:
        cell = self.episode
        where = f"{cell.variant}, {cell.scheduler}, device {cell.device}, seed {cell.seed}"
        return f"{where}: {self.figure} is {self.written!r} in the file, {self.played!r} now"


@dataclass(frozen=True)
class ReplayedEpisode:
    """An episode in the file and played again."""

    written: EpisodeCost
    played: EpisodeCost

    @property
    def figures(self) -> list[ReplayedFigure]:
        """The figures that the file has; an older one lacks some."""
        pairs = [(name, getattr(self.written, name), getattr(self.played, name)) for name in ("cost", *TRADE)]
        return [ReplayedFigure(self.written.cell, name, old, new) for name, old, new in pairs if old is not None]

    @property
    def is_exact(self) -> bool:
        """Whether all figures are equal to the last bit."""
        return all(figure.is_exact for figure in self.figures)


@dataclass
class ResultReplay:
    """What became of the episodes of a result file."""

    episodes: int = 0
    """Episodes that were played again."""
    exact: int = 0
    """Figures that are equal to the last bit."""
    close: int = 0
    """Figures that are equal within :data:`TOLERANCE` only."""
    differences: list[ReplayedFigure] = field(default_factory=list)
    """Figures that differ otherwise."""
    complete: bool = False
    """Whether no interrupt ended it early."""

    def add(self, episode: ReplayedEpisode) -> None:
        """Count one more episode that was played."""
        exact = sum(figure.is_exact for figure in episode.figures)
        differences = [figure for figure in episode.figures if not figure.is_close]
        self.episodes, self.exact = self.episodes + 1, self.exact + exact
        self.close += len(episode.figures) - exact - len(differences)
        self.differences += differences


def field_of(ranking: Ranking) -> RankedField:
    """The schedulers and problems of a result file as they are now.

    Raises:
        InputError: it names what is there no longer.
    """
    terms = RankingTerms(
        scenarios=list(ranking.variants),
        schedulers=ranking.schedulers,
        workloads=ranking.workloads,
        gpu=ranking.gpu,
        devices=ranking.devices,
        settings=ranking.settings,
    )
    return common_game(terms.scenarios).ranked(terms)


def replay(
    ranking: Ranking,
    now: RankedField,
    cells: Collection[RankedEpisode],
    workers: int | None = None,
    on_played: Callable[[ReplayedEpisode], None] = lambda episode: None,
) -> ResultReplay:
    """Play episodes of a result file again.

    Args:
        ranking: of the file.
        now: what it is of, see :func:`field_of`.
        cells: those to play, if they are in the file.
        workers: as for :func:`~gpusched_env.experiments.ranking.run.rank`.
        on_played: called with each.
    """
    found = ResultReplay()
    wanted = set(cells)
    written = {episode.cell: episode for episode in ranking.episodes if episode.cell in wanted}
    groups = now.grid.groups(ranking.schedulers, ranking.seeds)

    def keep(played: list[EpisodeCost]) -> None:
        for one in played:
            episode = ReplayedEpisode(written[one.cell], one)
            found.add(episode)
            on_played(episode)

    todo = [[cell for cell in group if cell in written] for group in groups]
    found.complete = run_grid(now.grid.task, todo, workers, keep)
    return found


def first_cells(ranking: Ranking, seeds: int | None) -> list[RankedEpisode]:
    """The episodes of the first ``seeds`` seeds, or of all."""
    first = set(ranking.seeds[:seeds])
    return [episode.cell for episode in ranking.episodes if episode.cell.seed in first]


def stale(ranking: Ranking, now: Fingerprints) -> list[EpisodeCost]:
    """Episodes that were made by something else than what is there ``now``, and not noted to be the same."""
    return [episode for episode in ranking.episodes if now.of(episode.cell) not in ranking.hashes(episode)]


def stale_rows(ranking: Ranking, now: Fingerprints) -> list[str]:
    """Lines that say of each scenario and scheduler how many episodes are :func:`stale`, and why."""
    all_of = Counter((episode.cell.scenario, episode.cell.scheduler) for episode in ranking.episodes)
    rows = Counter((e.cell.scenario, e.cell.scheduler, reason(ranking, e, now)) for e in stale(ranking, now))
    return [
        f"{scenario}, {scheduler}: {number} of {all_of[scenario, scheduler]} episodes: {why}"
        for (scenario, scheduler, why), number in rows.items()
    ]


class Notes:
    """What replays tell of a result file, written into it as they go on.

    An episode that comes out equal to the last bit stands for what is there now as well. When all do, the file says so
    of all of them at once.
    """

    def __init__(self, ranking: Ranking, now: Fingerprints, path: Path | None, *, replace: bool = False) -> None:
        """``replace``: an episode that comes out otherwise is replaced by what was played."""
        self._ranking, self._now, self._replace = ranking, now, replace
        self._file = Growing(ranking, path)
        self._places = {episode.cell: place for place, episode in enumerate(ranking.episodes)}
        self._left = {episode.cell for episode in stale(ranking, now)}
        ranking.made = [*(ranking.made or [Fingerprints()]), now]
        self.replaced = 0
        """Episodes that are as they were played now."""

    def take(self, episode: ReplayedEpisode) -> None:
        """Note what came out."""
        cell, last = episode.written.cell, len(self._ranking.made) - 1
        if not episode.is_exact and not self._replace:
            return
        place = self._places[cell]
        self._left.discard(cell)
        if episode.is_exact:
            self._ranking.episodes[place] = msgspec.structs.replace(self._ranking.episodes[place], again=last)
        else:
            self._ranking.episodes[place] = msgspec.structs.replace(episode.played, made=last)
            self.replaced += 1
        self._file.grown()

    def close(self) -> None:
        """Write the file, with no more than is needed to say what its episodes stand for."""
        ranking = self._ranking
        if not self._left:
            ranking.made = [self._now]
            ranking.episodes = [msgspec.structs.replace(e, made=0, again=None) for e in ranking.episodes]
        else:
            numbers = sorted({n for e in ranking.episodes for n in (e.made, e.again) if n is not None})
            place = {number: new for new, number in enumerate(numbers)}
            ranking.made = [ranking.made[number] for number in numbers]
            ranking.episodes = [
                msgspec.structs.replace(e, made=place[e.made], again=None if e.again is None else place[e.again])
                for e in ranking.episodes
            ]
        if self.replaced and ranking.complete:
            ranking.remarks |= common_game(list(ranking.variants)).remarks(ranking)
        self._file.write()


EXPENSIVE: Final = ("hindsight", "offline-best", "offline-search", "plan", "cusync-search")
"""Schedulers that simulate or search before they decide."""
DEAR_SHARE: Final = 0.05
"""Weight of such a scheduler's episodes in a sample, in relation to others'."""


@dataclass(kw_only=True)
class ReplayOfFiles:
    """A replay of several files, and what came of it so far."""

    workers: int | None
    note: bool
    """Write into the files what is the same."""
    replace: bool
    """Whether to write into the files what is not the same, too."""
    tell: Callable[[str], object]
    total: ResultReplay = field(default_factory=lambda: ResultReplay(complete=True))
    differing: int = 0
    """Episodes with a figure that is not close."""

    def list_stale(self, files: Sequence[Path]) -> int:
        """Tell which rows do not stand for what is there now; the number of their episodes."""
        episodes = 0
        for file in files:
            ranking = read_ranking(file)
            now = _field(file, ranking).made
            episodes += len(stale(ranking, now))
            for row in stale_rows(ranking, now):
                self.tell(f"{file}: {row}")
        self.tell(f"{counted(episodes, 'episode')} of {counted(len(files), 'file')} to be played again")
        return episodes

    def play(self, files: Sequence[Path], seeds: int | None) -> None:
        """Play so many seeds of each file; ``None``: one, or to note it all that do not stand for what is there now."""
        for file in files:
            if self.total.complete:
                self._play(file, seeds)

    def sample(self, files: Sequence[Path], number: int, draw: str) -> None:
        """Play so many episodes of all files together, mostly of fast schedulers, each file as likely as another.

        ``draw``: equal ones give the same sample.
        """
        rankings = {file: read_ranking(file) for file in files}
        rows = [(file, episode.cell) for file, ranking in rankings.items() for episode in ranking.episodes]
        drawn = random.Random(draw)
        # The smallest of exponential variates: a draw without replacement in proportion to the weights.
        waits = [drawn.expovariate(_weight(cell) / len(rankings[file].episodes)) for file, cell in rows]
        chosen: dict[Path, list[RankedEpisode]] = {}
        for place in sorted(range(len(rows)), key=waits.__getitem__)[:number]:
            chosen.setdefault(rows[place][0], []).append(rows[place][1])
        for file in sorted(chosen):
            if self.total.complete:
                self._replay(file, chosen[file])

    def _play(self, file: Path, seeds: int | None) -> None:
        self._replay(file, first_cells(read_ranking(file), seeds or (None if self.note else 1)))

    def _replay(self, file: Path, cells: Sequence[RankedEpisode]) -> None:
        if not self.note:
            ranking = read_ranking(file)
            self._add(file, replay(ranking, _field(file, ranking), cells, self.workers))
            return
        with held(file, "--note"):
            ranking = read_ranking(file)
            now = _field(file, ranking)
            left = {episode.cell for episode in stale(ranking, now.made)}
            notes = Notes(ranking, now.made, file, replace=self.replace)
            try:
                self._add(
                    file, replay(ranking, now, [cell for cell in cells if cell in left], self.workers, notes.take)
                )
            finally:
                notes.close()
            rest = counted(len(stale(ranking, now.made)), "episode")
            self.tell(f"{file}: {notes.replaced} replaced by what was played; {rest} left to be played or replaced")

    def _add(self, file: Path, found: ResultReplay) -> None:
        for difference in found.differences:
            self.tell(f"{file}: {difference}")
        self.tell(f"{file}: {counted(found.episodes, 'episode')}{'' if found.complete else '; interrupted'}")
        self.differing += len({difference.episode for difference in found.differences})
        self.total.episodes += found.episodes
        self.total.exact, self.total.close = self.total.exact + found.exact, self.total.close + found.close
        self.total.complete = found.complete


def _field(file: Path, ranking: Ranking) -> RankedField:
    try:
        return field_of(ranking)
    except InputError as error:
        raise InputError(f"{file}: {error}") from error


def _weight(cell: RankedEpisode) -> float:
    name = cell.scheduler.partition("(")[0].rpartition(":")[2]
    return DEAR_SHARE if name in EXPENSIVE else 1.0
