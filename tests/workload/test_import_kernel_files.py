"""Kernel files of Orion as workloads."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from gpusched_env.errors import InputError
from gpusched_env.hardware.occupancy import footprint
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.importers.kernel_files import import_kernel_file
from gpusched_env.workload.workload import OpKind
from tests.refusals import refused

HEAD = "Name,Profile,Memory_footprint,SM_usage,Duration\n"


def written(folder: Path, *lines: str) -> Path:
    path = folder / "net_4_fwd"
    path.write_text(HEAD + "\n".join(lines))
    return path


def test_operators_become_launches_in_order(tmp_path: Path) -> None:
    """Two of one name, bound and SMs are one kernel, of their mean; each launch keeps its own time."""
    path = written(tmp_path, "Conv,1,0,49,30000", "BatchNorm,0,0,32,20000", "Conv,1,0,49,10000", "add,-1,0,100,5000")
    workload = import_kernel_file(path, "v100-sxm", 6.0, input_bytes=100)
    ops = workload.variants[0].ops
    assert [op.kind for op in ops] == [OpKind.COPY_TO_DEVICE, *[OpKind.KERNEL] * 4, OpKind.SYNC]
    assert [(op.index, op.duration_us) for op in ops[1:5]] == [(0, 30.0), (1, 20.0), (0, 10.0), (2, 5.0)]
    assert [(k.name, k.kind, k.duration_us) for k in workload.kernels] == [
        ("Conv", "compute", 20.0), ("BatchNorm", "memory", 20.0), ("add", "latency", 5.0),
    ]  # fmt: skip
    assert workload.iteration_us == pytest.approx((65.0 + 3 * 0.9,))
    assert workload.name == "net_4_fwd"
    packed = tmp_path / "net_4_fwd.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert import_kernel_file(packed, "v100-sxm", 6.0, 100).kernels == workload.kernels


def test_a_kernel_fills_the_sms_that_it_needs(tmp_path: Path) -> None:
    (kernel,) = import_kernel_file(written(tmp_path, "Conv,1,0,49,30000"), "v100-sxm", 6.0).kernels
    held = footprint(load_gpu("v100-sxm"), kernel.threads, kernel.registers, kernel.shared_bytes)
    assert kernel.blocks == 49 * held.blocks_per_sm


@pytest.mark.parametrize(
    "line", ["Conv,2,0,49,1", "Conv,1,0,0,1", "Conv,1,0,49,0", "Conv,1,0,49", "Conv,1,0,x,1", "Conv,1,0,49,1e9"]
)
def test_lines_that_are_none_are_named(tmp_path: Path, line: str) -> None:
    with refused(InputError, "line 2", line[:8], "SM_usage"):
        import_kernel_file(written(tmp_path, line), "v100-sxm", 6.0)


def test_files_that_are_none_are_named(tmp_path: Path) -> None:
    with refused(InputError, "no operator"):
        import_kernel_file(written(tmp_path), "v100-sxm", 6.0)
    path = tmp_path / "other"
    path.write_text("Name,Duration\nConv,1\n")
    with refused(InputError, "no column 'Profile'"):
        import_kernel_file(path, "v100-sxm", 6.0)
