"""Drawn jobs have the published statistics; tables of traces become jobs, and broken ones are named."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.workload.importing import ImportedJobs, read_pai, read_philly
from gpusched_env.games.fleet.workload.jobs import DAY_US, FleetTrace, check_jobs
from tests.refusals import refused

WITH_UTILISATION = 0.655


def concurrency(jobs: np.ndarray, first_day: float, last_day: float) -> float:
    """Mean number of jobs that run alone between two days."""
    start, end = jobs["arrival_us"] / DAY_US, (jobs["arrival_us"] + jobs["work_us"]) / DAY_US
    return float((np.minimum(end, last_day) - np.maximum(start, first_day)).clip(0).sum() / (last_day - first_day))


def test_drawn_utilisations_are_those_of_the_trace() -> None:
    """Of all rows: mean 10.5 %, median 1.5 %, 75.4 % below 10 %, 5 % at 50 % or more."""
    drawn = FleetTrace(scale=0.2, burst_days=(0.0, 0.0)).draw(1)
    used, trains = drawn["utilisation"], drawn["training"] == 1
    assert used.mean() * WITH_UTILISATION == pytest.approx(0.105, rel=0.02)
    assert (used < 0.015).mean() * WITH_UTILISATION + 0.345 == pytest.approx(0.5, abs=0.005)
    assert (used < 0.1).mean() * WITH_UTILISATION + 0.345 == pytest.approx(0.754, abs=0.005)
    assert (used >= 0.5).mean() * WITH_UTILISATION == pytest.approx(0.05, abs=0.003)
    assert trains.mean() == pytest.approx(0.25, abs=0.003), "3 to 1"
    assert used[trains].mean() / used[~trains].mean() == pytest.approx(2.7, rel=0.05)
    assert drawn["memory_gb"][trains].mean() == pytest.approx(4.82, rel=0.03)
    assert drawn["memory_gb"][~trains].mean() == pytest.approx(3.08, rel=0.03)


def test_drawn_jobs_run_at_the_published_concurrency_with_a_burst() -> None:
    drawn = FleetTrace(scale=0.2).draw(2)
    check_jobs(drawn, "drawn", 32.0)
    assert concurrency(drawn, 0.0, 57.0) == pytest.approx(0.2 * 3059, rel=0.03)
    before, within = concurrency(drawn, 3.0, 19.0), concurrency(drawn, 21.0, 39.0)
    assert within / before == pytest.approx(1.75, rel=0.06), "inference is doubled"
    hour = (drawn["arrival_us"][drawn["arrival_us"] > 0] / DAY_US * 24.0).astype(int) % 24
    assert np.bincount(hour, minlength=24).argmax() in (13, 14, 15)


def test_draws_are_seeded() -> None:
    trace = FleetTrace(scale=0.01)
    np.testing.assert_array_equal(trace.draw(5), trace.draw(5))
    assert len(trace.draw(5)) != len(trace.draw(6))
    with refused(InputError, "is 0", "above 0"):
        FleetTrace(scale=0)


INSTANCE_ROWS = """\
j1,worker,i1,w1,a,Terminated,1000,1600,m1
j2,worker,i2,w2,b,Failed,1000,1600,m1
j3,worker,i3,w3,c,Terminated,900,60900,m1
j4,worker,i4,w4,d,Terminated,1100,1200,m1
j5,worker,i5,w5,e,Terminated,1200,1300,m1
"""
SENSOR_ROWS = """\
j1,worker,w1,a,m1,/dev/nvidia0,1,5.0,1,1,2.5,3,0,0,0,0
j2,worker,w2,b,m1,/dev/nvidia0,1,5.0,1,1,2.5,3,0,0,0,0
j3,worker,w3,c,m1,/dev/nvidia0,1,12.0,1,1,4,5,0,0,0,0
j4,worker,w4,d,m1,/dev/nvidia0,1,150.0,1,1,10,11,0,0,0,0
j5,worker,w5,e,m1,/dev/nvidia0,1,,1,1,10,11,0,0,0,0
"""


def test_pai_tables_become_jobs(tmp_path: Path) -> None:
    """Failed and idle instances are dropped, 150 % is two parts of 75 %, long or busy ones train."""
    instances, sensors = tmp_path / "pai_instance_table.csv", tmp_path / "pai_sensor_table.csv"
    instances.write_text(INSTANCE_ROWS)
    sensors.write_text(SENSOR_ROWS)
    imported = ImportedJobs()
    found = read_pai(instances, sensors, imported)
    assert imported.said() == "left out: 1 that did not end well, 1 that used no GPU"
    assert found["arrival_us"].tolist() == [0, 100_000_000, 200_000_000, 200_000_000]
    assert found["work_us"].tolist() == [6e10, 6e8, 1e8, 1e8]
    assert found["training"].tolist() == [1, 0, 1, 1]
    assert found["utilisation"].tolist() == pytest.approx([0.12, 0.05, 0.75, 0.75])
    assert found["memory_gb"].tolist() == pytest.approx([4.0, 2.5, 5.0, 5.0])


@pytest.mark.parametrize(
    ("instances", "sensors", "error"),
    [
        (INSTANCE_ROWS.replace("1000,1600", "soon,1600", 1), SENSOR_ROWS, "table.csv: line 1: start_time is 'soon'"),
        (
            INSTANCE_ROWS.replace("900,60900", "900,60"),
            SENSOR_ROWS,
            "line 3: end_time lies before start_time, by 840 s",
        ),
        (
            INSTANCE_ROWS.replace("900,60900", "1e15,2e15"),
            SENSOR_ROWS,
            "line 3: start_time is '1e15', must",
        ),
        (INSTANCE_ROWS, SENSOR_ROWS.replace("12.0", "1e300"), "line 3: gpu_wrk_util is '1e300', must be .* 0 to 6400"),
        (INSTANCE_ROWS, SENSOR_ROWS.replace(",4,5,", ",1e9,5,"), "avg_gpu_wrk_mem is '1e9', must be .* 0 to 2048"),
        (INSTANCE_ROWS, SENSOR_ROWS.replace("nvidia0", "n" * 140_000, 1), "line 1: no comma-separated values"),
        (
            INSTANCE_ROWS.splitlines()[0].replace("1600", "1000"),
            SENSOR_ROWS,
            "used a GPU; left out: 1 that took no time",
        ),
        (INSTANCE_ROWS, SENSOR_ROWS.replace("12.0", "-12.0"), "sensor_table.csv: line 3: gpu_wrk_util is '-12.0'"),
        (INSTANCE_ROWS, SENSOR_ROWS + "j6,worker\n", "line 6 has 2 fields, must have 16"),
        ("", SENSOR_ROWS, "no job that ended well and used a GPU"),
    ],
)
def test_a_broken_table_is_named(tmp_path: Path, instances: str, sensors: str, error: str) -> None:
    first, second = tmp_path / "pai_instance_table.csv", tmp_path / "pai_sensor_table.csv"
    first.write_text(instances)
    second.write_text(sensors)
    with pytest.raises(InputError, match=error):
        read_pai(first, second)


def philly(**changes: object) -> list[dict[str, object]]:
    attempt = {"start_time": "2017-10-07 01:00:00", "end_time": "2017-10-07 02:00:00",
               "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}]}  # fmt: skip
    return [
        {"status": "Pass", "jobid": "a", "attempts": [{**attempt, **changes}]},
        {"status": "Killed", "attempts": []},
    ]


def test_philly_jobs_have_a_part_for_each_gpu(tmp_path: Path) -> None:
    path = tmp_path / "cluster_job_log.json"
    path.write_text(json.dumps(philly()))
    found = read_philly(path)
    assert found["work_us"].tolist() == [3.6e9, 3.6e9]
    assert found["training"].tolist() == [1, 1]


@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Asia/Kathmandu"])
def test_philly_jobs_are_the_same_in_every_time_zone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    """The clocks of Los Angeles went back by an hour in the night to 2017-11-05."""
    path = tmp_path / "cluster_job_log.json"
    path.write_text(
        json.dumps(
            philly(start_time="2017-11-04 20:00:00", end_time="2017-11-05 20:00:00")[:1]
            + philly(start_time="2017-11-06 00:00:00", end_time="2017-11-06 01:00:00")[:1]
        )
    )
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        found = read_philly(path)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert (found["arrival_us"] / 3.6e9).tolist() == [0.0, 0.0, 28.0, 28.0]
    assert (found["work_us"] / 3.6e9).tolist() == [24.0, 24.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"start_time": None}, "1 that have no start or end"),
        ({"end_time": None}, "1 that have no start or end"),
        ({"end_time": "None"}, "1 that have no start or end"),
        ({"end_time": "2017-10-07 01:00:00"}, "1 that took no time"),
        ({"detail": []}, "1 that used no GPU"),
    ],
)
def test_philly_jobs_without_times_are_left_out_and_counted(
    tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    path = tmp_path / "cluster_job_log.json"
    path.write_text(json.dumps(philly() + philly(**changes)[:1]))
    imported = ImportedJobs()
    assert len(read_philly(path, imported=imported)) == 2
    assert imported.said() == f"left out: 1 that did not pass, {reason}"
    path.write_text(json.dumps(philly(**changes)[:1]))
    with pytest.raises(InputError, match=f"no job that ended well and used a GPU; left out: {reason}"):
        read_philly(path)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("[{", "not valid JSON"),
        ("{}", "Expected `array`, got `object`"),
        ("[" * 100_000, "log.json: "),
        (json.dumps(philly(end_time=5)), r"\[0\]\.attempts\[0\]\.end_time: Expected `str . null`, got `int`"),
        (json.dumps(philly(start_time="today")), "job 0: start_time and end_time must be like"),
        (json.dumps(philly(end_time="2017-10-06 01:00:00")), "job 0: end_time lies before start_time"),
        (json.dumps([{"status": "Pass"}]), r"\[0\]: Object missing required field `attempts`"),
    ],
)
def test_a_broken_log_is_named(tmp_path: Path, content: str, error: str) -> None:
    path = tmp_path / "cluster_job_log.json"
    path.write_text(content)
    with pytest.raises(InputError, match=error):
        read_philly(path)
