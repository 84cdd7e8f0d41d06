"""A comparison as tables: one for each tenant, and one of the GPU."""

from __future__ import annotations

import dataclasses
import functools
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.text import Text

from gpusched_env.display.table import NONE, Cell, Table
from gpusched_env.display.words import FEW, counted, is_largest
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.figures import (
    GLOBAL_FIGURES,
    TENANT_FIGURES,
    FigureSpec,
    find_figure,
    format_value,
    show_spread,
)
from gpusched_env.experiments.lib.statistics import FEW_SEEDS, Interval

WORK = 0.95
"""Share of the baseline's completed jobs."""
RULE = (
    f"Best: of those that completed at least {WORK:.0%} of each tenant's jobs that {{baseline}} completed; "
    "cost, goodput and SLO, which count what was not done, of all."
).replace("%", " %")
"""What is said below tables."""


def did_the_work(comparison: Comparison, scheduler: str, tenant: str | None = None) -> bool:
    """Whether a scheduler completed enough jobs of a tenant, or of every tenant, over the seeds that it finished."""
    completed = find_figure("completed", of_tenant=True)
    rows = range(len(comparison.tenants)) if tenant is None else [comparison.tenants.index(tenant)]
    seeds = [run.seed for run in comparison.of(scheduler)]
    baseline = comparison.schedulers[0]
    known = [run.seed for run in comparison.of(baseline)]
    done = 0.0
    for row in rows:
        asked = dict(zip(known, comparison.values(baseline, completed, row), strict=True))
        own = sum(comparison.values(scheduler, completed, row))
        if own < WORK * sum(asked.get(seed, 0.0) for seed in seeds):
            return False
        done += own
    return done > 0.0


def best_mean(column: Mapping[str, Interval], figure: FigureSpec, workers: set[str]) -> float:
    """The best mean of a column; NaN where nothing is better or all look the same.

    Args:
        column: by scheduler.
        workers: those that did the work.
    """
    # A figure that is undefined in some seeds is that of the seeds in which it looks good.
    seeds = max((interval.seeds for interval in column.values()), default=0)
    defined = {n: i.mean for n, i in column.items() if math.isfinite(i.mean) and i.seeds == seeds}
    if not figure.better or len({format_value(mean, figure) for mean in defined.values()}) < 2:
        return math.nan
    means = [mean for name, mean in defined.items() if figure.counts_undone or name in workers]
    best = min if figure.better == "low" else max
    return best(means, default=math.nan)


BASELINE = "(baseline)"
"""Mark behind the first scheduler."""

_LEFT_OUT = ("turnaround_mean_us", "ttft_mean_us", "tpot_mean_us", "progress", "decisions")
_NOT_PRINTED = (*_LEFT_OUT, "makespan_us")
# What goes first where the terminal is narrow.
_DISPENSABLE = (
    *("jobs_unfinished", "jobs_completed", "completed", "dram_utilisation", "unfinished"),
    *("energy_per_job_j", "utilisation", "goodput_per_s", "best_effort", "urgent_p99", "turnaround_p95_us", "energy_j"),
    *("ttft_p50_us", "tpot_p50_us"),
)
_DIFFERENCE = "difference"
# Their intervals go first, those of cost and of the difference last.
_INTERVALS = (
    *("jobs_completed", "jobs_rejected", "jobs_unfinished", "completed", "rejected", "unfinished"),
    *("dram_utilisation", "utilisation", "energy_per_job_j", "energy_j", "throughput_per_s"),
    *("goodput_per_s", "best_effort", "urgent_p99", "tpot_p50_us", "tpot_p99_us", "ttft_p50_us", "ttft_p99_us"),
    *("turnaround_p50_us", "turnaround_p95_us", "stp", "antt", "slowdown", "slo_attainment", "turnaround_p99_us"),
    *("cost", _DIFFERENCE),
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which columns, and which of them with intervals."""

    dropped: frozenset[str] = frozenset(_LEFT_OUT)
    without_interval: frozenset[str] = frozenset()
    bounds: frozenset[str] = frozenset()
    """Figures whose intervals are shown by their ends, not by their half width."""
    letters: int | None = None
    """Letters in a line of a row's names, at most."""


_NOTEBOOK = (
    ".gpusched td { text-align: right; } .gpusched small { display: block; white-space: nowrap; } "
    '.gpusched th[scope="row"] { text-align: left; font-weight: normal; }'
)
PAGE = Layout(bounds=frozenset(["cost", _DIFFERENCE]))


def _printed(columns: int, intervals: int) -> Layout:
    """The layout without so many of what is dispensable."""
    letters = 28 if columns < len(_DISPENSABLE) else 20
    dropped = frozenset([*_NOT_PRINTED, *_DISPENSABLE[:columns]])
    return Layout(dropped, frozenset(_INTERVALS[:intervals]), letters=letters)


# From everything to the bare minimum: all intervals are worth more than three columns, all columns more than other
# intervals than the last two.
_PRINTED = [
    *(_printed(columns, 0) for columns in range(4)),
    *(_printed(0, intervals) for intervals in range(1, len(_INTERVALS) - 2)),
    *(_printed(columns, len(_INTERVALS) - 2) for columns in range(len(_DISPENSABLE) + 1)),
    *(_printed(len(_DISPENSABLE), len(_INTERVALS) - left) for left in (1, 0)),
]


def comparison_tables(comparison: Comparison, *, coloured: bool = True) -> Group:
    """Tables for the terminal: as much as fits its width, and what the signs mean, with colours or without.

    The whole GPU comes last: that is what one sees when it is printed.
    """
    parts: list[Any] = [
        *(_Fitted(functools.partial(_tenant, comparison, row)) for row in range(len(comparison.tenants))),
        _Fitted(functools.partial(_whole, comparison)),
    ]
    best = "Best of a column in bold green. " if coloured else ""
    return Group(*parts, Text(f"\n{best}{notes(comparison)}", style="dim"))


def whole_gpu_table(comparison: Comparison) -> Any:
    """The table of the whole GPU alone for the terminal, without notes."""
    return _Fitted(functools.partial(_whole, comparison))


def html_tables(comparison: Comparison) -> str:
    """Tables for a notebook."""
    shown = "".join(table._repr_html_() for table in tables(comparison, PAGE))
    below = f"<p>Best of a column is bold. {escape(notes(comparison))}</p>"
    return f'<style>{_NOTEBOOK}</style><div class="gpusched">{shown}</div>{below}'


def notes(comparison: Comparison) -> str:
    """How to read the tables, and how far to trust them."""
    seeds = len(comparison.seeds)
    several = len(comparison.schedulers) > 1
    text = f"{RULE.format(baseline=comparison.label(comparison.schedulers[0]))} " if several else ""
    if any(len(group) > 1 for group in comparison.groups):
        text += "Schedulers in one row came to the same in every job. "
    text += "Rows: by cost. SM, DRAM: utilisation. "
    text += "Percentiles: of the jobs of all seeds together; urgent p99: of each seed's. "
    text += f"{FEW}: a p99 of fewer than 100 jobs, a p95 of fewer than 20: hardly more than the longest job. "
    if seeds < 2:
        text += "One seed: no intervals. "
    else:
        text += f"Intervals: 95 %, bootstrap over {counted(seeds, 'seed')}, none where seeds do not differ. "
    if seeds < FEW_SEEDS:
        text += f"Fewer than {FEW_SEEDS} seeds: differences may be chance, and intervals are too narrow. "
    return f"{text}{' '.join(comparison.remarks)} {comparison.legend}".strip()


def tables(comparison: Comparison, layout: Layout) -> list[Table]:
    """One of the whole GPU, and one a tenant: a row for each group of schedulers that came to the same, by cost."""
    return [_whole(comparison, layout), *(_tenant(comparison, row, layout) for row in range(len(comparison.tenants)))]


def _tenant(comparison: Comparison, row: int, layout: Layout) -> Table:
    program = comparison.problem.programs[row]
    tenant = program.tenant
    about = f"{tenant.name}: {program.alone_us / 1e3:.3g} ms alone"
    if tenant.slo_us is not None:
        about += f", SLO {tenant.slo_us / 1e3:g} ms" + (" to the first token" if program.engine is not None else "")
    figures = _chosen(comparison, TENANT_FIGURES, tenant.name, layout)
    note = f"turnaround in ms, of completed jobs; {_not_counted(comparison, row)}"
    return _table(comparison, Table(about, [], [], note=note), figures, tenant.name, layout)


def _not_counted(comparison: Comparison, row: int) -> str:
    """How many jobs of a tenant the percentiles leave out."""
    rejected = sum(run.metrics.tenants[row].rejected for run in comparison.runs)
    left = sum(run.metrics.tenants[row].unfinished for run in comparison.runs)
    if rejected + left == 0:
        return "none was rejected or left"
    return f"{rejected:,} rejected and {left:,} left (all schedulers, all seeds) are not counted"


def _whole(comparison: Comparison, layout: Layout) -> Table:
    figures = _chosen(comparison, GLOBAL_FIGURES, None, layout)
    found = _table(comparison, Table("Whole GPU", [], []), figures, None, layout)
    first = comparison.schedulers[0]
    if len(comparison.schedulers) < 2:
        return found
    differences = [
        Cell(NONE) if first in group else _relative(comparison.difference(group[0]).relative, layout)
        for group in comparison.groups
    ]
    help_ = "relative difference of the mean cost, paired by seed"
    # Behind scheduler and cost.
    heads = [*found.heads[:2], f"vs {comparison.label(first)}", *found.heads[2:]]
    helps = [*found.help[:2], help_, *found.help[2:]]
    rows = [[*row[:2], own, *row[2:]] for row, own in zip(found.rows, differences, strict=True)]
    return dataclasses.replace(found, heads=heads, rows=rows, help=helps)


def _table(
    comparison: Comparison, empty: Table, figures: Sequence[FigureSpec], tenant: str | None, layout: Layout
) -> Table:
    names = [group[0] for group in comparison.groups]
    workers = {name for name in names if did_the_work(comparison, name, tenant)}
    columns = [_column(comparison, figure, tenant, layout, workers) for figure in figures]
    labels = [_name(comparison, group, layout) for group in comparison.groups]
    # A tenant's times are all in ms, as its table says.
    plain = tenant is not None
    heads = ["scheduler", *(figure.label if plain and figure.unit == "ms" else figure.heading for figure in figures)]
    rows = list(zip(labels, *columns, strict=True))
    helps = ["", *(figure.help for figure in figures)]
    marked = next(i for i, group in enumerate(comparison.groups) if comparison.schedulers[0] in group)
    return dataclasses.replace(
        empty, heads=heads, rows=rows, help=helps, marked=marked if len(comparison.schedulers) > 1 else None
    )


def _column(
    comparison: Comparison, figure: FigureSpec, tenant: str | None, layout: Layout, workers: set[str]
) -> list[Cell]:
    column = {group[0]: comparison.interval(group[0], figure.key, tenant) for group in comparison.groups}
    best = best_mean(column, figure, workers)
    cells = []
    for name, own in column.items():
        few = _few(comparison, name, figure, tenant)
        may_win = not few and (figure.counts_undone or name in workers)
        cells.append(_cell(own, figure, layout, few=few, best=best if may_win else math.nan))
    return cells


def _name(comparison: Comparison, group: Sequence[str], layout: Layout) -> str:
    """All of a group, and whether the first scheduler is among them."""
    marked = comparison.schedulers[0] if len(comparison.schedulers) > 1 else None
    names = [comparison.label(name) + (f" {BASELINE}" if name == marked else "") for name in group]
    shown = ", ".join(names)
    if layout.letters is None:
        return shown
    return "\n".join(textwrap.wrap(shown, layout.letters, break_long_words=False, break_on_hyphens=False))


def _few(comparison: Comparison, scheduler: str, figure: FigureSpec, tenant: str | None) -> bool:
    """Whether a percentile is of so few jobs that it is hardly more than the largest."""
    if figure.percentile is None:
        return False
    runs = comparison.of(scheduler)
    if tenant is not None:
        row = comparison.tenants.index(tenant)
        return is_largest(figure.percentile, sum(run.metrics.tenants[row].completed for run in runs))
    priorities = [program.tenant.priority for program in comparison.problem.programs]
    urgent = [row for row, priority in enumerate(priorities) if priority == min(priorities)]
    jobs = [sum(run.metrics.tenants[row].completed for row in urgent) for run in runs]
    return is_largest(figure.percentile, min(jobs))


def _cell(own: Interval, figure: FigureSpec, layout: Layout, *, few: bool, best: float) -> Cell:
    shown = format_value(own.mean, figure)
    spread = _spread(own, layout, figure.key, lambda value: show_spread(value, own.mean, figure))
    if not math.isfinite(own.mean):
        return Cell(shown)
    # As shown: what looks equal is equally good.
    return Cell(f"{FEW}{shown}" if few else shown, spread, best=shown == format_value(best, figure), faint=few)


def _relative(relative: Interval, layout: Layout) -> Cell:
    if not math.isfinite(relative.mean):
        return Cell(NONE)
    sign = "+" if _DIFFERENCE in layout.bounds else ""
    spread = _spread(relative, layout, _DIFFERENCE, lambda value: f"{100 * value:{sign}.1f}")
    return Cell(f"{100 * relative.mean:+z.1f} %", spread)


def _spread(own: Interval, layout: Layout, key: str, text: Callable[[float], str]) -> str:
    """The interval as the layout shows it, if it does."""
    if key in layout.without_interval or own.low is None or own.high is None or own.half_width is None:
        return ""
    low, high, half = text(own.low), text(own.high), text(own.half_width)
    # Where seeds do not vary, or not as far as figures are shown, there is no spread to show.
    if low == high or not half.strip("0."):
        return ""
    return f"{low} to {high}" if key in layout.bounds else f"±{half}"


def _chosen(
    comparison: Comparison, figures: Sequence[FigureSpec], tenant: str | None, layout: Layout
) -> list[FigureSpec]:
    """A column of dashes alone (SLO where the tenant has none) is left out, but for the cost."""
    return [
        figure
        for figure in figures
        if figure.key not in layout.dropped
        and (
            figure.key == "cost"
            or any(comparison.interval(name, figure.key, tenant).seeds for name in comparison.schedulers)
        )
    ]


class _Fitted:
    """Renders the fullest layout that fits the console without wrapping (the barest one wraps)."""

    def __init__(self, build: Callable[[Layout], Table]) -> None:
        self._build = build

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        built = map(self._build, _PRINTED)
        yield next((table for table in built if table.width() <= options.max_width), self._build(_PRINTED[-1]))
