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
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.figures import GLOBAL_FIGURES, TENANT_FIGURES, Figure, show, show_spread
from gpusched_env.experiments.lib.statistics import FEW_SEEDS, Interval

_LEFT_OUT = ("turnaround_mean_us", "progress", "decisions")
_NOT_PRINTED = (*_LEFT_OUT, "makespan_us")
# What goes first where the terminal is narrow.
_DISPENSABLE = ("completed", "dram_utilisation", "unfinished", "turnaround_p95_us", "energy_per_job_j", "utilisation")


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns, and whether with intervals."""

    intervals: bool = True
    dropped: frozenset[str] = frozenset(_LEFT_OUT)
    bounds: bool = False
    """Intervals by their ends, not by their half width."""


PAGE = Layout(bounds=True)
# From everything to the bare minimum; intervals are worth more than the first dispensable columns.
_PRINTED = [
    *(Layout(True, frozenset([*_NOT_PRINTED, *_DISPENSABLE[:n]])) for n in range(4)),
    *(Layout(False, frozenset([*_NOT_PRINTED, *_DISPENSABLE[:n]])) for n in range(len(_DISPENSABLE) + 1)),
]


def comparison_tables(comparison: Comparison) -> Group:
    """For the terminal: as much as fits its width, and what the signs mean."""
    parts: list[Any] = [
        _Fitted([lambda layout=layout, i=i: tables(comparison, layout)[i] for layout in _PRINTED])  # type: ignore[misc]
        for i in range(len(comparison.tenants) + 1)
    ]
    return Group(*parts, Text(f"\nBest of a column in bold green. {notes(comparison)}", style="dim"))


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
        text += f"Intervals: 95 %, bootstrap over {seeds} seeds. "
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
    head = f"vs {_name(comparison.label(first))}"
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
    names = [_name(comparison.label(name)) for name in comparison.schedulers]
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
    spread = ""
    if layout.intervals and own.low is not None and own.high is not None and own.half_width is not None:
        low, high = (show_spread(bound, own.mean, figure) for bound in (own.low, own.high))
        half = f"±{show_spread(own.half_width, own.mean, figure)}"
        spread = half if not layout.bounds else f"{low} to {high}" if low != high else ""
    # As shown: what looks equal is equally good.
    return Cell(shown, spread, best=math.isfinite(own.mean) and shown == show(best, figure))


def _relative(relative: Interval, layout: Layout) -> Cell:
    if not math.isfinite(relative.mean):
        return Cell(NONE)
    spread = ""
    if layout.intervals and relative.low is not None and relative.high is not None and relative.half_width is not None:
        bounds = f"{100 * relative.low:+.1f} to {100 * relative.high:+.1f}"
        spread = bounds if layout.bounds else f"±{100 * relative.half_width:.1f}"
    return Cell(f"{100 * relative.mean:+.1f} %", spread)


def _chosen(figures: Sequence[Figure], layout: Layout) -> list[Figure]:
    return [figure for figure in figures if figure.key not in layout.dropped]


def _defined(comparison: Comparison, figure: Figure, tenant: str) -> bool:
    """A column of dashes alone (SLO where the tenant has none) is left out."""
    return any(comparison.interval(name, figure.key, tenant).seeds for name in comparison.schedulers)


def _name(scheduler: str) -> str:
    """Without the folders of a scheduler that was given as a file."""
    return scheduler.rsplit("/", 1)[-1] if "(" not in scheduler else scheduler


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
