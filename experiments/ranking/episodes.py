"""The episodes of a ranking: every scheduler on the same seeds of every scenario, on one or more devices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from gpusched_env.errors import DeadlockError, IllegalCommand
from gpusched_env.experiments.plugins import new_device, new_scheduler
from gpusched_env.experiments.ranking.bound import ALONE, AloneProblems
from gpusched_env.experiments.workers import Report
from gpusched_env.scenarios.problem import Problem, build_problem
from gpusched_env.scenarios.scenario import Scenario, override
from gpusched_env.scenarios.variants import scenario_variants
from gpusched_env.scheduling.metrics import episode_metrics
from gpusched_env.scheduling.session import run_episode

Workloads = Literal["own", "train", "held_out"]
"""The scenario as it is, or the variants of one of its workload sets."""


class Cell(msgspec.Struct, frozen=True):
    """One episode to run."""

    scenario: str
    """A shipped name or the path of a file."""
    variant: str
    """Name of a variant of it; the scenario's own name without one."""
    scheduler: str
    """Or ``alone``: every tenant with the GPU to itself (:mod:`gpusched_env.experiments.ranking.bound`)."""
    device: str
    seed: int


class EpisodeCost(msgspec.Struct, frozen=True):
    """What one episode cost."""

    cell: Cell
    cost: float


def variants_of(scenario: Scenario, workloads: Workloads, gpu: str | None = None) -> list[Scenario]:
    """The scenarios that a ranking of ``scenario`` runs, each on ``gpu`` if one is given.

    Raises:
        InputError: it has no workload sets, or no such GPU is known.
    """
    found = [scenario] if workloads == "own" else scenario_variants(scenario, workloads)
    return found if gpu is None else [override(variant, gpu=gpu) for variant in found]


@dataclass
class RunCell:
    """The task of worker processes; keeps the problem that it ran last, and the last one of tenants alone."""

    scenarios: dict[tuple[str, str], Scenario]
    """By scenario and variant, as in :class:`Cell`."""
    _last: tuple[tuple[str, str], Problem] | None = field(default=None, init=False)
    _last_alone: tuple[tuple[str, str], AloneProblems] | None = field(default=None, init=False)

    def __call__(self, cell: Cell, report: Report) -> EpisodeCost:
        if cell.scheduler == ALONE:
            return EpisodeCost(cell, self._alone(cell).cost(cell.device, cell.seed))
        problem = self._problem(cell)
        try:
            episode = run_episode(new_scheduler(cell.scheduler), problem, new_device(cell.device), cell.seed)
        except (IllegalCommand, DeadlockError) as error:
            where = f"{cell.variant}, scheduler {cell.scheduler!r}, device {cell.device}, seed {cell.seed}"
            raise type(error)(f"{where}: {error}") from error
        return EpisodeCost(cell, episode_metrics(episode).cost)

    def _problem(self, cell: Cell) -> Problem:
        which = (cell.scenario, cell.variant)
        if self._last is None or self._last[0] != which:
            self._last = which, build_problem(self.scenarios[which])
        return self._last[1]

    def _alone(self, cell: Cell) -> AloneProblems:
        which = (cell.scenario, cell.variant)
        if self._last_alone is None or self._last_alone[0] != which:
            self._last_alone = which, AloneProblems(self.scenarios[which])
        return self._last_alone[1]


def cells_of(
    scenarios: dict[tuple[str, str], Scenario],
    schedulers: Sequence[str],
    devices: Sequence[str],
    seeds: Sequence[int],
    bounded: Collection[str] = (),
) -> list[Cell]:
    """Every episode, problem by problem and within one seed by seed, so that an interrupt leaves equal footing.

    ``bounded``: scenarios whose cost with every tenant alone is wanted too, on the first device.
    """
    return [
        Cell(scenario, variant, scheduler, device, seed)
        for scenario, variant in scenarios
        for device in devices
        for seed in seeds
        for scheduler in [*schedulers, *([ALONE] if scenario in bounded and device == devices[0] else [])]
    ]
