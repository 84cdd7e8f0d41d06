"""Running a ranking: episodes in worker processes, the result file written as they finish."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from gpusched_env.agents.dynamic_parallelism.learned import LearnedLaunches
from gpusched_env.agents.manifest import file_hash
from gpusched_env.agents.shipped import shipped_file
from gpusched_env.baselines.tuning import tuned_names
from gpusched_env.episodes.cautions import cautions
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.episodes import checked_seeds
from gpusched_env.experiments.lib.files import write_file
from gpusched_env.experiments.lib.launch_names import DYNAMIC_PARALLELISM, new_launch_scheduler
from gpusched_env.experiments.lib.names import (
    check_scheduler,
    default_schedulers,
    expanded,
    is_learned,
    learned_file,
    new_device,
    sees_truth,
    with_groups,
)
from gpusched_env.experiments.lib.workers import Progress, Shared, run_tasks
from gpusched_env.experiments.ranking.bound import has_bound
from gpusched_env.experiments.ranking.dynamic_parallelism import (
    SUITE,
    default_launch_schedulers,
    launch_cells,
    run_launch_cell,
    speedup_text,
)
from gpusched_env.experiments.ranking.episodes import (
    EpisodeCost,
    RankedEpisode,
    RunCell,
    Workloads,
    cells_of,
    variants_of,
)
from gpusched_env.experiments.ranking.result import Ranking, encode_ranking, read_ranking
from gpusched_env.experiments.settings import apply_settings
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
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
    scenarios = [scenarios] if isinstance(scenarios, str) else scenarios
    seeds = checked_seeds(seeds)
    if DYNAMIC_PARALLELISM in scenarios:
        if len(scenarios) > 1 or workloads != "own" or gpu is not None or settings or tuple(devices) != ("compiled",):
            raise InputError(f"{DYNAMIC_PARALLELISM} is ranked by itself, as it is, on the compiled device")
        names = with_groups(
            ["default"] if schedulers is None else schedulers,
            default_launch_schedulers,
            lambda: tuned_names(DYNAMIC_PARALLELISM),
        )
        return _rank_launches(names, seeds, path, workers, resume, on_progress, command)
    loaded = [load_scenario(name) for name in scenarios]
    given = [default_schedulers(of) if schedulers is None else expanded(schedulers, of) for of in loaded]
    schedulers = [name for name in given[0] if all(name in names for names in given)]
    kind = _workloads(workloads)
    for device in devices:
        new_device(device)
    problems: dict[tuple[str, str], Scenario] = {}
    for name in scenarios:
        for variant in variants_of(apply_settings(load_scenario(name), settings), kind, gpu):
            problems[name, variant.name] = variant
            for scheduler in schedulers:
                check_scheduler(scheduler, variant)
    remarks: dict[str, list[str]] = {}
    for (name, _), variant in problems.items():
        known = remarks.setdefault(name, [])
        known += [remark for remark in cautions(build_problem(variant)) if remark not in known]
    ranking = Ranking(
        command=command,
        versions=versions(),
        workloads=kind,
        gpu=gpu,
        schedulers=list(schedulers),
        devices=list(devices),
        seeds=seeds,
        variants={name: [variant for scenario, variant in problems if scenario == name] for name in scenarios},
        settings=list(settings),
        remarks=remarks,
        clairvoyant=[scheduler for scheduler in schedulers if sees_truth(scheduler)],
        bounded=[name for name in scenarios if has_bound(apply_settings(load_scenario(name), settings))],
        policies=_policies(scenarios, schedulers),
        episodes=[],
    )
    cells = cells_of(problems, schedulers, devices, seeds, ranking.bounded)
    if resume and path is not None and path.exists():
        ranking.episodes = _kept(path, ranking, cells)
    _run(ranking, RunCell(Shared(problems)), [[cell] for cell in cells], path, workers, on_progress)
    return ranking


def _rank_launches(
    schedulers: list[str],
    seeds: list[int],
    path: Path | None,
    workers: int | None,
    resume: bool,
    on_progress: Progress | None,
    command: str,
) -> Ranking:
    """On the benchmarks of dynamic parallelism, each with its own input of every seed."""
    made = {name: new_launch_scheduler(name) for name in schedulers}
    policies = {name: file_hash(found.file) for name, found in made.items() if isinstance(found, LearnedLaunches)}
    ranking = Ranking(
        command=command,
        versions=versions(),
        workloads="own",
        gpu=None,
        schedulers=schedulers,
        devices=["compiled"],
        seeds=seeds,
        variants={DYNAMIC_PARALLELISM: list(SUITE)},
        clairvoyant=[name for name, found in made.items() if getattr(found, "clairvoyant", False)],
        policies={DYNAMIC_PARALLELISM: policies} if policies else {},
        episodes=[],
    )
    groups = launch_cells(schedulers, seeds)
    if resume and path is not None and path.exists():
        ranking.episodes = _kept(path, ranking, [cell for group in groups for cell in group])
    _run(ranking, run_launch_cell, groups, path, workers, on_progress)
    if ranking.complete:
        ranking.remarks = {DYNAMIC_PARALLELISM: [speedup_text(ranking.costs(DYNAMIC_PARALLELISM, "compiled"))]}
        _write(path, ranking)
    return ranking


def _run(
    ranking: Ranking,
    task: Callable[[RankedEpisode], EpisodeCost],
    groups: list[list[RankedEpisode]],
    path: Path | None,
    workers: int | None,
    on_progress: Progress | None,
) -> None:
    """``groups``: of cells that one process runs after each other."""
    done = {episode.cell: episode for episode in ranking.episodes}
    cells = [cell for group in groups for cell in group]
    todo = [left for group in groups if (left := [cell for cell in group if cell not in done])]
    written = time.monotonic()
    _write(path, ranking)
    try:
        for _, episodes in run_tasks(_RunEpisodes(task), todo, workers):
            done |= {episode.cell: episode for episode in episodes}
            ranking.episodes = [done[cell] for cell in cells if cell in done]
            if on_progress is not None:
                on_progress(len(done), len(done) / len(cells))
            if time.monotonic() - written > WRITE_EVERY_S:
                _write(path, ranking)
                written = time.monotonic()
    except KeyboardInterrupt:
        pass
    _write(path, ranking)


@dataclass(frozen=True)
class _RunEpisodes:
    """A task of several cells."""

    task: Callable[[RankedEpisode], EpisodeCost]

    def __call__(self, cells: list[RankedEpisode]) -> list[EpisodeCost]:
        return [self.task(cell) for cell in cells]


def _write(path: Path | None, ranking: Ranking) -> None:
    if path is not None:
        write_file(path, encode_ranking(ranking), "--json")


def _kept(path: Path, ranking: Ranking, cells: list[RankedEpisode]) -> list[EpisodeCost]:
    """The wanted episodes of an earlier run."""
    before = read_ranking(path)
    ours, theirs = ranking.versions.get("gpusched-env"), before.versions.get("gpusched-env")
    if ours != theirs:
        raise InputError(f"--resume: {path} is of version {theirs}, this is {ours}; run it anew")
    same = all(getattr(before, name) == getattr(ranking, name) for name in ("workloads", "gpu", "settings"))
    wanted = set(cells) if same else set()
    return [e for e in before.episodes if e.cell in wanted and _policy(before, e.cell) == _policy(ranking, e.cell)]


def _policy(ranking: Ranking, cell: RankedEpisode) -> str | None:
    return ranking.policies.get(cell.scenario, {}).get(cell.scheduler)


def _policies(scenarios: Sequence[str], schedulers: Sequence[str]) -> dict[str, dict[str, str]]:
    """``policies`` of a ranking."""
    found: dict[str, dict[str, str]] = {}
    for scenario in scenarios:
        for scheduler in filter(is_learned, schedulers):
            file = learned_file(scheduler) or shipped_file(load_scenario(scenario))
            found.setdefault(scenario, {})[scheduler] = file_hash(file)
    return found


def _workloads(name: str) -> Workloads:
    for known in get_args(Workloads):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise InputError(f"--workloads {name!r}: must be one of {', '.join(get_args(Workloads))}")
