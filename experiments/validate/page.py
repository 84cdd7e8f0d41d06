"""The pages of a validation: ``validation.html``, which needs no network, and Markdown for the documentation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.display.frame import frame
from gpusched_env.display.plots import COLOURS, Bars, timeline
from gpusched_env.display.words import counted
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.validate import results
from gpusched_env.experiments.validate.run import Validation
from gpusched_env.experiments.validate.scoring import WorstLaunch, concurrency, worst_launches

if TYPE_CHECKING:
    from pandas import DataFrame
    from plotly.graph_objects import Figure

MOST_CONCURRENT = 8
"""Launches among more than this share a box."""
SMALLEST_ERROR = 1e-4
"""Smaller errors are drawn here: a logarithmic axis has no zero."""


def markdown(data: dict[str, Any]) -> str:
    """The page for :func:`~gpusched_env.experiments.validate.results.results_dict`."""
    return page(
        "validation.md.j2",
        data=data,
        summary=results.summary_line(data),
        transfer=results.TRANSFER,
        calibrated=results.CALIBRATED_ON,
        tables=results.tables(data),
    )


def html(validation: Validation, data: dict[str, Any]) -> str:
    """The page; ``data`` is what :func:`~gpusched_env.experiments.validate.results.results_dict` makes of it."""
    facts = {"GPU": data["gpu"], "Recordings": data["folder"], "Version": data["version"]}
    facts |= {name: counted(len(rows), "scenario") for name, rows in validation.sets.items()}
    if validation.model_pairs:
        facts["pairs of networks"] = str(len(validation.model_pairs))
    worst = {f"worst-{i}": launch for i, launch in enumerate(worst_launches(validation.sets))}
    charts = {name: scenario_timeline(launch) for name, launch in worst.items()}
    if validation.sets:
        launches = launches_frame(validation)
        charts |= {"ends": ends_chart(launches), "concurrency": concurrency_chart(launches)}
    return page(
        "validation.html",
        title=f"The simulator against recordings of {data['gpu']}",
        summary=results.summary_line(data),
        facts=facts,
        skipped=validation.recordings.skipped,
        tables=[table for table in results.tables(data) if table.rows],
        worst=worst,
        charts={name: json.loads(chart.to_json()) for name, chart in charts.items()},
    )


def launches_frame(validation: Validation) -> DataFrame:
    """All launches of kernels with their ends, us, errors, and how many ran beside them."""
    rows = []
    for name, predictions in validation.sets.items():
        launches = sum(len(p.end_us) for p in predictions)
        for p in predictions:
            for i, among in enumerate(concurrency(p.scenario)):
                rows.append(
                    {
                        "set": f"{name}: {launches} launches",
                        "launch": f"{p.scenario.id}, launch {i}, {p.scenario.launches[i].kernel}: {p.errors[i]:+.2%}",
                        "predicted": p.end_us[i],
                        "measured": p.measured_us[i],
                        "kind": "reproducible" if p.reproducible[i] else "other",
                        "among": str(among) if among < MOST_CONCURRENT else f"{MOST_CONCURRENT}+",
                        "error": max(abs(p.errors[i]), SMALLEST_ERROR),
                    }
                )
    return frame(rows)


def ends_chart(launches: DataFrame) -> Figure:
    """Predicted against measured end, a panel a set, a dot a launch."""
    import plotly.express as px

    chart = px.scatter(
        launches,
        x="measured",
        y="predicted",
        color="kind",
        facet_col="set",
        hover_name="launch",
        log_x=True,
        log_y=True,
        labels={"measured": "measured end, µs", "predicted": "predicted end, µs"},
        color_discrete_map={"reproducible": COLOURS[0], "other": COLOURS[1]},
        opacity=0.55,
        render_mode="webgl",
    )
    ends = [launches["measured"].min(), launches["measured"].max()]
    chart.update_traces(marker_size=4)
    chart.add_scatter(x=ends, y=ends, mode="lines", line_color="#c9c9c9", showlegend=False, row="all", col="all")
    return _styled(chart, 430).update_xaxes(tickformat="~s").update_yaxes(tickformat="~s")


def concurrency_chart(launches: DataFrame) -> Figure:
    """Errors of reproducible ends by the number of launches that ran at the launch's midpoint, a panel a set."""
    import plotly.express as px

    kept = launches[launches["kind"] == "reproducible"]
    kept = kept.assign(launches=kept.groupby(["set", "among"])["error"].transform("size"))
    chart = px.box(
        kept,
        x="among",
        y="error",
        facet_col="set",
        hover_name="launch",
        hover_data=["launches"],
        log_y=True,
        labels={"among": "launches running", "error": "|error| of the end"},
        category_orders={"among": sorted(kept["among"].unique())},
    )
    return _styled(chart, 360).update_yaxes(tickformat="~%")


def _styled(chart: Figure, height: int) -> Figure:
    chart.for_each_annotation(lambda note: note.update(text=note.text.partition("=")[2]))
    return chart.update_layout(template="plotly_white", height=height, legend_title="")


def scenario_timeline(worst: WorstLaunch) -> Figure:
    """A scenario's launches, predicted above measured for each stream; the worst one is marked in both."""
    prediction, scenario = worst.prediction, worst.prediction.scenario
    measured = np.array([(m.start_us, m.end_us) for m in scenario.measured])
    times = {"predicted": np.stack([prediction.start_us, prediction.end_us], axis=1), "measured": measured}
    marked = np.arange(len(scenario.launches)) == worst.launch
    streams = np.array([launch.stream for launch in scenario.launches])
    bars = []
    for stream in np.unique(streams):
        priority = scenario.launches[int(np.argmax(streams == stream))].priority
        for what, us in times.items():
            for number, chosen in ((1, (streams == stream) & ~marked), (0, (streams == stream) & marked)):
                texts = [
                    f"{scenario.launches[i].kernel} {what}: {us[i, 0]:,.1f} to {us[i, 1]:,.1f} µs "
                    f"({prediction.errors[i]:+.2%})"
                    for i in np.flatnonzero(chosen)
                ]
                start_ms, length_ms = us[chosen, 0] / 1e3, (us[chosen, 1] - us[chosen, 0]) / 1e3
                row = f"stream {stream}" + (f" ({priority})" if priority else "")
                opacity = 1.0 if what == "predicted" else 0.45
                bars.append(Bars(what, start_ms, length_ms, texts, number, opacity, panel=row))
    both = np.concatenate(list(times.values()))
    return timeline(scenario.id, bars, (float(both.min()) / 1e3, float(both.max()) / 1e3))
