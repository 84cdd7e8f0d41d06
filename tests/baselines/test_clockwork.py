"""Clockwork on instances worked out by hand: four SMs of one block, no latencies."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.clockwork import Clockwork
from gpusched_env.errors import GpuschedError, InputError
from gpusched_env.experiments.lib.hiding import Disturbed
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command, Reject
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.reads import PARTS
from tests.baselines.instances import episode, launches, spans, started
from tests.devices.problems import K, problem

OFFERED = ["launch", "reject"]


def order(scheduler: Scheduler, built: Problem) -> list[int]:
    """Tenants in the order in which their kernels ran."""
    return [tenant for tenant, *_ in sorted(spans(scheduler, built), key=lambda row: row[1])]


def rejected(scheduler: Scheduler, built: Problem) -> list[tuple[int, int, float]]:
    """(tenant, job, when) of each job that was rejected."""
    rejections = episode(scheduler, built).timeline.rejections.dict()
    columns = (rejections[name].tolist() for name in ("tenant", "job", "rejected_us"))
    return [(int(tenant), int(job), round(when, 3)) for tenant, job, when in zip(*columns, strict=True)]


def of(*lengths_us: float, **fields: Any) -> dict[str, Any]:
    return {"ops": [K(4, length_us) for length_us in lengths_us], **fields}


def test_the_request_that_has_to_start_first_goes_first(tmp_path: Path) -> None:
    """Due at 200, 220 and 130 us, they have to start at 150, 120 and 100. Who has no deadline waits for all."""
    built = problem(
        tmp_path,
        of(10.0, 10.0),
        of(50.0, slo_us=200.0),
        of(50.0, 50.0, slo_us=220.0),
        of(30.0, slo_us=130.0),
        commands=OFFERED,
    )
    assert order(Clockwork(), built) == [3, 2, 2, 1, 0, 0]
    assert rejected(Clockwork(), built) == []


def too_many(folder: Path, *others: dict[str, Any], **fields: Any) -> Problem:
    """They have to start at 50, 60 and 150 us; the second one cannot after the first."""
    return problem(
        folder, of(100.0, slo_us=150.0), of(50.0, 50.0, slo_us=160.0), of(50.0, slo_us=200.0), *others, **fields
    )


def test_what_cannot_make_its_deadline_is_rejected(tmp_path: Path) -> None:
    built = too_many(tmp_path, commands=OFFERED)
    assert rejected(Clockwork(), built) == [(1, 0, 100.0)]
    assert spans(Clockwork(), built) == [(0, 0.0, 100.0, 0), (2, 100.0, 150.0, 0)]


@pytest.mark.parametrize(("commands", "reject"), [(["launch"], True), (OFFERED, False)])
def test_where_it_may_not_be_rejected_it_goes_last(tmp_path: Path, commands: list[str], reject: bool) -> None:
    built = too_many(tmp_path, commands=commands)
    assert rejected(Clockwork(reject=reject), built) == []
    assert spans(Clockwork(reject=reject), built) == [
        (0, 0.0, 100.0, 0),
        (1, 150.0, 200.0, 0),
        (1, 200.0, 250.0, 0),
        (2, 100.0, 150.0, 0),
    ]


def test_jobs_of_a_queue_are_rejected_too(tmp_path: Path) -> None:
    """All are due at 130 us; what runs is never rejected."""
    built = problem(tmp_path, of(60.0, slo_us=130.0, jobs=3), commands=OFFERED)
    assert rejected(Clockwork(), built) == [(0, 2, 120.0)]
    assert spans(Clockwork(), built) == [(0, 0.0, 60.0, 0), (0, 60.0, 120.0, 0)]


def test_a_client_that_asks_for_the_impossible_does_not_stop_the_clock(tmp_path: Path) -> None:
    """Each rejection brings the next request at once, which may not be rejected at that instant, and runs then."""
    loop = of(50.0, slo_us=40.0, jobs=4, arrivals={"kind": "closed-loop"})
    built = problem(tmp_path, loop, commands=OFFERED)
    assert rejected(Clockwork(), built) == [(0, 0, 0.0), (0, 2, 50.0)]
    assert spans(Clockwork(), built) == [(0, 0.0, 50.0, 0), (0, 50.0, 100.0, 0)]


def test_a_larger_margin_rejects_earlier(tmp_path: Path) -> None:
    built = problem(tmp_path, of(50.0, slo_us=90.0), commands=OFFERED)
    assert rejected(Clockwork(margin=1.8), built) == []
    assert rejected(Clockwork(margin=2.0), built) == [(0, 0, 0.0)]


@pytest.mark.parametrize(("concurrent", "starts_us"), [(1, [0.0, 30.0, 60.0]), (2, [0.0, 0.0, 30.0])])
def test_few_requests_run_at_one_time(tmp_path: Path, concurrent: int, starts_us: list[float]) -> None:
    """They would all fit, and have to start in their order."""
    built = problem(tmp_path, *({"ops": [K(1, 30.0)], "slo_us": slo_us} for slo_us in (200.0, 210.0, 220.0)))
    assert [start for _, start, _, _ in spans(Clockwork(concurrent), built)] == starts_us


def test_a_request_is_not_interrupted_and_the_next_one_of_its_tenant_has_to_wait(tmp_path: Path) -> None:
    first = of(25.0, 25.0, slo_us=400.0, jobs=2)
    built = problem(tmp_path, first, of(20.0, slo_us=100.0, arrivals=started(10.0)))
    assert order(Clockwork(), built) == [0, 0, 1, 0, 0]


def test_work_without_a_deadline_makes_way_between_kernels(tmp_path: Path) -> None:
    """At 15 us one kernel runs and one more is launched, which the request's overtakes: it was in line before it."""
    background = of(10.0, 10.0, 10.0, 10.0, 10.0)
    built = problem(tmp_path, background, of(50.0, slo_us=200.0, arrivals=started(15.0)))
    assert [start for _, start, _, _ in spans(Clockwork(), built)] == [0.0, 10.0, 70.0, 80.0, 90.0, 20.0]


def decisions(built: Problem, *hidden: str) -> list[tuple[float, Command]] | None:
    """What is decided where parts are hidden; ``None``: it came to an illegal command."""
    from gpusched_env.experiments.lib.hiding import Noting

    scheduler = Noting(Disturbed(Clockwork(), hidden))
    try:
        episode(scheduler, built)
    except (GpuschedError, LookupError):
        return None
    return scheduler.decisions


@pytest.mark.parametrize("word", PARTS)
def test_it_reads_what_it_declares_also_where_it_rejects(tmp_path: Path, word: str) -> None:
    # Due at the same time, the longest one goes first.
    later = [of(length_us, slo_us=500.0, arrivals=started(200.0)) for length_us in (10.0, 20.0, 30.0, 40.0)]
    background = of(10.0, 10.0, 10.0, 10.0, 10.0, 10.0, arrivals=started(400.0))
    built = too_many(tmp_path, *later, background, commands=OFFERED)
    assert Reject(1, 0) in [command for _, command in decisions(built) or ()]
    assert (decisions(built, word) != decisions(built)) == (word in Clockwork.reads)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrent": 0}, "concurrent 0, margin 1.0; concurrent must be at least 1, margin above 0"),
        ({"margin": 0.0}, "margin 0.0"),
        ({"margin": math.nan}, "margin nan"),
        ({"margin": math.inf}, "margin inf"),
        ({"reject": "always"}, "reject is 'always', must be true or false"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"clockwork: .*{message}"):
        Clockwork(**options)


def test_work_is_given_ahead_of_the_end_of_what_runs(tmp_path: Path) -> None:
    """Chosen when the first one, of 50 us, has 20 to go; in its stream of lower priority it fills one SM until then."""
    built = problem(tmp_path, {"ops": [K(3, 50.0)], "slo_us": 200.0}, {"ops": [K(2, 30.0)], "slo_us": 210.0})
    assert spans(Clockwork(), built)[1][1] == 50.0
    ahead = Clockwork(schedule_ahead_us=20.0, streams="ranked")
    assert launches(ahead, built, 1) == [30.1]


def test_the_longest_measurement_is_the_estimate(tmp_path: Path) -> None:
    """Of two that run at one time each takes 60 us, not 30. Five times as long as alone the last ones, from 120 us on,
    are still in time for 400; five times as long as measured they are not."""
    built = problem(tmp_path, *(of(30.0, slo_us=400.0, jobs=3) for _ in range(2)), commands=OFFERED)
    assert rejected(Clockwork(concurrent=2, margin=5.0), built) == []
    assert rejected(Clockwork(concurrent=2, margin=5.0, estimate="measured"), built) != []
