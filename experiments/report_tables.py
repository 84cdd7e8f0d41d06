"""The tables of the HTML report."""

from __future__ import annotations

import math
from html import escape

from gpusched_env.experiments.bootstrap import Interval
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.figures import GLOBAL_FIGURES, TENANT_FIGURES, Figure, show, show_spread
from gpusched_env.experiments.tables import best_mean

_LEFT_OUT = ("turnaround_mean_us", "progress", "decisions")


def tenant_table(comparison: Comparison) -> str:
    """A block of rows for each tenant, a row for each scheduler: what is compared stands side by side."""
    figures = [f for f in TENANT_FIGURES if f.key not in _LEFT_OUT]
    body = []
    for row, tenant in enumerate(comparison.tenants):
        slo_us = comparison.problem.programs[row].tenant.slo_us
        alone_ms = comparison.problem.programs[row].alone_us / 1e3
        about = f"{alone_ms:.3g} ms alone" + (f", SLO {slo_us / 1e3:g} ms" if slo_us is not None else "")
        body.append(
            f'<tr class="group"><th colspan="{len(figures) + 1}" scope="rowgroup">{escape(tenant)} '
            f"<span>{escape(about)}</span></th></tr>"
        )
        columns = {f.key: [comparison.interval(s, f, row) for s in comparison.schedulers] for f in figures}
        for i, scheduler in enumerate(comparison.schedulers):
            cells = (_cell(columns[f.key][i], columns[f.key], f) for f in figures)
            body.append(f'<tr><th scope="row">{escape(comparison.label(scheduler))}</th>{"".join(cells)}</tr>')
    return _table(figures, "".join(body))


def global_table(comparison: Comparison) -> str:
    """A row for each scheduler."""
    figures = [f for f in GLOBAL_FIGURES if f.key not in _LEFT_OUT]
    columns = {f.key: [comparison.interval(s, f) for s in comparison.schedulers] for f in figures}
    body = []
    for i, scheduler in enumerate(comparison.schedulers):
        cells = "".join(_cell(columns[f.key][i], columns[f.key], f) for f in figures)
        cells += _relative_cell(comparison, scheduler)
        body.append(f'<tr><th scope="row">{escape(comparison.label(scheduler))}</th>{cells}</tr>')
    versus = f"cost vs {comparison.label(comparison.schedulers[0])}"
    help_ = "relative difference of the mean cost, paired by seed"
    return _table(figures, "".join(body), f'<th scope="col" title="{help_}">{escape(versus)}</th>')


def _relative_cell(comparison: Comparison, scheduler: str) -> str:
    cost = next(f for f in GLOBAL_FIGURES if f.key == "cost")
    relative = comparison.against_first(scheduler, cost).relative
    if scheduler == comparison.schedulers[0] or not math.isfinite(relative.mean):
        return "<td>–</td>"
    text = f"{100 * relative.mean:+.1f} %"
    if relative.low is not None and relative.high is not None:
        text += f"<small>{100 * relative.low:+.1f} to {100 * relative.high:+.1f}</small>"
    return f"<td>{text}</td>"


def _table(figures: list[Figure], body: str, more_heads: str = "") -> str:
    heads = "".join(f'<th scope="col" title="{escape(f.help)}">{escape(f.heading)}</th>' for f in figures)
    return (
        f'<table><thead><tr><th scope="col">scheduler</th>{heads}{more_heads}</tr></thead><tbody>{body}</tbody></table>'
    )


def _cell(own: Interval, column: list[Interval], figure: Figure) -> str:
    shown = show(own.mean, figure)
    best = math.isfinite(own.mean) and shown == show(best_mean(column, figure), figure)
    text = f"<b>{shown}</b>" if best else shown
    if own.low is not None and own.high is not None:
        low, high = (show_spread(bound, own.mean, figure) for bound in (own.low, own.high))
        if low != high:
            text += f"<small>{low} to {high}</small>"
    return f"<td>{text}</td>"
