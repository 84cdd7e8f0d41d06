"""``report.html``: one page that explains a comparison, with its timeline."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import yaml
from markupsafe import Markup
from numpy.typing import NDArray

from gpusched_env.display.palette import tenant
from gpusched_env.display.plots import without_title
from gpusched_env.display.words import counted, duration
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.episodes import Run
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.report.charts import ComparisonPlots, interesting_window, looks
from gpusched_env.experiments.report.result import Result
from gpusched_env.experiments.report.tables import ALL_COLUMNS, PAGE, cautions, explanation, tables
from gpusched_env.hardware.placement import sm_order

if TYPE_CHECKING:
    from gpusched_env.display.plots import Figure


MAX_KERNELS = 2_000
"""Kernels a scheduler, at most, in the timeline."""
MAX_BARS = 12_000
"""Bars a scheduler in the rows of SMs; equal neighbours share one."""
NAMED = ("tradeoff", "utilisation")
"""Charts whose marks are named by a legend of their own; others name their rows, or are named by the page's legend."""
OPEN = 3
"""The cheapest schedulers, whose timelines are shown at first, beside the one that others are compared with."""


def timeline_data(comparison: Comparison) -> dict[str, Any]:
    """Plain data, times in nanoseconds since the window's start.

    Keys: ``window_us``; ``tenants``, their ``colours``, ``kernels`` (names), ``sms`` (how many); ``truncated``;
    ``schedulers``, each a row of the tables, the cheapest first, with ``name``, ``open`` (shown at first), ``streams``
    (rows of start, end, tenant, kernel name, job, blocks, threads) and ``sms`` (rows of start, end, tenant, kernel
    name, first and last rank in placement order, blocks on each of these SMs) and ``turns`` (start, end and tenant of
    the stretches in which a time-sliced tenant had the GPU; else empty).
    """
    problem = comparison.problem
    labels = {group[0]: comparison.label_of(group) for group in comparison.groups}
    recorded = [run for run in map(comparison.recorded, labels) if run is not None]
    shown_first = {comparison.schedulers[0], *list(labels)[:OPEN]}
    data: dict[str, Any] = {"schedulers": [], "truncated": False, "window_us": comparison.window_us}
    if not recorded:
        return data
    window = comparison.window_us or interesting_window(recorded)
    names: dict[str, int] = {}
    name_of = [names.setdefault(profile.kernel.name, len(names)) for profile in problem.kernels]
    shapes = [(profile.kernel.blocks, profile.kernel.threads) for profile in problem.kernels]
    ranks = np.argsort(sm_order(problem.gpu))
    for run in recorded:
        assert run.timeline is not None
        kernels = run.timeline.kernels.array
        kernels = kernels[(kernels[:, 7] > window[0]) & (kernels[:, 6] < window[1])]
        kernels = kernels[np.argsort(kernels[:, 6], kind="stable")]
        streams = [
            [*_span(row[6], row[7], window), int(row[1]), name_of[int(row[3])], int(row[2]), *shapes[int(row[3])]]
            for row in kernels[:MAX_KERNELS]
        ]
        blocks = comparison.block_runs.get(run.scheduler)
        bars = [] if blocks is None else _bars(blocks, run, ranks, name_of, window)
        data["truncated"] |= len(kernels) > MAX_KERNELS or len(bars) > MAX_BARS
        turns = [
            [*_span(start, end, window), row]
            for row in range(len(comparison.tenants))
            for start, end, has_gpu in run.timeline.parts(row, *window)
            if has_gpu and len(run.timeline.turns)
        ]
        shown = {"streams": streams, "sms": bars[:MAX_BARS], "turns": turns, "open": run.scheduler in shown_first}
        data["schedulers"].append({"name": labels[run.scheduler], **shown})
    return data | {
        "window_us": list(window),
        "tenants": comparison.tenants,
        "colours": [tenant(row).colour for row in range(len(comparison.tenants))],
        "kernels": list(names),
        "sms": problem.gpu.sms,
    }


def _bars(
    run: Run, whole: Run, ranks: NDArray[np.int64], name_of: list[int], window: tuple[float, float]
) -> list[list[int]]:
    """Residencies in order of start; SMs that are neighbours in placement order and hold the same share one."""
    assert run.timeline is not None
    assert whole.timeline is not None
    launches = {row[0]: (int(row[1]), name_of[int(row[3])]) for row in whole.timeline.kernels.array}
    table = run.timeline.blocks.array
    table = table[(table[:, 4] > window[0]) & (table[:, 3] < window[1])]
    rank = ranks[table[:, 0].astype(int)]
    bars: list[list[int]] = []
    last: tuple[float, ...] | None = None
    for i in np.lexsort((rank, table[:, 2], table[:, 4], table[:, 1], table[:, 3])):
        _, launch, blocks, start, end = table[i]
        if launch not in launches:
            continue
        key = (launch, blocks, start, end)
        if key == last and rank[i] == bars[-1][5] + 1:
            bars[-1][5] += 1
        else:
            tenant, name = launches[launch]
            bars.append([*_span(start, end, window), tenant, name, int(rank[i]), int(rank[i]), int(blocks)])
        last = key
    return bars


def _span(start_us: float, end_us: float, window: tuple[float, float]) -> tuple[int, int]:
    return round((start_us - window[0]) * 1e3), round((end_us - window[0]) * 1e3)


STROKES = {
    "solid": "none",
    "dash": "7 4",
    "dot": "2.5 3",
    "dashdot": "7 3 2.5 3",
    "longdash": "11 4",
    "longdashdot": "11 3 2.5 3",
}
"""Dashes of :mod:`gpusched_env.display.palette` as SVG draws them."""


def report_html(comparison: Comparison, result: Result) -> str:
    """The page of a comparison, HTML.

    Args:
        comparison: with at least one finished episode.
        result: its ``result.json`` content, the source of the provenance section.
    """
    scenario = comparison.problem.scenario
    return page(
        "report.html",
        title=f"{scenario.name}: {counted(len(comparison.schedulers), 'scheduler')}",
        comparison=comparison,
        facts=_facts(comparison),
        tables=tables(comparison, PAGE),
        all_columns=Markup(ALL_COLUMNS),
        cautions=cautions(comparison),
        explanation=explanation(comparison),
        charts={name: _on_page(name, chart) for name, chart in charts(comparison).items()},
        looks=looks(comparison),
        strokes=STROKES,
        timeline=timeline_data(comparison),
        descriptions={comparison.label(name): comparison.descriptions[name] for name in comparison.schedulers},
        provenance=_provenance(result),
        scenario=yaml.safe_dump(msgspec.to_builtins(result.scenario), sort_keys=False, allow_unicode=True),
    )


def charts(comparison: Comparison) -> dict[str, Any]:
    """Plotly figures by name: those that the scenario and what was recorded allow."""
    plot = ComparisonPlots(comparison)
    found = {"cost": plot.cost(), "cdf": plot.cdf()}
    tenants = [program.tenant for program in comparison.problem.programs]
    if any(tenant.slo_us is not None for tenant in tenants):
        found["slo"] = plot.slo()
    if len({tenant.priority for tenant in tenants}) > 1:
        found["tradeoff"] = plot.tradeoff()
    if any(comparison.recorded(name) for name in comparison.schedulers):
        found["utilisation"] = plot.utilisation()
    return found


def _on_page(name: str, chart: Figure) -> dict[str, Any]:
    """A chart without what the page has itself: the title, and the legend of lines."""
    found: dict[str, Any] = json.loads(without_title(chart).to_json())
    found["layout"]["showlegend"] = name in NAMED
    return found


def _facts(comparison: Comparison) -> dict[str, str]:
    problem = comparison.problem
    return {
        "GPU": problem.gpu.name,
        "Simulator": comparison.device,
        "Tenants": ", ".join(comparison.tenants),
        "Seeds": _seeds(comparison.seeds),
        "Horizon": f"{problem.scenario.horizon_us / 1e3:g} ms",
        "A decision takes": f"{problem.scenario.decision_us:g} µs" if problem.scenario.decision_us else "no time",
        "Date": f"{comparison.started:%Y-%m-%d %H:%M} UTC",
    }


def _seeds(seeds: tuple[int, ...]) -> str:
    run = seeds == tuple(range(seeds[0], seeds[0] + len(seeds)))
    return f"{len(seeds)} ({seeds[0]} to {seeds[-1]})" if run and len(seeds) > 1 else ", ".join(map(str, seeds))


def _provenance(result: Result) -> dict[str, str]:
    about = result.provenance
    return {
        "Command": about.command or "(called from Python)",
        "Started": f"{about.started:%Y-%m-%d %H:%M:%S} UTC",
        "Took": duration(about.wall_s),
        "Versions": ", ".join(f"{package} {version}" for package, version in about.versions.items()),
        "Platform": about.platform,
        "Physics": about.made.physics.get(result.device, "not known"),
        "Intervals": f"{result.intervals['method']}, {result.intervals['resamples']} resamples",
    }
