"""Running the search for options: all schedulers trial by trial, by Optuna."""

from __future__ import annotations

import contextlib
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import create_trial

from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.baselines.tuning import FIRST_SEED, SCHEMA, Trial, Tuning
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import Game, TunedField, game_of
from gpusched_env.experiments.lib.files import held, read_struct, write_file
from gpusched_env.experiments.lib.workers import Progress, counting, run_grid
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.experiments.ranking.made import Fingerprints, changed_parts
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.versions import versions

Drawn = dict[str, float | str]
"""Options as :class:`~gpusched_env.baselines.tuning.Trial` keeps them."""
RANDOM_SHARE = 0.4
"""Share of the budget that goes into trials at random before the estimator is asked."""


def next_trial(scheduler: str, ranges: Ranges, trials: Sequence[Trial], budget: int, seed: int) -> Drawn:
    """Options to try, as :class:`~gpusched_env.baselines.tuning.Trial` keeps them; the same after the same trials.

    Args:
        scheduler: name; searches of different ones draw apart from each other.
        ranges: what is searched.
        trials: so far; the first has the defaults.
        budget: trials in all.
        seed: of the search.
    """
    distributions = {name: _distribution(space) for name, space in ranges.items()}
    state = [seed, zlib.crc32(scheduler.encode()), len(trials)]
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        # Of options that matter together; Optuna calls it experimental.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=int(np.random.SeedSequence(state).generate_state(1)[0]),
            n_startup_trials=round(RANDOM_SHARE * budget),
            multivariate=True,
        )
    study = optuna.create_study(sampler=sampler)
    for trial in trials:
        if trial.drawn.keys() == ranges.keys():
            study.add_trial(create_trial(params=dict(trial.drawn), distributions=distributions, value=trial.cost))
    drawn = study.ask(distributions).params
    return {name: _rounded(value, ranges[name]) for name, value in drawn.items()}


def defaults_in(ranges: Ranges, defaults: Mapping[str, Any]) -> Drawn:
    """The defaults as a trial keeps them; empty if one of them is outside of its range."""
    if not all(space.holds(defaults[name]) for name, space in ranges.items()):
        return {}
    return {
        name: _text(defaults[name]) if isinstance(space, Choice) else defaults[name] for name, space in ranges.items()
    }


def spec_of(scheduler: str, drawn: Drawn) -> str:
    """The scheduler with these options, as the command line takes it."""
    options = ",".join(f"{name}={value}" for name, value in drawn.items())
    return f"{scheduler}({options})" if options else scheduler


def _distribution(space: Range | Choice) -> BaseDistribution:
    if isinstance(space, Choice):
        return CategoricalDistribution([_text(value) for value in space.values])
    if isinstance(space.low, int) and isinstance(space.high, int):
        return IntDistribution(space.low, space.high, log=space.log)
    return FloatDistribution(space.low, space.high, log=space.log)


def _text(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _rounded(value: float | str, space: Range | Choice) -> float | str:
    """Three digits do, within the range."""
    if isinstance(space, Choice) or not isinstance(value, float):
        return value
    return min(max(float(f"{value:.3g}"), space.low), space.high)


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
    on_resumed: Callable[[str], None] = lambda said: None,
    command: str = "",
) -> Tuning:
    """Search the options of every scheduler on training workloads, with equal budgets.

    Args:
        scenario: with workload sets, or another game's name, such as ``DynamicParallelism``, whose schedulers are tuned
            on random applications.
        schedulers: names without options; by default all of today's GPUs that know no more than a scheduler can.
        budget: trials of each that declares ranges, its defaults among them; the others have one.
        seeds: episodes of each training workload, the same in every trial; random applications.
        path: result file, written after each round of trials.
        first_seed: of the episodes.
        seed: of the search.
        workers: processes (default: one a CPU core).
        resume: go on with ``path``, whose schedulers take part as well; the outcome is that of an uninterrupted search
            of all of them. Trials that other sources or data made are run again; what made them may not be known.
        on_progress: called with the number of finished episodes and their share.
        on_resumed: called with a sentence on what is kept, what made it, and what is run again.
        command: noted in the result.

    Raises:
        InputError: unknown names, a scheduler with options or one that is told the truth, a scenario without
            workload sets; ``path`` cannot be written, or is of another search.
        IllegalCommand, DeadlockError: from an episode, which it names.
    """
    with contextlib.ExitStack() as stack:
        if path is not None:
            stack.enter_context(held(path, "--json"))
        before = None
        if resume and path is not None and path.exists():
            before = read_struct(path, Tuning, SCHEMA, "not a search for options", "gpusched tune --json writes one")
        game = game_of(scenario)
        field = _tunable(game, scenario, schedulers, first_seed, seeds)
        if before is not None and not before.trials.keys() <= field.ranges.keys():
            field = _tunable(game, scenario, list(before.trials | field.ranges), first_seed, seeds)
        ((tuned, variants),) = field.grid.variants.items()
        tuning = Tuning(
            command=command,
            versions=versions(),
            scenario=tuned,
            variants=variants,
            seeds=field.seeds,
            budget=budget,
            seed=seed,
            made=msgspec.to_builtins(field.made),
            trials={name: [] for name in field.ranges},
        )
        if before is not None:
            on_resumed(f"{path}: {_go_on(before, tuning, field.made, f'{path}')}")
        _Search(game, field, tuning).run(path, workers, on_progress)
    return tuning


def _tunable(
    game: Game, scenario: str | Scenario, schedulers: Sequence[str] | None, first_seed: int, seeds: int
) -> TunedField:
    for name in schedulers or ():
        if "(" in name:
            raise InputError(f"{name}: name the scheduler alone, its options are searched")
    field = game.tuned(scenario, schedulers, first_seed, seeds)
    for name in field.ranges:
        if game.sees_truth(name):
            raise InputError(f"{name}: is told the truth, and no rule that could be tuned")
    return field


@dataclass(frozen=True)
class _Search:
    """A search under way."""

    game: Game
    field: TunedField
    tuning: Tuning

    def run(self, path: Path | None, workers: int | None, on_progress: Progress | None) -> None:
        """Round by round, a trial of each scheduler; what a round found is written to ``path``."""
        ranges, trials = self.field.ranges, self.tuning.trials
        rounds = [[name for name in ranges if number == 0 or ranges[name]] for number in range(self.tuning.budget)]
        each = len(self.tuning.variants) * len(self.field.seeds)
        total, done = each * sum(map(len, rounds)), 0
        for number, searched in enumerate(rounds):
            todo = [name for name in searched if len(trials[name]) <= number]
            tell = counting(on_progress, total, done + each * (len(searched) - len(todo)))
            done += each * len(searched)
            if not todo:
                continue
            self.try_next(todo, workers, tell)
            if path is not None:
                write_file(path, msgspec.json.format(msgspec.json.encode(self.tuning), indent=1) + b"\n", "--json")

    def try_next(self, names: list[str], workers: int | None, tell: Callable[[int], None]) -> None:
        """One more trial of each scheduler.

        Raises:
            KeyboardInterrupt: an interrupt; none of the trials is kept.
        """
        drawn = {name: self._drawn(name) for name in names}
        specs = {name: spec_of(name, drawn[name]) if self.tuning.trials[name] else name for name in names}
        for spec in specs.values():
            self.field.check(spec)
        costs: dict[str, list[float]] = {spec: [] for spec in specs.values()}

        def keep(found: list[EpisodeCost]) -> None:
            for one in found:
                costs[one.cell.scheduler].append(one.cost)
            tell(len(found))

        grid = self.field.grid
        if not run_grid(grid.task, grid.groups(list(costs), self.field.seeds), workers, keep):
            raise KeyboardInterrupt
        for name, spec in specs.items():
            cost = self.game.mean(sorted(costs[spec]))
            self.tuning.trials[name].append(Trial(spec=spec, drawn=drawn[name], cost=cost))

    def _drawn(self, name: str) -> Drawn:
        trials, ranges = self.tuning.trials[name], self.field.ranges[name]
        if not trials:
            return defaults_in(ranges, self.field.defaults[name])
        return next_trial(name, ranges, trials, self.tuning.budget, self.tuning.seed)


def _go_on(before: Tuning, tuning: Tuning, now: Fingerprints, where: str) -> str:
    """Take the trials of a search over into the same search with perhaps more schedulers, but for those that something
    else made; gives words on them.

    Raises:
        InputError: it is another search.
    """
    same = ("scenario", "variants", "seeds", "seed", "budget")
    if other := [name for name in same if getattr(before, name) != getattr(tuning, name)]:
        raise InputError(f"--resume: {where} is of another search ({', '.join(other)}); name another file")
    try:
        then = msgspec.convert(before.made, Fingerprints)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: made: {error}") from error
    again: dict[str, list[str]] = {}
    unknown = before.trials.keys() - then.schedulers.get(tuning.scenario, {}).keys()
    for name, trials in before.trials.items():
        cells = [RankedEpisode(tuning.scenario, of, name, on, 0) for of in tuning.variants for on in now.physics]
        differ = {part for cell in cells for part in changed_parts(then.of(cell), now.of(cell))}
        if differ and name not in unknown:
            again.setdefault(" and ".join(sorted(differ)), []).append(name)
        else:
            tuning.trials[name] = trials
    hashes = {name: found for name, found in now.schedulers[tuning.scenario].items() if name not in unknown}
    tuning.made = msgspec.to_builtins(msgspec.structs.replace(now, schedulers={tuning.scenario: hashes}))
    if before.command:
        added = before.trials.keys() != tuning.trials.keys()
        tuning.command = f"{before.command}\n{tuning.command}" if added else before.command
    words = [f"trials of {counted(sum(map(bool, tuning.trials.values())), 'scheduler')} kept"]
    if unknown:
        words.append(f"what made those of {', '.join(sorted(unknown))} is not known, nor whether it is the same today")
    words += [f"to be searched again, since another {parts} made them: {', '.join(of)}" for parts, of in again.items()]
    return "; ".join(words)
