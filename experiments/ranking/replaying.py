"""Several result files played again: all of them in turn, or a sample of all of them together."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import RankedField
from gpusched_env.experiments.lib.files import held
from gpusched_env.experiments.ranking.episodes import RankedEpisode
from gpusched_env.experiments.ranking.replay import (
    Notes,
    Replay,
    field_of,
    first_cells,
    replay,
    stale,
    stale_rows,
)
from gpusched_env.experiments.ranking.result import Ranking, read_ranking

DEAR: Final = ("hindsight", "offline-best", "offline-search", "plan", "cusync-search")
"""Schedulers that simulate or search before they decide."""
DEAR_SHARE: Final = 0.05
"""How often one of them is in a sample, in relation to others."""


@dataclass(kw_only=True)
class Replaying:
    """A replay of several files, and what came of it so far."""

    workers: int | None
    note: bool
    """Write into the files what is the same."""
    replace: bool
    """And what is not."""
    tell: Callable[[str], object]
    total: Replay = field(default_factory=lambda: Replay(complete=True))
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
        """So many seeds of each; ``None``: one, or to note it all that do not stand for what is there now."""
        for file in files:
            if self.total.complete:
                self._play(file, seeds)

    def sample(self, files: Sequence[Path], number: int, draw: str) -> None:
        """So many episodes of all files together, mostly of fast schedulers, each file as likely as another.

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

    def _add(self, file: Path, found: Replay) -> None:
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
    return DEAR_SHARE if name in DEAR else 1.0
