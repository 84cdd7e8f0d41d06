"""Hand-made Views for tests that need no device, and vector environments."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    View,
    ViewTable,
)
from gpusched_env.workload.kernel import MOST_FORMS

Row = dict[str, float]

PENDING: Row = {"launchable": 1, "blocks": 132, "threads": 256, "blocks_per_sm": 4, "sms": 132, "profiled_us": 10}
PENDING |= {"nodes": 1, "parent": -1, "producer": -1, "needs": -1}
RUNNING: Row = {"started": 1, "blocks": 100, "profiled_us": 100, "deadline_us": math.inf, "idempotent": 1}
RUNNING |= {"nodes": 1, "parent": -1}
TENANT: Row = {
    "weight": 1, "slo_us": math.inf, "alone_us": 1000, "oldest_arrived_us": math.inf, "partition_sms": 132,
    "partitionable": 1,
}  # fmt: skip
JOB: Row = {"deadline_us": math.inf, "started_us": math.inf, "unfinished": 1, "rejectable": 1}


def _table(columns: Any, defaults: Row, rows: Sequence[Row]) -> ViewTable:
    array = np.zeros((len(rows), len(columns)))
    for i, row in enumerate(rows):
        for name, value in {**defaults, **row}.items():
            array[i, columns[name.upper()]] = value
    return ViewTable(array, columns)


def earned_a_us(view: View) -> float:
    """What a microsecond earns on average over the tenants with an objective."""
    tenants = view.tenants.array
    with_slo = tenants[tenants[:, TenantColumn.SLO_US] < math.inf]
    return float((with_slo[:, TenantColumn.WEIGHT] / with_slo[:, TenantColumn.ALONE_US]).mean())


def build_view(
    pending: Sequence[Row] = (),
    running: Sequence[Row] = (),
    tenants: Sequence[Row] = ({}, {}),
    jobs: Sequence[Row] = (),
    **scalars: float,
) -> View:
    """A View from rows of named values; what is not named is a plausible default or 0.

    The tenants' columns on launched kernels follow from ``running``, those on rejectable jobs from ``jobs``, and what
    is preemptible from the row.
    """
    running = [{"preemptible": _preemptible({**RUNNING, **row}), **row} for row in running]
    launched = [[{**RUNNING, **row} for row in running if row.get("tenant", 0) == i] for i in range(len(tenants))]
    values: dict[str, Any] = {
        "time_us": 500.0,
        "sms": 132,
        "busy_sms": 33,
        "occupancy": 0.25,
        "dram": 0.5,
        "horizon_us": 1000.0,
        **scalars,
    }
    return View(
        pending=_table(PendingColumn, {**PENDING, "deadline_us": math.inf}, pending),
        running=_table(RunningColumn, RUNNING, running),
        tenants=_table(
            TenantColumn,
            TENANT,
            [
                {"device_us": row.get("alone_us", TENANT["alone_us"]), **_launched(mine), **_rejectable(i, jobs), **row}
                for i, (mine, row) in enumerate(zip(launched, tenants, strict=True))
            ],
        ),
        jobs=_table(JobColumn, JOB, jobs),
        dependencies=_table(DependencyColumn, {}, ()),
        **values,
    )


def _preemptible(row: Row) -> float:
    return float(row["started"] == 1 and not row.get("preempting", 0) and row["nodes"] == 1)


def _rejectable(tenant: int, jobs: Sequence[Row]) -> Row:
    mine = [row["job"] for row in jobs if row["tenant"] == tenant and row.get("rejectable", 1)]
    return {"oldest_rejectable": min(mine, default=-1), "newest_rejectable": max(mine, default=-1)}


def _launched(running: Sequence[Row]) -> Row:
    """What a tenant's row says of its launched kernels."""
    left = [max(0.0, row["profiled_us"] - row.get("elapsed_us", 0.0)) for row in running]
    started = [us for us, row in zip(left, running, strict=True) if row["started"]]
    return {
        "kernels_launched": len(running),
        "launched_left_us": sum(left),
        "running_left_us": min(started, default=math.inf),
    }


@pytest.fixture(scope="session")
def make_view() -> Callable[..., View]:
    return build_view


def _forms(rng: np.random.Generator) -> Row:
    """Of none to all forms that a launch may have: durations, now and then never measured, and small grids."""
    forms = int(rng.integers(0, MOST_FORMS + 1))
    row: Row = {"forms": forms}
    for form in range(1, forms + 1):
        row[f"form{form}_us"] = float(rng.choice([math.nan, 1.0, 500.0]))
        for name in ("rows", "columns", "slices", "per_sm"):
            row[f"form{form}_{name}"] = int(rng.integers(1, 5))
    return row


def build_random_view(seed: int, slots: int) -> View:
    """A View with arbitrary, also extreme, but consistent content, for up to ``slots`` tenants."""
    rng = np.random.default_rng(seed)
    now = float(rng.choice([0.0, 12.5, 1e4, 1e9]))

    def time() -> float:
        return float(rng.choice([0.0, 1e-3, 3.0, 250.0, 1e5, 1e9, rng.exponential(100.0)]))

    tenants = [
        {
            "priority": int(rng.integers(0, 4)),
            "weight": float(rng.choice([0.0, 1.0, 50.0])),
            "slo_us": float(rng.choice([math.inf, 1.0, 1e4])),
            "alone_us": float(rng.choice([1e-3, 700.0, 1e6])),
            "jobs_waiting": int(rng.integers(0, 2000)),
            "kernels_pending": int(rng.integers(0, 3)),
            "oldest_arrived_us": float(rng.choice([math.inf, max(0.0, now - time())])),
            "last_turnaround_us": time(),
            "mean_turnaround_us": time(),
            "partition_first": int(rng.choice([0, 33, 66, 99])),
            "partition_sms": int(rng.choice([33, 66, 99, 132])),
            "partitionable": int(rng.random() < 0.7),
        }
        for _ in range(int(rng.integers(1, slots + 1)))
    ]
    pending = []
    for tenant in range(len(tenants)):
        for k in range(int(rng.integers(0, 4))):
            arrived = max(0.0, now - time())
            slo = tenants[tenant]["slo_us"]
            pending.append(
                {
                    "id": 100 * tenant + k,
                    "tenant": tenant,
                    "priority": tenants[tenant]["priority"],
                    "launchable": int(rng.random() < 0.6),
                    "blocks": int(rng.choice([1, 132, 10**7])),
                    "threads": int(rng.choice([32, 1024])),
                    "blocks_per_sm": int(rng.integers(1, 33)),
                    "sms": int(rng.integers(1, 133)),
                    "profiled_us": time(),
                    "profiled_gap_us": time(),
                    "profiled_issue": float(rng.random()),
                    "profiled_dram": float(rng.random()),
                    "waited_us": time(),
                    "job_arrived_us": arrived,
                    "deadline_us": arrived + slo,
                    "job_left_us": time(),
                    "preempted": int(rng.integers(0, 2)),
                    "stream": tenant,
                    "upstream": int(rng.integers(0, 30)),
                    "nodes": int(rng.choice([1, 1, 40])),
                    "parent": int(rng.choice([-1, -1, 7])),
                    **_tiles(rng, 100 * tenant + k, k),
                    **_forms(rng),
                }
            )
    running: list[Row] = []
    for k in range(int(rng.integers(0, 12))):
        tenant = int(rng.integers(0, len(tenants)))
        started = int(rng.random() < 0.4)
        nodes = int(rng.choice([1, 1, 40]))
        blocks = int(rng.choice([1, 5, 10**7]))
        waiting = int(rng.integers(0, blocks + 1))
        preempting = int(started and rng.random() < 0.3)
        running.append(
            {
                "id": 1000 + k,
                "tenant": tenant,
                "priority": tenants[tenant]["priority"],
                "stream_priority": -int(rng.integers(0, 6)),
                "started": started,
                "preempting": preempting,
                "preemptible": int(started and not preempting and nodes == 1 and rng.random() < 0.8),
                "elapsed_us": started * time(),
                "blocks": blocks,
                "blocks_waiting": waiting,
                "blocks_resident": blocks - waiting,
                "profiled_us": time(),
                "profiled_issue": float(rng.random()),
                "profiled_dram": float(rng.random()),
                "deadline_us": float(rng.choice([math.inf, max(0.0, now + time() - time())])),
                "idempotent": int(rng.integers(0, 2)),
                "nodes": nodes,
            }
        )
    jobs: list[Row] = [
        {"tenant": tenant, "job": job, "rejectable": int(rng.random() < 0.6)}
        for tenant in range(len(tenants))
        for job in range(int(rng.integers(0, 4)))
    ]
    return build_view(pending, running, tenants, jobs, time_us=now, horizon_us=max(now, 1.0))


def _tiles(rng: np.random.Generator, id_: int, k: int) -> Row:
    """What the ``k``-th launch of a tenant has to do with the tiles of the one before."""
    needs = int(rng.integers(-1, 3)) if k > 0 else -1
    return {
        "rows": int(rng.choice([1, 12])),
        "columns": int(rng.choice([4, 64])),
        "slices": int(rng.integers(1, 5)),
        "producer": id_ - 1 if needs >= 0 else -1,
        "needs": needs,
        "fold": int(rng.choice([1, 2])) if needs >= 0 else 0,
        "steps": int(rng.choice([1, 9])) if needs >= 0 else 0,
        "synchronisable": int(needs >= 0 and rng.random() < 0.6),
        "policy": int(rng.integers(0, 5)),
        "posts": int(rng.integers(0, 5)),
    }


@pytest.fixture(scope="session")
def random_view() -> Callable[[int, int], View]:
    return build_random_view


@pytest.fixture
def toys() -> Iterator[GpuSchedulingVectorEnv]:
    env = GpuSchedulingVectorEnv("Toy", num_envs=3)
    yield env
    env.close()
