"""The six published placements of Gilman, Ogden, Guo and Walls (2020), and the tie orders."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from gpusched_env.devices import make_device
from gpusched_env.hardware.occupancy import BLOCK_DTYPE, footprint
from gpusched_env.hardware.placement import fit, sm_order
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.scheduling.commands import Launch, Partition
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload


def pascal() -> GpuSpec:
    """The paper's laptop card: 5 SMs of 2048 threads, 64 warps, 32 blocks, linear order."""
    return msgspec.structs.replace(load_gpu("tx2"), name="pascal-5sm", sms=5)


def turing() -> GpuSpec:
    """RTX 2080 Ti: 68 SMs of 1024 threads, 32 warps, 16 blocks, even SMs first."""
    base = load_gpu("v100-sxm")
    limits = msgspec.structs.replace(base.limits, threads=1024, warps=32, blocks=16)
    return msgspec.structs.replace(base, name="rtx-2080-ti", sms=68, limits=limits)


def block(gpu: GpuSpec, threads: int) -> NDArray[np.void]:
    """What a block of ``threads`` threads with 16 registers each takes, shape ``(1,)``."""
    shape = footprint(gpu, threads, 16, 0)
    record = np.zeros(1, BLOCK_DTYPE)
    for field in ("threads", "warps", "registers", "shared_bytes", "carveout_bytes"):
        record[field] = getattr(shape, field)
    return record


def workload(gpu: GpuSpec, blocks: int, threads: int, duration_us: float) -> Workload:
    """One kernel of such blocks, without contention."""
    kernel = Kernel(
        name="k", grid=(blocks, 1, 1), block=(threads, 1, 1), registers=16, duration_us=duration_us, kind="latency",
        issue_fraction=0.0, dram_bytes=0.0,
    )  # fmt: skip
    ops = (Op(OpKind.KERNEL, 0.0, 0, duration_us), Op(OpKind.SYNC))
    return Workload(
        name="w", gpu=gpu.name, source="test", kernels=(kernel,), variants=(Variant(ops=ops),), iteration_us=(1.0,)
    )


@dataclass(frozen=True)
class Case:
    """One published test: all SMs but ``empty`` hold a block, then a new kernel comes."""

    gpu: GpuSpec
    resident_threads: int
    empty: int
    blocks: int
    threads: int
    expected: tuple[int, ...]
    """SM of each block, in order."""


CASES = [
    pytest.param(Case(pascal(), 256, 0, 3, 160, (0, 0, 1)), id="1-threads"),
    pytest.param(Case(pascal(), 1024, 0, 3, 32, (0, 0, 1)), id="2-block-limit"),
    pytest.param(Case(pascal(), 1024, 0, 3, 33, (0, 0, 0)), id="3-warp-limit"),
    pytest.param(Case(turing(), 512, 67, 8, 33, (67,) * 8), id="4-isolated"),
    pytest.param(Case(turing(), 512, 67, 8, 32, (67, 0, 2, 4, 6, 8, 10, 12)), id="5-colocated"),
    pytest.param(Case(turing(), 512, 67, 9, 33, (*(67,) * 8, 0)), id="6-ninth-block"),
]


@pytest.mark.parametrize("case", CASES)
def test_most_room_over_fit_gives_the_published_placements(case: Case) -> None:
    gpu, limits = case.gpu, case.gpu.limits
    free = np.tile([limits.threads, limits.warps, limits.blocks, limits.registers, limits.shared_bytes], (gpu.sms, 1))

    def put(sm: int, what: NDArray[np.void]) -> None:
        free[sm] -= (
            [int(what[f]) for f in ("threads", "warps")] + [1] + [int(what[f]) for f in ("registers", "shared_bytes")]
        )

    for sm in set(range(gpu.sms)) - {case.empty}:
        put(sm, block(gpu, case.resident_threads)[0])
    new = block(gpu, case.threads)[0]
    needs = [int(new[field]) for field in ("threads", "warps", "registers", "shared_bytes")]
    chosen = []
    for _ in range(case.blocks):
        sm = max(sm_order(gpu).tolist(), key=lambda sm: int(fit(*free[sm], *needs)))
        assert fit(*free[sm], *needs) > 0
        put(sm, new)
        chosen.append(sm)
    assert tuple(chosen) == case.expected


@pytest.mark.parametrize("case", CASES)
def test_a_device_gives_the_published_placements(case: Case) -> None:
    gpu = case.gpu
    workloads = {
        "resident": workload(gpu, gpu.sms - 1, case.resident_threads, 1000.0),
        "new": workload(gpu, case.blocks, case.threads, 1.0),
    }
    tenants = [{"name": name, "workload": name, "arrivals": {"kind": "backlog"}, "jobs": 1} for name in workloads]
    scenario = make_scenario(
        {"name": "s", "summary": "", "gpu": gpu.name, "tenants": tenants, "horizon_us": 1e4, "stream_priorities": [0]}
    )
    device = make_device("compiled")
    view = device.reset(build_problem(scenario, gpu=gpu, workloads=workloads), 0, record="blocks")
    assert view is not None
    resident, new = (int(id_) for id_ in view.pending.id)
    # One resident block on each SM but the empty one, which is the first or the last in tie order.
    first = (sm_order(gpu).tolist().index(case.empty) + 1) % gpu.sms
    device.apply(Launch(resident, partition=Partition(first, gpu.sms - 1)))
    device.advance()
    device.apply(Launch(new))
    while device.advance() is not None:
        pass
    blocks = device.timeline.blocks.dict()
    rows = list(zip(blocks["kernel"].tolist(), blocks["sm"].tolist(), blocks["blocks"].tolist(), strict=True))
    assert {sm for kernel, sm, _ in rows if kernel == resident} == set(range(gpu.sms)) - {case.empty}
    assert Counter({int(sm): int(count) for kernel, sm, count in rows if kernel == new}) == Counter(case.expected)


def test_tie_orders() -> None:
    assert sm_order(pascal()).tolist() == [0, 1, 2, 3, 4]
    order = sm_order(turing()).tolist()
    assert order[:3] == [0, 2, 4]
    assert order[33:36] == [66, 1, 3]
    assert order[-1] == 67
    assert sorted(order) == list(range(68))


def test_fit_takes_the_scarcest_resource() -> None:
    assert fit(640, 100, 100, 10**6, 10**6, 64, 2, 2048, 1000) == 10
    assert fit(640, 7, 100, 10**6, 10**6, 64, 2, 2048, 1000) == 3
    assert fit(640, 100, 2, 10**6, 10**6, 64, 2, 2048, 1000) == 2
    assert fit(640, 100, 100, 4095, 10**6, 64, 2, 2048, 1000) == 1
    assert fit(640, 100, 100, 10**6, 999, 64, 2, 2048, 1000) == 0
    assert fit(640, 100, 100, 10**6, 0, 64, 2, 2048, 0) == 10
