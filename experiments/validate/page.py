"""``validation.html``: one self-contained page about a validation."""

from __future__ import annotations

from html import escape
from typing import Any

from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.validate.charts import charts, timeline_svg
from gpusched_env.experiments.validate.markdown import table_note
from gpusched_env.experiments.validate.results import summary_line
from gpusched_env.experiments.validate.run import Validation
from gpusched_env.experiments.validate.tables import all_tables, percent
from gpusched_env.experiments.validate.worst import WorstLaunch, worst_launches


def html_page(validation: Validation, data: dict[str, Any]) -> str:
    """The page; ``data`` is what :func:`~gpusched_env.experiments.validate.results.results_dict` makes of it."""
    facts = {"GPU": data["gpu"], "Recordings": data["folder"], "Version": data["version"]}
    facts |= {name: f"{len(rows)} scenarios" for name, rows in validation.sets.items()}
    if validation.model_pairs:
        facts["pairs of networks"] = str(len(validation.model_pairs))
    return page(
        "validation.html",
        title=f"The simulator against recordings of {data['gpu']}",
        summary=summary_line(data),
        facts=facts,
        skipped=validation.recordings.skipped,
        tables=[(table, table_note(table, data).replace("*", "")) for table in all_tables(data)],
        worst="".join(map(_timeline, worst_launches(validation))),
        charts=charts(validation),
    )


def _timeline(worst: WorstLaunch) -> str:
    scenario = worst.prediction.scenario
    launch = scenario.launches[worst.launch]
    measured_us = scenario.measured[worst.launch].end_us
    title = f"{scenario.id}, launch {worst.launch} ({launch.kernel} on stream {launch.stream})"
    about = f"predicted {worst.prediction.end_us[worst.launch]:,.1f} µs, measured {measured_us:,.1f} µs"
    sign = "+" if worst.error > 0 else "−"
    error = f"{sign}{percent(abs(worst.error))}"
    return f'<div class="worst"><h4>{escape(title)}: {error} <span>{about}</span></h4>{timeline_svg(worst)}</div>'
