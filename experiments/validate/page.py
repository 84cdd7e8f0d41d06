"""The page of a validation with charts: ``validation.html``, which needs no network."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env import __version__
from gpusched_env.display.palette import COLOURS, Look
from gpusched_env.display.plots import Bars, timeline
from gpusched_env.display.words import counted
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.validate.results import Validation
from gpusched_env.experiments.validate.scoring import worst_launches

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure

MOST_CONCURRENT = 8
"""Launches at a time from which on more share a box."""
SMALLEST_ERROR = 1e-4
"""Smaller errors are drawn here: a logarithmic axis has no zero."""
MARKED, OTHERS = Look(COLOURS[3]), Look(COLOURS[0])
"""Looks of launches in a timeline."""


def html(validation: Validation) -> str:
    """The page of a validation, HTML."""
    facts = {"GPU": validation.gpu.name, "Recordings": str(validation.recordings.folder), "Version": __version__}
    facts |= {name: counted(rows.number.nunique(), "scenario") for name, rows in validation.sets.items()}
    if validation.model_pairs:
        facts["pairs of networks"] = str(len(validation.model_pairs))
    worst = worst_launches(validation.launches).to_dict("records")
    charts = {}
    for i, launch in enumerate(worst):
        rows = validation.sets[launch["set"]]
        charts[f"worst-{i}"] = scenario_timeline(rows[rows.number == launch["number"]], launch["launch"])
    if validation.sets:
        launches = shown_launches(validation.launches)
        charts |= {"ends": ends_chart(launches), "concurrency": concurrency_chart(launches)}
    return page(
        "validation.html",
        title=f"The simulator against recordings of {validation.gpu.name}",
        summary=validation.summary_line(),
        facts=facts,
        skipped=validation.recordings.skipped,
        tables=[table for table in validation.tables() if table.rows],
        worst=worst,
        charts={name: json.loads(chart.to_json()) for name, chart in charts.items()},
    )


def shown_launches(launches: DataFrame) -> DataFrame:
    """All launches of kernels as charts have them."""
    where = launches.scenario + ", launch " + launches.launch.astype(str) + ", " + launches.kernel
    counts = launches.groupby("set").launch.transform("size").astype(str)
    return launches.assign(
        set=launches["set"] + ": " + counts + " launches",
        launch=where + ": " + launches.error.map("{:+z.2%}".format),
        kind=launches.beyond.eq(0.0).map({True: "within its noise", False: "beyond"}),
        among=launches.among.map(lambda n: str(n) if n < MOST_CONCURRENT else f"{MOST_CONCURRENT}+"),
        error=launches.error.abs().clip(lower=SMALLEST_ERROR),
    )


def ends_chart(launches: DataFrame) -> Figure:
    """Predicted against measured end, a panel a set, a dot a launch."""
    import plotly.express as px

    chart = px.scatter(
        launches,
        x="measured_us",
        y="end_us",
        color="kind",
        facet_col="set",
        hover_name="launch",
        log_x=True,
        log_y=True,
        labels={"measured_us": "measured end, µs", "end_us": "predicted end, µs"},
        color_discrete_map={"within its noise": COLOURS[0], "beyond": COLOURS[1]},
        opacity=0.55,
        render_mode="webgl",
    )
    ends = [launches.measured_us.min(), launches.measured_us.max()]
    chart.update_traces(marker_size=4)
    chart.add_scatter(x=ends, y=ends, mode="lines", line_color="#c9c9c9", showlegend=False, row="all", col="all")
    return _styled(chart, 430).update_xaxes(tickformat="~s").update_yaxes(tickformat="~s")


def concurrency_chart(launches: DataFrame) -> Figure:
    """Errors of ends by the number of launches that ran at the launch's midpoint, a panel a set."""
    import plotly.express as px

    kept = launches.assign(launches=launches.groupby(["set", "among"])["error"].transform("size"))
    chart = px.box(
        kept,
        x="among",
        y="error",
        facet_col="set",
        hover_name="launch",
        hover_data=["launches"],
        log_y=True,
        color_discrete_sequence=COLOURS[:1],
        labels={"among": "launches running", "error": "|error| of the end"},
        category_orders={"among": sorted(kept["among"].unique())},
    )
    return _styled(chart, 360).update_yaxes(tickformat="~%")


def _styled(chart: Figure, height: int) -> Figure:
    chart.for_each_annotation(lambda note: note.update(text=note.text.partition("=")[2]))
    return chart.update_layout(template="plotly_white", height=height, legend_title="")


def scenario_timeline(launches: DataFrame, marked: int) -> Figure:
    """A scenario's launches, predicted above measured for each stream; one is ``marked`` in both."""
    times = {"predicted": launches[["start_us", "end_us"]], "measured": launches[["measured_start_us", "measured_us"]]}
    bars = []
    for stream, own in launches.groupby("stream"):
        priority = own.priority.iloc[0]
        for what, columns in times.items():
            for look, rows in ((OTHERS, own[own.launch != marked]), (MARKED, own[own.launch == marked])):
                us = columns.loc[rows.index].to_numpy()
                texts = [
                    f"{kernel} {what}: {start:,.1f} to {end:,.1f} µs ({error:+z.2%})"
                    for kernel, (start, end), error in zip(rows.kernel, us, rows.error, strict=True)
                ]
                row = f"stream {stream}" + (f" ({priority})" if priority else "")
                opacity = 1.0 if what == "predicted" else 0.45
                bars.append(Bars(what, us[:, 0] / 1e3, (us[:, 1] - us[:, 0]) / 1e3, texts, look, opacity, panel=row))
    both = np.concatenate([*times.values()])
    window_ms = (float(both.min()) / 1e3, float(both.max()) / 1e3)
    return timeline(launches.scenario.iloc[0], bars, window_ms, "stream")
