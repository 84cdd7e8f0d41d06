"""What the fuzzer takes for equal: tolerances on literal numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpusched_env.experiments.fuzz.compare import Differs, DuelComparison
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.reward import Costs
from gpusched_env.scheduling.timeline import Timeline
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    View,
    ViewTable,
)


def view(time_us: float = 10.0, dram: float = 0.5, **tenants: float) -> View:
    """One tenant's row; what is not given is 0."""
    table = ViewTable(np.zeros((1, len(TenantColumn))), TenantColumn)
    for name, value in tenants.items():
        getattr(table, name)[0] = value
    pending = ViewTable(np.zeros((0, len(PendingColumn))), PendingColumn)
    running = ViewTable(np.zeros((0, len(RunningColumn))), RunningColumn)
    jobs = ViewTable(np.zeros((0, len(JobColumn))), JobColumn)
    waits = ViewTable(np.zeros((0, len(DependencyColumn))), DependencyColumn)
    return View(time_us, pending, running, table, jobs, waits, 4, 2, occupancy=0.25, dram=dram, horizon_us=100.0)


def differs(call: Callable[..., None], *arguments: Any) -> str | None:
    """Where a comparison saw a difference."""
    try:
        call(*arguments)
    except Differs as found:
        return f"{found.difference.kind}: {found.difference.where}"
    return None


@pytest.mark.parametrize(
    ("expected", "found", "where"),
    [
        (view(), view(time_us=10.0000004), None),
        (view(), view(time_us=10.000001), "time: view.time_us"),
        (view(last_end_us=1e5), view(last_end_us=1e5 + 4e-7), None),
        (view(last_end_us=1e5), view(last_end_us=1e5 + 1e-6), "view: view.tenants.last_end_us[0]"),
        (view(launched_left_us=1e5), view(launched_left_us=1e5 + 9e-5), None),
        (view(launched_left_us=1e5), view(launched_left_us=1e5 + 2e-4), "view: view.tenants.launched_left_us[0]"),
        (view(slo_us=math.inf), view(slo_us=math.inf), None),
        (view(slo_us=math.inf), view(slo_us=1e9), "view: view.tenants.slo_us[0]"),
        (view(slo_us=1e9), view(slo_us=math.inf), "view: view.tenants.slo_us[0]"),
        (view(), view(last_end_us=math.nan), "view: view.tenants.last_end_us[0]"),
        (view(jobs_done=3), view(jobs_done=3 + 1e-9), "view: view.tenants.jobs_done[0]"),
        (view(weight=3), view(weight=3 + 1e-9), None),
        (view(weight=3), view(weight=3 + 1e-8), "view: view.tenants.weight[0]"),
        (view(), view(dram=0.5 + 1e-10), None),
        (view(), view(dram=0.5 + 1e-9), "view: view.dram"),
        (view(dram=0.0), view(dram=1e-13), None),
    ],
)
def test_views(expected: View, found: View, where: str | None) -> None:
    assert differs(DuelComparison().views, expected, found) == where


def test_tables_of_other_shapes_differ() -> None:
    other = view()
    rows = ViewTable(np.zeros((2, len(TenantColumn))), TenantColumn)
    two = View(**{**vars(other), "tenants": rows})
    assert differs(DuelComparison().views, other, two) == "view: shape of view.tenants"


@pytest.mark.parametrize(
    ("field", "value", "where"),
    [
        ("jobs_us", [2e6 + 1e-3, 0.0], None),
        ("jobs_us", [2e6 + 1e-2, 0.0], "costs: costs.jobs_us[0]"),
        ("jobs_us", [2e6, 5e-10], None),
        ("jobs_us", [2e6, 5e-9], "costs: costs.jobs_us[1]"),
        ("completed", [1.0, 1e-12], "costs: costs.completed[1]"),
        ("energy_j", 3.0 + 1e-9, None),
        ("energy_j", 3.0 + 1e-8, "costs: costs.energy_j"),
        ("rejected", [1.0, 0.0], "costs: costs.rejected[0]"),
        ("over", True, "costs: costs.over"),
        ("time_us", 100.0000004, None),
        ("time_us", 100.000001, "costs: costs.time_us"),
    ],
)
def test_costs(field: str, value: Any, where: str | None) -> None:
    costs, other = Costs(2), Costs(2)
    for one in (costs, other):
        one.time_us = 100.0
        one.jobs_us[0] = 2e6
        one.completed[0] = 1.0
        one.energy_j = 3.0
    setattr(other, field, np.array(value) if isinstance(value, list) else value)
    problem = build_problem(load_scenario("Toy"))
    assert differs(DuelComparison().costs, costs, other, problem) == where


def test_nested_values() -> None:
    plain = {"cost": 1.0, "tenants": [{"name": "a", "p50": math.nan, "done": True}], "mask": np.array([1, 0], np.int8)}
    close = {**plain, "cost": 1.0 + 1e-10, "mask": np.array([1, 0], np.int8)}
    compare = DuelComparison().plain
    assert differs(compare, "info", "info", plain, close) is None
    for change, where in (
        ({"cost": 1.0 + 1e-8}, "info.cost"),
        ({"tenants": [{"name": "b", "p50": math.nan, "done": True}]}, "info.tenants[0].name"),
        ({"tenants": [{"name": "a", "p50": 0.0, "done": True}]}, "info.tenants[0].p50"),
        ({"tenants": []}, "length of info.tenants"),
        ({"mask": np.array([1, 1], np.int8)}, "info.mask[1]"),
        ({"mask": np.array([1, 0], np.int64)}, "type of info.mask"),
        ({"more": 1}, "keys of info"),
    ):
        assert differs(compare, "info", "info", plain, {**plain, **change}) == f"info: {where}"


def timeline(blocks: list[tuple[float, ...]] = (), **rows: list[tuple[float, ...]]) -> Timeline:  # type: ignore[assignment]
    """Rows with times in picoseconds."""
    made = Timeline("blocks")
    for name, table in {"blocks": blocks, **rows}.items():
        for row in table:
            getattr(made, name).add(*row)
    return made


def timelines_differ(expected: Timeline, found: Timeline) -> str | None:
    return differs(DuelComparison().timelines, expected, found)


def test_blocks_that_end_together_may_change_places() -> None:
    first, second, later = (0, 7, 1, 0, 10), (1, 7, 1, 0, 10), (0, 8, 1, 10, 20)
    expected = timeline([first, second, later])
    assert timelines_differ(expected, timeline([second, first, later])) is None
    moved = (1, 7, 1, 0, 11)
    assert timelines_differ(expected, timeline([first, moved, later])) == "timeline: timeline.blocks.ended_us[1]"
    other_sm = (2, 7, 1, 0, 10)
    assert timelines_differ(expected, timeline([other_sm, second, later])) == "timeline: timeline.blocks.sm[0]"
    assert timelines_differ(expected, timeline([first, second])) == "timeline: shape of timeline.blocks"


def test_kernels_that_end_together_may_not_change_places() -> None:
    first = (1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, -1)
    second = (2, 1, 0, 0, 0, 0, 0, 10, 0, 0, 1, -1)
    where = timelines_differ(timeline(kernels=[first, second]), timeline(kernels=[second, first]))
    assert where == "timeline: timeline.kernels.id[0]"


def test_times_differ_by_a_picosecond() -> None:
    where = timelines_differ(timeline(jobs=[(0, 0, 1, 2, 10**15)]), timeline(jobs=[(0, 0, 1, 2, 10**15 + 1)]))
    assert where == "timeline: timeline.jobs.completed_us[0]"


def test_rejections_are_compared() -> None:
    assert timelines_differ(timeline(rejections=[(0, 0, 1, 2)]), timeline()) == (
        "timeline: shape of timeline.rejections"
    )


def test_steps_are_compared_as_functions_of_time() -> None:
    steps = [(0, 4, 100.0, 50.0), (10_000_000, 2, 0.0, 30.0)]
    expected = timeline(sms=steps)
    for same in (
        [steps[0], (5_000_000, 4, 100.0, 50.0), steps[1]],
        [steps[0], (10_000_000, 3, 7.0, 9.0), (10_000_000, 2, 1e-12, 30.0)],
    ):
        assert timelines_differ(expected, timeline(sms=same)) is None
    for other, where in (
        ([steps[0]], "busy_sms at 10.000000 us"),
        ([(0, 4, 100.0001, 50.0), steps[1]], "dram_bytes_per_us at 0.000000 us"),
        ([steps[0], (9_999_999, 2, 0.0, 30.0)], "busy_sms at 9.999999 us"),
        ([(1_000_000, 4, 100.0, 50.0), steps[1]], "busy_sms at 0.000000 us"),
        ([], "busy_sms at 0.000000 us"),
    ):
        assert timelines_differ(expected, timeline(sms=other)) == f"timeline: timeline.sms.{where}"
