"""What running several schedulers on the same seeds left behind: statistics over it, and data frames."""

from __future__ import annotations

import functools
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.display.frame import frame, named
from gpusched_env.display.words import counted
from gpusched_env.episodes.cautions import CostRange, cautions, demands, meeting_remark, some_alike_remark
from gpusched_env.episodes.session import jobs_frame, kernels_frame
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.lib.episodes import Run
from gpusched_env.experiments.lib.figures import GLOBAL_FIGURES, TENANT_FIGURES, FigureSpec, figure_value, find_figure
from gpusched_env.experiments.lib.statistics import (
    Interval,
    PairedDifference,
    known,
    mean_interval,
    paired_difference,
    pooled_percentile,
)
from gpusched_env.experiments.lib.trained import labels, legend
from gpusched_env.experiments.ranking.made import Fingerprints
from gpusched_env.scenarios.problem import Problem
from gpusched_env.versions import versions

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


def groups_of_equal_outcome(runs: Mapping[str, Sequence[Run]]) -> list[tuple[str, ...]]:
    """Groups of schedulers, in the order of their first members.

    Those of a group had the same seeds, completed the same jobs at the same times, and have the same figures, all of
    them exactly; only the number of commands that led there may differ.

    Args:
        runs: by scheduler, the finished episodes.
    """
    groups: dict[tuple[Any, ...], list[str]] = {}
    for scheduler, episodes in runs.items():
        groups.setdefault(tuple(map(_outcome, episodes)), []).append(scheduler)
    return [tuple(group) for group in groups.values()]


def _outcome(run: Run) -> tuple[Any, ...]:
    # Equal text is equal bits, and an undefined figure equals another.
    figures = {name: value for name, value in run.metrics.as_dict().items() if name != "decisions"}
    return run.seed, repr(figures), run.jobs.tobytes()


@dataclass(frozen=True)
class ComparedRuns:
    """Episodes of several schedulers on one problem; equal seeds mean equal arrivals and durations.

    What tables, charts and reports are made of. :class:`~gpusched_env.experiments.comparison.Comparison` has these.
    """

    problem: Problem
    device: str
    descriptions: dict[str, str]
    """One line a scheduler, in the order asked for."""
    seeds: tuple[int, ...]
    """Seeds asked for; after an interrupt some runs are missing."""
    runs: tuple[Run, ...]
    """Finished episodes, by scheduler in the order asked for, then by seed."""
    interrupted: bool
    started: datetime
    wall_s: float
    command: str
    """The command that made the comparison, for the record."""
    window_us: tuple[float, float] | None = None
    """The stretch of the first seed that was also run at block detail."""
    block_runs: dict[str, Run] = field(default_factory=dict)
    """Runs of the first seed up to the end of the window, at block detail, by scheduler."""
    clairvoyant: frozenset[str] = frozenset()
    """Schedulers that were told the truth."""
    own_workloads: dict[str, bytes] = field(default_factory=dict)
    """Files of workloads that do not come with the package, as they were when the comparison ran."""
    versions: dict[str, str] = field(default_factory=versions)
    platform: str = field(default_factory=platform.platform)
    """The platform that the comparison ran on; ``versions`` are what it ran with."""
    named: frozenset[str] = frozenset()
    """Schedulers that their names stand for, which classes and objects have not."""
    made: Fingerprints | None = None
    """Hashes of what its episodes were made by, where it was read from a file."""

    @cached_property
    def schedulers(self) -> list[str]:
        """Schedulers with at least one finished episode, in the order asked for."""
        finished = {run.scheduler for run in self.runs}
        return [name for name in self.descriptions if name in finished]

    @property
    def tenants(self) -> list[str]:
        return [program.tenant.name for program in self.problem.programs]

    def interval(self, scheduler: str, figure: str, tenant: str | None = None) -> Interval:
        """A figure over all seeds, with its 95 % bootstrap confidence interval over seeds.

        Means of the seeds' figures; percentiles are of the jobs of all seeds together.

        Args:
            scheduler: one of :attr:`schedulers`.
            figure: name as in a frame's columns: ``cost``, ``antt``; with a tenant ``turnaround_p99_us``, ...
            tenant: one of :attr:`tenants`, for figures of a tenant.

        Raises:
            InputError: an unknown name.
        """
        found: Interval = self._interval(self._known(scheduler), figure, tenant)
        return found

    def difference(
        self, scheduler: str, figure: str = "cost", tenant: str | None = None, *, against: str | None = None
    ) -> PairedDifference:
        """How a figure differs from another scheduler's, over the seeds that both have finished.

        Args:
            scheduler, figure, tenant: as for :meth:`interval`; percentiles are each seed's own here.
            against: the other scheduler; by default the first.

        Raises:
            InputError: an unknown name.
        """
        other = self._known(self.schedulers[0] if against is None else against)
        found: PairedDifference = self._difference(self._known(scheduler), figure, tenant, other)
        return found

    def _find_difference(self, scheduler: str, figure: str, tenant: str | None, other: str) -> PairedDifference:
        found = find_figure(figure, of_tenant=tenant is not None)
        row = None if tenant is None else self._row(tenant)
        seeds = ([run.seed for run in self.of(name)] for name in (other, scheduler))
        values = (self.values(name, found, row) for name in (other, scheduler))
        first, own = (dict(zip(*pair, strict=True)) for pair in zip(seeds, values, strict=True))
        shared = [seed for seed in self.seeds if seed in first and seed in own]
        return paired_difference([own[s] for s in shared], [first[s] for s in shared])

    def label(self, scheduler: str) -> str:
        """A scheduler's name as it is shown: short, and marked if it was told the truth."""
        return self._labels[scheduler]

    @cached_property
    def groups(self) -> list[tuple[str, ...]]:
        """Schedulers by mean cost, the lowest first; those that came to the same, job by job, are one group."""
        found = groups_of_equal_outcome(self._by_scheduler)
        return sorted(found, key=lambda group: (math.isnan(cost := self._interval(group[0], "cost", None).mean), cost))

    @property
    def by_cost(self) -> list[str]:
        """:attr:`schedulers` by mean cost, the lowest first."""
        return [name for group in self.groups for name in group]

    def label_of(self, group: Sequence[str]) -> str:
        """The schedulers of a group as they are shown in one row."""
        return ", ".join(map(self.label, group))

    @property
    def remarks(self) -> list[str]:
        """What else to know of the figures, a sentence each."""
        told = cautions(self.problem)
        if not self.schedulers:
            return told
        runs = self.of(self.schedulers[0])
        first = runs[0].metrics
        asked = demands(self.problem, runs[0].jobs, first.end_us, [tenant.unfinished for tenant in first.tenants])
        found = {scheduler: self.interval(scheduler, "cost") for scheduler in self.schedulers}
        costs = {scheduler: CostRange(cost.mean, cost.low, cost.high) for scheduler, cost in found.items()}
        busy = float(np.mean([run.metrics.utilisation for run in self.runs]))
        differences = [self.difference(scheduler).relative for scheduler in self.schedulers[1:]]
        if any(known(difference) for difference in differences):
            groups_of_equal_outcome = sum(
                math.isfinite(difference.mean) and not known(difference) for difference in differences
            )
            remark = some_alike_remark(asked, self.label(self.schedulers[0]), groups_of_equal_outcome, len(differences))
        else:
            remark = meeting_remark(asked, busy, costs)
        return [*told, *filter(None, [remark])]

    @property
    def legend(self) -> str:
        """What marks of schedulers mean; empty if there are none."""
        return legend(self.schedulers, self.clairvoyant)

    @property
    def interruption(self) -> str:
        """What an interrupt left; empty without one."""
        if not self.interrupted:
            return ""
        asked = len(self.descriptions) * len(self.seeds)
        what = "only the SMs' timeline is missing" if len(self.runs) == asked else "the figures are partial"
        return f"interrupted: {len(self.runs)} of {counted(asked, 'episode')} finished, {what}"

    def of(self, scheduler: str) -> list[Run]:
        """Finished episodes of one scheduler, by seed."""
        return self._by_scheduler[self._known(scheduler)]

    def recorded(self, scheduler: str) -> Run | None:
        """The episode whose kernels were recorded, if it finished."""
        return next((run for run in self.of(scheduler) if run.timeline is not None), None)

    def values(self, scheduler: str, figure: FigureSpec, tenant: int | None = None) -> list[float]:
        """One value a finished seed; ``tenant`` is a row of the scenario's tenants."""
        records = (r.metrics if tenant is None else r.metrics.tenants[tenant] for r in self.of(scheduler))
        return [figure_value(record, figure) for record in records]

    @cached_property
    def _labels(self) -> dict[str, str]:
        return labels(self.descriptions, self.clairvoyant)

    @cached_property
    def _by_scheduler(self) -> dict[str, list[Run]]:
        groups: dict[str, list[Run]] = {name: [] for name in self.schedulers}
        for run in self.runs:
            groups[run.scheduler].append(run)
        return groups

    def _row(self, tenant: str) -> int:
        if tenant not in self.tenants:
            raise InputError(f"no tenant {tenant!r}; {did_you_mean(tenant, self.tenants)}")
        return self.tenants.index(tenant)

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle, without what is found anew."""
        return {kept.name: getattr(self, kept.name) for kept in fields(self)}

    def _known(self, scheduler: str) -> str:
        if scheduler not in self.schedulers:
            raise InputError(f"scheduler {scheduler!r} was not compared; {did_you_mean(scheduler, self.schedulers)}")
        return scheduler

    @cached_property
    def _interval(self) -> Any:
        """Intervals take a while: each is found once."""
        return functools.cache(self._find_interval)

    @cached_property
    def _difference(self) -> Any:
        return functools.cache(self._find_difference)

    def _find_interval(self, scheduler: str, key: str, tenant: str | None) -> Interval:
        figure = find_figure(key, of_tenant=tenant is not None)
        if tenant is None:
            return mean_interval(self.values(scheduler, figure))
        row = self._row(tenant)
        if figure.percentile is None:
            return mean_interval(self.values(scheduler, figure, row))
        jobs = (run.jobs[run.jobs[:, 0] == row] for run in self.of(scheduler))
        return pooled_percentile([mine[:, 4] - mine[:, 2] for mine in jobs], figure.percentile)


DIFFERENCE = "cost_difference"
"""Name of the column of relative differences of a cost from the first scheduler's."""


def frame_of_episodes(comparison: ComparedRuns) -> DataFrame:
    """A row a scheduler, seed and tenant; ``cost_difference`` is from the first scheduler's cost on the same seed."""
    baseline = {run.seed: run.metrics.cost for run in comparison.of(comparison.schedulers[0])}
    cost, *others = GLOBAL_FIGURES
    same = _same_as(comparison)
    return frame(
        [
            {
                "scheduler": run.scheduler,
                "seed": run.seed,
                cost.key: figure_value(run.metrics, cost),
                DIFFERENCE: _relative(run.metrics.cost, baseline.get(run.seed)),
                **{f.key: figure_value(run.metrics, f) for f in others},
                "tenant": tenant.name,
                **{f.key: figure_value(tenant, f) for f in TENANT_FIGURES},
                "same_as": same[run.scheduler],
                "clairvoyant": run.scheduler in comparison.clairvoyant,
            }
            for scheduler in comparison.by_cost
            for run in comparison.of(scheduler)
            for tenant in run.metrics.tenants
        ]
    )


def frame_of_schedulers(comparison: ComparedRuns) -> DataFrame:
    """A row a scheduler, tenant (none: the whole GPU) and figure, with its interval over seeds."""
    same = _same_as(comparison)
    rows: list[dict[str, Any]] = []
    for name in comparison.by_cost:
        cost, *others = (((None, f.key), comparison.interval(name, f.key)) for f in GLOBAL_FIGURES)
        of_tenants = [
            ((tenant, f.key), comparison.interval(name, f.key, tenant))
            for tenant in comparison.tenants
            for f in TENANT_FIGURES
        ]
        difference = ((None, DIFFERENCE), comparison.difference(name).relative)
        rows += [
            {"scheduler": name, "tenant": tenant, "figure": figure, **interval.as_dict(), "same_as": same[name]}
            for (tenant, figure), interval in (cost, difference, *others, *of_tenants)
        ]
    return frame(rows)


def frame_of_jobs(comparison: ComparedRuns) -> DataFrame:
    """Completed jobs of all episodes."""
    runs = [run for scheduler in comparison.by_cost for run in comparison.of(scheduler)]
    return _joined(comparison, [(run, jobs_frame(comparison.problem, run.jobs)) for run in runs])


def frame_of_kernels(comparison: ComparedRuns) -> DataFrame:
    """Finished kernels of the seed whose kernels were recorded.

    Raises:
        InputError: none was.
    """
    recorded = [run for run in map(comparison.recorded, comparison.by_cost) if run is not None]
    if not recorded:
        raise InputError("kernels were not recorded: compare(..., record='kernels')")
    parts = [(r, kernels_frame(comparison.problem, r.timeline)) for r in recorded if r.timeline is not None]
    return _joined(comparison, parts)


def _same_as(comparison: ComparedRuns) -> dict[str, str]:
    """For each scheduler, the first of those that came to the same."""
    return {name: group[0] for group in comparison.groups for name in group}


def _relative(cost: float, baseline: float | None) -> float:
    return cost / baseline - 1.0 if baseline else np.nan


def _joined(comparison: ComparedRuns, parts: list[tuple[Run, DataFrame]]) -> DataFrame:
    """Frames of episodes below each other, with scheduler and seed in front."""
    from pandas import concat

    names = comparison.by_cost
    for run, part in parts:
        part.insert(0, "scheduler", named(np.full(len(part), names.index(run.scheduler)), names))
        part.insert(1, "seed", run.seed)
    return concat([part for _, part in parts], ignore_index=True)
