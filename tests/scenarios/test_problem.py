"""Problems of GPUs and workloads that have no file."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.adapting import with_profiles, with_window
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario, make_scenario
from gpusched_env.scenarios.set_up import SetUp, set_up
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload
from tests.refusals import refused

TOY = load_gpu("toy-4sm")


def workload(gpu: str = "toy-4sm", host_us: float = 0.0) -> Workload:
    """One kernel of 8 blocks that takes 20 us on four SMs of one block each."""
    kernel = Kernel(
        name="k", grid=(8, 1, 1), block=(1024, 1, 1), registers=32, duration_us=20.0, kind="latency",
        issue_fraction=0.0, dram_bytes=0.0,
    )  # fmt: skip
    ops = (Op(OpKind.KERNEL, host_us, 0, 20.0), Op(OpKind.SYNC))
    return Workload(
        name="w", gpu=gpu, source="test", kernels=(kernel,), variants=(Variant(ops=ops),), iteration_us=(20.0,)
    )


def scenario(**tenant: Any) -> Scenario:
    row = {"name": "a", "workload": "mine", "arrivals": {"kind": "closed-loop"}, **tenant}
    return make_scenario({"name": "s", "summary": "", "gpu": "toy-4sm", "tenants": [row], "horizon_us": 1000})


def test_workloads_can_be_given_as_objects() -> None:
    problem = build_problem(scenario(), workloads={"mine": workload()})
    assert (problem.programs[0].alone_us, problem.kernels[0].duration_us) == (20.0, 20.0)
    with refused(InputError, "'mine'", "workload"):
        build_problem(scenario(), workloads={"other": workload()})


def test_a_gpu_can_be_given_as_an_object() -> None:
    wide = msgspec.structs.replace(TOY, name="toy-8sm", sms=8)
    problem = build_problem(scenario(), gpu=wide, workloads={"mine": workload()})
    assert problem.gpu is wide
    assert problem.programs[0].alone_us == pytest.approx(10.0), "one wave on eight SMs, two on the GPU of the recording"
    own = build_problem(scenario(), gpu=wide, workloads={"mine": workload("toy-8sm")})
    assert own.programs[0].alone_us == 20.0, "recorded on the given GPU itself"


def test_priorities_of_streams_are_clamped_to_those_of_the_gpu() -> None:
    recorded = msgspec.structs.replace(workload(), stream_priorities=(0, -1, -9))
    few = msgspec.structs.replace(TOY, priorities=2)
    streams = build_problem(scenario(), gpu=few, workloads={"mine": recorded}).streams
    assert [stream.priority for stream in streams] == [0, -1, -1]


def test_a_given_shipped_gpu_changes_nothing() -> None:
    named = load_scenario("InferenceBesideTraining")
    by_name, given = build_problem(named), build_problem(named, gpu=load_gpu("h100-sxm"))
    assert [p.alone_us for p in given.programs] == [p.alone_us for p in by_name.programs]
    assert [k.duration_us for k in given.kernels] == [k.duration_us for k in by_name.kernels]


def test_what_else_is_asked_of_a_problem_stays_when_its_window_goes() -> None:
    window = KernelWindow(size=8, streams=3)
    plain = build_problem(scenario(), workloads={"mine": workload()})
    built = with_window(plain, window)
    assert (built.window, built.scenario.lookahead, len(built.streams)) == (window, 8, 1 + 3)
    assert with_window(built, None) is plain
    needs = SetUp(contexts="per-tenant", commands=("preempt",), interception_us=2.0)
    asked = set_up(built, needs)
    profiled = with_profiles(asked, asked.told)
    wider = with_window(profiled, KernelWindow(size=16))
    for other in (asked, profiled, wider, with_window(wider, None)):
        adapted = other.scenario
        assert (adapted.contexts, adapted.commands, adapted.decision_us) == ("per-tenant", ("launch", "preempt"), 2.0)
    assert [other.window for other in (asked, profiled)] == [window, window]
    assert set_up(built, needs) is asked


def test_an_iteration_without_host_time_cannot_be_stretched() -> None:
    with refused(InputError, "iteration_us is 50", "mine"):
        build_problem(scenario(iteration_us=50.0), workloads={"mine": workload()})
    slow = build_problem(scenario(iteration_us=50.0), workloads={"mine": workload(host_us=1.0)})
    assert slow.programs[0].alone_us == pytest.approx(50.0)
    assert build_problem(scenario(iteration_us=10.0), workloads={"mine": workload()}).programs[0].alone_us == 20.0


def test_a_graph_has_no_iteration_time_to_set() -> None:
    with refused(InputError, "iteration_us is 50", "graph"):
        build_problem(scenario(iteration_us=50.0, launch="graph"), workloads={"mine": workload(host_us=1.0)})
    assert build_problem(scenario(launch="graph"), workloads={"mine": workload(host_us=1.0)}).programs


def test_a_host_that_does_nothing_but_launch() -> None:
    launch, other = Op(OpKind.KERNEL, 30.0, 0, 20.0), Op(OpKind.HOST, 9.0)
    ops = (launch, other, Op(OpKind.COPY_TO_HOST, 7.0, -1, 5.0, 64), Op(OpKind.SYNC, 8.0), launch, Op(OpKind.SYNC, 6.0))
    recorded = msgspec.structs.replace(workload(), variants=(Variant(ops=ops),), iteration_us=(90.0, 100.0, 130.0))
    plain = build_problem(scenario(), workloads={"mine": recorded}).programs[0]
    fast = build_problem(scenario(host_us=2.0), workloads={"mine": recorded}).programs[0]
    assert [op.host_us for op in plain.variants[0]] == [30.0, 9.0, 7.0, 8.0, 30.0, 6.0]
    assert [op.host_us for op in fast.variants[0]] == [2.0, 0.0, 2.0, 0.0, 2.0, 0.0]
    assert fast.alone_us == 2.0 + 20.0 + 5.0 + 2.0 + 20.0, (
        "launch, kernel, copy, launch, kernel: syncs are free on a toy"
    )
    assert (plain.host_spread, fast.host_spread) == ((0.9, 1.0, 1.3), (1.0,))
    none = build_problem(scenario(host_us=0), workloads={"mine": recorded}).programs[0]
    assert none.alone_us == 45.0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"host_us": 2.0, "launch": "graph"}, "tenant a: host_us is 2, but launch is graph, which has no host times"),
        (
            {"host_us": 2.0, "iteration_us": 50.0},
            "tenant a: iteration_us is 50 and host_us is 2, but either says how fast the host is; leave one out",
        ),
    ],
)
def test_a_host_has_one_speed(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_problem(scenario(**fields), workloads={"mine": workload(host_us=1.0)})


def test_a_launch_takes_no_negative_time() -> None:
    with refused(InputError, "tenants[0].host_us", "`float` >=", ">= 0"):
        scenario(host_us=-1)
