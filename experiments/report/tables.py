"""A comparison as tables: a table for each tenant, so that what is compared stands side by side, and one of the GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.measure import Measurement
from rich.text import Text

from gpusched_env.display.table import NONE, Cell, Table
from gpusched_env.display.words import counted
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.figures import GLOBAL_FIGURES, TENANT_FIGURES, Figure, show, show_spread
from gpusched_env.experiments.lib.statistics import FEW_SEEDS, Interval

_LEFT_OUT = ("turnaround_mean_us", "progress", "decisions")
_NOT_PRINTED = (*_LEFT_OUT, "makespan_us")
# What goes first where the terminal is narrow.
_DISPENSABLE = (
    *("completed", "dram_utilisation", "unfinished", "goodput_per_s", "best_effort", "urgent_p99"),
    *("turnaround_p95_us", "energy_per_job_j", "utilisation"),
)
_DIFFERENCE = "difference"
# Their intervals go first, those of cost and of the difference last.
_INTERVALS = (
    *("completed", "unfinished", "dram_utilisation", "utilisation", "energy_per_job_j", "energy_j", "throughput_per_s"),
    *("goodput_per_s", "best_effort", "urgent_p99"),
    *("turnaround_p50_us", "turnaround_p95_us", "stp", "antt", "slowdown", "slo_attainment", "turnaround_p99_us"),
    *("cost", _DIFFERENCE),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns, and which of them with intervals."""

    dropped: frozenset[str] = frozenset(_LEFT_OUT)
    without_interval: frozenset[str] = frozenset()
    bounds: bool = False
    """Intervals by their ends, not by their half width."""


PAGE = Layout(bounds=True)


def _printed(columns: int, intervals: int) -> Layout:
    """Without so many of what is dispensable."""
    return Layout(frozenset([*_NOT_PRINTED, *_DISPENSABLE[:columns]]), frozenset(_INTERVALS[:intervals]))


# From everything to the bare minimum: all intervals are worth more than three columns, all columns more than other
# intervals than the last two.
_PRINTED = [
    *(_printed(columns, 0) for columns in range(4)),
    *(_printed(0, intervals) for intervals in range(1, len(_INTERVALS) - 2)),
    *(_printed(columns, len(_INTERVALS) - 2) for columns in range(len(_DISPENSABLE) + 1)),
    *(_printed(len(_DISPENSABLE), len(_INTERVALS) - left) for left in (1, 0)),
]


def comparison_tables(comparison: Comparison, *, coloured: bool = True) -> Group:
    """For the terminal: as much as fits its width, and what the signs mean, with colours or without."""
    parts: list[Any] = [
        _Fitted([lambda layout=layout, i=i: tables(comparison, layout)[i] for layout in _PRINTED])  # type: ignore[misc]
        for i in range(len(comparison.tenants) + 1)
    ]
    best = "Best of a column in bold green. " if coloured else ""
    return Group(*parts, Text(f"\n{best}{notes(comparison)}", style="dim"))


def html_tables(comparison: Comparison) -> str:
    """For a notebook."""
    shown = "".join(table._repr_html_() for table in tables(comparison, PAGE))
    return f"{shown}<p>Best of a column is bold. {escape(notes(comparison))}</p>"


def notes(comparison: Comparison) -> str:
    """How to read the tables, and how far to trust them."""
    seeds = len(comparison.seeds)
    text = "SM, DRAM: utilisation. Percentiles: of the jobs of all seeds together. "
    if seeds < 2:
        text += "One seed: no intervals. "
    else:
        text += f"Intervals: 95 %, bootstrap over {counted(seeds, 'seed')}. "
    if seeds < FEW_SEEDS:
        text += f"Fewer than {FEW_SEEDS} seeds: differences may be chance, and intervals are too narrow. "
    return f"{text}{' '.join(comparison.remarks)} {comparison.legend}".strip()


def tables(comparison: Comparison, layout: Layout) -> list[Table]:
    """A table a tenant, a row a scheduler; and one of the whole GPU."""
    return [*(_tenant(comparison, row, layout) for row in range(len(comparison.tenants))), _whole(comparison, layout)]


def _tenant(comparison: Comparison, row: int, layout: Layout) -> Table:
    program = comparison.problem.programs[row]
    tenant = program.tenant
    about = f"{tenant.name}: {program.alone_us / 1e3:.3g} ms alone"
    about += f", SLO {tenant.slo_us / 1e3:g} ms" if tenant.slo_us is not None else ""
    figures = [figure for figure in _chosen(TENANT_FIGURES, layout) if _defined(comparison, figure, tenant.name)]
    return _table(comparison, f"{about} (turnaround in ms)", figures, tenant.name, layout)


def _whole(comparison: Comparison, layout: Layout) -> Table:
    found = _table(comparison, "Whole GPU", _chosen(GLOBAL_FIGURES, layout), None, layout)
    first, *others = comparison.schedulers
    if not others:
        return found
    head = f"vs {comparison.label(first)}"
    help_ = "relative difference of the mean cost, paired by seed"
    rows = [
        [*row, "" if name == first else _relative(comparison.difference(name).relative, layout)]
        for name, row in zip(comparison.schedulers, found.rows, strict=True)
    ]
    return Table(found.title, [*found.heads, head], rows, help=[*found.help, help_])


def _table(comparison: Comparison, title: str, figures: Sequence[Figure], tenant: str | None, layout: Layout) -> Table:
    columns = []
    for figure in figures:
        column = [comparison.interval(name, figure.key, tenant) for name in comparison.schedulers]
        best = best_mean(column, figure)
        columns.append([_cell(own, best, figure, layout) for own in column])
    names = [comparison.label(name) for name in comparison.schedulers]
    heads = ["scheduler", *(figure.label if figure.unit == "ms" else figure.heading for figure in figures)]
    rows = list(zip(names, *columns, strict=True))
    return Table(title, heads, rows, help=["", *(figure.help for figure in figures)])


def best_mean(column: Sequence[Interval], figure: Figure) -> float:
    """The best mean of a column; NaN where nothing is better or all look the same."""
    # A figure that is undefined in some seeds is that of the seeds in which it looks good.
    seeds = max((interval.seeds for interval in column), default=0)
    means = [interval.mean for interval in column if math.isfinite(interval.mean) and interval.seeds == seeds]
    if not figure.better or len({show(mean, figure) for mean in means}) < 2:
        return math.nan
    return min(means) if figure.better == "low" else max(means)


def _cell(own: Interval, best: float, figure: Figure, layout: Layout) -> Cell:
    shown = show(own.mean, figure)
    spread = _spread(own, layout, figure.key, lambda value: show_spread(value, own.mean, figure))
    # As shown: what looks equal is equally good.
    return Cell(shown, spread, best=math.isfinite(own.mean) and shown == show(best, figure))


def _relative(relative: Interval, layout: Layout) -> Cell:
    if not math.isfinite(relative.mean):
        return Cell(NONE)
    sign = "+" if layout.bounds else ""
    spread = _spread(relative, layout, _DIFFERENCE, lambda value: f"{100 * value:{sign}.1f}")
    return Cell(f"{100 * relative.mean:+.1f} %", spread)


def _spread(own: Interval, layout: Layout, key: str, text: Callable[[float], str]) -> str:
    """The interval as the layout shows it, if it does."""
    if key in layout.without_interval or own.low is None or own.high is None or own.half_width is None:
        return ""
    if not layout.bounds:
        return f"±{text(own.half_width)}"
    low, high = text(own.low), text(own.high)
    return f"{low} to {high}" if low != high else ""


def _chosen(figures: Sequence[Figure], layout: Layout) -> list[Figure]:
    return [figure for figure in figures if figure.key not in layout.dropped]


def _defined(comparison: Comparison, figure: Figure, tenant: str) -> bool:
    """A column of dashes alone (SLO where the tenant has none) is left out."""
    return any(comparison.interval(name, figure.key, tenant).seeds for name in comparison.schedulers)


class _Fitted:
    """Renders the fullest layout that fits the console without wrapping (the barest one wraps)."""

    def __init__(self, builders: Sequence[Callable[[], Table]]) -> None:
        self._builders = builders

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for build in self._builders[:-1]:
            table = build()
            if Measurement.get(console, options.update(width=10_000), table).maximum <= options.max_width:
                yield table
                return
        yield self._builders[-1]()
