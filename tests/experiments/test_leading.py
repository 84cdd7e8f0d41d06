"""Results that lead: cost first, rows by cost, equals in one row, the best of those that did the work."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import pytest

from gpusched_env.display.table import Cell, Table
from gpusched_env.display.words import is_largest
from gpusched_env.experiments.compare import compare
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.statistics import Interval
from gpusched_env.experiments.report.charts import MOST, looks
from gpusched_env.experiments.report.tables import PAGE, did_the_work, explanation, tables
from tests.experiments.changed import changed, with_copies


def column(table: Table, head: str) -> list[Cell]:
    """By row; plain text is a cell without more."""
    at = list(table.heads).index(head)
    return [cell if isinstance(cell, Cell) else Cell(cell) for cell in (row[at] for row in table.rows)]


def names(table: Table) -> list[str]:
    return [str(cell) for cell in column(table, "scheduler")]


def test_cost_and_its_difference_come_first_and_rows_by_cost(comparison: Comparison) -> None:
    whole, *tenants = tables(comparison, PAGE)
    assert list(whole.heads[:4]) == ["scheduler", "cost", "vs patient", "verdict"]
    assert [names(table) for table in (whole, *tenants)] == [["eager", "patient (baseline)"]] * 3
    assert [cell.text for cell in column(whole, "vs patient")] == ["-26.7 %", "–"]
    assert [cell.text for cell in column(whole, "verdict")] == ["better", "–"]
    assert whole.marked == 1
    assert repr(comparison) == "<Comparison of 2 schedulers on Toy, 3 seeds, lowest cost eager 0.88 [0.72, 1.04]>"


def test_frames_lead_with_cost_and_are_sorted_by_it(comparison: Comparison) -> None:
    episodes = comparison.to_frame()
    assert list(episodes.columns[:4]) == ["scheduler", "seed", "cost", "cost_difference"]
    assert list(episodes.scheduler.unique()) == ["eager", "patient"]
    by_seed = episodes.drop_duplicates(["scheduler", "seed"]).set_index(["scheduler", "seed"])
    # 0.72 instead of 1.04, 0.88 instead of 1.2 and 1.04 instead of 1.36.
    assert by_seed.cost_difference["eager"].tolist() == pytest.approx([-0.32 / 1.04, -0.32 / 1.2, -0.32 / 1.36])
    assert (by_seed.cost_difference["patient"] == 0).all()
    figures = comparison.to_frame("schedulers")
    assert figures.figure[:2].tolist() == ["cost", "cost_difference"]
    assert figures["mean"][:2].tolist() == pytest.approx([0.88, -0.32 / 1.2])
    assert list(comparison.to_frame("jobs").scheduler.unique()) == ["eager", "patient"]


def test_rejected_jobs_are_in_every_table_and_frame(comparison: Comparison) -> None:
    found = changed(comparison, "eager", of_tenants={"rejected": 2})
    whole, *tenants = tables(found, PAGE)
    assert [cell.text for cell in column(whole, "rejected")] == ["4", "0"]
    for table in tenants:
        assert [cell.text for cell in column(table, "rejected")] == ["2", "0"]
        assert "of completed jobs; 6 rejected and 0 left" in table.note
    assert found.to_frame().groupby("scheduler").rejected.max().to_dict() == {"eager": 2, "patient": 0}
    assert found.to_frame().groupby("scheduler").jobs_rejected.max().to_dict() == {"eager": 4, "patient": 0}
    assert found.interval("eager", "jobs_rejected").mean == 4.0
    assert "none was rejected or left" in tables(comparison, PAGE)[1].note


def test_who_served_nobody_is_best_at_nothing_that_idling_improves(comparison: Comparison) -> None:
    idle = {"completed": 0, "rejected": 4, "slowdown": 0.1}
    lazy = changed(comparison, "eager", of_tenants=idle, energy_j=0.001, antt=0.1, urgent_p99=0.1)
    assert not did_the_work(lazy, "eager")
    whole, *tenants = tables(lazy, PAGE)
    for head in ("energy J", "ANTT"):
        assert [cell.best for cell in column(whole, head)] == [False, True]
    for table in tenants:
        assert [cell.best for cell in column(table, "slowdown")] == [False, True]
        assert not any(cell.best for cell in column(table, "p99"))
    # Its cost says what not serving cost.
    assert [cell.best for cell in column(whole, "cost")] == [True, False]
    assert "at least 95 % of each tenant's jobs that patient completed" in explanation(lazy)


@pytest.mark.parametrize(("completed", "works"), [(0, False), (3, False), (4, True), (9, True)])
def test_the_work_is_that_of_the_baseline(comparison: Comparison, completed: int, works: bool) -> None:
    found = changed(comparison, "eager", of_tenants={"completed": completed})
    assert did_the_work(found, "eager") == works
    assert did_the_work(found, "eager", "urgent") == works
    assert did_the_work(found, "patient")


def test_starving_one_tenant_is_not_made_up_for_by_another(comparison: Comparison) -> None:
    runs = []
    for run in comparison.runs:
        batch, urgent = run.metrics.tenants
        metrics = dataclasses.replace(run.metrics, tenants=(dataclasses.replace(batch, completed=1), urgent))
        runs.append(dataclasses.replace(run, metrics=metrics) if run.scheduler == "eager" else run)
    starving = dataclasses.replace(comparison, runs=tuple(runs))
    assert not did_the_work(starving, "eager")
    assert did_the_work(starving, "eager", "urgent")
    assert not did_the_work(starving, "eager", "batch")


def test_no_work_at_all_is_no_reason_to_win(run_fake: Callable[..., Comparison]) -> None:
    idle = run_fake("IdleDevice", record="jobs")
    assert not did_the_work(idle, "patient")


def test_schedulers_that_came_to_the_same_share_a_row(comparison: Comparison) -> None:
    cost = {run.seed: run.metrics.cost for run in comparison.of("eager")}
    twin = with_copies(comparison, "eager", {"twin": 0.0, "other": 0.5})
    runs = [
        dataclasses.replace(run, metrics=dataclasses.replace(run.metrics, cost=cost[run.seed], decisions=99))
        if run.scheduler == "twin"
        else run
        for run in twin.runs
    ]
    found = dataclasses.replace(twin, runs=tuple(runs))
    # The other one differs in its cost alone.
    assert found.groups == [("other",), ("eager", "twin"), ("patient",)]
    for table in tables(found, PAGE):
        assert names(table) == ["other", "eager, twin", "patient (baseline)"]
    assert "Schedulers in one row came to the same" in explanation(found)
    same = found.to_frame().groupby("scheduler").same_as.first().to_dict()
    assert same == {"other": "other", "eager": "eager", "twin": "eager", "patient": "patient"}
    assert [trace.name for trace in found.plot.cdf().data if trace.showlegend] == ["other", "eager, twin", "patient"]


def test_an_undefined_figure_equals_another(run_fake: Callable[..., Comparison]) -> None:
    idle = run_fake("IdleDevice", record="jobs")
    assert math.isnan(idle.runs[0].metrics.antt)
    assert idle.groups == [("patient", "eager")]
    assert names(tables(idle, PAGE)[0]) == ["patient (baseline), eager"]


@pytest.mark.parametrize(
    ("percent", "jobs", "largest"), [(99.0, 99, True), (99.0, 100, False), (95.0, 19, True), (95.0, 20, False)]
)
def test_a_percentile_of_few_jobs_is_their_largest(percent: float, jobs: int, largest: bool) -> None:
    assert is_largest(percent, jobs) == largest


def test_percentiles_of_few_jobs_are_grey_and_never_best(comparison: Comparison) -> None:
    # Twelve jobs: three seeds of four.
    batch = tables(comparison, PAGE)[1]
    for head, few in (("p50", False), ("p95", True), ("p99", True)):
        cells = column(batch, head)
        assert [cell.faint for cell in cells] == [few, few]
        assert [cell.text.startswith("~") for cell in cells] == [few, few]
    assert not any(cell.best for cell in column(batch, "p99"))
    assert "~: a p99 of fewer than 100 jobs" in explanation(comparison)
    assert '<span class="faint"' in batch.html()
    assert batch.numeric(list(batch.heads).index("p99")), "still to the right"
    many = changed(changed(comparison, "eager", of_tenants={"completed": 40}), "patient", of_tenants={"completed": 40})
    cells = column(tables(many, PAGE)[1], "p99")
    assert [(cell.faint, cell.best) for cell in cells] == [(False, True), (False, False)]


def test_seeds_that_do_not_vary_have_no_interval() -> None:
    found = compare("Toy", ["pass-through", "sjf"], seeds=3, workers=1)
    assert str(found.interval("sjf", "cost")) == "1.14"
    assert "±" not in str(found)
    assert str(Interval(1.0, 0.5, 1.5, 3)) == "1 [0.5, 1.5]"


def test_a_dozen_are_coloured_and_the_rest_is_grey(comparison: Comparison) -> None:
    many = with_copies(comparison, "eager", {f"s{i}": 2.0 + i for i in range(20)})
    found = looks(many)
    coloured = [label for label, own in found.items() if not own.faint]
    # By cost, and the first scheduler wherever it comes.
    assert coloured == ["eager", "patient", *(f"s{i}" for i in range(MOST - 2))]
    last = with_copies(comparison, "eager", {f"s{i}": 0.1 + 0.01 * i for i in range(20)})
    assert "patient" in [label for label, own in looks(last).items() if not own.faint]
    curves = [trace for trace in many.plot.cdf().data if trace.name == "s19"]
    assert {(trace.visible, trace.showlegend) for trace in curves} == {
        (None, False),
        ("legendonly", True),
        ("legendonly", False),
    }
    assert len(many.plot.utilisation().layout.annotations) == MOST, "a row each of those that are coloured"


def test_one_far_off_does_not_squash_the_others(comparison: Comparison) -> None:
    far = with_copies(comparison, "eager", {"far": 90.0})
    assert comparison.plot.cost().layout.xaxis.type is None
    assert far.plot.cost().layout.xaxis.type == "log"
    assert far.plot.cost().layout.xaxis.title.text.endswith("(logarithmic)")


def test_charts_of_toy_show_all_of_it() -> None:
    found = compare("Toy", ["pass-through", "sjf"], seeds=1, workers=1, record="kernels")
    last_ms = max(run.jobs[:, 4].max() for run in found.runs) / 1e3
    assert found.plot.timeline().layout.xaxis.range[1] >= last_ms
    curves = found.plot.cdf()
    for axis in ("xaxis", "xaxis2"):
        low, high = curves.layout[axis].range
        own = [x for trace in curves.data if trace.xaxis == axis.replace("axis", "") for x in trace.x]
        assert low < min(own)
        assert max(own) < high
    low, high = curves.layout.yaxis.range
    assert low < 0
    assert high > 1


def test_tenants_have_one_colour_in_all_charts() -> None:
    found = compare("Toy", ["sjf"], seeds=1, workers=1, record="kernels")
    colours = {trace.name: trace.marker.color for trace in found.plot.timeline().data if trace.name}
    import gpusched_env

    episode = gpusched_env.run_episode("Toy", "sjf")
    assert {trace.name: trace.line.color for trace in episode.plot.cdf().data} == colours
