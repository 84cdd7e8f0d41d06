"""The observation encoder: literal values, bounds, and compiled against interpreted."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.envs import encoding
from gpusched_env.envs.features import TABLES, DeviceFeature, PendingFeature, RunningFeature, TenantFeature
from gpusched_env.envs.observations import ObservationEncoder, scalars, select
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, View

ViewMaker = Callable[..., View]


def log_us(us: float) -> float:
    return math.log(1 + us) / math.log(1 + 1e6)


def test_pending_slot_shows_the_head_kernel_of_its_tenant(make_view: ViewMaker) -> None:
    view = make_view(
        pending=[
            {"id": 7, "tenant": 1, "priority": 1, "profiled_us": 40, "blocks": 132 * 4, "job_arrived_us": 100}
            | {"job_left_us": 600, "deadline_us": 1600, "profiled_gap_us": 3, "waited_us": 20, "profiled_issue": 0.5}
            | {"queued_us": 70, "between_us": 30, "dependents": 4, "rows": 8, "columns": 24, "slices": 4, "posts": 3},
            {"id": 9, "tenant": 1, "priority": 1, "profiled_us": 77, "launchable": 0, "upstream": 4, "nodes": 12}
            | {"parent": 3, "producer": 7, "needs": 0, "fold": 3, "slices": 3, "policy": 2},
        ],
        running=[{"tenant": 0, "priority": 0}],
        tenants=[{"priority": 0}, {"priority": 1, "slo_us": 1500, "alone_us": 1000}],
    )
    table = ObservationEncoder(slots=3, running_slots=2).encode(view)["pending"]
    assert table.shape == (3, len(PendingFeature))
    assert not table[0].any(), "tenant 0 has nothing pending"
    assert not table[2].any(), "no tenant 2"
    expected = {
        "PRESENT": 1.0,
        "LAUNCHABLE": 1.0,
        "URGENCY": 0.5,
        "PROFILED": log_us(40),
        "GAP": log_us(3),
        "WAVES": 0.5,
        "SMS": 1.0,
        "BLOCK_SHARE": 0.25,
        "THREADS": 0.25,
        "ISSUE": 0.5,
        "DRAM": 0.0,
        "WAITED": log_us(20),
        "JOB_AGE": log_us(400),
        "JOB_SLOWDOWN": 0.5,
        "JOB_LEFT": log_us(600),
        "SLACK": (1600 - 500 - 600) / 1500,
        "PREEMPTED": 0.0,
        "MORE_URGENT_LAUNCHED": 1.0,
        "MORE_URGENT_ACTIVE": 0.0,
        "TENANT": 2 / 3,
        "UPSTREAM": 0.0,
        "GRAPH": 0.0,
        "CHILD": 0.0,
        "QUEUED": log_us(70),
        "BETWEEN": log_us(30),
        "DEPENDENTS": 0.5,
        "ROWS": 0.5,
        "COLUMNS": 0.75,
        "SLICES": 0.5,
        "FOLD": 0.0,
        "SYNCHRONISABLE": 0.0,
        "POLICY": 0.0,
        "POSTS": 0.6,
        "PRODUCER": 0.0,
        "PRODUCER_PROFILED": 0.0,
        "WAITS": 0.0,
        "LATE": 0.0,
        **{feature.name: 0.0 for feature in PendingFeature if feature >= PendingFeature.GAIN_ROW},
    }
    shown = {feature.name: table[1, feature] for feature in PendingFeature}
    assert shown == pytest.approx(expected, rel=1e-6)
    table = ObservationEncoder(slots=3, running_slots=2, lookahead=2).encode(view)["pending"]
    assert table.shape == (6, len(PendingFeature))
    assert not table[[0, 1, 4, 5]].any()
    assert {feature.name: table[2, feature] for feature in PendingFeature} == pytest.approx(expected, rel=1e-6)
    second = {feature.name: table[3, feature] for feature in PendingFeature}
    assert {
        name: second[name] for name in ("PRESENT", "LAUNCHABLE", "PROFILED", "TENANT", "UPSTREAM")
    } == pytest.approx(
        {"PRESENT": 1.0, "LAUNCHABLE": 0.0, "PROFILED": log_us(77), "TENANT": 2 / 3, "UPSTREAM": 0.5}, rel=1e-6
    )
    assert (second["GRAPH"], second["CHILD"]) == (1.0, 1.0)
    tiles = {name: second[name] for name in ("FOLD", "POLICY", "PRODUCER", "PRODUCER_PROFILED", "WAITS", "LATE")}
    # Its three slices share the steps through 24 columns.
    assert tiles == pytest.approx(
        {"FOLD": 0.75, "POLICY": 0.4, "PRODUCER": 1.0, "PRODUCER_PROFILED": log_us(40), "WAITS": 0.5, "LATE": 0.0},
        rel=1e-6,
    )


def test_running_slots_show_started_then_stream_heads_then_the_rest(make_view: ViewMaker) -> None:
    view = make_view(
        running=[
            {"id": 1, "tenant": 0, "started": 0},
            {"id": 2, "tenant": 1, "started": 1},
            {"id": 3, "tenant": 0, "started": 0},
            {"id": 4, "tenant": 1, "started": 0},
            {"id": 5, "tenant": 2, "started": 1},
        ],
        tenants=[{}, {}, {}],
    )
    shown = select(view, slots=3, running_slots=6).running
    assert shown[:, RunningColumn.ID].tolist() == [2, 5, 1, 3, 4, -1]
    np.testing.assert_array_equal(shown[:5], view.running.array[[1, 4, 0, 2, 3]])
    assert select(view, slots=3, running_slots=2).running[:, RunningColumn.ID].tolist() == [2, 5]


@given(seed=st.integers(0, 2**32), running_slots=st.integers(1, 14), lookahead=st.integers(1, 4))
def test_slots_show_what_their_rules_say(
    random_view: Callable[[int, int], View], seed: int, running_slots: int, lookahead: int
) -> None:
    view = random_view(seed, 4)
    shown = select(view, 4, running_slots, lookahead)
    pending, running = view.pending, view.running
    for tenant in range(4):
        mine = [row for row in range(len(pending)) if pending.tenant[row] == tenant]
        for k in range(lookahead):
            expected = pending.array[mine[k]] if k < len(mine) else [-1.0, *[0.0] * (len(PendingColumn) - 1)]
            np.testing.assert_array_equal(shown.pending[tenant * lookahead + k], expected)
    tenants = running.tenant.tolist()
    heads = [tenant not in tenants[:row] for row, tenant in enumerate(tenants)]
    order = sorted(range(len(running)), key=lambda row: 0 if running.started[row] else 1 if heads[row] else 2)
    count = min(len(running), running_slots)
    np.testing.assert_array_equal(shown.running[:count], running.array[order[:count]])
    assert (shown.running[count:, RunningColumn.ID] == -1).all()


def test_running_row_and_device_vector(make_view: ViewMaker) -> None:
    view = make_view(
        running=[
            {"tenant": 1, "priority": 2, "stream_priority": -1, "elapsed_us": 25, "blocks_waiting": 60}
            | {"blocks_resident": 30, "deadline_us": 650, "preempting": 1, "policy": 4, "posts": 1},
            {"tenant": 0, "started": 0, "profiled_us": 10},
        ],
        pending=[{"tenant": 0}],
        tenants=[{}, {"slo_us": 300}],
    )
    observation = ObservationEncoder(slots=2, running_slots=1).encode(view)
    row = {feature.name: observation["running"][0, feature] for feature in RunningFeature}
    assert row == pytest.approx(
        {
            "PRESENT": 1.0,
            "TENANT": 1.0,
            "URGENCY": 1 / 3,
            "STREAM_URGENCY": 0.5,
            "STARTED": 1.0,
            "PREEMPTING": 1.0,
            "IDEMPOTENT": 1.0,
            "PROFILED": log_us(100),
            "ELAPSED": log_us(25),
            "LEFT": log_us(75),
            "OVERDUE": 0.2,
            "WAITING": 0.6,
            "RESIDENT": 0.3,
            "ISSUE": 0.0,
            "DRAM": 0.0,
            "SLACK": 0.5,
            "POLICY": 0.8,
            "POSTS": 0.2,
        },
        rel=1e-6,
    )
    device = {feature.name: observation["device"][feature] for feature in DeviceFeature}
    assert device == pytest.approx(
        {
            "TIME": 0.5,
            "SMS": math.log2(132) / 8,
            "BUSY_SMS": 0.25,
            "OCCUPANCY": 0.25,
            "DRAM": 0.5,
            "LAUNCHABLE": 0.5,
            "LAUNCHED": 1 / 3,
            "HIDDEN": 0.2,
            "SOONEST_LEFT": log_us(75),
            "LONGEST_LEFT": log_us(75),
        },
        rel=1e-6,
    )


def test_tenant_row(make_view: ViewMaker) -> None:
    view = make_view(
        running=[{"tenant": 0, "elapsed_us": 60}, {"tenant": 0, "started": 0, "profiled_us": 5}],
        tenants=[
            {"priority": 1, "weight": 3, "slo_us": 800, "alone_us": 200, "jobs_waiting": 4, "kernels_pending": 1}
            | {"kernels_launched": 2, "oldest_arrived_us": 300, "last_turnaround_us": 600, "mean_turnaround_us": 200}
            | {"partition_first": 66, "partition_sms": 66},
            {"jobs_waiting": 1, "oldest_arrived_us": 500},
        ],
        jobs=[{"tenant": 0, "job": 7}, {"tenant": 1, "job": 0, "rejectable": 0}],
    )
    table = ObservationEncoder(slots=2, running_slots=1).encode(view)["tenants"]
    assert {feature.name: table[0, feature] for feature in TenantFeature} == pytest.approx(
        {
            "PRESENT": 1.0,
            "URGENCY": 0.5,
            "WEIGHT": 0.75,
            "HAS_SLO": 1.0,
            "SLO": log_us(800),
            "ALONE": log_us(200),
            "JOBS": 0.5,
            "PENDING": 0.2,
            "LAUNCHED": 1 / 3,
            "LAUNCHED_LEFT": log_us(45),
            "STARTED": 1.0,
            "HOST_BUSY": 0.0,
            "OLDEST_AGE": log_us(200),
            "OLDEST_SLOWDOWN": 0.5,
            "OLDEST_SLACK": 0.75,
            "LAST_SLOWDOWN": 0.75,
            "MEAN_SLOWDOWN": 0.5,
            "PARTITION_FIRST": 0.5,
            "PARTITION_SMS": 0.5,
            "REJECTABLE": 1.0,
            # Of plans, which are made where decisions stand for an interval.
            "EARNS": 0.0,
            "OLDEST_LEFT": 0.0,
            "OLDEST_LAXITY": 0.0,
            "OLDEST_SPARE": 0.0,
            "OLDEST_KEPT": 0.0,
            "OLDEST_KEPT_DEAR": 0.0,
            "LOST": 0.0,
            "KEPT_LEFT": 0.0,
            "AHEAD": 0.0,
            "AHEAD_ALONE": 0.0,
        },
        rel=1e-6,
    )
    assert table[1, TenantFeature.HOST_BUSY] == 1.0
    assert table[1, TenantFeature.REJECTABLE] == 0.0
    assert table[1, TenantFeature.OLDEST_SLACK] == 1.0, "no SLO: nothing is late"


@given(seed=st.integers(0, 2**32), lookahead=st.integers(1, 3))
def test_any_view_is_encoded_within_the_space(
    random_view: Callable[[int, int], View], seed: int, lookahead: int
) -> None:
    encoder = ObservationEncoder(slots=4, running_slots=5, lookahead=lookahead)
    observation = encoder.encode(random_view(seed, 4))
    assert encoder.space().contains(observation)
    assert all(np.isfinite(table).all() for table in observation.values())


def test_space_is_bounded_column_by_column() -> None:
    space = ObservationEncoder(slots=2, running_slots=3, lookahead=4).space()
    assert {name: box.shape for name, box in space.items()} == {
        "pending": (8, len(PendingFeature)),
        "running": (3, len(RunningFeature)),
        "tenants": (2, len(TenantFeature)),
        "device": (len(DeviceFeature),),
    }
    assert space["pending"].low[1, PendingFeature.SLACK] == -1  # type: ignore[attr-defined]
    assert space["pending"].low[1, PendingFeature.PRESENT] == 0  # type: ignore[attr-defined]


def test_compiled_encoder_does_what_its_source_says(
    random_view: Callable[[int, int], View], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also guards against a stale compilation cache after a change of columns."""
    encoder = ObservationEncoder(slots=4, running_slots=5)
    views = [random_view(seed, 4) for seed in range(50)]
    compiled = [encoder.encode(view) for view in views]
    for name, function in list(vars(encoding).items()):
        if hasattr(function, "py_func"):
            monkeypatch.setattr(encoding, name, function.py_func)
    for view, expected in zip(views, compiled, strict=True):
        pending, running = np.empty((4, len(PendingColumn))), np.empty((5, len(RunningColumn)))
        encoding.gather_pending(view.pending.array, 1, pending)
        encoding.gather_running(view.running.array, np.empty(4, np.bool_), running)
        tables = {name: np.empty_like(table) for name, table in expected.items()}
        encoding.encode(pending, running, view.tenants.array, scalars(view), *tables.values())
        for name, table in tables.items():
            np.testing.assert_allclose(table, expected[name], rtol=1e-6, err_msg=name)


def test_every_column_is_documented() -> None:
    for features in TABLES.values():
        assert [feature.value for feature in features] == list(range(len(features)))
        for feature in features:
            assert feature.meaning
            assert feature.unit
            assert feature.source
            assert -1 <= feature.low < feature.high <= 1
