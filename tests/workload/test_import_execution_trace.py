"""Execution traces: which memory imported kernels read and write, from made-up traces and from a real one."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.importers import import_trace
from gpusched_env.workload.importers.pytorch import read_execution_trace
from gpusched_env.workload.workload import OpKind, Segment, Workload
from tests.refusals import refused
from tests.workload.execution_traces import CPU, GPU, Tensor, launched, node, operator, operators, tensor
from tests.workload.kineto_traces import Event, call, memcpy, write


def touched(workload: Workload) -> list[tuple[Any, Any]]:
    """What device operations read and write, as plain numbers."""

    def plain(segments: tuple[Segment, ...] | None) -> Any:
        return None if segments is None else [(s.storage, s.first, s.end) for s in segments]

    return [(plain(op.reads), plain(op.writes)) for op in workload.variants[0].ops if op.duration_us > 0]


def imported(tmp_path: Path, gpu: GpuSpec, nodes: list[Event], events: list[Event]) -> Workload:
    trace = write(tmp_path / "net.json", events)
    return import_trace(trace, gpu, execution_trace=operators(tmp_path, *nodes))


def test_kernels_have_the_memory_of_their_operators(tmp_path: Path, gpu: GpuSpec) -> None:
    nodes = [
        node(1, "aten::add", [tensor(5, [2, 3]), tensor(6, [3], offset=2), 1], [tensor(7, [2, 3])]),
        node(2, "aten::cat", [[tensor(5, [4]), tensor(5, [4], offset=4)], 0], [tensor(8, [8])]),
        node(3, "aten::relu_", [tensor(8, [8])], []),
    ]
    events = [operator(1, "aten::add"), operator(2, "aten::cat"), operator(3, "aten::relu_")]
    for number, function in enumerate((1, 2, 3, 0, 1), start=1):
        events += launched(number, function)
    workload = imported(tmp_path, gpu, nodes, events)
    add = ([(5, 0, 24), (6, 8, 20)], [(7, 0, 24)])
    assert touched(workload) == [
        add,
        ([(5, 0, 16), (5, 16, 32)], [(8, 0, 32)]),
        ([(8, 0, 32)], [(8, 0, 32)]),
        (None, None),
        add,
    ]
    assert "memory known of 4 of 5 kernels, copies and memsets" in workload.source


def test_without_an_execution_trace_nothing_is_known(tmp_path: Path, gpu: GpuSpec) -> None:
    workload = import_trace(write(tmp_path / "net.json", [operator(1, "aten::add"), *launched(1, 1)]), gpu)
    assert touched(workload) == [(None, None)]
    assert "memory" not in workload.source


@pytest.mark.parametrize(
    ("given", "segments"),
    [
        (tensor(5, [4, 3], offset=3, stride=[30, 1]), [(5, 12, 12 + 4 * 93)]),
        (tensor(5, [4, 16], stride=[0, 1]), [(5, 0, 64)]),
        (tensor(5, []), [(5, 0, 4)]),
        (tensor(5, [0, 3]), []),
        (tensor(5, [4], on=CPU), []),
    ],
    ids=["strides", "expanded", "scalar", "empty", "of the CPU"],
)
def test_extents_of_tensors(given: Tensor, segments: list[Any], tmp_path: Path) -> None:
    path = operators(tmp_path, node(1, "aten::neg", [given], [tensor(9, [1])]))
    found = read_execution_trace(path)[1]
    assert [(s.storage, s.first, s.end) for s in found.reads] == segments
    assert found.writes == (Segment(9, 0, 4),)


def test_without_strides_a_tensor_is_contiguous(tmp_path: Path) -> None:
    old = node(1, "aten::neg", [tensor(5, [4, 3], stride=[30, 1])], [])
    del old["inputs"]["strides"]
    assert read_execution_trace(operators(tmp_path, old))[1].reads == (Segment(5, 0, 48),)


@pytest.mark.parametrize(
    ("name", "schema", "written"),
    [
        ("aten::add", "aten::add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", [7]),
        ("aten::_foreach_add_", "aten::_foreach_add_(Tensor(a!)[] self, Scalar[2] x=[1, 2], Tensor y) -> ()", [5]),
        ("aten::conv", "aten::conv(Tensor self, int[2] pad=[0, 0], Tensor(b! -> b) y) -> ()", [7]),
        ("aten::add_", "", [5]),
        ("mine::__run__", "mine::__run__(Tensor a, Tensor b, Tensor c) -> ()", []),
    ],
)
def test_what_is_written_in_place(name: str, schema: str, written: list[int], tmp_path: Path) -> None:
    inputs = [tensor(5, [1]), tensor(6, [1]), tensor(7, [1])]
    found = read_execution_trace(operators(tmp_path, node(1, name, inputs, [], schema)))[1]
    assert [segment.storage for segment in found.writes] == written
    assert [segment.storage for segment in found.reads] == [5, 6, 7]


def test_operators_without_known_device_memory_leave_it_unknown(tmp_path: Path, gpu: GpuSpec) -> None:
    sparse = tensor(0, [4], on="")
    nodes = [
        node(1, "autograd::node", [], []),
        node(2, "aten::mm", [sparse, tensor(5, [4])], [tensor(6, [4])]),
        node(3, "aten::other", [tensor(5, [4])], []),
        node(4, "aten::neg", [tensor(5, [4])], [tensor(6, [4])]),
    ]
    names = ["autograd::node", "aten::mm", "aten::not_that_one", "aten::neg"]
    events = [operator(function, name) for function, name in enumerate(names, start=1)]
    for number in range(1, 5):
        events += launched(number, number)
    workload = imported(tmp_path, gpu, nodes, events)
    assert touched(workload) == [(None, None)] * 3 + [([(5, 0, 16)], [(6, 0, 16)])]


def test_a_tensor_that_is_not_there_is_none(tmp_path: Path) -> None:
    given = node(1, "aten::f", [tensor(5, [1]), tensor(0, [0], on="")], [[tensor(6, [1]), tensor(0, [0], on="")]])
    given["inputs"]["types"][1] = "Tensor(nullptr (uninitialized))"
    given["outputs"]["values"][0][1] = "<None>"
    found = read_execution_trace(operators(tmp_path, given))[1]
    assert (found.reads, found.writes) == ((Segment(5, 0, 4),), (Segment(6, 0, 4),))


def test_memsets_clear_a_workspace_or_are_their_operator(tmp_path: Path, gpu: GpuSpec) -> None:
    nodes = [
        node(1, "aten::conv", [tensor(5, [4])], [tensor(6, [4])]),
        node(2, "aten::zero_", [tensor(6, [4])], [tensor(6, [4])]),
    ]
    events = [operator(1, "aten::conv"), operator(2, "aten::zero_"), *launched(1, 1, memset=512), *launched(2, 1)]
    events += [*launched(3, 1), *launched(4, 2, memset=16)]
    conv = [(5, 0, 16)], [(6, 0, 16)]
    workspace = [(-1, 0, 512)]
    assert touched(imported(tmp_path, gpu, nodes, events)) == [
        ([], workspace),
        (conv[0] + workspace, conv[1] + workspace),
        conv,
        ([(6, 0, 16)], [(6, 0, 16)]),
    ]


def test_copies_touch_the_device_side_only(tmp_path: Path, gpu: GpuSpec) -> None:
    nodes = [
        node(1, "aten::neg", [tensor(5, [4])], [tensor(6, [4])]),
        node(2, "aten::copy_", [tensor(7, [4], on=CPU), tensor(6, [4])], [tensor(7, [4], on=CPU)]),
    ]
    copy = memcpy("Memcpy DtoH (Device -> Pinned)", 46.0, 2.0, 2)
    copy["args"]["External id"] = 1002
    events = [operator(1, "aten::neg"), operator(2, "aten::copy_"), *launched(1, 1)]
    events += [call("cudaMemcpyAsync", 40.0, 3.0, 2), copy]
    assert touched(imported(tmp_path, gpu, nodes, events))[1] == ([(6, 0, 16)], [])


def neg() -> Event:
    return node(1, "aten::neg", [tensor(5, [4])], [tensor(6, [4])])


def broken(*path: Any, value: Any) -> Event:
    """The node with a field replaced."""
    whole: Any = neg()
    holder = whole
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = value
    return whole  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], r"operators\.json: no list 'nodes'; expected an execution trace"),
        ({"nodes": [3]}, r"operators\.json: nodes\[0\] is 3, expected an object"),
        ({"nodes": [neg(), {"id": 4}]}, r"nodes\[1\] has no field 'name'"),
        ({"nodes": [broken("attrs", value=None)]}, r"nodes\[0\] \(aten::neg\): field 'attrs' is None, expected a list"),
        ({"nodes": [broken("attrs", 0, "value", value="x")]}, r"nodes\[0\] \(aten::neg\)\.attrs: field 'rf_id' is 'x'"),
        (
            {"nodes": [broken("inputs", "shapes", value=[])]},
            r"nodes\[0\] \(aten::neg\)\.inputs: field 'shapes' has 0 entries, 'values' 1",
        ),
        (
            {"nodes": [broken("inputs", "values", value=[[1, 5, -4, 4, 4, GPU]])]},
            r"\.inputs\.values\[0\] is \[1, 5, -4, .*\], expected \[tensor id, storage id, offset, elements",
        ),
        ({"nodes": [broken("outputs", "values", value=[7])]}, r"\.outputs\.values\[0\] is 7, expected \[tensor id"),
        (
            {"nodes": [neg() | {"name": "aten::abs"}]},
            r"operators\.json: none of its operators launched anything in .*net",
        ),
    ],
)
def test_errors_name_file_node_and_field(document: Any, message: str, tmp_path: Path, gpu: GpuSpec) -> None:
    trace = write(tmp_path / "net.json", [operator(1, "aten::neg"), *launched(1, 1)])
    path = tmp_path / "operators.json"
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=message):
        import_trace(trace, gpu, execution_trace=path)


def test_nsight_systems_has_no_operators(tmp_path: Path, gpu: GpuSpec) -> None:
    report = tmp_path / "report.sqlite"
    report.write_bytes(b"SQLite format 3\0")
    with refused(InputError, "report.sqlite", "operators"):
        import_trace(report, gpu, execution_trace=operators(tmp_path, neg()))


def test_a_real_execution_trace(tmp_path: Path, gpu: GpuSpec) -> None:
    """PyTorch's own files of a run on the CPU, in which each innermost operator is taken to have launched a kernel."""
    torch = pytest.importorskip("torch")
    profiler = torch.profiler
    x, w = torch.randn(4, 8), torch.randn(16, 8)
    path, trace = tmp_path / "operators.json", tmp_path / "trace.json"
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        observer = profiler.ExecutionTraceObserver().register_callback(str(path))
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU], execution_trace_observer=observer) as prof:
            y = torch.mm(x, w.t())
            y[1:3].neg_()
            torch.cat([y[:, 2:4], x[:, :2]])
        prof.export_chrome_trace(str(trace))
    path.write_text(path.read_text().replace('"cpu"', '"cuda:0"'))
    events = []
    for event in json.loads(trace.read_text())["traceEvents"]:
        if event.get("cat") == "cpu_op" and event["name"] in ("aten::mm", "aten::neg_", "aten::cat"):
            number = len(events) + 1
            launch = launched(number, 1)
            launch[1]["args"]["External id"] = event["args"]["External id"]
            events += [event | {"ts": 1.0, "dur": 1.0}, *launch]
    (mm, _, neg_, _, cat, _) = [
        segments for op in import_trace(write(trace, events), gpu, execution_trace=path).variants[0].ops
        if op.kind is OpKind.KERNEL
        for segments in (op.reads, op.writes)
    ]  # fmt: skip
    assert mm is not None
    assert neg_ is not None
    assert cat is not None
    assert [(s.first, s.end) for s in mm] == [(0, 4 * 8 * 4), (0, 16 * 8 * 4)]
    (product,) = neg_
    assert (product.first, product.end) == (16 * 4, 3 * 16 * 4)
    assert [(s.storage, s.first, s.end) for s in cat] == [
        (product.storage, 8, 4 * (3 * 16 + 4)),
        (mm[0].storage, 0, 4 * (3 * 8 + 2)),
    ]
