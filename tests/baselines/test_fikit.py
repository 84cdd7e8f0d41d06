"""FIKIT on hand-worked instances: four SMs of one block each, no latencies, every kernel takes all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusched_env.baselines.fikit import Fikit
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import InputError
from gpusched_env.experiments.papers.fikit.runs import measure_profiles
from gpusched_env.scenarios.adapting import with_profile_error, with_profiles
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profile_error import ProfileError, Profiles
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.contract import Scheduler
from tests.baselines.instances import launches, spans, started
from tests.devices.problems import K, problem

GAP = [K(4, 10.0), K(4, 10.0, host_us=60.0)]
"""An urgent job: a kernel from 0 to 10 us, a gap of 50 us that its host needs, a kernel from 60 to 70 us."""


def fikit(**options: Any) -> Fikit:
    """Without thresholds and costs, one kernel at a time, unless given otherwise."""
    return Fikit(**{"epsilon_us": 0.0, "in_flight": 1, "interception_us": 0.0, **options})


def of(length_us: float, priority: int = 1, kernels: int = 1, **fields: Any) -> dict[str, Any]:
    """A tenant with kernels of one length, all issued at once."""
    return {"ops": [K(4, length_us)] * kernels, "priority": priority, **fields}


def times(scheduler: Scheduler, built: Problem) -> list[tuple[int, float, float]]:
    """(tenant, start, end) of each kernel in order of its start."""
    return sorted(((tenant, start, end) for tenant, start, end, _ in spans(scheduler, built)), key=lambda row: row[1:])


def test_the_longest_kernel_that_fits_fills_the_gap(tmp_path: Path) -> None:
    """40 us fit into the gap of 50, 60 do not; then 10 us are left, too little for 20."""
    built = problem(tmp_path, {"ops": GAP}, of(20.0), of(40.0), of(60.0))
    assert built.gaps_us[:2].tolist() == [50.0, 0.0]
    assert times(fikit(), built) == [
        (0, 0.0, 10.0), (2, 10.0, 50.0), (0, 60.0, 70.0), (1, 70.0, 90.0), (3, 90.0, 150.0),
    ]  # fmt: skip


def test_priority_goes_before_length(tmp_path: Path) -> None:
    """The queue above has a fitting kernel, if a short one. After it, 40 us do not fit into the last 30."""
    built = problem(tmp_path, {"ops": GAP}, of(40.0, priority=2), of(20.0, priority=1))
    assert times(fikit(), built) == [(0, 0.0, 10.0), (2, 10.0, 30.0), (0, 60.0, 70.0), (1, 70.0, 110.0)]


def test_a_lower_queue_gets_the_gap_if_nothing_above_fits(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": GAP}, of(40.0, priority=2), of(60.0, priority=1))
    assert times(fikit(), built)[1] == (1, 10.0, 50.0)


def test_of_equal_kernels_the_older_goes_first(tmp_path: Path) -> None:
    later = {"ops": [K(4, 20.0, host_us=5.0)], "priority": 1}
    built = problem(tmp_path, {"ops": GAP}, later, of(20.0), of(20.0))
    assert [tenant for tenant, *_ in times(fikit(), built)] == [0, 2, 3, 0, 1]


def test_a_gap_is_filled_as_long_as_something_fits(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": GAP}, of(20.0, kernels=3))
    assert times(fikit(), built) == [
        (0, 0.0, 10.0), (1, 10.0, 30.0), (1, 30.0, 50.0), (0, 60.0, 70.0), (1, 70.0, 90.0),
    ]  # fmt: skip


@pytest.mark.parametrize(("epsilon_us", "filled"), [(49.0, True), (50.0, False)])
def test_a_rest_up_to_epsilon_is_left_idle(tmp_path: Path, epsilon_us: float, filled: bool) -> None:
    built = problem(tmp_path, {"ops": GAP}, of(5.0))
    assert ((1, 10.0, 15.0) in times(fikit(epsilon_us=epsilon_us), built)) is filled


def test_filling_stops_when_the_holder_is_back_early(tmp_path: Path) -> None:
    """Told gaps of 200 us, it goes on filling; the holder's kernel, there at 60 us, waits for the running one only."""
    built = problem(tmp_path, {"ops": GAP}, of(20.0, kernels=5))
    assert times(fikit(), with_profile_error(built, ProfileError(gaps=4.0))) == [
        (0, 0.0, 10.0), (1, 10.0, 30.0), (1, 30.0, 50.0), (1, 50.0, 70.0), (0, 70.0, 80.0),
        (1, 80.0, 100.0), (1, 100.0, 120.0),
    ]  # fmt: skip


def test_what_is_in_flight_counts_against_the_gap(tmp_path: Path) -> None:
    """Two at a time: behind 20 us in flight, another 20 fit into 50, and behind those nothing until one has ended."""
    built = problem(tmp_path, {"ops": GAP}, of(20.0, kernels=2), of(15.0, kernels=2))
    assert launches(fikit(in_flight=2), built, 1) == [10.0, 10.0]
    # At 30 us 30 are left, 20 of them taken: 15 do not fit.
    assert launches(fikit(in_flight=2), built, 2) == [70.0, 70.0]


def test_before_a_jobs_first_kernel_the_gap_is_that_of_earlier_jobs_if_any(tmp_path: Path) -> None:
    """Every job's host needs 40 us before its kernel: an idle time that follows no kernel of that job."""
    closed = {"ops": [K(4, 10.0, host_us=40.0)], "jobs": 2, "arrivals": {"kind": "closed-loop"}}
    built = problem(tmp_path, closed, of(30.0))
    assert times(fikit(), built) == [(0, 40.0, 50.0), (1, 50.0, 80.0), (0, 90.0, 100.0)]
    assert times(fikit(first_gap=False), built) == [(0, 40.0, 50.0), (0, 90.0, 100.0), (1, 100.0, 130.0)]


@pytest.mark.parametrize(("ahead", "starts_us"), [(True, 15.0), (False, 20.0)])
def test_a_filler_is_launched_ahead_of_the_predicted_end(tmp_path: Path, ahead: bool, starts_us: float) -> None:
    """A launch takes 5 us; the urgent kernel runs from 5 to 15."""
    built = problem(tmp_path, {"ops": GAP}, of(20.0), gpu={"timing": {"launch_latency_us": 5.0}})
    assert times(fikit(ahead=ahead), built)[1] == (1, starts_us, starts_us + 20.0)


def test_an_arrival_takes_over_at_the_next_kernel_boundary(tmp_path: Path) -> None:
    """The only tenant with work holds the GPU; the urgent one, there at 25 us, waits for the kernel at work."""
    built = problem(tmp_path, {"ops": [K(4, 10.0)], "arrivals": started(25.0)}, of(20.0, kernels=3))
    assert times(fikit(), built) == [(1, 0.0, 20.0), (1, 20.0, 40.0), (0, 40.0, 50.0), (1, 50.0, 70.0)]


def test_only_tenants_that_can_be_outranked_are_held_back(tmp_path: Path) -> None:
    built = problem(tmp_path, of(20.0, priority=0, kernels=4), of(20.0, kernels=4))
    assert launches(fikit(in_flight=2), built, 0) == [0.0, 0.0, 0.0, 0.0]
    assert launches(fikit(in_flight=2), built, 1) == [80.0, 80.0, 100.0, 120.0]


def test_a_holder_keeps_the_gpu_among_equals_and_its_gaps_go_to_them(tmp_path: Path) -> None:
    """Both jobs are of one queue: the first keeps the GPU until its end, though the other's kernels are there."""
    built = problem(tmp_path, {"ops": GAP, "priority": 3}, of(30.0, priority=3, kernels=2))
    assert times(fikit(), built) == [(0, 0.0, 10.0), (1, 10.0, 40.0), (0, 60.0, 70.0), (1, 70.0, 100.0)]


@pytest.mark.parametrize(("queues", "first"), [(3, 1), (2, 2)])
def test_tenants_beyond_the_last_queue_share_it(tmp_path: Path, queues: int, first: int) -> None:
    """With a queue each, urgency decides who fills the gap; in one queue the longer kernel does."""
    built = problem(tmp_path, {"ops": GAP}, of(20.0, priority=4), of(40.0, priority=7))
    assert times(fikit(queues=queues), built)[1][0] == first


def test_with_more_tenants_than_queues_the_most_urgent_notices_nothing(tmp_path: Path) -> None:
    """Twelve urgencies in two queues: all work is done, and the urgent job takes its 70 us."""
    others = [of(float(5 + i), priority=1 + i, kernels=2) for i in range(11)]
    built = problem(tmp_path, {"ops": GAP}, *others)
    rows = times(fikit(queues=2), built)
    assert len(rows) == 24
    assert [(start, end) for tenant, start, end in rows if tenant == 0] == [(0.0, 10.0), (60.0, 70.0)]
    assert [tenant for tenant, start, _ in rows if 10.0 <= start < 60.0] == [11, 11, 10, 2], "15 + 15 + 14 + 6 us"


def test_interception_costs_host_time(tmp_path: Path) -> None:
    """Alone, each launch reaches the GPU 3 us late; the second is issued long after the first is through."""
    built = problem(tmp_path, {"ops": GAP})
    assert times(fikit(interception_us=3.0), built) == [(0, 3.0, 13.0), (0, 63.0, 73.0)]


def test_the_measurement_stage_finds_the_profiles_of_a_program_without_surprises(tmp_path: Path) -> None:
    """Gaps come out of runs on a device as they are worked out beforehand; and wrong profiles do not matter then."""
    built = problem(tmp_path, {"ops": GAP}, of(20.0), of(40.0))
    wrong = with_profile_error(built, ProfileError(durations=9.0, gaps=0.1))
    assert (2, 10.0, 50.0) not in times(fikit(), wrong)
    measured = with_profiles(wrong, measure_profiles(wrong, CompiledDevice(), runs=2))
    assert (2, 10.0, 50.0) in times(fikit(), measured)
    assert times(fikit(), measured) == times(fikit(), built)


def test_without_any_profile_the_order_of_urgency_remains(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": GAP}, of(20.0))
    unknown = with_profile_error(built, ProfileError(forget=1.0))
    assert times(fikit(), unknown) == [(0, 0.0, 10.0), (0, 60.0, 70.0), (1, 70.0, 90.0)]


def without_the_long_one(built: Problem) -> Problem:
    """Kernels of 40 us were never measured."""
    known = np.where(built.told.duration_us == 40.0, np.nan, 1.0)
    return with_profiles(built, Profiles(built.told.duration_us * known, built.told.gap_us * known))


def test_a_kernel_never_measured_counts_as_the_mean_of_its_tenants_others(tmp_path: Path) -> None:
    """Of the second tenant's kernels (8, 40 and 8 us) the middle one is unknown: 8 us, so both go into the gap."""
    built = problem(tmp_path, {"ops": GAP}, {"ops": [K(4, 8.0), K(4, 40.0), K(4, 8.0)], "priority": 1})
    assert times(fikit(), without_the_long_one(built))[:3] == [
        (0, 0.0, 10.0), (1, 10.0, 18.0), (1, 18.0, 58.0),
    ]  # fmt: skip


def test_a_tenant_never_measured_waits_while_others_fill(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": GAP}, of(20.0), of(40.0))
    assert times(fikit(), without_the_long_one(built)) == [
        (0, 0.0, 10.0), (1, 10.0, 30.0), (0, 60.0, 70.0), (2, 70.0, 110.0),
    ]  # fmt: skip


def test_contexts_are_an_option() -> None:
    built = build_problem(load_scenario("Toy"))
    for contexts in ("per-tenant", "shared"):
        episode = run_episode(Fikit(contexts=contexts), built, CompiledDevice(), 0)  # type: ignore[arg-type]
        assert episode.problem.scenario.contexts == contexts
    assert run_episode(Fikit(), built, CompiledDevice(), 0).problem.scenario.contexts == built.scenario.contexts


KERNELS = st.lists(
    st.builds(K, st.integers(1, 8), st.integers(1, 50).map(float), st.integers(0, 60).map(float)),
    min_size=1,
    max_size=5,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(urgent=KERNELS, others=st.lists(KERNELS, min_size=1, max_size=3))
def test_exact_profiles_never_delay_the_most_urgent(tmp_path: Path, urgent: list[K], others: list[list[K]]) -> None:
    """Whatever fills the gaps fits, if it is one kernel at a time; and everybody's work gets done."""
    rows = [{"ops": ops, "priority": priority} for priority, ops in enumerate([urgent, *others])]
    built = problem(tmp_path, *rows)
    episode = run_episode(fikit(in_flight=1), built, CompiledDevice(), 0)
    assert episode.done
    assert turnaround_us(episode) == pytest.approx(built.programs[0].alone_us)


@pytest.mark.parametrize(("in_flight", "late_us"), [(1, 0.0), (2, 1.0)])
def test_of_several_kernels_in_flight_one_may_take_longer_than_its_profile(
    tmp_path: Path, in_flight: int, late_us: float
) -> None:
    """The gap is from 1 to 25 us. Blocks of the second filler begin at 7 us on the SM that the first one leaves, the
    last ones at 19 us. At 13 us it seems to have 6 us to go, and a third one to fit behind it."""
    fillers = [K(7, 6.0, 0.0)], [K(6, 6.0, 0.0), K(4, 1.0, 0.0)]
    built = problem(
        tmp_path,
        {"ops": [K(1, 1.0, 0.0), K(1, 1.0, 25.0)], "priority": 0},
        *({"ops": ops, "priority": priority} for priority, ops in enumerate(fillers, 1)),
    )
    episode = run_episode(fikit(in_flight=in_flight), built, CompiledDevice(), 0)
    assert turnaround_us(episode) == pytest.approx(26.0 + late_us)


def turnaround_us(episode: Episode) -> float:
    """Of the first tenant's only job."""
    (turnaround,) = episode.timeline.jobs.array[episode.timeline.jobs.column("tenant") == 0, 4]
    return float(turnaround)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon_us": -1.0}, "epsilon_us -1.0"),
        ({"interception_us": float("nan")}, "interception_us nan"),
        ({"queues": 0}, "queues 0"),
        ({"in_flight": 0}, "in_flight 0"),
        ({"contexts": "mps"}, "contexts is 'mps'; shared, per-tenant or None"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Fikit(**options)
