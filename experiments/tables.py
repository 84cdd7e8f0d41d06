"""Comparisons as tables on the terminal, fitted to its width."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from gpusched_env.experiments.bootstrap import Interval
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.figures import GLOBAL_FIGURES, TENANT_FIGURES, Figure, show, show_spread

BEST = "bold green"
_TENANT_COLUMNS = (
    "turnaround_p50_us",
    "turnaround_p95_us",
    "turnaround_p99_us",
    "slowdown",
    "slo_attainment",
    "throughput_per_s",
    "completed",
    "unfinished",
)
_GLOBAL_COLUMNS = ("stp", "antt", "utilisation", "dram_utilisation", "energy_j", "energy_per_job_j", "cost")
# What goes first where the terminal is narrow.
_DISPENSABLE = ("completed", "dram_utilisation", "unfinished", "turnaround_p95_us", "energy_per_job_j", "utilisation")


def comparison_tables(comparison: Comparison) -> Group:
    """A table of the tenants' figures, one of the whole GPU's, and what the signs mean."""
    tenants = _Fitted(lambda layout: _tenant_table(comparison, layout))
    whole = _Fitted(lambda layout: _global_table(comparison, layout))
    notes = [Text("Best of a column in bold green. SM, DRAM: utilisation. "), Text(_interval_note(comparison))]
    if comparison.legend:
        notes.append(Text(f" {comparison.legend}"))
    return Group(tenants, whole, Text.assemble(*notes, style="dim"))


def _interval_note(comparison: Comparison) -> str:
    if len(comparison.seeds) < 2:
        return "One seed: no intervals."
    return f"±: 95 % bootstrap interval of the mean over {len(comparison.seeds)} seeds."


@dataclass(frozen=True, slots=True)
class _Layout:
    intervals: bool
    dropped: frozenset[str]


# From everything to the bare minimum; intervals are worth more than the first dispensable columns.
_LAYOUTS = [
    *(_Layout(True, frozenset(_DISPENSABLE[:n])) for n in range(4)),
    *(_Layout(False, frozenset(_DISPENSABLE[:n])) for n in range(len(_DISPENSABLE) + 1)),
]


class _Fitted:
    """Renders the fullest layout that fits the console without wrapping (the barest one wraps)."""

    def __init__(self, build: Callable[[_Layout], Table]) -> None:
        self._build = build

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for layout in _LAYOUTS[:-1]:
            table = self._build(layout)
            if Measurement.get(console, options.update(width=10_000), table).maximum <= options.max_width:
                yield table
                return
        yield self._build(_LAYOUTS[-1])


def _tenant_table(comparison: Comparison, layout: _Layout) -> Table:
    figures = [f for f in _chosen(TENANT_FIGURES, _TENANT_COLUMNS, layout) if _has_values(comparison, f)]
    table = _new_table("Tenants (turnaround in ms)")
    table.add_column("scheduler", overflow="fold")
    table.add_column("tenant", overflow="fold")
    for figure in figures:
        table.add_column(figure.label if figure.unit == "ms" else figure.heading, justify="right")
    for scheduler in comparison.schedulers:
        for row, tenant in enumerate(comparison.tenants):
            cells = []
            for figure in figures:
                column = [comparison.interval(name, figure, row) for name in comparison.schedulers]
                own = comparison.interval(scheduler, figure, row)
                cells.append(_cell(own, column, figure, layout))
            last = row == len(comparison.tenants) - 1
            table.add_row(_name(comparison.label(scheduler)) if row == 0 else "", tenant, *cells, end_section=last)
    return table


def _global_table(comparison: Comparison, layout: _Layout) -> Table:
    figures = _chosen(GLOBAL_FIGURES, _GLOBAL_COLUMNS, layout)
    first = comparison.schedulers[0]
    table = _new_table("Whole GPU")
    table.add_column("scheduler", overflow="fold")
    for figure in figures:
        table.add_column(figure.heading, justify="right")
    cost = next(f for f in GLOBAL_FIGURES if f.key == "cost")
    several = len(comparison.schedulers) > 1
    if several:
        table.add_column(f"vs {_name(comparison.label(first))}", justify="right", overflow="fold")
    for scheduler in comparison.schedulers:
        cells = []
        for figure in figures:
            column = [comparison.interval(name, figure) for name in comparison.schedulers]
            cells.append(_cell(comparison.interval(scheduler, figure), column, figure, layout))
        if several:
            relative = comparison.against_first(scheduler, cost).relative
            cells.append(Text("") if scheduler == first else _relative_cell(relative, layout))
        table.add_row(_name(comparison.label(scheduler)), *cells)
    return table


def _new_table(title: str) -> Table:
    return Table(
        title=title, title_justify="left", title_style="bold", header_style="bold", box=SIMPLE_HEAD, padding=(0, 1)
    )


def _chosen(figures: Sequence[Figure], keys: Sequence[str], layout: _Layout) -> list[Figure]:
    by_key = {figure.key: figure for figure in figures}
    return [by_key[key] for key in keys if key not in layout.dropped]


def _has_values(comparison: Comparison, figure: Figure) -> bool:
    """A column of dashes alone (SLO where no tenant has one) is left out."""
    return any(
        comparison.interval(scheduler, figure, row).seeds
        for scheduler in comparison.schedulers
        for row in range(len(comparison.tenants))
    )


def best_mean(column: Sequence[Interval], figure: Figure) -> float:
    """The best mean of a column; NaN where nothing is better or all look the same."""
    means = [interval.mean for interval in column if math.isfinite(interval.mean)]
    if not figure.better or len({show(mean, figure) for mean in means}) < 2:
        return math.nan
    return min(means) if figure.better == "low" else max(means)


def _cell(own: Interval, column: Sequence[Interval], figure: Figure, layout: _Layout) -> Text:
    shown = show(own.mean, figure)
    # As shown: what looks equal is equally good.
    style = BEST if math.isfinite(own.mean) and shown == show(best_mean(column, figure), figure) else ""
    text = Text(shown, style=style)
    if layout.intervals and own.half_width is not None:
        text.append(f" ±{show_spread(own.half_width, own.mean, figure)}", style="dim not bold")
    return text


def _relative_cell(relative: Interval, layout: _Layout) -> Text:
    if not math.isfinite(relative.mean):
        return Text("–")
    text = Text(f"{100 * relative.mean:+.1f} %")
    if layout.intervals and relative.half_width is not None:
        text.append(f" ±{100 * relative.half_width:.1f}", style="dim")
    return text


def _name(scheduler: str) -> str:
    """Without the folders of a scheduler that was given as a file."""
    return scheduler.rsplit("/", 1)[-1]
