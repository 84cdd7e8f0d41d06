"""Running a ranking: episodes in worker processes, the result file written as they finish."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import Grid, RankedField, RankingTerms
from gpusched_env.experiments.games.registry import common_game
from gpusched_env.experiments.lib.episodes import checked_seeds
from gpusched_env.experiments.lib.files import write_file
from gpusched_env.experiments.lib.grid import run_grid
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode, Workloads
from gpusched_env.experiments.ranking.result import Ranking, encode_ranking, read_ranking
from gpusched_env.versions import versions

WRITE_EVERY_S = 10.0


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
    on_progress: Progress | None = None,
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
        resume: keep the episodes of ``path``, which must be of the same version of the package; those of trained
            agents only if their policies are the same.
        on_progress: called with the number of finished episodes and their share.
        command: noted in the result.

    Raises:
        InputError: unknown names, no such workload set, or ``path`` cannot be written or is no ranking.
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
    seeds = checked_seeds(seeds)
    field = game.ranked(terms)
    clairvoyant = [scheduler for scheduler in field.schedulers if game.sees_truth(scheduler)]
    ranking = _begun(command, terms, seeds, field, clairvoyant)
    if resume and path is not None and path.exists():
        ranking.episodes = _kept(path, ranking, field.grid)
    _run(ranking, field.grid, path, workers, on_progress)
    if ranking.complete and (remarks := game.remarks(ranking)):
        ranking.remarks |= remarks
        _write(path, ranking)
    return ranking


def _begun(command: str, terms: RankingTerms, seeds: list[int], field: RankedField, clairvoyant: list[str]) -> Ranking:
    """Without episodes."""
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
        clairvoyant=clairvoyant,
        bounded=field.bounded,
        policies=field.policies,
        episodes=[],
    )


def _run(ranking: Ranking, grid: Grid, path: Path | None, workers: int | None, on_progress: Progress | None) -> None:
    """Add the episodes that ``ranking`` has not; an interrupt keeps what has finished."""
    groups = grid.groups(ranking.schedulers, ranking.seeds)
    done = {episode.cell: episode for episode in ranking.episodes}
    cells = [cell for group in groups for cell in group]
    written = time.monotonic()

    def keep(found: list[EpisodeCost]) -> None:
        nonlocal written
        done.update({episode.cell: episode for episode in found})
        ranking.episodes = [done[cell] for cell in cells if cell in done]
        if on_progress is not None:
            on_progress(len(done), len(done) / len(cells))
        if time.monotonic() - written > WRITE_EVERY_S:
            _write(path, ranking)
            written = time.monotonic()

    _write(path, ranking)
    run_grid(grid.task, [[cell for cell in group if cell not in done] for group in groups], workers, keep)
    _write(path, ranking)


def _write(path: Path | None, ranking: Ranking) -> None:
    if path is not None:
        write_file(path, encode_ranking(ranking), "--json")


def _kept(path: Path, ranking: Ranking, grid: Grid) -> list[EpisodeCost]:
    """The wanted episodes of an earlier run."""
    before = read_ranking(path)
    ours, theirs = ranking.versions.get("gpusched-env"), before.versions.get("gpusched-env")
    if ours != theirs:
        raise InputError(f"--resume: {path} is of version {theirs}, this is {ours}; run it anew")
    same = all(getattr(before, name) == getattr(ranking, name) for name in ("workloads", "gpu", "settings"))
    cells = [cell for group in grid.groups(ranking.schedulers, ranking.seeds) for cell in group]
    wanted = set(cells) if same else set()
    return [e for e in before.episodes if e.cell in wanted and _policy(before, e.cell) == _policy(ranking, e.cell)]


def _policy(ranking: Ranking, cell: RankedEpisode) -> str | None:
    return ranking.policies.get(cell.scenario, {}).get(cell.scheduler)


def _workloads(name: str) -> Workloads:
    for known in get_args(Workloads):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise InputError(f"--workloads {name!r}: must be one of {', '.join(get_args(Workloads))}")
