"""Knobs that stand for an interval: solved by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusched_env.planning.interval import DEPTH, UNLIMITED, Knob, Knobs, levels_of, set_knobs
from gpusched_env.planning.plans import NOBODY, NOTHING, PlanColumn

SIX_LEVELS = (0, -3, -5, -1, -4, -2)


def planned(deadline_us: float, kept: bool = False, dear: bool = False) -> list[float]:
    """A tenant's row of a plan."""
    row = [0.0] * len(PlanColumn)
    row[PlanColumn.PRESENT], row[PlanColumn.DEADLINE_US], row[PlanColumn.HAS_SLO] = (
        1.0,
        deadline_us,
        float(deadline_us < math.inf),
    )
    row[PlanColumn.KEPT], row[PlanColumn.KEPT_DEAR], row[PlanColumn.GIVEN_UP] = float(kept), float(dear), NOTHING
    row[PlanColumn.CLASS] = 1.0 - float(dear) if kept else 2.0 if deadline_us == math.inf else 3.0
    return row


PLAN = np.array(
    [
        planned(50.0),
        planned(300.0, kept=True),
        planned(400.0, kept=True, dear=True),
        planned(math.inf),
        planned(200.0, kept=True, dear=True),
        planned(900.0),
        planned(350.0, kept=True),
    ]
)
"""Behind tenant 5: 4 and 2, kept dear; 1 and 6, kept; 3, without an objective; 0."""


def knobs_of(plan: np.ndarray, first: int, others: int, priorities: tuple[int, ...]) -> Knobs:
    knobs = np.full((len(Knob), len(plan)), 77, np.int64)
    set_knobs(plan, len(plan), first, others, levels_of(priorities, len(plan)), knobs)
    return knobs


@pytest.mark.parametrize(
    ("priorities", "expected"),
    [
        (tuple(range(-6, 1)), [0, -3, -4, -1, -5, -6, -2]),
        (SIX_LEVELS, [0, -2, -3, 0, -4, -5, -1]),
        ((0, -1, -2), [0, 0, 0, 0, -1, -2, 0]),
        ((0,), [0] * 7),
    ],
)
def test_the_others_follow_by_class_and_deadline_until_levels_run_out(
    priorities: tuple[int, ...], expected: list[int]
) -> None:
    knobs = knobs_of(PLAN, 5, 2, priorities)
    assert knobs[Knob.PRIORITY].tolist() == expected
    assert knobs[Knob.IN_FLIGHT].tolist() == [DEPTH] * 7
    assert knobs[Knob.TOGETHER].tolist() == [2, 2, 2, 2, 2, UNLIMITED, 2]


def test_who_goes_first_leaves_its_place_in_the_order() -> None:
    knobs = knobs_of(PLAN, 4, 0, tuple(range(-6, 1)))
    # Tenants 0 and 5 are both lost: by deadline.
    assert knobs[Knob.PRIORITY].tolist() == [-1, -4, -5, -2, -6, 0, -3]
    assert knobs[Knob.TOGETHER].tolist() == [0, 0, 0, 0, UNLIMITED, 0, 0]


def test_equal_ones_follow_by_row() -> None:
    same = np.array([planned(100.0, kept=True)] * 4)
    assert knobs_of(same, 2, 1, (0, -1, -2, -3))[Knob.PRIORITY].tolist() == [-2, -1, -3, 0]


def test_by_plan_the_first_in_its_order_goes_first() -> None:
    assert knobs_of(PLAN, NOBODY, 2, SIX_LEVELS).tolist() == knobs_of(PLAN, 4, 2, SIX_LEVELS).tolist()


def test_who_has_no_job_leaves_it_to_the_plan() -> None:
    """Tenant 4 would go first, but is done; then 2 is kept, and has the earliest deadline."""
    plan = PLAN.copy()
    plan[4, PlanColumn.PRESENT], plan[4, PlanColumn.DEADLINE_US] = 0.0, math.inf
    plan[4, [PlanColumn.KEPT, PlanColumn.KEPT_DEAR, PlanColumn.CLASS]] = 0.0, 0.0, 2.0
    assert knobs_of(plan, 4, 2, SIX_LEVELS).tolist() == knobs_of(plan, 2, 2, SIX_LEVELS).tolist()


def test_what_waits_of_best_effort_does_not_start_before_requests_to_come() -> None:
    """Tenants 1 and 2 have objectives and no jobs; so what 0 and 3 launch, without objectives, is less urgent."""
    plan = np.array([planned(math.inf), planned(50.0), planned(60.0), planned(math.inf)])
    plan[1:3, PlanColumn.PRESENT], plan[1:3, PlanColumn.DEADLINE_US], plan[1:3, PlanColumn.CLASS] = 0.0, math.inf, 2.0
    assert knobs_of(plan, 0, 4, (0, -1, -2, -3))[Knob.PRIORITY].tolist() == [-1, -2, -1, 0]
    plan[1, PlanColumn.PRESENT] = 1.0
    assert knobs_of(plan, 0, 4, (0, -1, -2, -3))[Knob.PRIORITY][0] == -2, "behind tenant 2 only"
    assert knobs_of(plan, 1, 4, (0, -1, -2, -3))[Knob.PRIORITY][1] == -3, "with an objective it is the most urgent"
    rows_first = plan[[0, 3, 2, 1]]
    rows_first[2:, PlanColumn.PRESENT] = 0.0
    assert knobs_of(rows_first, 1, 4, (0, -1, -2, -3))[Knob.PRIORITY].tolist() == [0, -1, -2, -1], "rows do not matter"


def test_without_an_objective_all_go_first_where_the_plan_says_that_one_does() -> None:
    """Tenant 1 has an objective and no job."""
    plan = np.array([planned(math.inf), planned(50.0), planned(math.inf)])
    plan[1, PlanColumn.PRESENT], plan[1, PlanColumn.DEADLINE_US], plan[1, PlanColumn.CLASS] = 0.0, math.inf, 2.0
    by_plan = knobs_of(plan, NOBODY, 4, (0, -1, -2))
    assert by_plan[Knob.TOGETHER].tolist() == [UNLIMITED, 4, UNLIMITED]
    assert by_plan[Knob.PRIORITY].tolist() == [-1, -1, -1]
    assert by_plan[Knob.FILLS].tolist() == [1, 0, 1]
    said = knobs_of(plan, 2, 4, (0, -1, -2))
    assert said[Knob.TOGETHER].tolist() == [4, 4, UNLIMITED]
    plan[1, PlanColumn.PRESENT], plan[1, PlanColumn.DEADLINE_US] = 1.0, 50.0
    plan[1, PlanColumn.CLASS] = 3.0
    assert knobs_of(plan, NOBODY, 4, (0, -1, -2))[Knob.TOGETHER].tolist()[0] == UNLIMITED, "it goes before a lost job"


def test_nobody_fills_where_several_with_an_objective_have_jobs() -> None:
    """Tenant 3 has none; of the six others all have a job, then all but one."""
    assert not knobs_of(PLAN, 5, 2, SIX_LEVELS)[Knob.FILLS].any()
    plan = PLAN.copy()
    plan[[0, 1, 2, 4, 6], PlanColumn.PRESENT] = 0.0
    assert knobs_of(plan, 5, 2, SIX_LEVELS)[Knob.FILLS].tolist() == [0, 0, 0, 1, 0, 0, 0]


def test_where_there_is_no_job_nobody_goes_first() -> None:
    idle = np.array([planned(math.inf)] * 3)
    idle[:, PlanColumn.PRESENT] = 0.0
    knobs = knobs_of(idle, NOBODY, 2, (0, -1, -2))
    assert knobs[Knob.TOGETHER].tolist() == [2, 2, 2]
    assert knobs[Knob.PRIORITY].tolist() == [-2, -1, 0]


def test_levels_are_shared_by_the_last_places() -> None:
    assert levels_of((0, -2, -1), 5).tolist() == [-2, -1, 0, 0, 0]
    assert levels_of((0, -2, -1), 2).tolist() == [-2, -1]
