"""``report.html``: one self-contained page that explains a comparison, readable without a network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from gpusched_env.display.plots import without_title
from gpusched_env.display.words import counted, duration
from gpusched_env.experiments.compared import ComparedRuns
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.report.charts import ComparisonPlots, looks
from gpusched_env.experiments.report.result import Result
from gpusched_env.experiments.report.tables import PAGE, notes, tables
from gpusched_env.experiments.report.timeline import timeline_data

if TYPE_CHECKING:
    from gpusched_env.display.plots import Figure

STROKES = {
    "solid": "none",
    "dash": "7 4",
    "dot": "2.5 3",
    "dashdot": "7 3 2.5 3",
    "longdash": "11 4",
    "longdashdot": "11 3 2.5 3",
}
"""Dashes of :mod:`gpusched_env.display.palette` as SVG draws them."""


def report_html(comparison: ComparedRuns, result: Result) -> str:
    """The page.

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
        notes=notes(comparison),
        charts={name: _on_page(name, chart) for name, chart in charts(comparison).items()},
        looks=looks(comparison),
        strokes=STROKES,
        timeline=timeline_data(comparison),
        descriptions={comparison.label(name): comparison.descriptions[name] for name in comparison.schedulers},
        provenance=_provenance(result),
        scenario=yaml.safe_dump(msgspec.to_builtins(result.scenario), sort_keys=False, allow_unicode=True),
    )


def charts(comparison: ComparedRuns) -> dict[str, Any]:
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
    """Without what the page has itself: the title, and the legend of schedulers."""
    found: dict[str, Any] = json.loads(without_title(chart).to_json())
    found["layout"]["showlegend"] = name == "utilisation"
    return found


def _facts(comparison: ComparedRuns) -> dict[str, str]:
    problem = comparison.problem
    return {
        "GPU": problem.gpu.name,
        "Simulator": comparison.device,
        "Tenants": ", ".join(comparison.tenants),
        "Seeds": _seeds(comparison.seeds),
        "Horizon": f"{problem.scenario.horizon_us / 1e3:g} ms",
        "Decision": f"{problem.scenario.decision_us:g} µs of host time",
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
