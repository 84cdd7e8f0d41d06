"""Digests: the compact form of recordings, and the conversion of a folder of them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.importers.build import build_workload
from gpusched_env.workload.importers.digest import convert_folder, describe, read_digest
from gpusched_env.workload.workload import Op, OpKind, read_workload


def event(ts: float, dur: float, launch: float | None, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "kernel",
        "name": "void at::native::reduce_kernel<512, 1, float>(float*)",
        "ts_us": ts,
        "dur_us": dur,
        "stream": 7,
        "grid": [128, 1, 1],
        "block": [32, 16, 1],
        "regs": 32,
        "smem_bytes": 16,
        "bytes": None,
        "launch_ts_us": launch,
        "launch_dur_us": 4.0,
        "launch_api": "cudaLaunchKernel",
    } | changes


def digest(**changes: Any) -> dict[str, Any]:
    copy_to_device = {
        "kind": "gpu_memcpy",
        "name": "Memcpy HtoD (Pageable -> Device)",
        "grid": None,
        "bytes": 512,
        "launch_api": "cudaMemcpyAsync",
    }
    return {
        "workload": "net_infer_b2",
        "wall_us_each": [50.0, 48.0, 49.0],
        "iteration_marks_us": [[100.0, 80.0]],
        "syncs": [[106.0, 4.0, "cudaMemcpyAsync"], [126.0, 34.0, "cudaDeviceSynchronize"]],
        "gpu": "NVIDIA H100 80GB HBM3",
        "torch": "2.11.0",
        "cuda": "13.0",
        "events": [event(112.0, 2.0, 106.0, **copy_to_device), event(126.0, 31.0, 120.0)],
    } | changes


def write(folder: Path, content: dict[str, Any], name: str = "net_infer_b2") -> Path:
    path = folder / f"{name}.json.gz"
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    return path


def test_a_folder_becomes_workloads_scaled_to_the_wall_time(tmp_path: Path, gpu: GpuSpec) -> None:
    source, target = tmp_path / "digests", tmp_path / "workloads"
    source.mkdir()
    target.mkdir()
    write(source, digest())
    write(source, {"traceEvents": []}, "net_infer_b2.kineto")
    ((name, size, workload),) = convert_folder(source, target, gpu)
    file = target / "net_infer_b2.workload.json.gz"
    assert [path.name for path in target.iterdir()] == [file.name]
    assert (name, size) == ("net_infer_b2", file.stat().st_size)
    assert read_workload(file) == workload
    # As recorded: 10 us, 14 us, device 126 to 157, synchronised at 160. Alone with a factor f on the host:
    # 24 f + 2 + 31 + 3 = 49, so f = 13/24.
    assert workload.variants[0].ops == (
        Op(OpKind.COPY_TO_DEVICE, 5.417, -1, 2.0, 512),
        Op(OpKind.KERNEL, 7.583, 0, 31.0),
        Op(OpKind.SYNC, 1.083),
    )
    assert workload.iteration_us == (50.0, 48.0, 49.0)
    assert workload.summary == "net inference, batch 2"
    assert workload.gpu == "h100-sxm"
    assert "host times x 0.54 to 0.54" in workload.source


def test_streams_are_kept(tmp_path: Path, gpu: GpuSpec) -> None:
    syncs = [[126.0, 34.0, "cudaStreamSynchronize"], [161.0, 9.0, "cudaStreamSynchronize"]]
    events = [event(112.0, 2.0, 106.0), event(122.0, 31.0, 116.0, stream=20), event(125.0, 40.0, 120.0)]
    workload = build_workload(read_digest(write(tmp_path, digest(events=events, syncs=syncs, wall_us_each=[]))), gpu)
    assert workload.stream_priorities == (0, 0)
    assert workload.variants[0].ops == (
        Op(OpKind.KERNEL, 10.0, 0, 2.0),
        Op(OpKind.KERNEL, 10.0, 0, 31.0, stream=1),
        Op(OpKind.KERNEL, 4.0, 0, 40.0),
        # The first returned when the stream of the launch before it was still busy.
        Op(OpKind.SYNC_STREAM, 2.0, stream=1),
        Op(OpKind.SYNC_STREAM, 5.0),
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"events": [event(126.0, 31.0, 120.0, grid=[0, 1, 1])]}, r"events\[0\]: field 'grid' is \[0, 1, 1\]"),
        ({"events": [event(126.0, -1.0, 120.0)]}, r"events\[0\]: field 'dur_us' is -1\.0, expected microseconds"),
        (
            {"events": [event(126.0, 3.0, 120.0, kind="sleep")]},
            r"events\[0\]: field 'kind' is 'sleep', expected one of",
        ),
        ({"events": []}, r"no kernel among its events"),
        ({"events": 3}, r"field 'events' is 3, expected a list"),
        ({"syncs": [[1.0, 2.0]]}, r"syncs\[0\] has no field 'call'"),
        ({"iteration_marks_us": [5]}, r"iteration_marks_us\[0\]"),
        ({"wall_us_each": [5.0, "x"]}, r"wall_us_each\[1\]: field 'wall' is 'x'"),
        ({"gpu": None}, r"field 'gpu' is None, expected a string"),
    ],
)
def test_errors_name_file_and_field(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = write(tmp_path, digest(**changes))
    with pytest.raises(InputError, match=r"net_infer_b2\.json\.gz.*" + message):
        read_digest(path)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("bert_infer_b8_s128", "bert inference, batch 8, sequence length 128"),
        ("resnet50_fp32_infer_b1", "resnet50 inference, batch 1, fp32"),
        ("resnet50_train_b32", "resnet50 training step, batch 32"),
        ("dynamic_routing_input1_b4", "dynamic_routing input1, batch 4"),
        ("something", "something"),
    ],
)
def test_descriptions(name: str, sentence: str) -> None:
    assert describe(name) == sentence
