"""The charts of a comparison, and which stretch of an episode to look at."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.display.palette import BASELINE, Look, distribution, look
from gpusched_env.display.plots import Bars, Estimate, Kinds, Panel, Series, areas, curves, dots, scatter, timeline
from gpusched_env.episodes.charts import NOT_RECORDED, SHARE, kernel_bars, usage
from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.episodes import Run
from gpusched_env.experiments.lib.figures import find_figure
from gpusched_env.experiments.lib.statistics import Interval

if TYPE_CHECKING:
    from gpusched_env.display.plots import Figure


KERNELS = 600
"""Kernels that the window should hold, about: enough to see a pattern, few enough to tell apart."""
SEARCH_KERNELS = 20_000
"""How far to look for it: everything before the window is simulated block by block as well."""
SAME_US = 1e-3
"""Times closer than this are equal."""
LEAD = 0.1
"""Share of the window that lies before the tenants meet."""


def interesting_window(runs: Sequence[Run]) -> tuple[float, float]:
    """Start and end (us) of a stretch that begins shortly before two tenants first meet.

    They meet when a kernel of a second tenant starts. Without such a moment the window begins with the episode.

    Args:
        runs: of several schedulers on one seed; the first, which has recorded its kernels, says where to look. Where it
            has few kernels, the window goes on until all runs have ended.
    """
    run = runs[0]
    assert run.timeline is not None
    end_us = max(each.metrics.end_us for each in runs)
    table = run.timeline.kernels.dict()
    if len(run.timeline.kernels) == 0:
        return 0.0, end_us
    order = np.argsort(table["started_us"], kind="stable")
    started, tenant = table["started_us"][order], table["tenant"][order]
    meeting = np.flatnonzero(tenant[:SEARCH_KERNELS] != tenant[0])
    first = int(meeting[0]) if len(meeting) else 0
    last_us = float(started[first + KERNELS]) if first + KERNELS < len(started) else end_us
    start_us = max(0.0, float(started[first]) - LEAD * (last_us - float(started[first])))
    return start_us, last_us


def same_start(short: Run, whole: Run) -> bool:
    """Whether ``short``, run again up to an earlier end, did what ``whole`` did until then.

    It does on a simulated device (within a nanosecond: recording blocks splits sums) with a scheduler that does
    not look at the horizon, and does not on a real GPU.
    """
    if short.timeline is None or whole.timeline is None:
        return False
    first, second = short.timeline.kernels, whole.timeline.kernels
    started = dict(zip(second.column("id"), second.column("started_us"), strict=True))
    rows = zip(first.column("id"), first.column("started_us"), strict=True)
    return all(abs(started.get(launch, math.inf) - us) <= SAME_US for launch, us in rows)


MOST = 15
"""Schedulers that charts tell apart."""


class ComparisonPlots(Kinds):
    """Charts of a comparison, as Plotly figures; a scheduler looks the same in all of them.

    Schedulers that came to the same are one row or line. The first scheduler is black. The cheapest others are
    coloured, :data:`MOST` in all; the rest is grey until chosen in the legend.
    """

    def __init__(self, comparison: Comparison) -> None:
        self._comparison = comparison
        self._scenario = comparison.problem.scenario.name
        self._groups = {comparison.label_of(group): group[0] for group in comparison.groups}
        self._looks = looks(comparison)

    def cost(self) -> Figure:
        """Mean cost with its interval, a row a scheduler; a faint dot a seed."""
        weights = self._comparison.problem.scenario.reward
        terms = [n for n in weights.__struct_fields__ if getattr(weights, n)]
        axis = f"cost ({' + '.join(f'{getattr(weights, n):g} × {n}' for n in terms)})"
        panels = {"": self._rows("cost", None)}
        return dots(f"{self._scenario}: cost", panels, axis, "scheduler", looks=self._looks)

    def slo(self) -> Figure:
        """Share of jobs within their objective, a panel for each tenant that has one.

        Raises:
            InputError: none has.
        """
        tenants = [p.tenant.name for p in self._comparison.problem.programs if p.tenant.slo_us is not None]
        if not tenants:
            raise InputError("no tenant has an SLO: give one its slo_us in the scenario")
        panels = {t: self._rows("slo_attainment", t) for t in tenants}
        title = f"{self._scenario}: SLO attainment"
        return dots(title, panels, "jobs within the SLO", "scheduler", looks=self._looks, percent=True)

    def cdf(self, tenants: Sequence[str] | None = None) -> Figure:
        """The distribution of turnaround, a panel a tenant, a curve a scheduler, all seeds together.

        Curves are shares of the jobs that arrived: one that stays below 1 left jobs unfinished.

        Args:
            tenants: names; by default all.
        """
        c = self._comparison
        panels = []
        for row, program in enumerate(c.problem.programs):
            if tenants is not None and program.tenant.name not in tenants:
                continue
            series = []
            for label, name in self._groups.items():
                jobs = np.concatenate([run.jobs[run.jobs[:, 0] == row] for run in c.of(name)])
                own = [run.metrics.tenants[row] for run in c.of(name)]
                arrived = sum(tenant.completed + tenant.unfinished + tenant.rejected for tenant in own)
                curve = distribution((jobs[:, 4] - jobs[:, 2]) / 1e3, arrived)
                series.append(Series(label, self._looks[label], *curve))
            slo_us = program.turnaround_slo_us
            panels.append(Panel(program.tenant.name, series, None if slo_us is None else slo_us / 1e3))
        return curves(f"{self._scenario}: turnaround", panels, "turnaround, ms", "share of jobs", "SLO")

    def tradeoff(self) -> Figure:
        """What the most urgent tenants wait for the others' work: their p99 against the others' completed jobs.

        With several tenants of a kind: the largest p99, and the sum of the jobs a second.

        Raises:
            InputError: all tenants are equally urgent.
        """
        c = self._comparison
        priorities = {program.tenant.name: program.tenant.priority for program in c.problem.programs}
        urgent = [name for name, priority in priorities.items() if priority == min(priorities.values())]
        others = [name for name in priorities if name not in urgent]
        if not others:
            raise InputError("all tenants have the same priority: there is none to trade against")
        points = {}
        for label, name in self._groups.items():
            latency = max((c.interval(name, "turnaround_p99_us", t) for t in urgent), key=lambda i: i.mean)
            rates = [c.interval(name, "throughput_per_s", t) for t in others]
            points[label] = (_sum(rates), _estimate(latency, 1e-3))
        x, y = f"{', '.join(others)}: jobs/s", f"{', '.join(urgent)}: p99 turnaround, ms"
        return scatter(f"{self._scenario}: urgent tenants against the others", points, x, y, self._looks)

    def timeline(self, schedulers: Sequence[str] | None = None, window_us: tuple[float, float] | None = None) -> Figure:
        """Kernels of the recorded seed, a row a tenant.

        Args:
            schedulers: by default all whose kernels were recorded, one of those that came to the same.
            window_us: start and end; by default a stretch in which tenants meet, up to the end of the last job where
                they have few kernels.

        Raises:
            InputError: kernels were not recorded.
        """
        c = self._comparison
        names = list(self._groups.values()) if schedulers is None else list(schedulers)
        runs = [run for run in map(c.recorded, names) if run is not None]
        if not runs:
            raise InputError(NOT_RECORDED)
        start_us, end_us = window_us or c.window_us or interesting_window(runs)
        rows_of = {name: label for label, name in self._groups.items()}
        labels = {name: rows_of[name] if schedulers is None else c.label(name) for name in names}
        bars: list[Bars] = []
        for run in runs:
            assert run.timeline is not None
            panel = labels[run.scheduler] if len(runs) > 1 else ""
            bars += kernel_bars(c.problem, run.timeline, panel)
        rows = "scheduler: tenant" if len(runs) > 1 else "tenant"
        return timeline(f"{self._scenario}, seed {runs[0].seed}: kernels", bars, (start_us / 1e3, end_us / 1e3), rows)

    def utilisation(self) -> Figure:
        """Busy SMs and DRAM traffic over time in the recorded seed, a row a scheduler, of those that are coloured.

        Raises:
            InputError: kernels were not recorded.
        """
        c = self._comparison
        shown = {name: label for label, name in self._groups.items() if not self._looks[label].faint}
        runs = [run for run in map(c.recorded, shown) if run is not None]
        if not runs:
            raise InputError(NOT_RECORDED)
        end_us = max(run.metrics.end_us for run in runs)
        rows = {}
        for run in runs:
            assert run.timeline is not None
            rows[shown[run.scheduler]] = usage(c.problem, run.timeline, run.metrics.end_us, end_us)
        return areas(f"{self._scenario}, seed {runs[0].seed}: utilisation", rows, end_us / 1e3, SHARE)

    def _rows(self, figure: str, tenant: str | None) -> dict[str, Estimate]:
        c = self._comparison
        found = find_figure(figure, of_tenant=tenant is not None)
        row = None if tenant is None else c.tenants.index(tenant)
        return {
            label: _estimate(c.interval(name, figure, tenant), 1.0, c.values(name, found, row))
            for label, name in self._groups.items()
        }


def looks(comparison: Comparison) -> dict[str, Look]:
    """How the rows of a comparison look, by label, the cheapest first."""
    found: dict[str, Look] = {}
    number = 0
    for group in comparison.groups:
        if comparison.schedulers[0] in group:
            found[comparison.label_of(group)] = BASELINE
        else:
            # The first scheduler has a place among them, wherever it comes.
            found[comparison.label_of(group)] = look(number, faint=number >= MOST - 1)
            number += 1
    return found


def _estimate(interval: Interval, scale: float, values: Sequence[float] = ()) -> Estimate:
    low, high = (None if bound is None else bound * scale for bound in (interval.low, interval.high))
    return Estimate(interval.mean * scale, low, high, [value * scale for value in values])


def _sum(intervals: Sequence[Interval]) -> Estimate:
    """The sum of figures on the same seeds; the bounds are added as if all were at an end at once."""
    if any(i.low is None or i.high is None for i in intervals):
        return Estimate(sum(i.mean for i in intervals))
    low, high = (sum(float(getattr(i, side)) for i in intervals) for side in ("low", "high"))
    return Estimate(sum(i.mean for i in intervals), low, high)
