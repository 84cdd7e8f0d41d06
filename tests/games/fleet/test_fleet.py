"""A fleet by hand: its log, its errors, and that compiled code does what the same text does as plain Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.games.fleet.co_location import RateModel
from gpusched_env.games.fleet.device import (
    WAIT,
    Command,
    Fleet,
    FleetEvent,
    FleetRun,
    FleetView,
    Move,
    Place,
    run_fleet,
)
from gpusched_env.games.fleet.experiments.levels import run_in_shards
from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
from gpusched_env.games.fleet.windows import PackingRule, advance
from gpusched_env.games.fleet.workload.jobs import JOB
from tests.refusals import refused

S = 1_000_000
RATES = RateModel(
    inference_by_inference=1.0, inference_by_training=1.0, exponent=1.0, training_by_others=2.0,
    cap_knee=1.0, cap_exponent=1.0, apart=0.0, noise=0.0,
)  # fmt: skip
ASKED = (0, 0, 40.0 * S, 0.5, 4.0, 50_000.0, 62_500.0)
TRAINED = (0, 1, 20.0 * S, 0.5, 7.0, 500_000.0, 0.0)
LATER = (10 * S, 1, 15.0 * S, 0.5, 4.0, 500_000.0, 0.0)


def problem(*jobs: tuple[float, ...], kinds: Sequence[GpuKind] = (GpuKind("V100", 2, 12.0),)) -> FleetProblem:
    table = np.array(list(jobs), JOB)
    return FleetProblem("by hand", table, tuple(kinds), RATES, horizon_us=100 * S, report_us=10 * S, restart_us=5 * S)


class Told:
    """Gives commands at their times."""

    control = "gpucolo"

    def __init__(self, *commands: tuple[int, Command]) -> None:
        self._commands = commands

    def reset(self, kinds: tuple[GpuKind, ...]) -> None:
        self._left = list(self._commands)

    def decide(self, view: FleetView) -> Command:
        return self._left.pop(0)[1] if self._left and self._left[0][0] <= view.now_us else WAIT


@pytest.mark.parametrize(
    "play",
    [
        pytest.param(partial(run_fleet, compiled=False), id="plain"),
        pytest.param(run_fleet, id="compiled"),
        pytest.param(partial(run_in_shards, shards=2), id="shards"),
        pytest.param(partial(run_in_shards, shards=2, address="local"), id="ray", marks=pytest.mark.long),
    ],
)
def test_two_gpus_three_jobs_one_sleep_one_move(play: Callable[..., FleetRun]) -> None:
    """Job 1 slows the batches of job 0 by its activity of a half, and its SLO is 1.25 times the time alone.

    So training has to halve its activity: it sleeps as long as its iteration takes, half a second, which then takes
    0.5 + 0.5 (1 + 2 * 0.5) + 1 = 2.5 times as long: 8 s of work in 20 s. On GPU 1, after a restart of 5 s, both
    training jobs take 0.5 + 0.5 (1 + 2 * 0.5) = 1.5 times as long. Job 2 has 5 s of work left at 20 s, so that it ends
    at 27.5 s; job 1 has 12 - 5 / 1.5 s left at 30 s, and is alone from there.

    A V100 takes 40 W idle and 300 W busy. GPU 0 is in use for 40 s: for 20 s with an activity of 0.5 and 0.25, then of
    0.5. GPU 1 is in use for 30 s, with an activity of 0.5, 1 and 0.5 in the three reports.
    """
    told = Told((0, Place(0, 0)), (0, Place(1, 0)), (10 * S, Place(2, 1)), (20 * S, Move(1, 1)))
    run = play(told, problem(ASKED, TRAINED, LATER))
    assert run.log == [
        FleetEvent(0, "place", 0, 0),
        FleetEvent(0, "place", 1, 0),
        FleetEvent(0, "sleep", -1, 0, 500_000),
        FleetEvent(10_000_000, "place", 2, 1),
        FleetEvent(20_000_000, "move", 1, 1),
        FleetEvent(20_000_000, "sleep", -1, 0, 0),
        FleetEvent(27_500_000, "finish", 2, 1),
        FleetEvent(38_666_666, "finish", 1, 1),
        FleetEvent(40_000_000, "finish", 0, 0),
    ]
    assert run.used[:5].tolist() == [1, 2, 2, 2, 0]
    assert run.state.ratio_us[0] / S == pytest.approx(20.0 * 1.0 + 20.0 * 0.8), "at its SLO for 20 s, then alone"
    assert run.violations == 0.0
    assert run.energy_j == pytest.approx(40.0 * (40.0 + 30.0) + 260.0 * (15.0 + 10.0 + 20.0))


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (Place(0, 2), "the fleet has GPUs 0 to 1"),
        (Place(0, 1), "job 0 is on GPU 0 and claims memory there"),
        (Place(1, 0), "the job needs 9 GB, GPU 0 has 8 GB left"),
        (Place(3, 1), "no job 3 has arrived yet"),
        (Move(1, 0), "job 1 is on no GPU yet"),
        (Move(0, 0), "job 0 is on that GPU"),
        (Move(2, 1), "job 2 has finished"),
        ("place", "is no command of a fleet"),
    ],
)
def test_an_illegal_command_changes_nothing(command: Command, error: str) -> None:
    short = (0, 1, 1.0 * S, 0.5, 1.0, 500_000.0, 0.0)
    fleet = Fleet(problem(ASKED, (0, 1, 20.0 * S, 0.5, 9.0, 500_000.0, 0.0), short), advance=advance)
    fleet.reset()
    fleet.apply(Place(0, 0))
    fleet.apply(Place(2, 1))
    fleet.advance()
    before = [column.copy() for column in fleet.state]
    with pytest.raises(IllegalCommand, match=error):
        fleet.apply(command)
    for column, old in zip(fleet.state, before, strict=True):
        np.testing.assert_array_equal(column, old)


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("arrival_us", -1, "job 1: arrival_us is -1, must be at least 0"),
        ("work_us", 0.0, "job 1: work_us is 0.0, must be above 0"),
        ("utilisation", -0.5, "job 1: utilisation is -0.5, must be above 0 and at most 1"),
        ("utilisation", np.nan, "job 1: utilisation is nan"),
        ("memory_gb", 33.0, "job 1: memory_gb is 33.0, must be above 0 and at most 12"),
        ("slo_us", 1.0, "job 1: slo_us is 1.0, must be above 0 for inference and 0 for training"),
        ("training", 2, "job 1: training is 2, must be 0 or 1"),
    ],
)
def test_a_job_that_cannot_be_is_named(field: str, value: float, error: str) -> None:
    jobs = np.array([ASKED, TRAINED], JOB)
    jobs[field][1] = value
    with pytest.raises(InputError, match=error):
        problem(*jobs.tolist())


def test_a_fleet_that_cannot_be() -> None:
    with refused(InputError, "1 arrives", "job 0"):
        problem(LATER, TRAINED)
    with refused(InputError, "GPU", "least 1"):
        problem(ASKED, kinds=[GpuKind("V100", 0, 12.0)])
    for field, value, least in (("report_us", 0, 1), ("horizon_us", -5, 1), ("restart_us", -1, 0)):
        with refused(InputError, field, value, least, "hand"):
            replace(problem(ASKED), **{field: value})
    with refused(InputError, "'gpucolor'", "GPU", "did you mean 'gpucolo'"):
        Fleet(problem(ASKED), "gpucolor")


def test_a_view_says_nothing_of_what_is_to_come_and_cannot_be_written() -> None:
    fleet = Fleet(problem(ASKED, TRAINED, LATER), advance=advance)
    view = fleet.reset()
    assert (len(view.jobs), len(view.gpu_of), view.waiting.tolist()) == (2, 2, [0, 1])
    assert "work_us" not in (view.jobs.dtype.names or ())
    with refused(ValueError, "read-only"):
        view.ratio[0] = 0.0
    with refused(ValueError, "read-only"):
        view.jobs["memory_gb"][0] = 0.0


class Packed:
    """First fit, or another rule."""

    def __init__(self, control: str, rule: PackingRule) -> None:
        self.control, self.rule = control, rule

    def reset(self, kinds: tuple[GpuKind, ...]) -> None:
        pass

    def decide(self, view: FleetView) -> Command:
        for job in view.waiting[:1].tolist():
            gpu = view.choose(job, self.rule)
            if gpu >= 0:
                return Place(job, gpu)
        return WAIT


def same(one: FleetRun, other: FleetRun) -> None:
    np.testing.assert_array_equal(one.used, other.used)
    for name in ("gpu_of", "left_us", "ended_us", "ratio_us", "served_us", "late_us", "slots", "sleep_us", "share"):
        np.testing.assert_array_equal(getattr(one.state, name), getattr(other.state, name), err_msg=name)


jobs_drawn = st.lists(
    st.tuples(
        st.integers(0, 60 * S), st.booleans(), st.floats(0.5 * S, 80.0 * S), st.floats(0.02, 1.0),
        st.floats(0.5, 12.0), st.floats(1.05, 3.0),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(
    jobs_drawn,
    st.sampled_from(["shared", "gpucolo", "gslice", "gpucolo-worst"]),
    st.sampled_from(
        [
            PackingRule(),
            PackingRule(most_jobs=1),
            PackingRule(best=True),
            PackingRule(unit=3),
            PackingRule(inference=0.5),
        ]
    ),
)
def test_rules_and_code_agree_and_claims_fit(drawn: list[tuple[float, ...]], control: str, rule: PackingRule) -> None:
    """A rule that is asked, run as plain Python and run compiled does the same; nothing is lost or claimed twice."""
    rows = [
        (at, int(trains), work, load, memory, 500_000.0 if trains else 50_000.0, 0.0 if trains else 50_000.0 * slo)
        for at, trains, work, load, memory, slo in sorted(drawn)
    ]
    made = problem(*rows, kinds=(GpuKind("V100", 4, 12.0), GpuKind("A100", 2, 16.0, 2.0)))
    made = FleetProblem(
        made.name, made.jobs, made.kinds, RATES._replace(noise=0.02, cap_knee=0.8), made.horizon_us, made.report_us
    )
    asked = run_fleet(Packed(control, rule), made, asked=True)
    same(asked, run_fleet(Packed(control, rule), made, compiled=False))
    same(asked, run_fleet(Packed(control, rule), made))
    state = asked.state
    assert (state.claimed_gb <= state.size_gb + 1e-9).all()
    assert (state.count <= rule.most_jobs).all()
    assert state.count.sum() == (state.gpu_of >= 0).sum()
    assert (state.left_us[state.gpu_of == -2] == 0).all()
    assert (state.late_us <= made.jobs["work_us"] + 1e-6).all()
