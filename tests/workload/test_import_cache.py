"""A recording of the L2 beside a workload: by how much its kernels are longer where their data is gone."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec.structs import replace

from gpusched_env.errors import InputError
from gpusched_env.experiments.importing import _cache_row
from gpusched_env.hardware.l2 import HOLDS
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.importers.combining import SCATTER, CacheRow, loses_cached_data, with_cache, without_cache
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload
from tests.refusals import refused

L2 = load_gpu("h200-sxm").l2_bytes
KERNEL = Kernel(name="k", grid=(1, 1, 1), block=(32, 1, 1), registers=16, duration_us=2.0)


def workload(kernels: int = 3) -> Workload:
    ops = tuple(Op(OpKind.KERNEL, 1.0, 0, 2.0) for _ in range(kernels))
    return Workload(
        name="net", gpu="h200-sxm", source="test", kernels=(KERNEL,), iteration_us=(10.0,),
        variants=(Variant(ops=(*ops, Op(OpKind.SYNC))), Variant(ops=(Op(OpKind.COPY_TO_DEVICE, bytes=8), *ops))),
    )  # fmt: skip


def row(footprint: int) -> CacheRow:
    return CacheRow(
        model="net", weight_bytes=footprint - 100, other_bytes=100, warm_us=(2.0, 4.0, 5.0),
        cold_us=(3.0, 4.0 * (1.0 + 0.9 * SCATTER), 4.0),
    )  # fmt: skip


def test_each_kernel_gets_its_share_and_scatter_is_none() -> None:
    found = with_cache(workload(), row(1_000_000))
    assert found.footprint_bytes == 1_000_000
    for variant in found.variants:
        assert [op.cold for op in variant.ops if op.kind is OpKind.KERNEL] == [0.5, 0.0, 0.0]
    assert loses_cached_data(found)
    assert without_cache(found) == workload()


def test_a_network_that_does_not_fit_loses_nothing() -> None:
    large = with_cache(workload(), row(int(HOLDS * L2) + 1))
    assert large.footprint_bytes > HOLDS * L2
    assert not loses_cached_data(large)
    assert loses_cached_data(with_cache(workload(), row(int(HOLDS * L2))))
    # So its kernels need not be those of the recording.
    others = with_cache(workload(2), row(int(HOLDS * L2) + 1))
    assert (others.footprint_bytes, without_cache(others)) == (int(HOLDS * L2) + 1, workload(2))


def test_a_recording_of_other_kernels_is_refused() -> None:
    with refused(InputError, "variants[0]", "2 kernels", "1 host"):
        with_cache(workload(2), row(1000))
    threaded = replace(workload(), variants=(replace(workload().variants[0], threads=((Op(OpKind.SYNC),),)),))
    with refused(InputError, "2 host", "threads"):
        with_cache(threaded, row(1000))


def test_the_row_of_a_workload_is_found_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "cache.jsonl"
    rows = [
        {"gpu": "x"},
        {"what": "cache", "model": "net", "weight_bytes": 1, "other_bytes": 2, "warm_us": [1.0], "cold_us": [2.0]},
        {"what": "missed", "model": "varies", "error": "e"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert _cache_row(path, "net").footprint_bytes == 3
    with refused(InputError, "'nett'"):
        _cache_row(path, "nett")
    with refused(InputError, "'varies'", "row"):
        _cache_row(path, "varies")
