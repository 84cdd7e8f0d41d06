"""Library kernels in place of recorded ones, on a stand-in for CuPy and cuBLAS."""

from __future__ import annotations

import sys
import time
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.baselines.at_intervals import AtIntervals
from gpusched_env.baselines.edf import EarliestDeadline
from gpusched_env.devices.cuda import cublas
from gpusched_env.devices.cuda.cupy_gpu import CupyGpu
from gpusched_env.devices.cuda.device import RealDevice
from gpusched_env.devices.cuda.fitting import NEAR
from gpusched_env.devices.cuda.gpu import GpuWork, Report
from gpusched_env.devices.cuda.launching import HostClock
from gpusched_env.devices.cuda.library import LINE, LibraryStand, rounded
from gpusched_env.devices.cuda.real_time import tables as pieces
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import GpuError, InputError
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.kernel import Kernel, KernelClass
from gpusched_env.workload.workload import GraphNode, Op, OpKind, Variant, Workload
from tests.devices.cuda import fake_cupy
from tests.devices.problems import Script
from tests.refusals import refused

KERNEL, GRAPH = OpKind.KERNEL, OpKind.GRAPH
SYNC = Op(OpKind.SYNC)
EITHER = 2.2 * NEAR
"""What the search leaves, and the rounding of what is wanted."""


@pytest.fixture
def blas(monkeypatch: pytest.MonkeyPatch) -> fake_cupy.Cublas:
    made = fake_cupy.Cublas()
    monkeypatch.setattr(cublas, "bindings", lambda: made)
    return made


@pytest.fixture
def gpu(blas: fake_cupy.Cublas, gpu: CupyGpu) -> CupyGpu:
    """With cuBLAS."""
    return gpu


def kernel(us: float, kind: KernelClass) -> Kernel:
    return Kernel(
        name=f"{kind} {us}", grid=(4, 1, 1), block=(1024, 1, 1), registers=32, duration_us=us, kind=kind,
        issue_fraction=0.0, dram_bytes=0.0,
    )  # fmt: skip


def problem(
    kernels: list[Kernel], ops: list[Op], *tenants: str, graphs: tuple[tuple[GraphNode, ...], ...] = ()
) -> Problem:
    """Tenants of one workload; what they have for kernels."""
    workload = Workload(
        name="w", gpu="toy-4sm", source="test", kernels=tuple(kernels), graphs=graphs, stream_priorities=(0,),
        iteration_us=(100.0,), variants=(Variant(ops=(*ops, SYNC)),),
    )  # fmt: skip
    toy = load_gpu("toy-4sm")
    rows = [
        {"name": f"t{row}", "workload": "w", "arrivals": {"kind": "backlog"}, "jobs": 1, "kernels": kind}
        for row, kind in enumerate(tenants)
    ]
    scenario = make_scenario(
        {
            "name": "test", "summary": "test", "gpu": "toy-4sm", "tenants": rows, "variation": False, "streams": 1,
            "stream_priorities": [0], "horizon_us": 300e6,
        }
    )  # fmt: skip
    return build_problem(scenario, gpu=toy, workloads={"w": workload})


def launches(kernels: list[Kernel]) -> list[Op]:
    return [Op(KERNEL, 0.0, index, one.duration_us) for index, one in enumerate(kernels)]


def submit(gpu: CupyGpu, op: Any, launch: int, stream: int) -> int:
    """Launch an operation; returns the stream's handle."""
    gpu.submit(GpuWork(launch, op, stream, 0, None, ()))
    return gpu._queues[stream, 0, None].handle


def library(gpu: CupyGpu) -> Any:
    """What measures library kernels; it is there once something that needs it was prepared."""
    found = gpu._library
    assert found is not None
    return found


def reports(gpu: CupyGpu, count: int) -> list[Report]:
    found: list[Report] = []
    begun = time.perf_counter()
    while len(found) < count:
        found += gpu.poll()
        assert time.perf_counter() - begun < 60.0
    return found


def test_library_kernels_take_as_long_as_the_recorded_ones(gpu: CupyGpu) -> None:
    kernels = [kernel(400.0, "compute"), kernel(900.0, "mixed"), kernel(300.0, "memory"), kernel(40.0, "latency")]
    built = problem(kernels, launches(kernels), "library")
    gpu.prepare(built)
    measuring = library(gpu)
    assert [gpu.fits[identity, "library"].stand.operation for identity in range(4)] == [
        "product", "product", "elementwise", "elementwise",
    ]  # fmt: skip
    for (identity, _), fit in gpu.fits.items():
        period_us = measuring.period_us(fit.stand)
        assert period_us == pytest.approx(fit.took_us + built.gpu.timing.stream_gap_us, rel=1e-3)
        assert fit.took_us == pytest.approx(kernels[identity].duration_us, rel=EITHER)


def test_marks_are_before_and_behind_in_the_same_stream(gpu: CupyGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    # Times before the start are cut off; two threads of one interpreter find the clock to milliseconds only.
    monkeypatch.setattr(HostClock, "compare", lambda clock: fake_cupy.AHEAD_NS)
    kernels = [kernel(3000.0, "compute"), kernel(2000.0, "memory")]
    built = problem(kernels, launches(kernels), "library")
    gpu.prepare(built)
    gpu.start()
    fake_cupy.LAUNCHED.clear()
    product, elementwise = built.programs[0].variants[0][:2]
    own, schedulers = submit(gpu, product, 1, 0), submit(gpu, elementwise, 2, 1)
    assert own != schedulers
    launched = list(fake_cupy.LAUNCHED)
    assert launched == [
        ("mark", own), ("product", own), ("mark", own),
        ("mark", schedulers), ("elementwise", schedulers), ("mark", schedulers),
    ]  # fmt: skip
    times = {(report.launch, report.ended): report.at_ps for report in reports(gpu, 4)}
    for launch, us in ((1, 3000.0), (2, 2000.0)):
        # What the host takes from the first mark to the kernel comes on top.
        assert (times[launch, True] - times[launch, False]) / 1e6 >= us * (1.0 - EITHER)


PRODUCT = ((2, 3, 1), (128, 1, 1), 64, 1024, 2048)
ELEMENTWISE = ((7, 1, 1), (64, 1, 1), 16, 0, 0)


def test_a_problem_as_launched_has_the_library_s_kernels(gpu: CupyGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the recorded durations; preparing it gives the same launches."""
    fake_cupy.Kernels(product=PRODUCT, elementwise=ELEMENTWISE).install(monkeypatch)
    kernels = [kernel(400.0, "mixed"), kernel(300.0, "latency")]
    nodes = tuple(GraphNode(KERNEL, identity, one.duration_us) for identity, one in enumerate(kernels))
    built = problem(kernels, [Op(GRAPH, index=0, duration_us=700.0)], "library", graphs=(nodes,))
    made = gpu.as_launched(built)
    found = [one.kernel for one in made.kernels]
    assert [(one.grid, one.block, one.registers, one.shared_bytes) for one in found] == [
        ((2, 3, 1), (128, 1, 1), 64, 3072), ((7, 1, 1), (64, 1, 1), 16, 0),
    ]  # fmt: skip
    assert [one.kind for one in found] == ["compute", "memory"]
    assert [one.duration_us for one in made.kernels] == pytest.approx([400.0, 300.0])
    assert [graph.blocks for graph in (*built.graphs, *made.graphs)] == [8, 13]
    fits = dict(gpu.fits)
    gpu.prepare(made)
    assert gpu.fits == fits
    assert gpu.as_launched(made).kernels == made.kernels


def test_a_problem_as_launched_keeps_what_is_synthetic(gpu: CupyGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy.Kernels(product=PRODUCT).install(monkeypatch)
    kernels = [kernel(400.0, "compute")]
    for tenants in (("synthetic",), ("synthetic", "library")):
        built = problem(kernels, launches(kernels), *tenants)
        assert gpu.as_launched(built).kernels == built.kernels


def test_tenants_of_one_workload_have_each_what_they_ask_for(gpu: CupyGpu) -> None:
    kernels = [kernel(400.0, "compute")]
    built = problem(kernels, launches(kernels), "synthetic", "library")
    gpu.prepare(built)
    assert sorted(gpu.fits) == [(0, "library"), (0, "synthetic")]
    gpu.start()
    fake_cupy.LAUNCHED.clear()
    synthetic, by_library = (program.variants[0][0] for program in built.programs)
    assert synthetic.identity == by_library.identity
    # Both into the scheduler's stream, which says nothing of the tenant.
    submit(gpu, synthetic, 1, 2)
    submit(gpu, by_library, 2, 2)
    assert [name for name, _ in fake_cupy.LAUNCHED] == ["synthetic", "mark", "product", "mark"]
    reports(gpu, 4)
    # Nobody asks for it any more.
    gpu.stop()
    plain = problem(kernels, launches(kernels), "synthetic")
    gpu.prepare(plain)
    gpu.start()
    fake_cupy.LAUNCHED.clear()
    submit(gpu, plain.programs[0].variants[0][0], 3, 0)
    assert [name for name, _ in fake_cupy.LAUNCHED] == ["synthetic"]


def test_without_library_tenants_cublas_is_not_needed(gpu: CupyGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Any:
        raise InputError("library kernels need cuBLAS")

    monkeypatch.setattr(cublas, "bindings", missing)
    kernels = [kernel(400.0, "compute")]
    gpu.prepare(problem(kernels, launches(kernels), "synthetic"))
    with refused(InputError, "cuBLAS"):
        gpu.prepare(problem(kernels, launches(kernels), "library"))


def test_longer_occurrences_are_longer_kernels_and_each_is_measured_once(
    gpu: CupyGpu, blas: fake_cupy.Cublas, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = [kernel(400.0, "compute")]
    # The last is so near the first that it is the same.
    ops = [Op(KERNEL, 0.0, 0, us) for us in (400.0, 800.0, 400.2)]
    built = problem(kernels, ops, "library")
    gpu.prepare(built)
    blas.products.clear()
    gpu.start()
    for launch, op in enumerate(built.programs[0].variants[0][:3]):
        submit(gpu, op, launch, 0)
    usual, longer, near = (m * n * k for m, n, k in blas.products)
    assert near == usual
    # Of both, the fixed time is no part of the product.
    fixed_us = (fake_cupy.FIXED_NS + 2 * fake_cupy.MARK_NS) / 1e3 - built.gpu.timing.stream_gap_us
    assert longer / usual == pytest.approx((800.0 - fixed_us) / (400.0 - fixed_us), rel=2 * EITHER)
    reports(gpu, 6)

    def again(stand: LibraryStand) -> float:
        raise AssertionError(f"{stand} is measured twice")

    monkeypatch.setattr(library(gpu), "period_us", again)
    gpu.stop()
    fake_cupy.LAUNCHED.clear()
    gpu.prepare(problem(kernels, ops, "library"))
    assert not fake_cupy.LAUNCHED, "every episode would begin with a launch of everything"


def test_a_kernel_that_is_too_short_for_any_gets_the_shortest(gpu: CupyGpu) -> None:
    kernels = [kernel(1.0, "compute"), kernel(1.0, "latency")]
    built = problem(kernels, launches(kernels), "library")
    gpu.prepare(built)
    for fit in gpu.fits.values():
        assert fit.stand.size == 1
        assert fit.took_us > 1.5


@pytest.mark.parametrize("operation", ["product", "elementwise"])
def test_marks_count_where_there_are_some(gpu: CupyGpu, operation: Literal["product", "elementwise"]) -> None:
    kernels = [kernel(400.0, "compute")]
    gpu.prepare(problem(kernels, launches(kernels), "library"))
    outside, inside = (library(gpu).period_us(LibraryStand(operation, 4, marked, 1, 50)) for marked in (True, False))
    assert inside > fake_cupy.FIXED_NS / 1e3
    assert outside - inside == pytest.approx(2 * fake_cupy.MARK_NS / 1e3)


def test_graphs_have_library_kernels_without_marks(gpu: CupyGpu, blas: fake_cupy.Cublas) -> None:
    kernels = [kernel(400.0, "compute"), kernel(300.0, "memory"), kernel(600.0, "compute")]
    nodes = (
        GraphNode(KERNEL, 0, 400.0), GraphNode(KERNEL, 1, 300.0, after=(0,)), GraphNode(KERNEL, 2, 600.0, after=(0,)),
    )  # fmt: skip
    built = problem(kernels, [Op(GRAPH, index=0, duration_us=1000.0)], "library", graphs=(nodes,))
    gpu.prepare(built)
    assert library(gpu)
    for identity, fit in enumerate(gpu.fits[identity, "library"] for identity in range(3)):
        assert not fit.stand.marked
        assert fit.took_us == pytest.approx(kernels[identity].duration_us, rel=EITHER)
    gpu.start()
    fake_cupy.LAUNCHED.clear()
    blas.spaces.clear()
    own = submit(gpu, built.programs[0].variants[0][0], 1, 0)
    assert [name for name, _ in fake_cupy.LAUNCHED] == ["mark", "product", "elementwise", "product", "mark"]
    first, _, other = (stream for name, stream in fake_cupy.LAUNCHED if name != "mark")
    assert first == own != other
    # Side by side, they do not work in the same memory.
    assert len(blas.spaces[first] | blas.spaces[other]) == 2
    reports(gpu, 2)
    gpu.stop()
    episode = run_episode(Script(None), built, RealDevice(gpu), 0)
    assert episode.done
    assert len(episode.timeline.jobs) == 1


def test_an_episode_with_both_kinds_of_tenants(gpu: CupyGpu) -> None:
    kernels = [kernel(400.0, "compute"), kernel(300.0, "memory")]
    built = problem(kernels, launches(kernels) * 3, "library", "synthetic")
    episode = run_episode(Script(None), built, RealDevice(gpu), 0, record="blocks")
    kernels_done = episode.timeline.kernels.dict()
    assert episode.done
    assert len(kernels_done["id"]) == 12
    # A library's kernels do not say where their blocks are.
    synthetic = kernels_done["id"][kernels_done["tenant"] == 1]
    assert set(episode.timeline.blocks.dict()["kernel"]) == set(synthetic)
    assert len(synthetic) == 6


def test_compiled_code_launches_library_kernels_as_graphs(gpu: CupyGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "functions", fake_cupy.Driver().functions)
    kernels = [kernel(400.0, "compute"), kernel(300.0, "memory")]
    built = problem(kernels, launches(kernels) * 3, "library", "synthetic")
    before = fake_cupy.Graph.made
    episode = run_episode(AtIntervals(EarliestDeadline()), built, RealDevice(gpu), 0, record="kernels")
    assert episode.done
    assert len(episode.timeline.kernels) == 2 * 3 * 2
    assert fake_cupy.Graph.made == before + 2, "one a kernel, at the one priority that is offered"


@given(st.integers(1, 200_000), st.integers(1, 200))
def test_the_work_of_a_product_is_its_size(size: int, tiles: int) -> None:
    m, n, k = LibraryStand("product", tiles, True, 1, size).matrices
    assert (m % 128, n % 128, k % 64) == (0, 0, 0)
    assert k <= 64 * 256
    m1, n1, k1 = LibraryStand("product", tiles, True, 1, 1).matrices
    assert tiles / 2 <= m1 * n1 / 128**2 <= tiles
    assert m * n * k / (m1 * n1 * k1) == pytest.approx(size, rel=0.005)


@given(st.integers(1, 1 << 30))
def test_elements_beyond_those_in_memory_are_gone_over_again(size: int) -> None:
    times, elements = LibraryStand("elementwise", 0, True, 1, size).elements
    assert elements <= LINE
    assert times * elements == pytest.approx(1024 * size, rel=1e-5)
    assert times == 1 or 1024 * size > LINE


@given(st.floats(0.1, 1e6))
def test_wanted_durations_are_rounded_as_far_as_fits_are_off(us: float) -> None:
    assert rounded(us) == pytest.approx(us, rel=1.01 * NEAR)
    assert rounded(rounded(us)) == rounded(us)


def test_streams_do_not_share_what_cublas_works_in(
    gpu: CupyGpu, blas: fake_cupy.Cublas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cublas, "STREAMS", 2)
    made = cublas.Cublas(sys.modules["cupy"])
    assert made.version == 130_100
    first, second, third = (fake_cupy.Stream() for _ in range(3))
    for stream in (first, second, first):
        made.product(128, 128, 64, 1, 2, stream)
    assert [len(blas.spaces[stream.ptr]) for stream in (first, second)] == [1, 1]
    assert blas.spaces[first.ptr] != blas.spaces[second.ptr]
    with refused(GpuError, "2 streams"):
        made.product(128, 128, 64, 1, 2, third)
    made.forget(second)
    made.product(128, 128, 64, 1, 2, third)
    assert blas.spaces[third.ptr] == blas.spaces[second.ptr]


def test_failures_of_cublas_are_told(gpu: CupyGpu, blas: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any) -> None:
        raise fake_cupy.CublasError("EXECUTION_FAILED (13)")

    made = cublas.Cublas(sys.modules["cupy"])
    monkeypatch.setattr(blas, "gemm_ex", fails)
    with refused(GpuError, "cuBLAS", "EXECUTION_FAILED (13)"):
        made.product(128, 128, 64, 1, 2, fake_cupy.Stream())
    monkeypatch.setattr(blas, "create", fails)
    with refused(GpuError, "cuBLAS", "EXECUTION_FAILED"):
        cublas.Cublas(sys.modules["cupy"])


def test_missing_bindings_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nvmath.bindings", None)
    with refused(InputError, "[gpu]", "nvmath"):
        cublas.bindings()


def test_tenants_are_synthetic_unless_they_say_otherwise() -> None:
    one = problem([kernel(1.0, "compute")], [Op(KERNEL, 0.0, 0, 1.0)], "library").scenario.tenants[0]
    assert one.kernels == "library"
    plain = {name: value for name, value in msgspec.to_builtins(one).items() if name != "kernels"}
    assert msgspec.convert(plain, type(one)).kernels == "synthetic"
    with refused(msgspec.ValidationError, "kernels"):
        msgspec.convert({**plain, "kernels": "recorded"}, type(one))
