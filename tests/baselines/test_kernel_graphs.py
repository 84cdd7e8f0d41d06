"""Schedulers of one program's kernel graph, on a recorded physics step."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

from gpusched_env.baselines.registry import make_scheduler, scheduler_names
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.launching import Capture, captured
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp, JobProgram
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.scenarios.set_up import problem_for
from gpusched_env.workload.workload import OpKind, Segment
from tests.devices.windows import build, kernel, workload

KERNELS = 101


@functools.cache
def problem(window: bool = False) -> Problem:
    tenant = {"name": "app", "workload": "bodies6_step_b2048", "arrivals": {"kind": "closed-loop"}, "jobs": 1}
    scenario = {"name": "Graph", "gpu": "h100-sxm", "horizon_us": 1e5, "variation": False}
    passed = {"window": {"size": 16, "streams": 3}} if window else {}
    return build_problem(make_scenario({**scenario, **passed, "tenants": [{**tenant, "host_us": 1.0}]}))


@functools.cache
def played(scheduler: str, window: bool = False) -> Episode:
    return run_episode(make_scheduler(scheduler), problem(window), make_device("compiled"), 0, record="kernels")


@pytest.mark.parametrize("window", [False, True], ids=["streams", "window"])
@pytest.mark.parametrize("scheduler", scheduler_names(windowed=True))
def test_all_finish(scheduler: str, window: bool) -> None:
    episode = played(scheduler, window)
    assert episode.done
    assert len(episode.timeline.kernels) == KERNELS


def test_one_stream_is_what_the_gpu_does_without_a_scheduler() -> None:
    for window in (False, True):
        assert played("serial", window).end_us == played("pass-through").end_us


def test_hardware_gains_most_and_a_launch_and_a_synchronisation_each_cost_what_they_do() -> None:
    ends = {name: played(name).end_us for name in ("serial", "acs-sw", "acs-hw", "persistent-threads")}
    assert ends["acs-hw"] < ends["serial"]
    assert ends["acs-hw"] < ends["acs-sw"]
    assert played("acs-sw(launch_us=0,sync_us=0)").end_us < 0.5 * ends["acs-sw"]
    assert played("acs-sw(streams=1)").end_us > KERNELS * 9.0, "launch and synchronisation, one after the other"


def test_a_graph_pays_where_it_was_made_before() -> None:
    assert played("cuda-graph(per_input=false)").end_us < played("serial").end_us < played("cuda-graph").end_us
    cheap, dear = (played(f"cuda-graph(node_us={us})").end_us for us in (1.0, 2.0))
    assert dear - cheap == pytest.approx(KERNELS)


def test_a_captured_program_waits_for_graphs_not_for_events_inside_them() -> None:
    job = problem().programs[0].variants[0]
    kernel = replace(job[0], mark=0)
    waits = HostOp(OpKind.SYNC_EVENT, 0.0, -1, 1.0, 0.0, 0, 0.0, after=(0,))
    made = captured(JobProgram((kernel, waits, kernel), (3,), 1), Capture(), problem().gpu, 7)
    assert [(op.kind, op.identity, op.after, op.mark) for op in made] == [
        (OpKind.GRAPH, 7, (), -1),
        (OpKind.SYNC, -1, (), -1),
        (OpKind.GRAPH, 8, (), -1),
    ]


def test_options_replace_fields_of_the_scenario_s_window() -> None:
    for name, size, streams in (("acs-sw", 16, 3), ("acs-sw(streams=5)", 16, 5), ("critical-path", 1024, 3)):
        window = problem_for(make_scheduler(name), problem(window=True)).window
        assert window is not None
        assert (window.size, window.streams) == (size, streams)
    assert problem_for(make_scheduler("serial"), problem(window=True)).window is None


def test_a_window_in_hardware_takes_cycles() -> None:
    window = problem_for(make_scheduler("acs-hw(size=64)"), problem()).window
    assert window is not None
    cycle_us = 1.0 / problem().gpu.clock_mhz
    assert (window.insert_us, window.sync_us) == pytest.approx((64 * cycle_us, 63 * cycle_us))
    assert (window.launch_us, window.checked_by) == (0.0, "application")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("acs-sw(size=0)", "acs-sw: .*>= 1"),
        ("acs-hw(size=2000)", "acs-hw: .*<= 1024"),
        ("cuda-graph(node_us=-1)", "node_us is -1"),
        ("persistent-threads(task_us=-1)", "task_us is -1"),
        ("critical-path(sync_us=-1)", "critical-path: .*>= 0"),
    ],
)
def test_wrong_options_are_named(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        problem_for(make_scheduler(spec), problem())


@pytest.mark.parametrize(("us", "expected"), [(3.0, "chain"), (30.0, "side by side")])
def test_earliest_start_goes_behind_a_short_kernel_and_beside_a_long_one(us: float, expected: str) -> None:
    """Two kernels wait for the first one: the second of them could go behind the other, or, once the end of the first
    one is known (3 us) and it has been launched (2 us), beside it."""
    written, read = Segment(0, 0, 8), {"reads": (Segment(0, 0, 8),)}
    ops = [kernel(5.0, writes=(written,)), kernel(us, **read), kernel(us, **read)]
    built = build(workload("w", ops), window={"depth": 4})
    timeline = run_episode(
        make_scheduler("earliest-start"), built, make_device("compiled"), 0, record="kernels"
    ).timeline
    streams = dict(zip(timeline.kernels.column("id").tolist(), timeline.kernels.column("stream").tolist(), strict=True))
    assert (streams[2] == streams[1]) is (expected == "chain")
    assert streams[1] == streams[0]


def test_queueing_saves_synchronisation() -> None:
    ends = {name: played(name).end_us for name in ("acs-sw", "in-order(depth=8)", "earliest-start(depth=8)")}
    assert ends["in-order(depth=8)"] < 0.6 * ends["acs-sw"]
    assert played("earliest-start").end_us == ends["acs-sw"], "with one launch a stream there is nothing to go behind"


@pytest.mark.parametrize("device", ["reference", "compiled"])
@pytest.mark.parametrize(("newer", "beside"), [(1, 1), (2, 2), (3, 3), (64, 5)])
def test_the_list_of_a_window_in_hardware_holds_back_what_is_too_new(device: str, newer: int, beside: int) -> None:
    """A kernel of 100 us and five of 1 us that nothing waits for: so many of these end before the first one does."""
    ops = [kernel(100.0, writes=(Segment(0, 0, 8),)), *(kernel(1.0, writes=(Segment(n, 0, 8),)) for n in range(1, 6))]
    built = build(workload("w", ops))
    episode = run_episode(make_scheduler(f"acs-hw(newer={newer})"), built, make_device(device), 0, record="kernels")
    kernels = episode.timeline.kernels.dict()
    ended = dict(zip(kernels["id"].tolist(), kernels["ended_us"].tolist(), strict=True))
    first = ended.pop(min(ended))
    assert sum(us < first for us in ended.values()) == beside
