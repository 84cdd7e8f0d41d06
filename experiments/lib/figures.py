"""The figures that tables and reports show: where they come from, their units, and which way is better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from gpusched_env.episodes.metrics import Metrics, TenantMetrics
from gpusched_env.errors import InputError, did_you_mean


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of :class:`~gpusched_env.episodes.metrics.Metrics` or of its tenants."""

    key: str
    """Attribute of the metrics record."""
    label: str
    unit: str = ""
    """Unit as shown (after scaling)."""
    scale: float = 1.0
    """Factor from the record's unit to the shown one."""
    better: Literal["low", "high", ""] = ""
    help: str = ""
    count: bool = False
    """A number of things."""
    percentile: float | None = None
    """Of turnarounds; a tenant's are pooled over seeds, since a tail of few jobs is hardly one."""
    counts_undone: bool = False
    """Jobs that were rejected or left count against it: doing less makes it no better."""
    jobs: str = ""
    """Of the whole GPU: the tenants' counts that it is the sum of."""

    @property
    def heading(self) -> str:
        """Label with its unit."""
        return f"{self.label} {self.unit}" if self.unit else self.label


TENANT_FIGURES = (
    Figure("turnaround_mean_us", "mean", "ms", 1e-3, "low", "turnaround, mean"),
    Figure("turnaround_p50_us", "p50", "ms", 1e-3, "low", "turnaround, median, all seeds together", percentile=50.0),
    Figure(
        "turnaround_p95_us",
        "p95",
        "ms",
        1e-3,
        "low",
        "turnaround, 95th percentile, all seeds together",
        percentile=95.0,
    ),
    Figure(
        "turnaround_p99_us",
        "p99",
        "ms",
        1e-3,
        "low",
        "turnaround, 99th percentile, all seeds together",
        percentile=99.0,
    ),
    Figure(
        "slowdown",
        "slowdown",
        "",
        1.0,
        "low",
        "mean turnaround over the mean turnaround alone; a little below 1 where jobs happen to be short",
    ),
    Figure("progress", "progress", "", 1.0, "high", "normalised progress while at work"),
    Figure(
        "slo_attainment",
        "SLO",
        "%",
        100.0,
        "high",
        "jobs within the SLO, of those with a known outcome",
        counts_undone=True,
    ),
    Figure("ttft_mean_us", "TTFT", "ms", 1e-3, "low", "time to first token, mean, of engines' completed requests"),
    Figure("ttft_p50_us", "TTFT p50", "ms", 1e-3, "low", "time to first token, median; mean over seeds"),
    Figure("ttft_p99_us", "TTFT p99", "ms", 1e-3, "low", "time to first token, 99th percentile; mean over seeds"),
    Figure("tpot_mean_us", "TPOT", "ms", 1e-3, "low", "time per output token behind the first, mean over requests"),
    Figure("tpot_p50_us", "TPOT p50", "ms", 1e-3, "low", "time per output token, median; mean over seeds"),
    Figure("tpot_p99_us", "TPOT p99", "ms", 1e-3, "low", "time per output token, 99th percentile; mean over seeds"),
    Figure("throughput_per_s", "jobs/s", "", 1.0, "high", "completed jobs a second, while the tenant was active"),
    Figure("completed", "done", "", 1.0, "", "completed jobs", count=True),
    Figure("rejected", "rejected", "", 1.0, "", "jobs that the scheduler gave up", count=True),
    Figure(
        "unfinished", "left", "", 1.0, "low", "jobs neither completed nor rejected when the episode ended", count=True
    ),
)
"""Figures of one tenant, by attribute of :class:`TenantMetrics`."""

GLOBAL_FIGURES = (
    Figure(
        "cost",
        "cost",
        "",
        1.0,
        "low",
        "the scenario's weighted cost; an agent's return is minus this",
        counts_undone=True,
    ),
    Figure("stp", "STP", "", 1.0, "high", "system throughput: sum of the tenants' progress"),
    Figure("antt", "ANTT", "", 1.0, "low", "average normalised turnaround: mean of the tenants' slowdowns"),
    Figure(
        "urgent_p99",
        "urgent p99",
        "",
        1.0,
        "low",
        "turnaround over turnaround alone of the most urgent, 99th percentile",
        percentile=99.0,
    ),
    Figure("best_effort", "others' progress", "", 1.0, "high", "mean progress of all but the most urgent tenants"),
    Figure("goodput_per_s", "goodput/s", "", 1.0, "high", "jobs within their SLO a second", counts_undone=True),
    Figure("jobs_completed", "done", "", 1.0, "", "completed jobs of all tenants", count=True, jobs="completed"),
    Figure("jobs_rejected", "rejected", "", 1.0, "", "jobs that the scheduler gave up", count=True, jobs="rejected"),
    Figure(
        "jobs_unfinished",
        "left",
        "",
        1.0,
        "low",
        "jobs neither completed nor rejected when the episode ended",
        count=True,
        jobs="unfinished",
    ),
    Figure("utilisation", "SM", "%", 100.0, "", "SM-time with a resident block"),
    Figure("dram_utilisation", "DRAM", "%", 100.0, "", "DRAM traffic over nominal bandwidth"),
    Figure("energy_j", "energy", "J", 1.0, "low", "energy of the board"),
    Figure("energy_per_job_j", "per job", "J", 1.0, "low", "energy over completed jobs"),
    Figure("makespan_us", "makespan", "ms", 1e-3, "low", "until the workload is done, or the end"),
    Figure("decisions", "decisions", "", 1.0, "", "commands given", count=True),
)
"""Figures of the whole GPU, by attribute of :class:`Metrics`; numbers of jobs are sums over the tenants."""


def find_figure(name: str, *, of_tenant: bool) -> Figure:
    """A figure by its key.

    Raises:
        InputError: there is none of that name, of a tenant or of the whole GPU as asked.
    """
    own, others = (TENANT_FIGURES, GLOBAL_FIGURES) if of_tenant else (GLOBAL_FIGURES, TENANT_FIGURES)
    for figure in own:
        if figure.key == name:
            return figure
    if any(figure.key == name for figure in others):
        hint = (
            "belongs to the whole GPU: leave the tenant out, or ask for a tenant's, such as figure='slowdown'"
            if of_tenant
            else "belongs to a tenant: name one"
        )
        raise InputError(f"figure {name!r} {hint}")
    raise InputError(f"no figure {name!r}; {did_you_mean(name, (figure.key for figure in own))}")


def figure_value(record: Metrics | TenantMetrics, figure: Figure) -> float:
    """The figure in the record's own unit, as a float."""
    if figure.jobs:
        assert isinstance(record, Metrics)
        return float(sum(getattr(tenant, figure.jobs) for tenant in record.tenants))
    return float(getattr(record, figure.key))


def show(value: float, figure: Figure) -> str:
    """``value`` (record's unit) as text in the shown unit, about three significant digits; NaN is a dash."""
    if not math.isfinite(value):
        return "–"
    return f"{value * figure.scale:.{decimals(value, figure)}f}"


def show_spread(spread: float, mean: float, figure: Figure) -> str:
    """``spread`` with the digits that ``mean`` is shown with."""
    return f"{spread * figure.scale:.{decimals(mean, figure)}f}"


def decimals(value: float, figure: Figure) -> int:
    """Digits after the point that ``value`` is shown with."""
    size = abs(value * figure.scale)
    if figure.unit == "%":
        return 1
    if figure.count:
        return 0 if size == round(size) else 1
    return 0 if size == 0 or size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3
