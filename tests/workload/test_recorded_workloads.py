"""The shipped recordings: complete, consistent with the GPU's latencies, and plausible."""

import statistics
from pathlib import Path

import pytest

from gpusched_env.data import read_recorded, recorded_names
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.alone import recorded_threads
from gpusched_env.workload.idle_gpu import IdleGpu
from gpusched_env.workload.importers import summarise
from gpusched_env.workload.serving import Decode, Prefill
from gpusched_env.workload.workload import OpKind, Variant, Workload

ENGINES = ["llama_1b", "llama_1b_split"]
"""Whose variants are single steps of a serving engine."""
RECORDED = [name for name in recorded_names() if not name.startswith("toy_") and name not in ENGINES]

# Kernels, copies (all directions), memsets, synchronisations over all three iterations, as the profiler counted
# them (a pageable copy to the host counts as a copy and a synchronisation).
COUNTS = {
    "alexnet_fp32_infer_b1": (99, 3, 9, 9),
    "bert_infer_b8_s128": (465, 0, 36, 3),
    "bert_train_b16_s128": (3219, 0, 288, 3),
    "densenet201_fp32_infer_b1": (2931, 15, 0, 12),
    "dynamic_routing_infer_b4": (870, 48, 0, 99),
    "fasterrcnn_resnet50_fpn_infer_b1": (1941, 102, 42, 69),
    "maskrcnn_resnet50_fpn_infer_b1": (7344, 4011, 60, 3969),
    "nasnetalarge_infer_b1": (5763, 0, 0, 3),
    "resnet152_fp32_train_b64": (6219, 0, 309, 6),
    "resnet50_infer_b1": (1026, 0, 0, 3),
    "resnet50_train_b32": (2820, 0, 63, 3),
    "ssd300_vgg16_infer_b1": (9993, 2202, 90, 1392),
    "vgg16_infer_b8": (270, 0, 18, 3),
    "vgg19_fp32_infer_b1": (294, 3, 12, 12),
}
COPIES = (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST, OpKind.COPY_ON_DEVICE)
BOUND_BY_THE_DEVICE = {
    "vgg16_infer_b8": 0.015,
    "vgg19_fp32_train_b128": 0.015,
    "densenet201_fp32_train_b64": 0.005,
}
"""Their kernels were slower under the profiler, by up to so much."""


def test_all_recordings_are_there() -> None:
    assert len(RECORDED) == 45
    assert set(COUNTS) <= set(RECORDED)
    assert set(ENGINES) <= set(recorded_names())


@pytest.mark.parametrize("name", COUNTS)
def test_nothing_was_lost_in_conversion(name: str) -> None:
    kinds = [op.kind for variant in read_recorded(name).variants for op in variant.ops]
    copies = sum(OpKind.COPY_TO_DEVICE <= kind <= OpKind.COPY_ON_DEVICE for kind in kinds)
    assert (kinds.count(OpKind.KERNEL), copies, kinds.count(OpKind.MEMSET), kinds.count(OpKind.SYNC)) == COUNTS[name]


@pytest.mark.parametrize("name", RECORDED)
def test_an_iteration_alone_takes_the_measured_time(name: str) -> None:
    workload = read_recorded(name)
    gpu = IdleGpu(load_gpu(workload.gpu))
    measured = statistics.median(workload.iteration_us)
    assert len(workload.iteration_us) == 20
    tolerance = BOUND_BY_THE_DEVICE.get(name, 1e-4)
    for variant in workload.variants:
        alone = gpu.play(recorded_threads(variant, workload.graphs, gpu.spec.timing))
        assert alone.host_us == pytest.approx(measured, rel=tolerance)


@pytest.mark.parametrize("name", RECORDED)
def test_the_kernel_table_belongs_to_the_operations(name: str) -> None:
    workload = read_recorded(name)
    assert workload.name == name
    assert len(workload.variants) == 3
    durations: list[list[float]] = [[] for _ in workload.kernels]
    for variant in workload.variants:
        assert variant.ops[-1].kind is OpKind.SYNC
        for op in variant.ops:
            if op.kind is OpKind.KERNEL:
                durations[op.index].append(op.duration_us)
            elif op.kind in (*COPIES, OpKind.MEMSET):
                assert op.bytes > 0
    for kernel, seen in zip(workload.kernels, durations, strict=True):
        assert kernel.duration_us == pytest.approx(statistics.fmean(seen), abs=1e-3)
    keys = {(k.name, k.grid, k.block, k.registers, k.shared_bytes) for k in workload.kernels}
    assert len(keys) == len(workload.kernels)


@pytest.mark.parametrize("name", ENGINES)
def test_steps_of_an_engine_take_longer_with_more_to_do(name: str) -> None:
    """Kernels of a prefill by its tokens, of a decode by its requests and contexts; two in a hundred are noise."""
    workload = read_recorded(name)
    steps = {variant.step: sum(op.duration_us for op in variant.ops) for variant in workload.variants}
    assert None not in steps
    sizes = [(step.size, us) for step, us in steps.items() if step is not None]
    for (batch, tokens), us in sizes:
        for (more, longer), more_us in sizes:
            if (batch == 0) == (more == 0) and more >= batch and longer >= tokens:
                assert more_us > 0.98 * us, (batch, tokens, more, longer)


def test_a_gpu_that_shares_a_model_has_less_to_do_and_reduces_with_the_other() -> None:
    whole, part = (
        {variant.step: sum(op.duration_us for op in variant.ops) for variant in read_recorded(name).variants}
        for name in ENGINES
    )
    assert all(0.7 < us / whole[step] < 1.0 for step, us in part.items())
    split = read_recorded("llama_1b_split")
    reduces = {number for number, kernel in enumerate(split.kernels) if kernel.name.startswith("ncclDevKernel")}
    # Behind attention and behind the inner layer of each of 16 layers.
    for variant in split.variants:
        assert sum(op.kind is OpKind.KERNEL and op.index in reduces for op in variant.ops) == 32


@pytest.mark.parametrize("name", RECORDED)
def test_summaries_are_sound(name: str) -> None:
    figures = summarise(read_recorded(name))
    assert 0.0 < figures.occupancy <= figures.sm_share <= 1.0
    assert 0.0 <= figures.idle_share < 1.0
    assert sum(figures.class_shares.values()) == pytest.approx(1.0)


def test_small_networks_leave_the_gpu_idle_and_large_batches_do_not() -> None:
    idle = {name: summarise(read_recorded(name)).idle_share for name in RECORDED}
    assert idle["resnet50_infer_b1"] > 0.75
    assert idle["maskrcnn_resnet50_fpn_infer_b1"] > 0.75
    assert idle["vgg16_infer_b8"] < 0.15


def test_the_page_on_continuous_batching_has_the_recorded_times() -> None:
    whole, split = (read_recorded(name) for name in ENGINES)
    alone = {variant.step: variant for variant in whole.variants}

    def kernels(workload: Workload, variant: Variant, prefix: str = "") -> list[float]:
        launched = [op for op in variant.ops if op.kind is OpKind.KERNEL]
        return [op.duration_us / 1e3 for op in launched if workload.kernels[op.index].name.startswith(prefix)]

    rows = []
    for variant in split.variants:
        step, one = variant.step, kernels(whole, alone[variant.step])
        part, reduces = kernels(split, variant), kernels(split, variant, "ncclDevKernel")
        name = f"prefill, {step.tokens} tokens" if isinstance(step, Prefill) else None
        name = f"decode, {step.batch} × {step.context}" if isinstance(step, Decode) else name
        rows.append(f"| {name} | {len(one)} | {sum(one):.2f} | {len(part)} | {sum(part):.2f} | {sum(reduces):.2f} |")
    page = (Path(__file__).parents[2] / "docs" / "continuous-batching.md").read_text()
    assert "\n".join(rows) in page
