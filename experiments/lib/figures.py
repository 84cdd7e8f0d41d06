"""The figures that tables and reports show, and tables that are too long to be read, as CSV."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpusched_env.display.table import NONE, Cell, Row, Table
from gpusched_env.episodes.metrics import Metrics, TenantMetrics
from gpusched_env.errors import InputError, did_you_mean


@dataclass(frozen=True, slots=True)
class FigureSpec:
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
    """The percentile of turnarounds; a tenant's are pooled over seeds, since a tail of few jobs is hardly one."""
    counts_undone: bool = False
    """Jobs that were rejected or left count against it: doing less makes it no better."""
    jobs: str = ""
    """The tenants' counts that a figure of the whole GPU is the sum of."""

    @property
    def heading(self) -> str:
        """Label of the figure with its unit."""
        return f"{self.label} {self.unit}" if self.unit else self.label


def _time(key: str, label: str, help: str, percentile: float | None = None) -> FigureSpec:
    """A time, shown in milliseconds."""
    return FigureSpec(key, label, "ms", 1e-3, "low", help, percentile=percentile)


def _number(key: str, label: str, help: str, better: Literal["low", ""] = "", jobs: str = "") -> FigureSpec:
    """A number of things."""
    return FigureSpec(key, label, better=better, help=help, count=True, jobs=jobs)


GIVEN_UP, LEFT = "jobs that the scheduler gave up", "jobs neither completed nor rejected when the episode ended"
TENANT_FIGURES = (
    _time("turnaround_mean_us", "mean", "turnaround, mean"),
    _time("turnaround_p50_us", "p50", "turnaround, median, all seeds together", 50.0),
    _time("turnaround_p95_us", "p95", "turnaround, 95th percentile, all seeds together", 95.0),
    _time("turnaround_p99_us", "p99", "turnaround, 99th percentile, all seeds together", 99.0),
    FigureSpec(
        "slowdown",
        "slowdown",
        better="low",
        help="mean turnaround over the mean turnaround alone; a little below 1 where jobs happen to be short",
    ),
    FigureSpec("progress", "progress", better="high", help="normalised progress while at work"),
    FigureSpec(
        "slo_attainment",
        "SLO",
        "%",
        100.0,
        "high",
        "jobs within the SLO, of those with a known outcome",
        counts_undone=True,
    ),
    _time("ttft_mean_us", "TTFT", "time to first token, mean, of engines' completed requests"),
    _time("ttft_p50_us", "TTFT p50", "time to first token, median; mean over seeds"),
    _time("ttft_p99_us", "TTFT p99", "time to first token, 99th percentile; mean over seeds"),
    _time("tpot_mean_us", "TPOT", "time per output token behind the first, mean over requests"),
    _time("tpot_p50_us", "TPOT p50", "time per output token, median; mean over seeds"),
    _time("tpot_p99_us", "TPOT p99", "time per output token, 99th percentile; mean over seeds"),
    FigureSpec(
        "throughput_per_s", "jobs/s", better="high", help="completed jobs a second, while the tenant was active"
    ),
    _number("completed", "done", "completed jobs"),
    _number("rejected", "rejected", GIVEN_UP),
    _number("unfinished", "left", LEFT, "low"),
)
"""Figures of one tenant, by attribute of :class:`TenantMetrics`."""

GLOBAL_FIGURES = (
    FigureSpec(
        "cost",
        "cost",
        better="low",
        help="the scenario's weighted cost; an agent's return is minus this",
        counts_undone=True,
    ),
    FigureSpec("stp", "STP", better="high", help="system throughput: sum of the tenants' progress"),
    FigureSpec("antt", "ANTT", better="low", help="average normalised turnaround: mean of the tenants' slowdowns"),
    FigureSpec(
        "urgent_p99",
        "urgent p99",
        better="low",
        percentile=99.0,
        help="turnaround over turnaround alone of the most urgent, 99th percentile",
    ),
    FigureSpec(
        "best_effort", "others' progress", better="high", help="mean progress of all but the most urgent tenants"
    ),
    FigureSpec("goodput_per_s", "goodput/s", better="high", help="jobs within their SLO a second", counts_undone=True),
    _number("jobs_completed", "done", "completed jobs of all tenants", jobs="completed"),
    _number("jobs_rejected", "rejected", GIVEN_UP, jobs="rejected"),
    _number("jobs_unfinished", "left", LEFT, "low", jobs="unfinished"),
    FigureSpec("utilisation", "SM", "%", 100.0, help="SM-time with a resident block"),
    FigureSpec("dram_utilisation", "DRAM", "%", 100.0, help="DRAM traffic over nominal bandwidth"),
    FigureSpec("energy_j", "energy", "J", better="low", help="energy of the board"),
    FigureSpec("energy_per_job_j", "per job", "J", better="low", help="energy over completed jobs"),
    _time("makespan_us", "makespan", "until the workload is done, or the end"),
    _number("decisions", "decisions", "commands given"),
)
"""Figures of the whole GPU, by attribute of :class:`Metrics`; numbers of jobs are sums over the tenants."""
ABBREVIATIONS = {
    "p50": "the median",
    "p95": "95 % are shorter",
    "p99": "99 % are shorter",
    "SLO": "jobs within the tenant's objective",
    "TTFT": "time to first token",
    "TPOT": "time per output token",
    "goodput/s": "jobs within their objective a second",
    "STP": "sum of the tenants' progress",
    "ANTT": "mean of the tenants' slowdowns",
    "SM": "time with a block on a processor of the GPU",
    "DRAM": "traffic over nominal bandwidth",
}
"""What words in headings stand for."""


def find_figure(name: str, *, of_tenant: bool) -> FigureSpec:
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


def figure_value(record: Metrics | TenantMetrics, figure: FigureSpec) -> float:
    """The figure in the record's own unit, as a float."""
    if figure.jobs:
        assert isinstance(record, Metrics)
        return float(sum(getattr(tenant, figure.jobs) for tenant in record.tenants))
    return float(getattr(record, figure.key))


def format_value(value: float, figure: FigureSpec) -> str:
    """``value`` (record's unit) as text in the shown unit, about three significant digits; NaN is a dash."""
    if not math.isfinite(value):
        return "–"
    return f"{value * figure.scale:.{decimals(value, figure)}f}"


def show_spread(spread: float, mean: float, figure: FigureSpec) -> str:
    """``spread`` with the digits that ``mean`` is shown with."""
    return f"{spread * figure.scale:.{decimals(mean, figure)}f}"


def decimals(value: float, figure: FigureSpec) -> int:
    """Digits after the point that ``value`` is shown with."""
    size = abs(value * figure.scale)
    if figure.unit == "%":
        return 1
    if figure.count:
        return 0 if size == round(size) else 1
    return 0 if size == 0 or size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3


INTERVAL = re.compile(r"(?P<value>\S+) \[(?P<low>[^,\]]+), (?P<high>[^\]]+)\]")
AGAINST = "against "
"""Begins a head that names what rows are compared with: a column of its own here, where there is one such head."""
KEYS = {find_figure(key, of_tenant=False).label: key for key in ("best_effort",)}
"""Columns that are named by their figure's key, where that says something else than its label."""


def tables_csv(tables: Sequence[tuple[Mapping[str, str], Table]]) -> str:
    """A row of each row of ``tables``, behind what is said of its table.

    A cell with an interval, ``1.5 [1.2, 1.8]``, becomes three columns; percentages become shares, and what is not
    defined stays empty. Columns that a table lacks are empty as well.
    """
    rows = [{**said, **_cells(table.heads, row)} for said, table in tables for row in table.rows]
    names = list(dict.fromkeys(name for row in rows for name in _with_bounds(row)))
    written = io.StringIO()
    filled = [name for name in names if any(row.get(name) for row in rows)]
    writer = csv.DictWriter(written, filled, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()


def _with_bounds(row: Mapping[str, str]) -> list[str]:
    """Columns of a row; those of an interval stay together even where a row before has none."""
    values = (name for name in row if name.removesuffix("_low").removesuffix("_high") not in {*row} - {name})
    return [f"{name}{bound}" for name in values for bound in ("", "_low", "_high")]


def _cells(heads: Sequence[str], row: Row) -> dict[str, str]:
    found: dict[str, str] = {}
    alone = sum(head.startswith(AGAINST) for head in heads) == 1
    for head, cell in zip(_distinct(heads), row, strict=True):
        text = cell.text if isinstance(cell, Cell) else cell
        name = KEYS.get(head) or head.replace("/s", "_per_s").replace(" ", "_")
        if head.startswith(AGAINST) and alone:
            found["against"], name = head.removeprefix(AGAINST), "difference"
        interval = INTERVAL.fullmatch(text)
        parts = interval.groupdict() if interval else {"value": text}
        found |= {name if part == "value" else f"{name}_{part}": _plain(value) for part, value in parts.items()}
    return found


def _distinct(heads: Sequence[str]) -> list[str]:
    """Heads that a table has several times, behind the one of its own that they belong to; numbered if that has two."""
    found: list[str] = []
    owner = ""
    for head in heads:
        repeated = heads.count(head) > 1
        name = f"{owner} {head}".strip() if repeated else head
        again = sum(other == name or other.startswith(f"{name} ") for other in found) if repeated else 0
        found.append(f"{name} {again + 1}" if again else name)
        owner = owner if repeated else head
    return found


def _plain(text: str) -> str:
    if text == NONE:
        return ""
    share = re.fullmatch(r"([+-]?[\d.]+) ?%", text)
    return f"{float(share[1]) / 100.0:.6g}" if share else text
