"""``validation.html``: one self-contained page about a validation."""

from __future__ import annotations

from html import escape
from typing import Any

from gpusched_env.experiments.page import asset, embed, fill
from gpusched_env.experiments.validate.charts import charts, timeline_svg
from gpusched_env.experiments.validate.markdown import table_note
from gpusched_env.experiments.validate.results import summary_line
from gpusched_env.experiments.validate.run import Validation
from gpusched_env.experiments.validate.tables import all_tables, html_table, percent
from gpusched_env.experiments.validate.worst import WorstLaunch, worst_launches


def html_page(validation: Validation, data: dict[str, Any]) -> str:
    """The page; ``data`` is what :func:`~gpusched_env.experiments.validate.results.results_dict` makes of it."""
    from plotly.offline import get_plotlyjs

    worst = worst_launches(validation)
    return fill(
        "validation.html",
        {
            "title": escape(f"The simulator against recordings of {data['gpu']}"),
            "summary": escape(summary_line(data)),
            "facts": _facts(validation, data),
            "skipped": _skipped(validation),
            "tables": _tables(data),
            "worst": "".join(map(_timeline, worst)) or "<p>No reproducible launches.</p>",
            "charts": embed(charts(validation)),
            "style": asset("report.css"),
            "plotly": get_plotlyjs(),
        },
    )


def _facts(validation: Validation, data: dict[str, Any]) -> str:
    items = {"GPU": data["gpu"], "Recordings": data["folder"], "Version": data["version"]}
    items |= {name: f"{len(rows)} scenarios" for name, rows in validation.sets.items()}
    if validation.model_pairs:
        items["pairs of networks"] = str(len(validation.model_pairs))
    return "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in items.items())


def _skipped(validation: Validation) -> str:
    reasons = validation.recordings.skipped
    if not reasons:
        return ""
    return f'<p class="warning">Left out: {escape("; ".join(reasons))}.</p>'


def _tables(data: dict[str, Any]) -> str:
    parts = []
    for table in all_tables(data):
        note = table_note(table, data).replace("*", "")
        note = f'<p class="note">{escape(note)}</p>' if note else ""
        parts.append(f'<h3>{escape(table.title)}</h3>{note}<div class="scroll">{html_table(table)}</div>')
    return "".join(parts)


def _timeline(worst: WorstLaunch) -> str:
    scenario = worst.prediction.scenario
    launch = scenario.launches[worst.launch]
    measured_us = scenario.measured[worst.launch].end_us
    title = f"{scenario.id}, launch {worst.launch} ({launch.kernel} on stream {launch.stream})"
    about = f"predicted {worst.prediction.end_us[worst.launch]:,.1f} µs, measured {measured_us:,.1f} µs"
    sign = "+" if worst.error > 0 else "−"
    error = f"{sign}{percent(abs(worst.error))}"
    return f'<div class="worst"><h4>{escape(title)}: {error} <span>{about}</span></h4>{timeline_svg(worst)}</div>'
