"""Whatever is wrong is one error that names it, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.games.fleet.co_location import RateModel
from gpusched_env.games.fleet.device import Fleet, Move, Place
from gpusched_env.games.fleet.environment.problems import fleet_day
from gpusched_env.games.fleet.problem import CLIENTS, FINISHED, WAITS, FleetProblem, GpuKind
from gpusched_env.games.fleet.windows import advance
from gpusched_env.games.fleet.workload.importing import INSTANCES, SENSORS, read_pai, read_philly
from gpusched_env.games.fleet.workload.jobs import JOB

S = 1_000_000
RATES = RateModel(1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 0.0, 0.0)
ROWS = [
    (0, 0, 40.0 * S, 0.5, 4.0, 50_000.0, 62_500.0),
    (0, 1, 5.0 * S, 0.5, 7.0, 500_000.0, 0.0),
    (10 * S, 1, 15.0 * S, 0.5, 4.0, 500_000.0, 0.0),
    (70 * S, 1, 15.0 * S, 0.5, 4.0, 500_000.0, 0.0),
]


def problem(rows: list[tuple[float, ...]] = ROWS) -> FleetProblem:
    kinds = (GpuKind("V100", 3, 10.0),)
    return FleetProblem("by hand", np.array(rows, JOB), kinds, RATES, 100 * S, report_us=10 * S, restart_us=5 * S)


def tried(call: Callable[..., Any], *args: Any) -> tuple[Any, str]:
    """What it gives, or the error, which is one line."""
    try:
        return call(*args), ""
    except (IllegalCommand, InputError) as error:
        message = str(error)
    assert message
    assert "\n" not in message
    return None, message


commands = st.lists(
    st.tuples(st.sampled_from([Place, Move]), st.integers(-2, 5), st.integers(-2, 4), st.booleans()), max_size=30
)


@settings(max_examples=100, deadline=None)
@given(commands)
def test_a_command_is_carried_out_or_refused_as_a_whole(given_commands: list[tuple[Any, int, int, bool]]) -> None:
    """Legal is what the contract says, worked out from the jobs alone."""
    fleet = Fleet(problem(), advance=advance)
    fleet.reset()
    for kind, job, gpu, on in given_commands:
        state = fleet.state
        before = [column.copy() for column in state]
        known = 0 <= job < len(ROWS) and ROWS[job][0] <= state.clock[0] and 0 <= gpu < 3
        where = int(state.gpu_of[job]) if known else FINISHED
        there = [j for j in range(len(ROWS)) if state.gpu_of[j] == gpu]
        room = known and sum(ROWS[j][4] for j in there) + ROWS[job][4] <= 10.0 and len(there) < CLIENTS
        legal = room and (where == WAITS if kind is Place else where >= 0 and where != gpu)
        _, error = tried(fleet.apply, kind(job, gpu))
        assert legal == (error == "")
        assert legal or f"job={job}" in error
        assert not legal or state.gpu_of[job] == gpu
        for column, old in zip(state, before, strict=True):
            assert legal or np.array_equal(column, old)
        if on and state.clock[0] < 100 * S:
            fleet.advance()


bad_values = st.one_of(st.floats(max_value=-1e-9), st.just(0.0), st.just(float("nan")), st.just(float("inf")))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3), st.sampled_from(["work_us", "utilisation", "memory_gb", "step_us"]), bad_values)
def test_a_job_that_cannot_be_is_named(job: int, field: str, value: float) -> None:
    jobs = np.array(ROWS, JOB)
    jobs[field][job] = value
    with pytest.raises(InputError) as caught:
        problem(jobs.tolist())
    assert str(caught.value).startswith(f"by hand: job {job}: {field} is ")


def lines(columns: tuple[str, ...], **cells: str) -> str:
    return ",".join(cells.get(column, "") for column in columns) + "\n"


cells = st.text(st.characters(codec="ascii", exclude_characters='\n\r",'), max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["start_time", "end_time", "status"]), cells, st.integers(0, 3))
def test_a_broken_line_of_a_trace_is_named(tmp_path: Path, field: str, value: str, drop: int) -> None:
    sensors, instances = tmp_path / "sensors.csv", tmp_path / "instances.csv"
    sensors.write_text(lines(SENSORS, worker_name="w", gpu_wrk_util="50", avg_gpu_wrk_mem="4"))
    good = {"worker_name": "w", "status": "Terminated", "start_time": "10", "end_time": "90"}
    broken = lines(INSTANCES, **{**good, field: value})
    broken = broken if drop == 0 else ",".join(broken.rstrip("\n").split(",")[drop:]) + "\n"
    instances.write_text(lines(INSTANCES, **good) + broken)
    jobs, error = tried(read_pai, instances, sensors)
    assert jobs is not None or "line 2" in error
    assert jobs is None or (len(jobs) in (1, 2) and (jobs["work_us"] > 0).all())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["status", "attempts", "start_time", "end_time", "detail"]), json_values)
def test_a_broken_job_of_philly_is_named(tmp_path: Path, field: str, value: Any) -> None:
    attempt = {"start_time": "2017-10-07 01:00:00", "end_time": "2017-10-07 02:00:00", "detail": [{"gpus": ["gpu0"]}]}
    job: dict[str, Any] = {"status": "Pass", "attempts": [attempt]}
    (job if field in job else attempt)[field] = value
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps([job]))
    jobs, error = tried(read_philly, path)
    assert jobs is not None or str(path) in error
    assert jobs is None or (jobs["work_us"] > 0).all()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{name: x, days: 0}", "days"),
        ("{name: x, scale: big}", "scale"),
        ("{name: x, gpus: 3}", "gpus"),
        ("{days: 1}", "name"),
        ("- 1", "mine.yaml"),
        ("{", "not valid YAML"),
    ],
)
def test_a_day_in_a_file_that_cannot_be(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=error):
        fleet_day(str(path), 0)
