"""Result files played again: whether the simulator still says what it said when they were written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.experiments.ranking.result import TRADE, Ranking
from gpusched_env.experiments.ranking.run import rank

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
class Replay:
    """What became of the episodes of a result file."""

    episodes: int
    """Played again."""
    exact: int
    """Figures that are equal to the last bit."""
    close: int
    """Those that are equal within :data:`TOLERANCE` only."""
    differences: list[ReplayedFigure]
    """All others."""
    other_policies: list[str]
    """Trained schedulers that were left out: the file's episodes are of another policy than the one shipped now."""
    complete: bool
    """Whether no interrupt ended it early."""


def replay(ranking: Ranking, seeds: int, workers: int | None = None, on_progress: Progress | None = None) -> Replay:
    """Play the episodes of the first ``seeds`` seeds of a result file again, of every variant and scheduler.

    Figures that an older file lacks are not compared.

    Args:
        seeds: at least 1; at most all are played.
        workers, on_progress: as for :func:`~gpusched_env.experiments.ranking.run.rank`.

    Raises:
        InputError: fewer than one seed, or the file names what is there no longer.
    """
    if seeds < 1:
        raise InputError(f"seeds is {seeds}, must be at least 1")
    again = rank(
        list(ranking.variants),
        ranking.schedulers,
        ranking.seeds[:seeds],
        workloads=ranking.workloads,
        gpu=ranking.gpu,
        devices=ranking.devices,
        settings=ranking.settings,
        workers=workers,
        on_progress=on_progress,
    )
    written = {episode.cell: episode for episode in ranking.episodes}
    pairs = [
        (written[episode.cell], episode)
        for episode in again.episodes
        if episode.cell in written and _policy(ranking, episode.cell) == _policy(again, episode.cell)
    ]
    figures = [figure for pair in pairs for figure in _figures(*pair)]
    exact = sum(figure.is_exact for figure in figures)
    differences = [figure for figure in figures if not figure.is_close]
    left_out = {e.cell.scheduler for e in again.episodes if _policy(ranking, e.cell) != _policy(again, e.cell)}
    return Replay(
        episodes=len(pairs),
        exact=exact,
        close=len(figures) - exact - len(differences),
        differences=differences,
        other_policies=sorted(left_out),
        complete=again.complete,
    )


def _policy(ranking: Ranking, cell: RankedEpisode) -> str | None:
    return ranking.policies.get(cell.scenario, {}).get(cell.scheduler)


def _figures(written: EpisodeCost, played: EpisodeCost) -> list[ReplayedFigure]:
    figures = [(figure, getattr(written, figure), getattr(played, figure)) for figure in ("cost", *TRADE)]
    return [ReplayedFigure(written.cell, figure, before, now) for figure, before, now in figures if before is not None]
