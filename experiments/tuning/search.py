"""Running the search: all schedulers trial by trial, so that an interrupt leaves them with equal budgets."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gpusched_env.baselines.ranges import Ranges, ranges_of
from gpusched_env.baselines.registry import default_options, honest_names
from gpusched_env.baselines.tuning import FIRST_SEED, SCHEMA, Trial, Tuning
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.episodes import checked_seeds
from gpusched_env.experiments.lib.files import read_struct, write_file
from gpusched_env.experiments.lib.names import check_scheduler, new_scheduler, sees_truth
from gpusched_env.experiments.lib.workers import Progress, Shared, run_tasks
from gpusched_env.experiments.ranking.episodes import Cell, RunCell
from gpusched_env.experiments.tuning.draw import defaults_in, next_trial, spec_of
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.scenarios.variants import scenario_variants
from gpusched_env.versions import versions


def tune(
    scenario: str | Scenario,
    schedulers: Sequence[str] | None = None,
    budget: int = 16,
    seeds: int | Sequence[int] = (FIRST_SEED,),
    path: Path | None = None,
    *,
    seed: int = 0,
    workers: int | None = None,
    resume: bool = False,
    on_progress: Progress | None = None,
    command: str = "",
) -> Tuning:
    """Search the options of every scheduler on the scenario's training workloads, with equal budgets.

    Args:
        scenario: with workload sets.
        schedulers: names without options; by default all that know no more than a scheduler can.
        budget: trials of each that declares ranges, its defaults among them; the others have one.
        seeds: episodes of each training workload, the same in every trial: which, or how many from 0.
        path: result file, written after each round of trials.
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
    scenario = load_scenario(scenario) if isinstance(scenario, str) else scenario
    variants = {variant.name: variant for variant in scenario_variants(scenario, "train")}
    names = honest_names(scenario.window is not None, hardware=False) if schedulers is None else list(schedulers)
    spaces = {name: _ranges(name, scenario) for name in names}
    tuning = Tuning(
        command=command,
        versions=versions(),
        scenario=scenario.name,
        variants=list(variants),
        seeds=checked_seeds(seeds),
        budget=budget,
        seed=seed,
        trials={name: [] for name in names},
    )
    if resume and path is not None and path.exists():
        tuning.trials |= _trials_before(path, tuning)
    rounds = [[name for name in names if number == 0 or spaces[name]] for number in range(budget)]
    each = len(variants) * len(tuning.seeds)
    total = each * sum(map(len, rounds))
    task = RunCell(Shared({(scenario.name, name): variant for name, variant in variants.items()}))
    done = 0
    for number, searched in enumerate(rounds):
        todo = [name for name in searched if len(tuning.trials[name]) <= number]
        done += each * (len(searched) - len(todo))
        drawn = {name: _drawn(name, spaces[name], tuning) for name in todo}
        specs = {name: spec_of(name, drawn[name]) if number else name for name in todo}
        for spec in specs.values():
            check_scheduler(spec, scenario)
        cells = [
            Cell(scenario.name, variant, spec, "compiled", episode)
            for variant in variants
            for episode in tuning.seeds
            for spec in specs.values()
        ]
        costs: dict[str, list[float]] = {spec: [] for spec in specs.values()}
        for index, found in run_tasks(task, cells, workers):
            costs[cells[index].scheduler].append(found.cost)
            done += 1
            if on_progress is not None:
                on_progress(done, done / total)
        for name, spec in specs.items():
            cost = statistics.fmean(costs[spec])
            tuning.trials[name].append(Trial(spec=spec, drawn=drawn[name], cost=cost))
        if path is not None and todo:
            write_file(path, msgspec.json.format(msgspec.json.encode(tuning), indent=1) + b"\n", "--json")
    return tuning


def _ranges(name: str, scenario: Scenario) -> Ranges:
    check_scheduler(name, scenario)
    if "(" in name:
        raise InputError(f"{name}: name the scheduler alone, its options are searched")
    if sees_truth(name):
        raise InputError(f"{name}: is told the truth, and no rule that could be tuned")
    return ranges_of(new_scheduler(name))


def _drawn(name: str, ranges: Ranges, tuning: Tuning) -> dict[str, float | str]:
    trials = tuning.trials[name]
    if not trials:
        return defaults_in(ranges, default_options(name))
    return next_trial(name, ranges, trials, tuning.budget, tuning.seed)


def _trials_before(path: Path, tuning: Tuning) -> dict[str, list[Trial]]:
    """Of the same search; whole rounds, since files are written after each."""
    before = read_struct(path, Tuning, SCHEMA, "not a search for options", "gpusched tune --json writes one")
    same = ("scenario", "variants", "seeds", "seed", "budget")
    other = [name for name in same if getattr(before, name) != getattr(tuning, name)]
    if other or before.versions.get("gpusched-env") != tuning.versions.get("gpusched-env"):
        raise InputError(f"--resume: {path} is of another search ({', '.join(other) or 'version'}); name another file")
    return {name: trials for name, trials in before.trials.items() if name in tuning.trials}
