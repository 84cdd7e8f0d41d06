"""Pods that wait, run and go: hand-solved queues, what must hold of any run, recordings, and compressed arrivals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.experiments.cli import app
from gpusched_env.games.fleet.cluster.fragmentation import node_fragmentation, typical_pods
from gpusched_env.games.fleet.cluster.lifetimes.queue import (
    FREED,
    IN_ORDER,
    NEXT,
    NOBODY,
    OVERTAKING,
    RUNNING,
    WAITING,
    WAITING_MILLI,
    Live,
    has_room,
)
from gpusched_env.games.fleet.cluster.lifetimes.recording import LifetimeRecording, read_recording
from gpusched_env.games.fleet.cluster.lifetimes.run import BIN_MS, QueueRun, new_live, play_policy, run_queue
from gpusched_env.games.fleet.cluster.lifetimes.stream import JobStream, compressed, demand
from gpusched_env.games.fleet.cluster.placing import node_score
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.problem import ClusterProblem, Node, PodKind, Workload
from gpusched_env.games.fleet.cluster.shipped import shipped_recording
from gpusched_env.games.fleet.cluster.state import FRAGMENTED_MILLI, USED_MILLI
from tests.games.fleet.cluster.toys import HALF, LARGE, NO_GPU, NODES, ONE, TWO
from tests.refusals import refused

HOURS = 1.0


def stream_of(problem: ClusterProblem, pods: list[tuple[PodKind, int, int]]) -> JobStream:
    """Pods with seconds of arrival and of their run, in order."""
    kinds = problem.workload.kinds
    columns = [(kinds.index(kind), at * 1000, runs * 1000) for kind, at, runs in pods]
    kind, at_ms, runs_ms = np.array(columns, np.int64).T.copy()
    return JobStream(kind, at_ms, runs_ms, np.random.default_rng(0).random((len(pods), 2)))


def queued(pods: list[tuple[PodKind, int, int]], rule: int, nodes: tuple[Node, ...] = NODES[:1]) -> QueueRun:
    problem = ClusterProblem(nodes, Workload.of_pods("toy", [kind for kind, _, _ in pods]))
    return run_queue(problem, stream_of(problem, pods), Policy.FGD, HOURS, rule)


@pytest.mark.parametrize(
    ("rule", "begins_s"), [(OVERTAKING, [0, 105, 2, 5]), (IN_ORDER, [0, 10, 15, 15])], ids=["overtaking", "in order"]
)
def test_a_later_pod_overtakes_only_where_that_is_the_rule(rule: int, begins_s: list[int]) -> None:
    """Two GPUs, one of them taken until 10 s. Both are wanted at 1 s, for 5 s; half of one at 2 s, for 3 s; nearly one
    at 3 s, for 100 s: with overtaking it has its room at 5 s, and the pod with two waits for it."""
    pods = [(ONE, 0, 10), (TWO, 1, 5), (HALF, 2, 3), (HALF._replace(gpu_milli=900), 3, 100)]
    assert (queued(pods, rule).queue.begins_ms / 1000).tolist() == begins_s


def test_integrals_are_what_waits_come_to() -> None:
    """One GPU: 10 s, then 20 s for who came at 4 s, then half of it for 5 s for who came at 6 s."""
    one_gpu = (Node(8000, 1000, 1, "T4"),)
    found = queued([(ONE, 0, 10), (ONE, 4, 20), (HALF, 6, 5)], IN_ORDER, one_gpu)
    seconds = BIN_MS / 1000
    assert found.used[0] == pytest.approx(100.0 * (30 + 2.5) / seconds)
    assert found.waited_for[0] == pytest.approx(100.0 * (6 + 12) / seconds)
    assert found.waiting[0] == pytest.approx((6 + 24) / seconds)
    assert found.waits_s(0).tolist() == [0.0, 6.0, 24.0]
    assert found.used[1:].tolist() == [0.0] * 3


def test_who_still_waits_has_waited_until_the_end() -> None:
    found = queued([(ONE, 0, 100_000), (TWO, 600, 5)], OVERTAKING)
    assert found.waits_s(0).tolist() == [0.0, 3000.0]
    assert found.queue.begins_ms.tolist() == [0, NOBODY]
    assert len(found.waits_s(1)) == 0


KINDS = (HALF, ONE, TWO, NO_GPU, HALF._replace(gpu_milli=300))
PODS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 300), st.integers(1, 200)), min_size=1, max_size=40
).map(lambda pods: sorted(pods, key=lambda pod: pod[1]))


def empty_live(problem: ClusterProblem, stream: JobStream, rule: int, seed: int = 0) -> Live:
    """An hour before anybody has come."""
    return new_live(problem, stream, typical_pods(problem.workload, problem.models), rule, 4, seed)


@given(PODS, st.sampled_from([OVERTAKING, IN_ORDER]), st.sampled_from(list(Policy)), st.integers(0, 1))
@settings(max_examples=60, deadline=None)
def test_what_holds_of_any_run(pods: list[Any], rule: int, policy: Policy, spare: int) -> None:
    """Compiled and plain text agree; in the end everything is free, and measured as from scratch; lines keep their
    order."""
    problem = ClusterProblem(NODES, Workload.of_pods("toy", [*KINDS]))
    stream = stream_of(problem, pods)
    found, plain = run_queue(problem, stream, policy, HOURS, rule, spare), empty_live(problem, stream, rule, spare)
    plain_text: Any = play_policy
    plain_text.py_func(int(policy), plain)
    for one, other in zip((*found.queue, *found.state), (*plain.queue, *plain.state), strict=True):
        np.testing.assert_array_equal(one, other)
    assert found.queue.clock[[RUNNING, WAITING, WAITING_MILLI, USED_MILLI]].tolist()[:3] == [0, 0, 0]
    assert found.state.totals[USED_MILLI] == 0
    assert found.state.gpu_left.sum() == problem.capacity_milli
    assert not found.state.classes.any()
    scratch = [node_fragmentation(plain.state, plain.typical, node) for node in range(len(problem.nodes))]
    assert found.state.fragmentation == pytest.approx(scratch)
    assert found.state.totals[FRAGMENTED_MILLI] == pytest.approx(sum(scratch))
    begins_ms = found.queue.begins_ms
    assert (begins_ms >= stream.arrives_ms).all()
    if rule == IN_ORDER:
        assert (np.diff(begins_ms) >= 0).all()
    else:
        for kind in set(stream.kinds.tolist()):
            assert (np.diff(begins_ms[stream.kinds == kind]) >= 0).all()


@given(PODS)
@settings(max_examples=30, deadline=None)
def test_nobody_waits_who_has_room(pods: list[Any]) -> None:
    problem = ClusterProblem(NODES, Workload.of_pods("toy", [*KINDS]))
    stream = stream_of(problem, pods)
    live = empty_live(problem, stream, OVERTAKING)

    def watched(state: Any, table: Any, typical: Any, kind: int) -> Any:
        waiting = [pod for pod in live.queue.first if pod != NOBODY and stream.kinds[pod] != kind]
        if live.queue.clock[FREED] < 0:
            assert not any(has_room(live, stream.kinds[pod]) for pod in waiting)
        return np.zeros(len(state.gpus))

    from gpusched_env.games.fleet.cluster.lifetimes import run

    run._play_asked(watched, live)
    assert live.queue.clock[NEXT] == len(pods)


def test_a_function_that_scores_as_a_policy_does_plays_as_it_does() -> None:
    problem, recording = small()
    stream = compressed(problem, recording, 1.0, 0.5)

    def as_fgd(state: Any, pods: Any, typical: Any, kind: int) -> Any:
        return [node_score(Policy.FGD, state, pods, typical, node, kind) for node in range(len(state.gpus))]

    found, same = (run_queue(problem, stream, policy, 0.5) for policy in (Policy.FGD, as_fgd))
    assert found.waits_s(0).max() > 0
    for one, other in zip(found.queue, same.queue, strict=True):
        np.testing.assert_array_equal(one, other)


def small() -> tuple[ClusterProblem, LifetimeRecording]:
    """A day of the recording on twelve nodes."""
    recording = shipped_recording().block(120 * 86400, 121 * 86400)
    nodes = (Node(96000, 400_000, 8, "V100"),) * 4 + (Node(64000, 262_144, 2, "T4"),) * 8
    return ClusterProblem(nodes, recording.workload), recording


@pytest.mark.parametrize("bad", ["nothing", "shape"])
def test_scores_that_are_none_are_refused(bad: str) -> None:
    problem, recording = small()
    stream = compressed(problem, recording, 0.5, 0.5)

    def scores(state: Any, pods: Any, typical: Any, kind: int) -> Any:
        return np.full(len(state.gpus), np.nan) if bad == "nothing" else np.zeros(3)

    with refused(
        IllegalCommand, *(["no node with room", "at least one of"] if bad == "nothing" else ["(3,)", "(12,)"])
    ):
        run_queue(problem, stream, scores, 0.5)


@pytest.mark.parametrize("load", [0.3, 0.9])
def test_compressed_arrivals_have_the_load(load: float) -> None:
    """Of GPUs, CPU and memory, what is asked for most, if nobody waited: the mean over whole rounds is the load."""
    problem, recording = small()
    period_h = 24.0 * demand(problem, recording) / load
    hours = 3.0 * period_h
    stream = compressed(problem, recording, load, hours)
    end_ms = round(hours * 3_600_000)
    runs_ms = np.minimum(end_ms - stream.arrives_ms, stream.runs_ms)
    asked = np.array([(kind.asked_milli, kind.cpu_milli, kind.memory_mib) for kind in problem.workload.kinds])
    has = np.array([(node.gpus * 1000, node.cpu_milli, node.memory_mib) for node in problem.nodes]).sum(axis=0)
    shares = runs_ms.astype(float) @ asked[stream.kinds] / end_ms / has
    assert max(shares) == pytest.approx(load, rel=1e-3)
    assert (np.diff(stream.arrives_ms) >= 0).all()
    assert stream.runs_ms.min() >= 1


def test_values_out_of_range_are_refused() -> None:
    problem, recording = small()
    with refused(InputError, "load is 0", "above 0", "10"):
        compressed(problem, recording, 0.0, 1.0)
    with refused(InputError, "hours is nan", "10000"):
        compressed(problem, recording, 1.0, float("nan"))
    with refused(InputError, "pods would come", "5000000"):
        compressed(problem, recording, 10.0, 10_000.0)
    with refused(InputError, "at least a quarter"):
        run_queue(problem, compressed(problem, recording, 1.0, 0.1), Policy.FGD, 0.1)
    with refused(InputError, "2000 MiB", "fits on no node"):
        many = ClusterProblem(NODES, Workload.of_pods("toy", [HALF, LARGE]))
        times = np.zeros(2, np.int64)
        compressed(many, LifetimeRecording(many.workload, times, times + 1, (0, 10)), 1.0, 1.0)
    with refused(InputError, "no pod was created"):
        recording.block(0, 1)


TABLE = """\
cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,scheduled_time,deletion_time
1000,10,1,500,20,25.0,40
1000,10,1,500,5,5,5
1000,10,1,1000,30,,90
"""


def test_a_recording_is_read_in_order_of_creation(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(TABLE)
    found = read_recording(tmp_path / "mine.csv")
    assert found.created_s.tolist() == [5, 20]
    assert found.runs_s.tolist() == [1, 15]
    assert found.workload.name == "mine"
    assert found.span_s == (5, 21)
    assert len(found.workload.kinds) == 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("creation_time", "created", ("line 1", "creation_time", "0 times")),
        ("25.0", "soon", ("line 2", "scheduled_time", "'soon'")),
        ("25.0", "19", ("line 2", "created at 20", "scheduled at 19", "order")),
        ("500,20", "500,-1", ("line 2", "creation_time", "'-1'")),
        ("500,5", "1500,5", ("line 3", "gpu_milli", "1500")),
        ("40", "99999999999", ("line 2", "deletion_time")),
    ],
)
def test_a_broken_recording_is_one_sentence(tmp_path: Path, old: str, new: str, says: tuple[str, ...]) -> None:
    (tmp_path / "mine.csv").write_text(TABLE.replace(old, new, 1))
    with refused(InputError, "mine.csv", *says):
        read_recording(tmp_path / "mine.csv")


def test_a_recording_in_which_nobody_ran_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("\n".join([TABLE.splitlines()[0], TABLE.splitlines()[3]]))
    with refused(InputError, "mine.csv", "no pod that was scheduled"):
        read_recording(tmp_path / "mine.csv")


def test_the_shipped_recording_asks_for_what_is_published() -> None:
    """At most 66 GPUs at a time, of which those that were never scheduled are none."""
    found = shipped_recording()
    asked = np.array([found.workload.kinds[kind].asked_milli for kind in found.workload.submitted])
    times = np.concatenate([found.created_s, found.created_s + found.runs_s])
    steps = np.concatenate([asked, -asked])[np.argsort(times, kind="stable")]
    assert len(asked) == 7255
    assert 60_000 < np.cumsum(steps).max() <= 66_000


def test_the_command_lets_pods_of_ones_own_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(TABLE)
    (tmp_path / "nodes.csv").write_text("cpu_milli,memory_mib,gpu,model\n8000,1000,2,T4\n")
    files = ["--recording", str(tmp_path / "pods.csv"), "--nodes", str(tmp_path / "nodes.csv"), "--hours", "1"]
    out = tmp_path / "found.json"
    options = ["--loads", "0.5,2", "--copies", "2", "--in-order", "--json", str(out)]
    done = CliRunner().invoke(app, ["lab", "cluster-queue", *files, *options])
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    assert found["in_order"]
    assert [(run["load"], run["policy"]) for run in found["runs"]] == [
        (load, policy) for load in (0.5, 2.0) for policy in ("best-fit", "fgd")
    ]
    calm, full = found["runs"][0], found["runs"][-1]
    assert calm["used_pct"] == pytest.approx(50.0, abs=1.0)
    assert calm["waited_for_pct"] == pytest.approx(0.0, abs=1e-9)
    assert full["used_pct"] == pytest.approx(100.0, abs=1.0)
    assert full["p95_wait_s"] > full["mean_wait_s"] > 600.0
    for more, named in (
        (["--loads", "much"], "'much' is no number"),
        (["--loads", "0"], "load is 0"),
        (["--policies", "fdg"], "did you mean 'fgd'"),
        (["--policies", ","], "names none"),
        (["--days", "3", "4"], "no pod was created"),
        (["--hours", "0.1"], "at least a quarter"),
    ):
        refusal = CliRunner().invoke(app, ["lab", "cluster-queue", *files, *more])
        assert isinstance(refusal.exception, InputError)
        assert named in str(refusal.exception)
