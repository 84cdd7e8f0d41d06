"""The HTML report: self-contained, safe against any name, with charts that Plotly accepts."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusched_env.display.palette import TENANTS, binned_mean, log_ticks
from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.report.page import charts, report_html, timeline_data
from gpusched_env.experiments.report.result import result_of
from tests.experiments.sortable import assert_sortable
from tests.refusals import refused


class Page(HTMLParser):
    """Elements, the text outside scripts, and embedded data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.data: dict[str, Any] = {}
        self._inside = ""
        self._id: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside, self._id = tag, dict(attrs).get("id")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script" and self._id is not None:
            text = gzip.decompress(base64.b64decode(data)).decode()
            self.data[self._id] = text if self._id == "plotly" else json.loads(text)
        elif self._inside not in ("script", "style"):
            self.text += data


def report(comparison: Comparison) -> tuple[str, Page]:
    text = report_html(comparison, result_of(comparison))
    return text, Page(text)


def test_the_page_needs_nothing_else(comparison: Comparison, tmp_path: Path) -> None:
    text, page = report(comparison)
    assert not [attrs for _, attrs in page.tags if "src" in attrs or "href" in attrs]
    assert "{{" not in re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert "Plotly" in page.data["plotly"]
    assert_sortable(text)
    # The library names addresses of services that nothing here uses.
    without_library = re.sub(r"https?://www\.w3\.org/[\w/]+", "", text)
    assert "http" not in re.sub(r'id="plotly">[^<]*', "", without_library)
    assert len(text.encode()) < 3_000_000
    for words in (
        "Toy: 2 schedulers",
        "patient",
        "eager",
        "3 (0 to 2)",
        "toy-4sm",
        "Waits, always.",
        "optimal cost",
        "-26.7 %",
    ):
        assert words in page.text
    assert "Interrupted" not in page.text
    assert set(page.data["chart-data"]) == {"cost", "cdf", "slo", "tradeoff", "utilisation"}


def test_an_interrupted_run_and_unrecorded_kernels_are_said(
    run_fake: Callable[..., Comparison], tmp_path: Path
) -> None:
    def stop(finished: int, share: float) -> None:
        if finished == 3:
            raise KeyboardInterrupt

    _, page = report(run_fake(record="jobs", on_progress=stop))
    assert "Interrupted: 3 of 6 episodes finished, the figures are partial." in page.text
    assert "Kernels were not recorded." in page.text
    assert "utilisation" not in page.data["chart-data"]


def test_names_cannot_break_the_page(comparison: Comparison, tmp_path: Path) -> None:
    nasty = "</script><script>alert(1)</script><b>&{{ title }}"
    problem = comparison.problem
    kernel = problem.kernels[0].kernel
    renamed = type(kernel)(**{f: getattr(kernel, f) for f in kernel.__struct_fields__} | {"name": nasty})
    kernels = (dataclasses.replace(problem.kernels[0], kernel=renamed), *problem.kernels[1:])
    changed = dataclasses.replace(
        comparison,
        problem=dataclasses.replace(problem, kernels=kernels),
        descriptions=dict.fromkeys(comparison.descriptions, nasty),
        command=nasty,
    )
    plain_tags = [tag for tag, _ in report(comparison)[1].tags]
    _, page = report(changed)
    assert [tag for tag, _ in page.tags] == plain_tags
    assert nasty in page.data["timeline-data"]["kernels"]
    assert nasty in page.text


def test_the_turnaround_curve_counts_unfinished_jobs(run_fake: Callable[..., Comparison]) -> None:
    comparison = run_fake(names=("patient",), seeds=1)
    run = comparison.runs[0]
    tenants = tuple(dataclasses.replace(t, unfinished=4) for t in run.metrics.tenants)
    metrics = dataclasses.replace(run.metrics, tenants=tenants)
    halved = dataclasses.replace(comparison, runs=(dataclasses.replace(run, metrics=metrics),))
    curve = charts(halved)["cdf"]["data"][0]
    # Four jobs of 0.05 ms completed, four did not.
    assert list(curve["x"]) == [0.05] * 5
    assert list(curve["y"]) == [0.0, 0.125, 0.25, 0.375, 0.5]


def test_charts_have_titles_but_under_headings(comparison: Comparison) -> None:
    assert comparison.plot().layout.title.text == "Toy: cost"
    for kind in ("cost", "cdf", "slo", "tradeoff", "timeline", "utilisation"):
        assert comparison.plot(kind).layout.title.text.startswith("Toy")
    assert comparison.plot("timeline").layout.yaxis.title.text == "scheduler: tenant"
    assert comparison.plot.timeline(["eager"]).layout.yaxis.title.text == "tenant"
    assert comparison.plot("cost").layout.yaxis.title.text == "scheduler"
    assert comparison.plot("utilisation").layout.yaxis.title.text == "share of the GPU"
    with refused(InputError, "'pie'", "utilisation"):
        comparison.plot("pie")
    assert report(comparison)[1].data["chart-data"]["cost"]["layout"].get("title", {}).get("text") is None


def test_binned_means_of_a_step_function() -> None:
    times, values = np.array([5.0, 15.0, 30.0]), np.array([2.0, 0.0, 4.0])
    means = binned_mean(times, values, np.array([0.0, 10.0, 20.0, 30.0, 40.0, 50.0]), end_us=35.0)
    assert means.tolist() == pytest.approx([1.0, 1.0, 0.0, 2.0, 0.0])


def test_binned_means_keep_the_integral() -> None:
    rng = np.random.default_rng(1)
    times = np.sort(rng.uniform(0, 90, 50))
    values = rng.uniform(0, 5, 50)
    means = binned_mean(times, values, np.linspace(0, 100, 38), end_us=95.0)
    assert means.sum() * 100 / 37 == pytest.approx(np.sum(values * np.diff(np.append(times, 95.0))))


def test_ticks_of_a_logarithmic_axis_span_the_range() -> None:
    assert log_ticks(0.7, 30.0) == [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]
    assert log_ticks(0.01, 1000.0) == [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]


def test_the_timeline_holds_kernels_and_merged_blocks(comparison: Comparison) -> None:
    data = timeline_data(comparison)
    assert data["window_us"] == [0.0, 400.0]
    assert data["colours"] == list(TENANTS[:2])
    patient = data["schedulers"][1]
    assert patient["name"] == "patient"
    # start and end in ns, tenant, kernel name, job, blocks, threads
    assert patient["streams"][0][:3] == [10_000, 50_000, 0]
    assert len(patient["streams"]) == 8
    # First and last rank, blocks: SMs 0 and 1 are neighbours and share a bar.
    assert [bar[4:] for bar in patient["sms"]] == [[0, 1, 1]] * 8
    assert data["truncated"] is False


def test_the_timeline_follows_the_window(run_fake: Callable[..., Comparison]) -> None:
    data = timeline_data(run_fake(window_us=(100.0, 160.0)))
    assert [row[:2] for row in data["schedulers"][1]["streams"]] == [[10_000, 50_000], [10_000, 70_000]]
