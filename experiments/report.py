"""``report.html``: one self-contained page that explains a comparison, readable without a network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import yaml

from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.page import asset, embed, fill
from gpusched_env.experiments.report_charts import charts
from gpusched_env.experiments.report_tables import global_table, tenant_table
from gpusched_env.experiments.report_timeline import timeline_data


def write_report(comparison: Comparison, result: dict[str, Any], path: Path) -> None:
    """Write the page.

    Args:
        comparison: with at least one finished episode.
        result: its ``result.json`` content, the source of the provenance section.
        path: the file.
    """
    from plotly.offline import get_plotlyjs

    timeline = timeline_data(comparison)
    page = {
        "title": escape(f"{comparison.problem.scenario.name}: {_count(len(comparison.schedulers), 'scheduler')}"),
        "summary": escape(comparison.problem.scenario.summary),
        "facts": _facts(comparison),
        "warning": _warning(comparison),
        "tenant_table": tenant_table(comparison),
        "global_table": global_table(comparison),
        "table_note": escape(_table_note(comparison)),
        "timeline_note": escape(_timeline_note(comparison, timeline)),
        "descriptions": _descriptions(comparison),
        "provenance": _provenance(result),
        "scenario": escape(yaml.safe_dump(result["scenario"], sort_keys=False, allow_unicode=True)),
        "charts": embed(charts(comparison)),
        "timeline": embed(timeline),
        "style": asset("report.css"),
        "script": asset("report.js"),
        "timeline_script": asset("timeline.js"),
        "plotly": get_plotlyjs(),
    }
    path.write_text(fill("report.html", page), encoding="utf-8")


def _facts(comparison: Comparison) -> str:
    problem = comparison.problem
    items = {
        "GPU": problem.gpu.name,
        "Device": comparison.device,
        "Tenants": ", ".join(comparison.tenants),
        "Seeds": _seeds(comparison.seeds),
        "Horizon": f"{problem.scenario.horizon_us / 1e3:g} ms",
        "Decision": f"{problem.scenario.decision_us:g} µs of host time",
        "Date": f"{comparison.started:%Y-%m-%d %H:%M} UTC",
    }
    return "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in items.items())


def _seeds(seeds: tuple[int, ...]) -> str:
    run = seeds == tuple(range(seeds[0], seeds[0] + len(seeds)))
    return f"{len(seeds)} ({seeds[0]} to {seeds[-1]})" if run and len(seeds) > 1 else ", ".join(map(str, seeds))


def _warning(comparison: Comparison) -> str:
    text = comparison.interruption
    return f'<p class="warning">{escape(text[0].upper() + text[1:])}.</p>' if text else ""


def _table_note(comparison: Comparison) -> str:
    text = "Means over seeds; the best of each column is bold and green. "
    if len(comparison.seeds) > 1:
        text += "Below them 95 % percentile-bootstrap intervals over seeds. "
    text += "Turnaround: arrival to completion, of completed jobs. Hover a heading for its definition."
    return f"{text} {comparison.legend}".rstrip()


def _timeline_note(comparison: Comparison, timeline: dict[str, Any]) -> str:
    if not timeline["schedulers"]:
        return "Kernels were not recorded."
    start, end = timeline["window_us"]
    text = f"Seed {comparison.seeds[0]}, {start / 1e3:.2f} to {end / 1e3:.2f} ms of the episode. "
    text += "Above: a row a tenant with its kernels. "
    if any(s["sms"] for s in timeline["schedulers"]):
        text += "Below: a row an SM, in placement order, coloured by the tenant whose blocks it holds. "
    if timeline["truncated"]:
        text += "Some rows end early: the page keeps a limited number of kernels and blocks. "
    return text + "The Perfetto traces beside this page hold the kernels of the episode."


def _descriptions(comparison: Comparison) -> str:
    rows = ((comparison.label(name), comparison.descriptions[name]) for name in comparison.schedulers)
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)


def _provenance(result: dict[str, Any]) -> str:
    about = result["provenance"]
    items = {
        "Command": about["command"] or "(called from Python)",
        "Started": about["started"],
        "Took": f"{about['wall_s']:.0f} s",
        "Versions": ", ".join(f"{package} {version}" for package, version in about["versions"].items()),
        "Platform": about["platform"],
        "Intervals": f"{result['intervals']['method']}, {result['intervals']['resamples']} resamples",
    }
    return "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in items.items())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
