"""Running a ranking: episodes in worker processes, the result file written as they finish."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import get_args

import msgspec

from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import Game, GameGrid, RankedField, RankingTerms, common_game
from gpusched_env.experiments.lib.episodes import checked_seeds
from gpusched_env.experiments.lib.files import held, write_file
from gpusched_env.experiments.lib.workers import Progress, run_grid
from gpusched_env.experiments.ranking.episodes import EpisodeCost, Workloads
from gpusched_env.experiments.ranking.made import Fingerprints, changed_parts
from gpusched_env.experiments.ranking.result import Ranking, encode_ranking, read_ranking
from gpusched_env.versions import versions

WRITING_SHARE = 0.05
"""Share of a run's time, at most, that goes into writing what has finished."""


def rank(
    scenarios: str | Sequence[str],
    schedulers: Sequence[str] | None = None,
    seeds: int | Sequence[int] = 10,
    path: Path | None = None,
    *,
    workloads: str = "own",
    gpu: str | None = None,
    devices: Sequence[str] = ("compiled",),
    workers: int | None = None,
    settings: Sequence[str] = (),
    resume: bool = False,
    overwrite: bool = False,
    on_progress: Progress | None = None,
    on_resumed: Callable[[str], None] = lambda said: None,
    command: str = "",
) -> Ranking:
    """Run every scheduler on the same episodes; an interrupt (Ctrl-C) keeps what has finished.

    Where the scenario's cost is a sum over tenants, it is also found with each of them alone
    (:mod:`gpusched_env.experiments.ranking.bound`).

    Args:
        scenarios, devices: names, as for ``compare``.
        schedulers: names; by default those that ``compare`` takes by default for every one of ``scenarios``.
        seeds: of every variant and device: how many, counted from 0, or which.
        path: a result file, written as episodes finish.
        workloads: ``own``, ``train`` or ``held_out``.
        gpu: instead of the scenarios' own.
        workers: processes (default: one a CPU core).
        settings: fields of the scenarios to replace, as ``path=value``
            (:func:`~gpusched_env.experiments.settings.apply_settings`).
        resume: keep the episodes of ``path`` that the same physics, scheduler and data made.
        overwrite: if it has episodes of another ranking besides, drop them.
        on_progress: called with the number of finished episodes and their share.
        on_resumed: called with a sentence on what is kept and what is played again.
        command: noted in the result.

    Raises:
        InputError: unknown names, no such workload set, or ``path`` cannot be written, is no ranking, is being
            written by another process, or has episodes that would be dropped.
        IllegalCommand, DeadlockError: from an episode, which it names.
    """
    terms = RankingTerms(
        scenarios=[scenarios] if isinstance(scenarios, str) else list(scenarios),
        schedulers=schedulers,
        workloads=_workloads(workloads),
        gpu=gpu,
        devices=list(devices),
        settings=list(settings),
    )
    game = common_game(terms.scenarios)
    field = game.ranked(terms)
    ranking = _begun(command, terms, checked_seeds(seeds), field, game)
    with contextlib.ExitStack() as stack:
        if path is not None:
            stack.enter_context(held(path, "--json"))
            if resume and path.exists():
                ranking.episodes, said = _kept(path, ranking, field.grid, overwrite)
                on_resumed(said)
        _run(ranking, field.grid, path, workers, on_progress)
        if ranking.complete and (remarks := game.remarks(ranking)):
            ranking.remarks |= remarks
            Growing(ranking, path).write()
    return ranking


def _begun(command: str, terms: RankingTerms, seeds: list[int], field: RankedField, game: Game) -> Ranking:
    """A ranking without episodes."""
    return Ranking(
        command=command,
        versions=versions(),
        workloads=terms.workloads,
        gpu=terms.gpu,
        schedulers=field.schedulers,
        devices=list(terms.devices),
        seeds=seeds,
        variants=field.grid.variants,
        settings=list(terms.settings),
        remarks=field.remarks,
        clairvoyant=[scheduler for scheduler in field.schedulers if game.sees_truth(scheduler)],
        bounded=field.bounded,
        made=[field.made],
        episodes=[],
    )


def _run(
    ranking: Ranking, grid: GameGrid, path: Path | None, workers: int | None, on_progress: Progress | None
) -> None:
    """Add the episodes that ``ranking`` has not; an interrupt keeps what has finished."""
    groups = grid.groups(ranking.schedulers, ranking.seeds)
    done = {episode.cell: episode for episode in ranking.episodes}
    cells = [cell for group in groups for cell in group]
    file = Growing(ranking, path)

    def keep(found: list[EpisodeCost]) -> None:
        done.update({episode.cell: episode for episode in found})
        ranking.episodes = [done[cell] for cell in cells if cell in done]
        if on_progress is not None:
            on_progress(len(done), len(done) / len(cells))
        file.grown()

    file.write()
    run_grid(grid.task, [[cell for cell in group if cell not in done] for group in groups], workers, keep)
    file.write()


class Growing:
    """The file of a ranking that changes while episodes finish."""

    def __init__(self, ranking: Ranking, path: Path | None) -> None:
        self._ranking, self._path = ranking, path
        self._due_s = 0.0

    def grown(self) -> None:
        """Write it, unless that took too long the last time."""
        if time.monotonic() >= self._due_s:
            self.write()

    def write(self) -> None:
        """Write the ranking now."""
        begun_s = time.monotonic()
        if self._path is not None:
            write_file(self._path, encode_ranking(self._ranking), "--json")
        ended_s = time.monotonic()
        self._due_s = ended_s + (ended_s - begun_s) / WRITING_SHARE


def _kept(path: Path, ranking: Ranking, grid: GameGrid, overwrite: bool) -> tuple[list[EpisodeCost], str]:
    """The episodes of an earlier run that the same made, and a sentence on them."""
    before = read_ranking(path)
    cells = {cell for group in grid.groups(ranking.schedulers, ranking.seeds) for cell in group}
    other = [name for name in ("workloads", "gpu", "settings") if getattr(before, name) != getattr(ranking, name)]
    wanted = [] if other else [episode for episode in before.episodes if episode.cell in cells]
    if (dropped := len(before.episodes) - len(wanted)) and not overwrite:
        why = f"of other {' and '.join(other)}" if other else "not of these scenarios, schedulers and seeds"
        raise InputError(
            f"--resume: {dropped} of {counted(len(before.episodes), 'episode')} of {path} are {why} and would be lost; "
            "name another file, or drop them with --overwrite"
        )
    (now,) = ranking.made
    kept, reasons = [], Counter[str]()
    for episode in wanted:
        if now.of(episode.cell) in before.hashes(episode):
            kept.append(msgspec.structs.replace(episode, made=0, again=None))
        else:
            reasons[reason(before, episode, now)] += 1
    again = "".join(f"; {counted(number, 'episode')} to be played again: {why}" for why, number in reasons.items())
    return kept, f"{path}: {counted(len(kept), 'episode')} kept{again}"


def reason(ranking: Ranking, episode: EpisodeCost, now: Fingerprints) -> str:
    """Why an episode does not stand for what is there ``now``."""
    found = [hashes for hashes in ranking.hashes(episode) if any(hashes[:3])]
    if not found:
        return "what made them is not known"
    parts = min((changed_parts(hashes, now.of(episode.cell)) for hashes in found), key=len)
    return f"{' and '.join(parts)} differ{'s' if len(parts) == 1 else ''}"


def _workloads(name: str) -> Workloads:
    for known in get_args(Workloads):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise InputError(f"--workloads {name!r}: must be one of {', '.join(get_args(Workloads))}")
