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
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.figures import (
    ABBREVIATIONS,
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


_NOTEBOOK = (
    ".gpusched td { text-align: right; } .gpusched small { display: block; white-space: nowrap; } "
    '.gpusched th[scope="row"] { text-align: left; font-weight: normal; } '
    ".gpusched:not(:has(.columns :checked)) .extra { display: none; }"
)
ALL_COLUMNS = '<label class="columns"><input type="checkbox"> all columns</label>'
"""What shows the columns that do not lead, where a style hides them."""
BASELINE = "(baseline)"
"""Mark behind the first scheduler."""

_LEFT_OUT = ("turnaround_mean_us", "ttft_mean_us", "tpot_mean_us", "progress", "decisions")
_DIFFERENCE, _VERDICT = "difference", "verdict"
LEADING = (
    *("cost", "goodput_per_s", "urgent_p99", "best_effort", "antt", "stp"),
    *("turnaround_p50_us", "turnaround_p99_us", "slo_attainment", "ttft_p99_us", "tpot_p99_us", "slowdown"),
    *("throughput_per_s", "completed"),
)
"""Figures that are shown unless others are asked for, of those that are defined the first."""
COLUMNS = 6
"""Columns of a table, unless others are asked for; that of schedulers is one."""
ALL = ("all",)
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

    columns: Sequence[str] = ()
    """Keys or labels of figures; none: the leading ones alone; :data:`ALL`."""
    fewer: int = 0
    """So many of the leading columns are left out."""
    on_demand: bool = False
    """All columns are there, and those that do not lead are shown when they are asked for."""
    without_interval: frozenset[str] = frozenset()
    bounds: frozenset[str] = frozenset()
    """Figures whose intervals are shown by their ends, not by their half width."""
    letters: int | None = None
    """Letters in a line of a row's names, at most."""


PAGE = Layout(on_demand=True, bounds=frozenset(["cost", _DIFFERENCE]))


def _fitting(columns: Sequence[str]) -> list[Layout]:
    """From everything to the bare minimum: intervals go first, then leading columns, but none that was asked for."""
    intervals = [
        Layout(columns, without_interval=frozenset(_INTERVALS[:n]), letters=28) for n in range(len(_INTERVALS))
    ]
    bare = dataclasses.replace(intervals[-1], without_interval=frozenset(_INTERVALS), letters=20)
    fewer = [] if columns else [dataclasses.replace(bare, fewer=n) for n in (1, 2)]
    return [*intervals, bare, *fewer]


def asked_columns(given: str) -> tuple[str, ...]:
    """The columns that ``all`` or a list of figures names, by key or by label.

    Raises:
        InputError: there is no such figure.
    """
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    figures = (*GLOBAL_FIGURES, *TENANT_FIGURES)
    known = [*ALL, *(figure.key for figure in figures), *(figure.label for figure in figures)]
    for name in names:
        if name not in known:
            raise InputError(
                f"no column {name!r}; {did_you_mean(name, dict.fromkeys([*ALL, *(f.key for f in figures)]))}"
            )
    return names


def comparison_tables(
    comparison: Comparison, *, coloured: bool = True, columns: Sequence[str] = (), explain: bool = False
) -> Group:
    """Tables for the terminal, with colours or without, and what to know of this result.

    The whole GPU comes last: that is what one sees when it is printed.

    Args:
        columns: figures, by key or label, or :data:`ALL`; by default those that lead.
        explain: also say how tables are read.
    """
    parts: list[Any] = [
        *(_Fitted(functools.partial(_tenant, comparison, row), columns) for row in range(len(comparison.tenants))),
        _Fitted(functools.partial(_whole, comparison), columns),
    ]
    best = "Best of a column in bold green. " if coloured else ""
    below = [*cautions(comparison), *([f"{best}{explanation(comparison)}"] if explain else [])]
    return Group(*parts, *(Text(f"\n{text}", style="dim") for text in below))


def whole_gpu_table(comparison: Comparison) -> Any:
    """The table of the whole GPU alone for the terminal, without notes."""
    return _Fitted(functools.partial(_whole, comparison))


def html_tables(comparison: Comparison) -> str:
    """Tables for a notebook."""
    shown = "".join(table._repr_html_() for table in tables(comparison, PAGE))
    below = "".join(f"<p>{escape(text)}</p>" for text in cautions(comparison))
    how = f"<details><summary>How to read this</summary>Best of a column is bold. {escape(explanation(comparison))}"
    return f'<style>{_NOTEBOOK}</style><div class="gpusched">{ALL_COLUMNS}{shown}</div>{below}{how}</details>'


def cautions(comparison: Comparison) -> list[str]:
    """What to know of this result before it is believed: nothing, where there is nothing."""
    seeds = len(comparison.seeds)
    few = f"Fewer than {FEW_SEEDS} seeds: differences may be chance, and intervals are too narrow."
    found = ["One seed: no intervals, and no verdict."] if seeds < 2 else [few] if seeds < FEW_SEEDS else []
    return [*found, *comparison.remarks, *([comparison.legend] if comparison.legend else [])]


def explanation(comparison: Comparison) -> str:
    """How to read the tables."""
    several = len(comparison.schedulers) > 1
    text = f"{RULE.format(baseline=comparison.label(comparison.schedulers[0]))} " if several else ""
    if any(len(group) > 1 for group in comparison.groups):
        text += "Schedulers in one row came to the same in every job. "
    text += "Rows: by cost. Percentiles: of the jobs of all seeds together; urgent p99: of each seed's. "
    text += f"{FEW}: a p99 of fewer than 100 jobs, a p95 of fewer than 20: hardly more than the longest job. "
    if (seeds := len(comparison.seeds)) > 1:
        text += f"Intervals: 95 %, bootstrap over {counted(seeds, 'seed')}, none where seeds do not differ. "
    return f"{text}Verdict: better or worse where the interval of the difference is below or above 0."


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
    found_of = {group: comparison.difference(group[0]).relative for group in comparison.groups}
    differences: list[list[str | Cell]] = [
        [Cell(NONE), NONE] if first in group else [_relative(own, layout), verdict(own)]
        for group, own in found_of.items()
    ]
    heads = [f"vs {comparison.label(first)}", _VERDICT]
    helps = ["relative difference of the mean cost, paired by seed", "what the 95 % interval of the difference says"]
    # Behind scheduler and cost.
    return dataclasses.replace(
        found,
        heads=[*found.heads[:2], *heads, *found.heads[2:]],
        rows=[[*row[:2], *own, *row[2:]] for row, own in zip(found.rows, differences, strict=True)],
        help=[*found.help[:2], *helps, *found.help[2:]],
        extra=frozenset(column + len(heads) for column in found.extra),
    )


def verdict(difference: Interval) -> str:
    """What the interval of a difference in cost says, in words."""
    if difference.low is None or difference.high is None:
        return NONE
    return "better" if difference.high < 0.0 else "worse" if difference.low > 0.0 else "no difference shown"


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
    leading = _leading(figures, tenant)
    words = " ".join(figure.label for figure in figures).split()
    meant = [f"{short}: {long}" for short, long in ABBREVIATIONS.items() if short in words]
    few = any(cell.faint for column in columns for cell in column)
    about = [
        *filter(None, [empty.note]),
        *meant,
        *([f"{FEW}: of few jobs, hardly more than the longest"] if few else []),
    ]
    return dataclasses.replace(
        empty,
        note="; ".join(about),
        heads=heads,
        rows=rows,
        help=helps,
        marked=marked if len(comparison.schedulers) > 1 else None,
        extra=frozenset(i for i, figure in enumerate(figures, 1) if layout.on_demand and figure not in leading),
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
    """Figures of a table; a column of dashes alone (SLO where the tenant has none) is left out, but for the cost."""
    defined = [
        figure
        for figure in figures
        if figure.key not in _LEFT_OUT
        and (
            figure.key == "cost"
            or any(comparison.interval(name, figure.key, tenant).seeds for name in comparison.schedulers)
        )
    ]
    if layout.on_demand or "all" in layout.columns:
        return defined
    if layout.columns:
        asked = [figure for figure in figures if {figure.key, figure.label} & {"cost", *layout.columns}]
        return asked or _leading(defined, tenant)[:1]
    leading = _leading(defined, tenant)
    return leading[: len(leading) - layout.fewer]


def _leading(figures: Sequence[FigureSpec], tenant: str | None) -> list[FigureSpec]:
    """Those that are shown unless others are asked for, the most telling first."""
    by_key = {figure.key: figure for figure in figures}
    # Beside schedulers, the whole GPU has the difference and the verdict.
    room = COLUMNS - (3 if tenant is None else 1)
    return [by_key[key] for key in LEADING if key in by_key][:room]


class _Fitted:
    """Renders the fullest layout that fits the console without wrapping (the barest one wraps)."""

    def __init__(self, build: Callable[[Layout], Table], columns: Sequence[str] = ()) -> None:
        self._build, self._layouts = build, _fitting(columns)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        built = map(self._build, self._layouts)
        # Title and note are sentences, which may wrap.
        fits = (table for table in built if dataclasses.replace(table, title="", note="").width() <= options.max_width)
        yield next(fits, self._build(self._layouts[-1]))
