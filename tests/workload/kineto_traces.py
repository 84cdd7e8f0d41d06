"""Kineto traces by hand."""

import json
from pathlib import Path
from typing import Any

from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.importers import import_trace
from gpusched_env.workload.workload import Workload

Event = dict[str, Any]
ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int, float*)"
GEMM = "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x64x32_cublas"


def call(name: str, ts: float, dur: float, correlation: int, cat: str = "cuda_runtime", tid: int = 1) -> Event:
    arguments = {"correlation": correlation}
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": arguments}


def kernel(ts: float, dur: float, correlation: int, name: str = ELEMENTWISE, **args: Any) -> Event:
    details = {
        "device": 0,
        "stream": 7,
        "correlation": correlation,
        "registers per thread": 32,
        "shared memory": 0,
        "grid": [264, 1, 1],
        "block": [128, 1, 1],
    }
    return {"ph": "X", "cat": "kernel", "name": name, "ts": ts, "dur": dur, "args": details | args}


def memcpy(name: str, ts: float, dur: float, correlation: int, size: int = 64, stream: int = 7) -> Event:
    args = {"device": 0, "stream": stream, "correlation": correlation, "bytes": size}
    return {"ph": "X", "cat": "gpu_memcpy", "name": name, "ts": ts, "dur": dur, "args": args}


def mark(ts: float, dur: float, name: str = "ProfilerStep#3") -> Event:
    return {"ph": "X", "cat": "user_annotation", "name": name, "ts": ts, "dur": dur, "tid": 1}


def three_kernels() -> list[Event]:
    """Two kernels and a copy, a wait for them, a third kernel like the first, and a synchronisation at its end."""
    return [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}},
        mark(1000.0, 100.0),
        call("cudaLaunchKernel", 1010.0, 5.0, 1),
        kernel(1017.0, 10.0, 1),
        call("cuLaunchKernelEx", 1018.0, 4.0, 2, cat="cuda_driver"),
        kernel(1028.0, 14.0, 2, GEMM, grid=[16, 8, 1], block=[384, 1, 1], **{"shared memory": 65536}),
        call("cudaMemcpyAsync", 1025.0, 2.0, 3),
        memcpy("Memcpy DtoH (Device -> Pinned)", 1043.0, 2.0, 3),
        call("cudaStreamSynchronize", 1029.0, 19.5, 4),
        call("cudaLaunchKernel", 1052.0, 4.0, 5),
        kernel(1058.0, 4.0, 5),
        call("cudaDeviceSynchronize", 1070.0, 4.0, 6),
    ]


def write(
    path: Path, events: list[Event], device: str = "NVIDIA H100 80GB HBM3", gpus: list[Event] | None = None
) -> Path:
    listed = [{"id": 0, "name": device}] if gpus is None else gpus
    document = {"deviceProperties": listed, "traceEvents": events}
    path.write_bytes(json.dumps(document).encode())
    return path


def imported(tmp_path: Path, events: list[Event], gpu: GpuSpec, iteration: str | None = None) -> Workload:
    return import_trace(write(tmp_path / "net.pt.trace.json", events), gpu, iteration)
