"""Recordings of several GPUs and processes, and work that was launched before the recording began."""

import re
from pathlib import Path

import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.importing import import_trace as import_file
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.importers import Selection, import_trace, summarise
from gpusched_env.workload.workload import OpKind, Workload
from tests.refusals import refused
from tests.workload.kineto_traces import Event, call, imported, kernel, mark, memcpy, three_kernels, write
from tests.workload.nsys_exports import Export
from tests.workload.nsys_exports import three_kernels as nsys_kernels

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132}
H200 = {"id": 1, "name": "NVIDIA H200", "numSms": 132}


def on(device: int, pid: int, events: list[Event]) -> list[Event]:
    """The events on another GPU and of another process."""
    moved = []
    for event in events:
        if event.get("cat") in ("kernel", "gpu_memcpy"):
            moved.append(event | {"pid": device, "args": event["args"] | {"device": device}})
        else:
            moved.append(event | {"pid": pid})
    return moved


def later(events: list[Event]) -> list[Event]:
    return [event | {"ts": event["ts"] + 0.25} if "ts" in event else event for event in events]


def test_one_process_of_two_is_what_it_is_alone(tmp_path: Path, gpu: GpuSpec) -> None:
    """Both processes count their calls from 1: only calls that fit a GPU's work are its process's."""
    alone = imported(tmp_path, three_kernels(), gpu)
    second = [*on(1, 222, later(three_kernels())), *on(1, 222, [call("cudaLaunchKernel", 1080.0, 1.0, 7)])]
    second += on(1, 222, [kernel(1082.0, 1.0, 7)])
    path = write(tmp_path / "net.pt.trace.json", [*second, *on(0, 111, three_kernels())], gpus=[H100, H200])
    with pytest.raises(InputError) as error:
        import_trace(path, gpu)
    assert str(error.value) == (
        f"{path}: a workload is one process on one GPU; say which (device=, --device; process=, --process) of device 0 "
        "(NVIDIA H100 80GB HBM3, process 111): 3 kernels, 1 copies, 0 memsets; device 1 (NVIDIA H200, process 222): "
        "4 kernels, 1 copies, 0 memsets"
    )
    for selection in (Selection(device=0), Selection(process=111), Selection(0, 111)):
        found = import_trace(path, gpu, selection=selection)
        assert found.variants == alone.variants
    assert [workload.gpu for workload in (import_trace(path, selection=Selection(device)) for device in (0, 1))] == [
        "h100-sxm",
        "h200-sxm",
    ]
    with refused(InputError, "GPU", "device 0"):
        import_trace(path, gpu, selection=Selection(0, 222))


def test_the_command_has_both_options(tmp_path: Path) -> None:
    events = [*on(0, 111, three_kernels()), *on(1, 111, later(three_kernels()))]
    path = write(tmp_path / "net.pt.trace.json", events, gpus=[H100, H200])
    found = import_file(path, tmp_path / "net.json", device=1, process=111)
    assert (found.summary.gpu, found.summary.kernels) == ("h200-sxm", 3.0)
    with refused(InputError, "device 1", "NVIDIA H200, process 111"):
        import_file(path, tmp_path / "none.json", process=111)
    assert not (tmp_path / "none.json").exists()


def test_the_gpu_is_that_of_the_kernels(tmp_path: Path) -> None:
    events = on(1, 1, three_kernels())
    assert import_trace(write(tmp_path / "net.json", events, gpus=[H100, H200])).gpu == "h200-sxm"
    # Numbers of ROCm are others: where GPUs differ, it is not known which one ran.
    alike = [H100, H100 | {"id": 3}]
    assert import_trace(write(tmp_path / "net.json", on(2, 1, three_kernels()), gpus=alike)).gpu == "h100-sxm"
    odd: list[tuple[list[Event], int]] = [([H100, H200], 2), ([], 0), ([{"id": [1]}, H200], 0)]
    for gpus, device in odd:
        path = write(tmp_path / "net.json", on(device, 1, three_kernels()), gpus=gpus)
        with refused(InputError, "GPU", "fits"):
            import_trace(path)


def test_a_gpu_of_another_size_is_refused_or_noted(tmp_path: Path) -> None:
    path = write(tmp_path / "net.json", three_kernels(), gpus=[H100 | {"numSms": 16}])
    with refused(InputError, "16 SMs", "h100-sxm", "132 SMs"):
        import_trace(path)
    found = import_file(path, tmp_path / "net.workload.json", gpu="h100-sxm")
    assert "recorded on 'NVIDIA H100 80GB HBM3' with 16 SMs; h100-sxm has 132 SMs" in found.summary.source


def two_ranks(path: Path) -> Path:
    """Two processes, each of which calls its GPU number 0."""
    export = nsys_kernels(path)
    export.insert("TARGET_INFO_GPU", vmId=1, id=5, name="NVIDIA H200", cuDevice=1, smCount=132)
    other = (7 << 24 | 9) << 24
    for rank, process in enumerate((0, 9)):
        export.insert("TARGET_INFO_CUDA_DEVICE", gpuId=5 * rank, cudaId=0, pid=process, numMultiprocessors=132)
    export.range(1000.0, 100.0, "iteration 3", thread=other | 1)
    for number, start in enumerate((1020.0, 1040.0)):
        export.call("cudaLaunchKernel_v7000", start, 5.0, number + 1, thread=other | 1)
        export.kernel(start + 7.0, 10.0, number + 1, stream=13, globalPid=other)
    return export.close()


def test_one_process_of_an_export(tmp_path: Path) -> None:
    path = two_ranks(tmp_path / "net.sqlite")
    listed = re.escape(
        "device 0 (NVIDIA H100 80GB HBM3, process 0): 3 kernels, 1 copies, 0 memsets; device 0 (NVIDIA H200"
    )
    with pytest.raises(InputError, match=listed):
        import_trace(path, selection=Selection(device=0))
    first, second = (import_trace(path, selection=Selection(process=process)) for process in (0, 9))
    assert first.variants == import_trace(nsys_kernels(tmp_path / "one.sqlite").close()).variants
    assert (first.gpu, second.gpu) == ("h100-sxm", "h200-sxm")
    # The mark at 1000, the first call's return at 1025, the second's at 1045.
    assert [op.host_us for op in second.variants[0].ops[:2]] == [25.0, 20.0]


def steps(earlier: int, count: int = 5, first: int = 500) -> list[Event]:
    """Steps of three kernels, and kernels of the step before, which were launched before the recording."""
    events = [kernel(10.0 * number, 9.0, first - 20 + number, "of the step before") for number in range(earlier)]
    number = first
    for step in range(count):
        start = 100.0 + 100.0 * step
        events.append(mark(start, 100.0, f"ProfilerStep#{step}"))
        for k in range(3):
            events.append(call("cudaLaunchKernel", start + 5.0 * k, 2.0, number))
            events.append(kernel(start + 10.0 + 12.0 * k, 10.0, number, f"layer {k}"))
            number += 1
        events.append(call("cudaDeviceSynchronize", start + 50.0, 2.0, number))
        number += 1
    return events


def shape(workload: Workload) -> list[int]:
    return [sum(op.kind is OpKind.KERNEL for op in variant.ops) for variant in workload.variants]


@pytest.mark.parametrize("earlier", [1, 7])
@pytest.mark.parametrize("numbers", ["smaller", "wrapped", "unknown"])
def test_what_was_launched_before_is_in_no_iteration(tmp_path: Path, gpu: GpuSpec, earlier: int, numbers: str) -> None:
    events = steps(earlier)
    for event in events[:earlier]:
        if numbers == "wrapped":
            event["args"]["correlation"] += 2**32 - 2000
        elif numbers == "unknown":
            del event["args"]["correlation"]
    workload = imported(tmp_path, events, gpu)
    assert shape(workload) == [3] * 5
    assert workload.variants == imported(tmp_path, steps(0), gpu).variants
    assert f"{earlier} kernels, copies and memsets launched before the recording left out" in workload.source


def test_waiting_for_what_was_launched_before_is_no_host_time(tmp_path: Path, gpu: GpuSpec) -> None:
    """The synchronisation at 1 us waits until 45 us and returns at 50; 3 us of it are the GPU's latency."""
    events = [
        mark(0.0, 100.0),
        kernel(2.0, 43.0, 3, "of the step before"),
        call("cudaDeviceSynchronize", 1.0, 49.0, 10),
    ]
    events += [call("cudaLaunchKernel", 52.0, 2.0, 11), kernel(58.0, 9.0, 11)]
    ops = imported(tmp_path, events, gpu).variants[0].ops
    assert [(op.kind, op.host_us) for op in ops[:2]] == [(OpKind.SYNC, 1.0), (OpKind.KERNEL, 6.0)]


def test_a_lost_launch_at_the_start_of_a_stream_is_inferred(tmp_path: Path, gpu: GpuSpec) -> None:
    """Its number is among those of the calls: it was launched in the recording."""
    events = [event for event in steps(0, 20) if (event["name"], number(event)) != ("cudaLaunchKernel", 508)]
    for event in events:
        if event["name"] == "layer 0" and number(event) >= 508:
            event["args"]["stream"] = 13
    found = imported(tmp_path, events, gpu)
    assert shape(found) == [3] * 20
    assert "1 launches without a host call, inferred" in found.source


def number(event: Event) -> int:
    return int(event.get("args", {}).get("correlation", -1))


def test_an_iteration_that_began_before_the_recording_is_left_out(tmp_path: Path, gpu: GpuSpec) -> None:
    """Of the first step only the last launch is recorded."""
    events = [e for e in steps(0) if e["name"] != "cudaLaunchKernel" or number(e) not in (500, 501)]
    workload = imported(tmp_path, events, gpu)
    assert shape(workload) == [3] * 4
    assert "1 iteration left out, which began before the recording" in workload.source


def test_all_of_it_launched_before(tmp_path: Path, gpu: GpuSpec) -> None:
    events = [*steps(3)[:3], call("cudaDeviceSynchronize", 5.0, 60.0, 600)]
    with refused(InputError, "recording"):
        imported(tmp_path, events, gpu)


def test_advice_is_that_of_the_profiler(tmp_path: Path, gpu: GpuSpec) -> None:
    bare = [event for event in three_kernels() if event.get("cat") not in ("cuda_runtime", "cuda_driver")]
    with refused(InputError, "ProfilerActivity.CPU"):
        imported(tmp_path, bare, gpu)
    dropped = [event for event in three_kernels() if event["name"] != "cuLaunchKernelEx"]
    with refused(InputError, "1 of 4 kernels", "not a part"):
        imported(tmp_path, dropped, gpu)
    export = Export(tmp_path / "net.sqlite")
    export.kernel(5.0, 1.0, 1)
    with refused(InputError, "--trace=cuda,nvtx", "profile"):
        import_trace(export.close(), gpu)


def test_before_the_range_of_an_export(tmp_path: Path, gpu: GpuSpec) -> None:
    export = nsys_kernels(tmp_path / "net.sqlite")
    export.call("cudaGetDevice", 1000.0, 1.0, 200)
    for number in range(3):
        export.kernel(1001.0 + 5.0 * number, 4.0, 300 + number, "before", stream=13)
    export.kernel(1001.0, 4.0, 0, "before")
    workload = import_trace(export.close(), gpu)
    assert [kernel.name for kernel in workload.kernels] == ["k", "gemm"]
    assert "4 kernels, copies and memsets launched before" in workload.source


def test_collectives_are_named(tmp_path: Path, gpu: GpuSpec) -> None:
    events = [*three_kernels(), call("cudaLaunchKernel", 1075.0, 1.0, 9)]
    events += [kernel(1080.0, 3.0, 9, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)")]
    source = imported(tmp_path, events, gpu).source
    assert "1 collectives as long as recorded: they wait for other GPUs, and cannot be replayed alone" in source
    assert "collectives" not in imported(tmp_path, three_kernels(), gpu).source


def unseen(workload: Workload) -> list[tuple[str, float]]:
    """Operations that are on the device, with their times."""
    (variant,) = workload.variants
    return [(op.kind.name, op.duration_us) for op in variant.all_ops if op.duration_us > 0.0]


def test_what_the_profiler_missed_on_the_device_takes_its_time(tmp_path: Path, gpu: GpuSpec) -> None:
    calls = [call("cudaLaunchKernel", 10.0 * k, 2.0, k) for k in range(1, 4)]
    kernels = [kernel(14.0, 10.0, 1), kernel(30.0, 10.0, 2), kernel(640.0, 10.0, 3)]
    workload = imported(tmp_path, [mark(0.0, 40.0), *calls, *kernels], gpu)
    # The third was launched at 32 us, and the device had done with the second at 40 us.
    assert unseen(workload) == [("KERNEL", 10.0), ("KERNEL", 10.0), ("MEMSET", 600.0), ("KERNEL", 10.0)]
    assert [op.bytes for op in workload.variants[0].ops] == [0] * 5
    assert abs(summarise(workload, gpu).pace) < 0.02
    assert (
        "1 gaps, 0.6 ms in all, in which the device did nothing that was recorded, though there was" in workload.source
    )
    # What was launched before the recording, and is in no iteration, may have waited for anything.
    earlier = [
        kernel(14.0, 10.0, 1),
        kernel(640.0, 10.0, 2, stream=9),
        kernel(1234.0, 10.0, 3),
        kernel(1250.0, 10.0, 4),
    ]
    late = [call("cudaLaunchKernel", 1230.0, 2.0, 3), call("cudaLaunchKernel", 1231.0, 2.0, 4)]
    assert "gaps" not in imported(tmp_path, [mark(1200.0, 99.0), *late, *earlier], gpu).source
    # A launch that comes late, or soon after its call, misses nothing.
    for late in (call("cudaLaunchKernel", 630.0, 2.0, 3), call("cudaLaunchKernel", 30.0, 605.0, 3)):
        found = imported(tmp_path, [mark(0.0, 700.0), *calls[:2], late, *kernels], gpu)
        assert unseen(found) == [("KERNEL", 10.0)] * 3
        assert "gaps" not in found.source


def test_what_it_missed_of_a_graph_takes_its_time_beside_a_collective(tmp_path: Path, gpu: GpuSpec) -> None:
    graph = [call("cudaGraphLaunch", 10.0, 2.0, 1), kernel(20.0, 10.0, 1), kernel(530.0, 10.0, 1)]
    beside = [call("cudaLaunchKernel", 13.0, 2.0, 2), kernel(100.0, 300.0, 2, "ncclKernel_SendRecv", stream=9)]
    workload = imported(tmp_path, [mark(0.0, 40.0), *graph, *beside], gpu)
    assert [(node.kind.name, node.duration_us) for node in workload.graphs[0]] == [
        ("KERNEL", 10.0),
        ("MEMSET", 500.0),
        ("KERNEL", 10.0),
    ]
    # A kernel that computes may have kept the SMs that the node needs.
    beside[1] = kernel(100.0, 300.0, 2, stream=9)
    (nodes,) = imported(tmp_path, [mark(0.0, 40.0), *graph, *beside], gpu).graphs
    assert [(node.kind.name, node.duration_us) for node in nodes] == [
        ("KERNEL", 10.0),
        ("MEMSET", 130.0),
        ("KERNEL", 10.0),
    ]


def test_memory_copies_alone_choose_no_gpu(tmp_path: Path, gpu: GpuSpec) -> None:
    events = [*three_kernels(), memcpy("Memcpy PtoP", 1060.0, 1.0, 3) | {"pid": 1}]
    events[-1]["args"]["device"] = 1
    path = write(tmp_path / "net.json", events, gpus=[H100, H200])
    with refused(InputError, "recording"):
        import_trace(path, gpu, selection=Selection(device=1))
    assert shape(import_trace(path, gpu, selection=Selection(device=0))) == [3]
