"""Running the search: all schedulers trial by trial, so that an interrupt leaves them with equal budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gpusched_env.baselines.tuning import FIRST_SEED, SCHEMA, Trial, Tuning
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.files import read_struct, write_file
from gpusched_env.experiments.lib.launch_names import DYNAMIC_PARALLELISM
from gpusched_env.experiments.lib.workers import Progress, run_tasks
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.experiments.tuning.draw import Drawn, defaults_in, next_trial, spec_of
from gpusched_env.experiments.tuning.subjects import OfLaunches, OfTenants, Subject
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.versions import versions


def tune(
    scenario: str | Scenario,
    schedulers: Sequence[str] | None = None,
    budget: int = 16,
    seeds: int = 1,
    path: Path | None = None,
    *,
    first_seed: int = FIRST_SEED,
    seed: int = 0,
    workers: int | None = None,
    resume: bool = False,
    on_progress: Progress | None = None,
    command: str = "",
) -> Tuning:
    """Search the options of every scheduler on training workloads, with equal budgets.

    Args:
        scenario: with workload sets, or ``DynamicParallelism``, whose schedulers are tuned on random applications.
        schedulers: names without options; by default all of today's GPUs that know no more than a scheduler can.
        budget: trials of each that declares ranges, its defaults among them; the others have one.
        seeds: episodes of each training workload, the same in every trial; random applications.
        path: result file, written after each round of trials.
        first_seed: of the episodes.
        seed: of the search.
        workers: processes (default: one a CPU core).
        resume: go on with ``path``; the outcome is that of an uninterrupted search.
        on_progress: called with the number of finished episodes and their share.
        command: noted in the result.

    Raises:
        InputError: unknown names, a scheduler with options or one that is told the truth, a scenario without
            workload sets; ``path`` cannot be written, or is of another search.
        IllegalCommand, DeadlockError: from an episode, which it names.
    """
    subject: Subject
    if scenario == DYNAMIC_PARALLELISM:
        subject, episodes = OfLaunches(schedulers), OfLaunches.seeds(first_seed, seeds)
    else:
        loaded = load_scenario(scenario) if isinstance(scenario, str) else scenario
        subject, episodes = OfTenants(loaded, schedulers), list(range(first_seed, first_seed + seeds))
    tuning = Tuning(
        command=command,
        versions=versions(),
        scenario=subject.name,
        variants=subject.variants,
        seeds=episodes,
        budget=budget,
        seed=seed,
        trials={name: [] for name in subject.ranges},
    )
    if resume and path is not None and path.exists():
        tuning.trials |= _trials_before(path, tuning)
    rounds = [[name for name, ranges in subject.ranges.items() if number == 0 or ranges] for number in range(budget)]
    each = len(subject.variants) * len(episodes)
    total, done = each * sum(map(len, rounds)), 0
    for number, searched in enumerate(rounds):
        todo = [name for name in searched if len(tuning.trials[name]) <= number]
        done += each * (len(searched) - len(todo))
        drawn = {name: _drawn(name, subject, tuning) for name in todo}
        specs = {name: spec_of(name, drawn[name]) if number else name for name in todo}
        for spec in specs.values():
            subject.check(spec)
        costs: dict[str, list[float]] = {spec: [] for spec in specs.values()}
        for _, found in run_tasks(_Each(subject), subject.groups(list(costs), episodes) if todo else [], workers):
            for one in found:
                costs[one.cell.scheduler].append(one.cost)
            done += len(found)
            if on_progress is not None:
                on_progress(done, done / total)
        for name, spec in specs.items():
            tuning.trials[name].append(Trial(spec=spec, drawn=drawn[name], cost=subject.mean(sorted(costs[spec]))))
        if path is not None and todo:
            write_file(path, msgspec.json.format(msgspec.json.encode(tuning), indent=1) + b"\n", "--json")
    return tuning


@dataclass(frozen=True)
class _Each:
    """The task of worker processes: some episodes."""

    subject: Subject

    def __call__(self, cells: list[RankedEpisode]) -> list[EpisodeCost]:
        return [self.subject.task(cell) for cell in cells]


def _drawn(name: str, subject: Subject, tuning: Tuning) -> Drawn:
    trials, ranges = tuning.trials[name], subject.ranges[name]
    if not trials:
        return defaults_in(ranges, subject.defaults(name))
    return next_trial(name, ranges, trials, tuning.budget, tuning.seed)


def _trials_before(path: Path, tuning: Tuning) -> dict[str, list[Trial]]:
    """Of the same search; whole rounds, since files are written after each."""
    before = read_struct(path, Tuning, SCHEMA, "not a search for options", "gpusched tune --json writes one")
    same = ("scenario", "variants", "seeds", "seed", "budget")
    other = [name for name in same if getattr(before, name) != getattr(tuning, name)]
    if other or before.versions.get("gpusched-env") != tuning.versions.get("gpusched-env"):
        raise InputError(f"--resume: {path} is of another search ({', '.join(other) or 'version'}); name another file")
    return {name: trials for name, trials in before.trials.items() if name in tuning.trials}
