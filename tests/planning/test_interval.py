"""The dispatcher that launches by the knobs of an interval, and the plan that it goes by: solved by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusched_env.planning.dispatcher import IntervalDispatcher, next_launch
from gpusched_env.planning.interference import UNKNOWN
from gpusched_env.planning.interval import (
    BY_PLAN,
    QUEUE_US,
    UNLIMITED,
    Knob,
    Knobs,
    Serve,
    goes_next,
    holds_gpu,
    may_launch,
    to_reject,
)
from gpusched_env.planning.outlook import Outlook
from gpusched_env.planning.plans import NOBODY, NOTHING, Floats, PlanColumn, plan_view
from gpusched_env.scheduling.commands import Launch, Reject, Wait
from gpusched_env.scheduling.view import TenantColumn, View
from tests.envs.conftest import Row, build_view, earned_a_us

TENANTS: list[Row] = [
    {"slo_us": 1000, "alone_us": 100},
    {"slo_us": 1000, "alone_us": 300},
    {"alone_us": 50},
    {"slo_us": 1000, "alone_us": 100, "weight": 4},
]
DEAR = 1.2
JOBS: list[Row] = [
    {"tenant": 0, "job": 7, "deadline_us": 700},
    {"tenant": 1, "job": 0, "deadline_us": 750},
    {"tenant": 2, "job": 3},
    {"tenant": 3, "job": 1, "deadline_us": 650},
]


def dispatcher_of(rejects: bool = False) -> IntervalDispatcher:
    price_a_us = DEAR * earned_a_us(four_tenants())
    return IntervalDispatcher(100.0, (0, -1, -2, -3), Outlook(price_a_us, UNKNOWN, rejects=rejects))


def planned_dear(view: View) -> Floats:
    """At :data:`DEAR` times what a microsecond earns on average."""
    return plan_view(view, Outlook(DEAR * earned_a_us(view), UNKNOWN))


def four_tenants() -> View:
    """At 500 us; by deadline 3 (100 us by 650 us), 0 (100 us by 700 us) and 1 (300 us by 750 us, which is too late).

    They earn 4/100, 1/100 and 1/300 a us, 0.0178 on average. At DEAR times that, 100 us cost 2.13: more than the 1 that
    tenant 0 is worth, less than the 4 of tenant 3.
    """
    return build_view(tenants=TENANTS, jobs=JOBS)


def test_a_view_is_planned_by_hand() -> None:
    plan = planned_dear(four_tenants())
    mean = (4 / 100 + 1 / 100 + 1 / 300) / 3
    assert 1.0 < DEAR * mean * 100 < 4.0, "as the instance says"
    np.testing.assert_allclose(plan[:, PlanColumn.EARNS] * mean, [1 / 100, 1 / 300, 1 / 50, 4 / 100])
    assert plan[:, PlanColumn.PRESENT].tolist() == [1, 1, 1, 1]
    assert plan[:, PlanColumn.DEADLINE_US].tolist() == [700, 750, math.inf, 650]
    assert plan[:, PlanColumn.LEFT_US].tolist() == [100, 300, 50, 100]
    assert plan[:, PlanColumn.KEPT].tolist() == [1, 0, 0, 1]
    assert plan[:, PlanColumn.KEPT_DEAR].tolist() == [0, 0, 0, 1]
    assert plan[:, PlanColumn.CLASS].tolist() == [1, 3, 2, 0]
    assert plan[:, PlanColumn.AHEAD_US].tolist() == [100, 200, 200, 0]


def test_of_a_job_that_was_taken_up_only_what_is_left_counts() -> None:
    """30 us of tenant 0 are launched, of which 10 have run, and 40 us pending; tenant 1 has only launched ones."""
    view = build_view(
        pending=[{"tenant": 0, "job": 2, "id": 5, "job_left_us": 40}, {"tenant": 0, "job": 2, "id": 6}],
        running=[
            {"tenant": 0, "started": 1, "elapsed_us": 10, "profiled_us": 30},
            {"tenant": 1, "started": 0, "profiled_us": 25},
        ],
        tenants=[{"slo_us": 1000}, {"slo_us": 1000}, {}],
        jobs=[
            {"tenant": 0, "job": 2, "deadline_us": 900, "started_us": 100},
            {"tenant": 0, "job": 3, "deadline_us": 950},
            {"tenant": 1, "job": 0, "deadline_us": 800, "started_us": 100},
        ],
    )
    plan = planned_dear(view)
    assert plan[:, PlanColumn.LEFT_US].tolist() == [60, 25, 0]
    # Where kernels make up half of the time alone, gaps make up the other half of what is left, too.
    view.tenants.array[0, TenantColumn.DEVICE_US] = 500.0
    assert planned_dear(view)[:, PlanColumn.LEFT_US].tolist() == [120, 25, 0]
    assert plan[:, PlanColumn.DEADLINE_US].tolist() == [900, 800, math.inf], "of the oldest job of each"
    assert plan[:, PlanColumn.PRESENT].tolist() == [1, 1, 0]


def test_of_a_job_of_which_nothing_is_to_be_seen_as_much_is_left_as_of_its_operations() -> None:
    """Each has 1,000 us alone. Tenant 0 was taken up and has issued nothing; tenant 1 is between two kernels, a quarter
    of its own to come; tenant 2's second job is behind the first, of which all is launched; tenant 3's graph has been
    on the GPU longer than it takes alone, and may be done any moment."""
    view = build_view(
        running=[
            {"tenant": 2, "started": 1, "elapsed_us": 10, "profiled_us": 40},
            {"tenant": 3, "started": 1, "elapsed_us": 1200, "profiled_us": 1000, "nodes": 9},
        ],
        tenants=[{"slo_us": 5000}] * 4,
        jobs=[
            {"tenant": 0, "job": 1, "deadline_us": 5400, "started_us": 500},
            {"tenant": 1, "job": 0, "deadline_us": 5100, "started_us": 100, "unfinished": 0.25},
            {"tenant": 2, "job": 3, "deadline_us": 5200, "started_us": 200, "unfinished": 0.5},
            {"tenant": 2, "job": 4, "deadline_us": 5300, "started_us": 400},
            {"tenant": 3, "job": 0, "deadline_us": 5000, "started_us": 0},
        ],
    )
    plan = planned_dear(view)
    assert plan[:, PlanColumn.LEFT_US].tolist() == [1000, 250, 30, 0]
    assert plan[:, PlanColumn.KEPT_US].tolist() == [1000, 250, 1030, 0]


def test_what_is_given_up_by_hand() -> None:
    """At 500 us. Tenant 0: its first job is too late alone. Tenant 1: the first is not worth its time, the second is.

    Tenant 2: the same, but the job that is in the way may not be rejected now. Tenant 3: nothing of it is kept.
    """
    tenants: list[Row] = [{"slo_us": 1000, "alone_us": 100}] * 2 + [{"slo_us": 1000, "alone_us": 10}] * 2
    jobs: list[Row] = [
        {"tenant": 0, "job": 4, "deadline_us": 550, "rejectable": 1},
        {"tenant": 0, "job": 5, "deadline_us": 590, "rejectable": 1},
        {"tenant": 1, "job": 2, "deadline_us": 900, "rejectable": 1},
        {"tenant": 2, "job": 0, "deadline_us": 505, "rejectable": 0},
        {"tenant": 2, "job": 1, "deadline_us": 900, "rejectable": 1},
        {"tenant": 3, "job": 7, "deadline_us": 900, "rejectable": 1},
    ]
    plan = planned_dear(build_view(tenants=tenants, jobs=jobs))
    assert plan[:, PlanColumn.GIVEN_UP].tolist() == [4, NOTHING, NOTHING, NOTHING]
    assert plan[:, PlanColumn.LOST].tolist() == [2, 0, 1, 0]
    assert plan[:, PlanColumn.KEPT_US].tolist() == [0, 100, 10, 10]
    assert to_reject(plan, 4, NOBODY) == 0
    assert to_reject(plan, 4, 0) == NOBODY, "not of the tenant that goes first"


def test_a_job_before_one_that_is_kept_is_in_its_way() -> None:
    """At 500 us each takes 100 us; that of tenant 1, by 600 us, is worth 1.5 and leaves no time for one by 650."""
    view = build_view(
        tenants=[
            {"slo_us": 1000, "alone_us": 100},
            {"slo_us": 1000, "alone_us": 100, "weight": 1.5},
            *[{"slo_us": 1e6, "alone_us": 1e5}] * 2,
        ],
        jobs=[
            {"tenant": 0, "job": 2, "deadline_us": 650},
            {"tenant": 0, "job": 3, "deadline_us": 800},
            {"tenant": 1, "job": 0, "deadline_us": 600},
        ],
    )
    plan = planned_dear(view)
    assert plan[0, [PlanColumn.KEPT, PlanColumn.KEPT_DEAR, PlanColumn.GIVEN_UP, PlanColumn.LOST]].tolist() == [
        0,
        0,
        2,
        1,
    ]
    assert plan[1, [PlanColumn.KEPT, PlanColumn.KEPT_DEAR, PlanColumn.GIVEN_UP, PlanColumn.LOST]].tolist() == [
        1,
        1,
        NOTHING,
        0,
    ]


KNOBS: Knobs = np.array([[2, 9, 9, 9], [UNLIMITED, 3, 3, UNLIMITED], [-2, -1, -1, -2], [0, 0, 1, 1]], np.int64)
"""Tenants 0 and 3 are most urgent; 1 and 2 have three launches together; 2 and 3 fill what others leave."""


@pytest.mark.parametrize(
    ("tenant", "launched", "left_us", "together", "held", "expected"),
    [
        (0, 1, 1e6, 3, True, True),
        (0, 2, 0.0, 0, True, False),
        (1, 0, 0.0, 2, True, True),
        (1, 0, 0.0, 3, False, False),
        (1, 9, 0.0, 0, True, False),
        (2, 0, 0.0, 3, True, False),
        (2, 0, 0.0, 3, False, True),
        (2, 3, QUEUE_US - 1.0, 3, False, True),
        (2, 3, QUEUE_US, 3, False, False),
        (2, 9, 0.0, 0, False, False),
        (3, 1, QUEUE_US, 0, True, False),
        (3, 0, QUEUE_US, 5, True, True),
    ],
    ids=[
        "below its limit, whatever others have in flight, for however long",
        "at its limit",
        "below the limit together",
        "at the limit together, held or not",
        "at its own limit, below that together",
        "it fills, and is held",
        "it fills, and is not held yet",
        "so short is what it has in flight",
        "it has enough in flight",
        "it fills, at its own limit",
        "first itself, it has enough in flight",
        "one launch it may always have, first and not limited together",
    ],
)  # fmt: skip
def test_what_may_be_launched(
    tenant: int, launched: int, left_us: float, together: int, held: bool, expected: bool
) -> None:
    assert may_launch(KNOBS, tenant, launched, left_us, together, held) is expected


@pytest.mark.parametrize(
    ("tenant", "head", "best", "best_head", "expected"),
    [
        (1, 5, NOBODY, 0, True),
        (0, 5, 1, 4, True),
        (1, 4, 0, 5, False),
        (2, 4, 1, 5, True),
        (2, 6, 1, 5, False),
        (3, 4, 0, 5, True),
    ],
    ids=["alone", "more urgent, later", "less urgent, earlier", "as urgent, earlier", "as urgent, later", "3 and 0"],
)  # fmt: skip
def test_who_goes_next(tenant: int, head: int, best: int, best_head: int, expected: bool) -> None:
    assert goes_next(KNOBS, tenant, head, best, best_head) is expected


@pytest.mark.parametrize(
    ("jobs", "kernels", "unfinished", "expected"),
    [(1, 0, 1.0, False), (1, 1, 1.0, True), (1, 0, 0.9, True), (2, 0, 1.0, True)],
    ids=["it has just come", "issued", "between two kernels", "another one behind it"],
)
def test_from_when_on_those_that_fill_wait_for_a_job(
    jobs: int, kernels: int, unfinished: float, expected: bool
) -> None:
    assert holds_gpu(jobs, kernels, unfinished) is expected


def waiting(
    launchable: tuple[int, int, int, int] = (1, 1, 1, 1), launched: tuple[int, ...] = (), time_us: float = 500.0
) -> View:
    """Each tenant with a job and two pending launches, 10 and 14, 11 and 15 and so on; ``launched``: rows."""
    pending: list[Row] = []
    for tenant in range(4):
        pending += [
            {"tenant": tenant, "id": 10 + tenant, "launchable": launchable[tenant]},
            {"tenant": tenant, "id": 14 + tenant, "launchable": 1},
        ]
    jobs: list[Row] = [{"tenant": tenant, "job": 0} for tenant in range(4)]
    tenants: list[Row] = [{"slo_us": 1000}] * 4
    return build_view(pending, [{"tenant": tenant} for tenant in launched], tenants, jobs=jobs, time_us=time_us)


@pytest.mark.parametrize(
    ("launchable", "launched", "expected"),
    [
        ((1, 1, 1, 1), (), Launch(10, -3)),
        # The younger launches of a tenant whose oldest has to wait are not looked at.
        ((0, 1, 1, 1), (1, 3), Launch(11, -2)),
        ((0, 0, 1, 1), (1,), Launch(12, -1)),
        ((0, 1, 1, 1), (1, 2, 3), Wait(600.0)),
        ((1, 1, 1, 1), (1, 2, 3, 0, 0), Launch(10, -3)),
        ((0, 0, 0, 0), (), Wait(600.0)),
    ],
)
def test_it_launches_what_is_next_or_waits_for_the_end_of_the_interval(
    launchable: tuple[int, int, int, int], launched: tuple[int, ...], expected: Launch | Wait
) -> None:
    """Tenant 0 goes first, the others have three launches in flight together."""
    dispatcher = dispatcher_of()
    view = waiting(launchable, launched)
    dispatcher.set(view, Serve(0, 3))
    assert dispatcher.command(view) == expected


def test_of_equally_urgent_launches_the_one_that_was_issued_first_is_next() -> None:
    pending: list[Row] = [{"tenant": tenant, "id": head, "launchable": 1} for tenant, head in enumerate((12, 10, 11))]
    view = build_view(pending, [], [{"slo_us": 1000}] * 3, jobs=[{"tenant": tenant, "job": 0} for tenant in range(3)])
    knobs = np.zeros((len(Knob), 3), np.int64)
    knobs[[Knob.IN_FLIGHT, Knob.TOGETHER]] = UNLIMITED
    tables = view.pending.array, view.tenants.array, view.jobs.array
    assert next_launch(knobs, NOBODY, *tables) == 1
    knobs[Knob.PRIORITY, 2] = -1
    assert next_launch(knobs, NOBODY, *tables) == 2
    knobs[Knob.IN_FLIGHT] = 0
    assert next_launch(knobs, NOBODY, *tables) == NOBODY


def test_it_asks_at_first_and_when_the_interval_is_over() -> None:
    dispatcher = dispatcher_of()
    assert dispatcher.asks(waiting(time_us=0.0))
    dispatcher.set(waiting(time_us=500.0), BY_PLAN)
    asked = [dispatcher.asks(waiting(time_us=time_us)) for time_us in (500.0, 599.999999, 600.0 - 1e-10, 600.0, 777.0)]
    assert asked == [False, False, True, True, True], "a picosecond too early, and floating point"
    dispatcher.set(waiting(time_us=777.0), BY_PLAN)
    assert dispatcher.command(waiting((0, 0, 0, 0), time_us=800.0)) == Wait(877.0)


def test_while_it_is_decided_the_decision_before_stands() -> None:
    dispatcher = dispatcher_of()
    dispatcher.set(waiting(time_us=500.0), Serve(0, 3))
    assert dispatcher.command(waiting(time_us=500.0)) == Launch(10, -3)
    dispatcher.set(waiting(time_us=600.0), Serve(1, 3), decision_us=30.0)
    assert dispatcher.command(waiting(time_us=629.0)) == Launch(10, -3)
    # Nothing to launch until then: it wakes as soon as the decision is made.
    assert dispatcher.command(waiting((0, 0, 0, 0), time_us=629.0)) == Wait(630.0)
    assert dispatcher.command(waiting(time_us=630.0)) == Launch(11, -3)
    assert dispatcher.command(waiting((0, 0, 0, 0), time_us=630.0)) == Wait(700.0)
    # Whoever takes longer than an interval is not asked again before that is over.
    dispatcher.set(waiting(time_us=700.0), Serve(0, 3), decision_us=150.0)
    assert dispatcher.command(waiting((0, 0, 0, 0), time_us=700.0)) == Wait(850.0)
    assert [dispatcher.asks(waiting(time_us=time_us)) for time_us in (800.0, 849.0, 850.0)] == [False, False, True]
    assert dispatcher.command(waiting(time_us=850.0)) == Launch(10, -3)


def test_decisions_take_as_long_as_is_known_of_them() -> None:
    dispatcher = dispatcher_of()
    dispatcher.latencies_us = iter([30.0])
    dispatcher.set(waiting(time_us=0.0), Serve(1, 3))
    assert dispatcher.decided == Serve(1, 3)
    assert dispatcher.command(waiting((0, 0, 0, 0), time_us=0.0)) == Wait(30.0)
    dispatcher.set(waiting(time_us=100.0), Serve(0, 3), decision_us=7.0)
    assert dispatcher.command(waiting((0, 0, 0, 0), time_us=100.0)) == Wait(107.0), "and then as it is told"


@pytest.mark.parametrize(
    ("jobs", "issued", "launched", "expected"),
    [
        ([{"tenant": 0}], False, [], Launch(11, -2)),
        ([{"tenant": 0}], True, [], Launch(10, -3)),
        ([{"tenant": 0, "unfinished": 0.5}], False, [], Wait(600.0)),
        ([{"tenant": 0}, {"tenant": 0, "job": 1}], False, [], Wait(600.0)),
        ([{"tenant": 0}], False, [1], Wait(600.0)),
    ],
    ids=["its host prepares it", "its kernel is there", "between two kernels", "another waits", "enough in flight"],
)
def test_tenants_without_an_objective_wait_once_the_first_is_on_the_gpu(
    jobs: list[Row], issued: bool, launched: list[int], expected: Launch | Wait
) -> None:
    """Tenant 0 has the GPU alone, tenant 1 fills; a kernel of it takes longer than it may have in flight."""
    pending: list[Row] = [{"tenant": 0, "id": 10, "launchable": 1}] * issued
    pending.append({"tenant": 1, "id": 11, "launchable": 1})
    tenants: list[Row] = [{"slo_us": 1000, "jobs_waiting": len(jobs)}, {"jobs_waiting": 1}]
    due: list[Row] = [{"job": 0, "unfinished": 1, "deadline_us": 900, **job} for job in jobs]
    running: list[Row] = [{"tenant": tenant} for tenant in launched]
    tenants[1]["launched_left_us"] = QUEUE_US * len(launched)
    view = build_view(pending, running, tenants, jobs=[*due, {"tenant": 1, "job": 0, "unfinished": 0.5}])
    dispatcher = dispatcher_of()
    dispatcher.set(view, Serve(0, 0))
    assert dispatcher.command(view) == expected


def test_it_is_the_job_of_who_goes_first_that_they_wait_for() -> None:
    """Tenant 1's has not begun; tenant 0's own, older in the table, has."""
    tenants: list[Row] = [{"jobs_waiting": 1}, {"slo_us": 1000, "jobs_waiting": 1}]
    jobs: list[Row] = [
        {"tenant": 0, "job": 0, "unfinished": 0.5},
        {"tenant": 1, "job": 0, "unfinished": 1, "deadline_us": 900},
    ]
    view = build_view([{"tenant": 0, "id": 10, "launchable": 1}], [], tenants, jobs=jobs)
    dispatcher = dispatcher_of()
    dispatcher.set(view, Serve(1, 0))
    assert dispatcher.command(view) == Launch(10, -2)


def four_tenants_launching(jobs: list[Row]) -> View:
    pending: list[Row] = [{"tenant": tenant, "id": 10 + tenant, "launchable": 1} for tenant in range(4)]
    return build_view(pending=pending, tenants=TENANTS, jobs=jobs)


def test_when_a_job_comes_the_plan_is_made_anew_and_only_then() -> None:
    dispatcher = dispatcher_of()
    later = [job for job in JOBS if job["tenant"] != 3]
    dispatcher.set(four_tenants_launching(later), BY_PLAN)
    assert dispatcher.command(four_tenants_launching(later)) == Launch(10, -3)
    # Tenant 0 is not kept any more with another deadline, but no job has come or gone.
    late = [{**job, "deadline_us": 501} for job in later]
    assert dispatcher.command(four_tenants_launching(late)) == Launch(10, -3)
    assert dispatcher.command(four_tenants_launching(JOBS)) == Launch(13, -3)


@pytest.mark.parametrize(
    ("serve", "rejects", "expected"),
    [
        (BY_PLAN, True, Reject(1, 0)),
        (BY_PLAN, False, Launch(13, -3)),
        (Serve(1, 0), True, Launch(11, -3)),
        (Serve(0, 0), True, Reject(1, 0)),
    ],
    ids=["by plan", "not on offer", "not of who goes first", "of the others"],
)
def test_it_rejects_what_the_plan_gives_up(serve: Serve, rejects: bool, expected: Launch | Reject) -> None:
    """Tenant 1 would be late even alone."""
    dispatcher = dispatcher_of(rejects)
    view = four_tenants_launching([{**job, "rejectable": 1} for job in JOBS])
    dispatcher.set(view, serve)
    assert dispatcher.command(view) == expected
