"""What a job asks of the GPU, solved by hand on the GPU of four SMs."""

from __future__ import annotations

import pytest

from gpusched_env.experiments.lib.recorded import situation, tenant
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.profiles import JobDemand
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

GPU = "toy-4sm"


def demand(kernels: list[Kernel], gap_us: float = 0.0, **fields: object) -> JobDemand:
    """Of a job that launches each of ``kernels`` once."""
    ops = [Op(OpKind.KERNEL, host_us=gap_us, index=i, duration_us=k.duration_us) for i, k in enumerate(kernels)]
    workload = Workload(
        name="w", gpu=GPU, source="by hand", kernels=tuple(kernels), variants=(Variant(ops=(*ops, Op(OpKind.SYNC))),),
        iteration_us=(1.0,),
    )  # fmt: skip
    return situation([tenant("w", **fields)], GPU, workloads={"w": workload}).knowledge.tenants[0].demand


def kernel(blocks: int, duration_us: float, dram: float = 0.0) -> Kernel:
    """``dram``: share of the bandwidth."""
    gpu = load_gpu(GPU)
    return Kernel(
        name=f"k{blocks}", grid=(blocks, 1, 1), block=(gpu.limits.threads // 2, 1, 1), registers=1,
        duration_us=duration_us, kind="compute", issue_fraction=0.0,
        dram_bytes=dram * duration_us * gpu.dram_bytes_per_us,
    )  # fmt: skip


def test_a_kernel_that_fills_half_of_the_thread_slots() -> None:
    found = demand([kernel(4, 100.0, dram=0.25)])
    assert found.threads == 0.5, "a block of half an SM on each"
    assert found.overfull == 0.0
    assert found.issue == 0.0
    assert found.dram == pytest.approx(0.25, rel=1e-6)
    assert found.busy <= 1.0


def test_time_in_which_nothing_runs_thins_every_share() -> None:
    dense, thin = demand([kernel(4, 100.0, dram=0.25)]), demand([kernel(4, 100.0, dram=0.25)], gap_us=300.0)
    shrunk = thin.busy / dense.busy
    assert shrunk < 0.3
    for share in ("dram", "threads"):
        assert getattr(thin, share) == pytest.approx(getattr(dense, share) * shrunk)
    assert thin.block_us == dense.block_us, "of a block it is said per block"


def test_waves_count_as_overfull_by_their_time() -> None:
    found = demand([kernel(4, 100.0), kernel(16, 300.0)])
    assert found.overfull / found.busy == pytest.approx(0.75), "16 blocks where 4 have room"
    assert found.threads == pytest.approx(found.busy * 0.5), "no more than fit"


def test_a_graph_asks_for_what_its_kernels_do() -> None:
    kernels = [kernel(4, 100.0, dram=0.5), kernel(2, 200.0)]
    eager, graph = demand(kernels), demand(kernels, launch="graph")
    assert graph.dram / graph.busy == pytest.approx(eager.dram / eager.busy)
    assert graph.threads / graph.busy == pytest.approx(eager.threads / eager.busy)
    assert graph.threads / graph.busy == pytest.approx((100 * 0.5 + 200 * 0.25) / 300)


def test_wrong_profiles_tell_wrong_demands() -> None:
    scenario = load_scenario("ServingPoisson")
    told = [
        [tenant.demand for tenant in build_problem(one).knowledge.tenants]
        for one in (scenario, load_scenario("ServingPoisson", profiles={"scatter": 2.0}))
    ]
    assert all(true != wrong for true, wrong in zip(*told, strict=True))
