"""Options that a search found for schedulers on a scenario's training workloads (``gpusched tune``), as data.

A published scheduler has options whose defaults were chosen on its authors' GPU and models. ``tuned:orion`` is Orion
with the options that were best on the training workloads of the scenario that it runs on, each scheduler searched with
the same budget; a scheduler's first trial has its defaults, so that a tuned one is never worse there.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import msgspec

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.reading import decoded, read_bytes
from gpusched_env.scenarios.variants import family

PREFIX = "tuned:"
FOLDER = Path(__file__).with_name("tuned")
"""The folder of ``<Scenario>.json``, a :class:`Tuning` each."""
FIRST_SEED = 5_000_000
"""First seed of the episodes: apart from those of rankings (0, 1, ...) and of trainings (from 10,000,000 on)."""
SCHEMA = "gpusched-tuning/1"


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One choice of options and what it cost."""

    spec: str
    """The scheduler with its options, ``orion(bound=0.5)``; in a first trial the name alone."""
    drawn: dict[str, float | str] = {}
    """Values as the search drew them, by option: numbers, or texts of a choice."""
    cost: float
    """Mean cost over all episodes; of ratios to flat programs, the geometric mean."""


class Tuning(msgspec.Struct, kw_only=True):
    """All trials of all schedulers on one scenario; every trial is the mean over the same episodes."""

    schema: str = SCHEMA
    command: str
    """Commands that tuned, a line each, where one has added schedulers to what another found."""
    versions: dict[str, str]
    scenario: str
    variants: list[str]
    """Training workloads: names of the scenario's variants."""
    seeds: list[int]
    """Seeds of the episodes of each variant."""
    budget: int
    """Trials of each scheduler that has something to tune, the defaults included; others have one."""
    seed: int
    """Seed of the search."""
    made: dict[str, Any] = {}
    """Hashes of what the episodes were made by, as in results of rankings; that is not known of schedulers that it does
    not list."""
    trials: dict[str, list[Trial]]
    """Trials of each scheduler, in the order of the search, the defaults first."""

    def best(self, scheduler: str) -> Trial:
        """The cheapest; the earlier of equal ones, so that defaults stay where nothing is gained.

        Raises:
            InputError: the scheduler was not tuned.
        """
        if scheduler not in self.trials:
            raise InputError(f"{scheduler} was not tuned on {self.scenario}; {did_you_mean(scheduler, self.trials)}")
        return min(self.trials[scheduler], key=lambda trial: trial.cost)

    @property
    def changed(self) -> list[str]:
        """Schedulers that other options than their defaults made cheaper."""
        return [name for name, trials in self.trials.items() if self.best(name) is not trials[0]]

    @property
    def chosen(self) -> str:
        """The cheapest scheduler on the training workloads: its name, with :data:`PREFIX` if its options are tuned."""
        name = min(self.trials, key=lambda scheduler: self.best(scheduler).cost)
        return f"{PREFIX}{name}" if name in self.changed else name


def tuning_for(scenario: str) -> Tuning | None:
    """What is shipped for a scenario of this name, or for the one that it is a variant of; ``None`` without."""
    name = family(scenario)
    path = FOLDER / f"{name}.json"
    return _read(path) if path.name == f"{name}.json" and path.is_file() else None


def tuned_names(scenario: str) -> list[str]:
    """``tuned:NAME`` of every scheduler that tuning changed on a scenario."""
    tuning = tuning_for(scenario)
    return [] if tuning is None else [f"{PREFIX}{name}" for name in tuning.changed]


def tuned_spec(name: str, scenario: str) -> str:
    """The scheduler that ``tuned:NAME`` is on a scenario, with its options.

    Raises:
        InputError: nothing is known of the scenario or of the scheduler.
    """
    tuning = tuning_for(scenario)
    if tuning is None:
        known = ", ".join(sorted(path.stem for path in FOLDER.glob("*.json"))) or "none yet"
        raise InputError(f"{name}: no tuned options for {family(scenario)}; for: {known} (gpusched tune searches)")
    return tuning.best(name.removeprefix(PREFIX)).spec


@functools.cache
def _read(path: Path) -> Tuning:
    return decoded(read_bytes(path), Tuning, str(path))
