"""The outcome of running several schedulers on the same seeds: statistics over it, and how it shows itself."""

from __future__ import annotations

import functools
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from gpusched_env.display.words import counted
from gpusched_env.episodes.cautions import CostRange, cautions, demands, meeting_remark, some_alike_remark
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.lib.episodes import Run
from gpusched_env.experiments.lib.figures import FigureSpec, figure_value, find_figure
from gpusched_env.experiments.lib.files import ResultFolder
from gpusched_env.experiments.lib.statistics import (
    Interval,
    PairedDifference,
    known,
    mean_interval,
    paired_difference,
    pooled_percentile,
)
from gpusched_env.experiments.lib.terminal import as_text
from gpusched_env.experiments.lib.trained import labels, legend
from gpusched_env.experiments.ranking.made import Fingerprints
from gpusched_env.scenarios.problem import Problem
from gpusched_env.versions import versions

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame
    from gpusched_env.experiments.report.charts import ComparisonPlots

FrameOf = Literal["episodes", "schedulers", "jobs", "kernels"]


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


@dataclass(frozen=True, repr=False)
class Comparison:
    """Episodes of several schedulers on one problem; equal seeds mean equal arrivals and durations.

    Shown as tables on a terminal and in a notebook. :meth:`to_frame` gives the figures, jobs and kernels as data
    frames, :attr:`plot` the charts (``plot.cdf()``), :meth:`interval` one figure with its confidence interval, and
    :meth:`save` writes report, data and traces into a folder.
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

    @property
    def plot(self) -> ComparisonPlots:
        """Charts, as Plotly figures: ``plot.cdf()``, ``plot.cost()``, ``plot.timeline()`` and others."""
        from gpusched_env.experiments.report.charts import ComparisonPlots

        return ComparisonPlots(self)

    def to_frame(self, of: FrameOf = "episodes") -> DataFrame:
        """A pandas frame, the cheapest scheduler first; units are in the columns' names, undefined figures are NaN.

        Args:
            of: ``episodes``: a row a scheduler, seed and tenant, with the figures of the whole GPU and of the tenant.
                ``schedulers``: a row a scheduler and tenant (none for the whole GPU) and figure, with its interval.
                In both, ``same_as`` names the first of the schedulers that came to the same.
                ``jobs``: completed jobs. ``kernels``: finished kernels of the seed whose kernels were recorded.

        Raises:
            InputError: something else, or pandas is not installed.
        """
        if of not in get_args(FrameOf):
            raise InputError(f"no frame of {of!r}; {did_you_mean(of, get_args(FrameOf))}")
        from gpusched_env.experiments import frames

        made: DataFrame = getattr(frames, f"frame_of_{of}")(self)
        return made

    def save(self, folder: Path | str, *, traces: bool = False, overwrite: bool = False) -> list[str]:
        """Write report, tables and ``result.json`` to ``folder``, at once when complete; returns the files' names.

        Args:
            traces: also a Perfetto trace of each scheduler whose kernels were recorded.
            overwrite: replace a result that ``folder`` holds.

        Raises:
            InputError: ``folder`` cannot be written, or holds a result.
        """
        from gpusched_env.experiments.report.save import write_results

        with ResultFolder(Path(folder), overwrite=overwrite) as results:
            files = write_results(self, results.staging, traces=traces)
            results.publish()
        return files

    def __repr__(self) -> str:
        best = self.groups[0] if self.runs else None
        lowest = f", lowest cost {self.label_of(best)} {self.interval(best[0], 'cost')}" if best is not None else ""
        what = f"{counted(len(self.schedulers), 'scheduler')} on {self.problem.scenario.name}"
        return f"<Comparison of {what}, {counted(len(self.seeds), 'seed')}{lowest}>"

    def __str__(self) -> str:
        from gpusched_env.experiments.report.tables import comparison_tables

        return as_text(comparison_tables(self, coloured=False)) if self.runs else repr(self)

    def _repr_html_(self) -> str:
        from gpusched_env.experiments.report.tables import html_tables

        return html_tables(self)

    def __rich__(self) -> Any:
        from gpusched_env.experiments.report.tables import comparison_tables

        return comparison_tables(self)

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
