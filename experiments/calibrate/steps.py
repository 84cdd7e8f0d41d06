"""Reads off the recorded steps of a small language model what kernels of any dense one take.

Run it with ``python -m gpusched_env.experiments.calibrate.steps``; it writes ``data/calibration/steps.json``. The rows
are those of ``llama_1b`` (an H200): its products of 1 to 1,024 tokens, by the tiles in their kernels' names; its
attention, with caches read at the bandwidth of the GPU's specification; and its small kernels. ``llama_1b_split``, one
of two GPUs that share the model, is no part of the fit; the file says how far the law of products is off it.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

from gpusched_env.data import read_recorded
from gpusched_env.experiments.calibrate.products import searched
from gpusched_env.experiments.lib.language_models import DenseModel
from gpusched_env.experiments.papers.time_per_token.steps import (
    HALF_BYTES,
    OPERATIONS,
    Chunk,
    StepCosts,
    divided,
    matrix_us,
    product_costs,
    reached_bytes_per_us,
)
from gpusched_env.experiments.record.steps import LLAMA_1B
from gpusched_env.hardware.solo import Product
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.serving import Decode, Prefill
from gpusched_env.workload.workload import OpKind, Variant

WHERE: Final = Path(str(resources.files("gpusched_env.data"))) / "calibration" / "steps.json"
WHOLE, SPLIT, GPUS_OF_SPLIT = "llama_1b", "llama_1b_split", 2
TILE: Final = re.compile(r"nvjet_sm90_hsh_(\d+)x(\d+)_")
"""In the name of a product's kernel: outputs and tokens of its tile."""
FIRST: Final = (3.0, 3.6e-7, 3e-5, 1.0)
"""Start, step, load and slice at which the search begins."""
LONG_PROMPT: Final = 512
"""Tokens of prompts whose attention takes much longer than its start."""


class MeasuredStep(NamedTuple):
    """A product, and the mean of its microseconds."""

    product: Product
    us: float


def kernels(variant: Variant, known: Sequence[Kernel]) -> list[tuple[Kernel, float]]:
    """Kernels of a step in order, with their microseconds; what adds up slices belongs to its product."""
    found: list[tuple[Kernel, float]] = []
    for op in variant.ops:
        if op.kind is not OpKind.KERNEL:
            continue
        if "splitKreduce" in known[op.index].name:
            kernel, us = found.pop()
            found.append((kernel, us + op.duration_us))
        else:
            found.append((known[op.index], op.duration_us))
    return found


def steps(name: str) -> list[tuple[Prefill | Decode, list[tuple[Kernel, float]]]]:
    """The recorded steps of a model with their kernels."""
    workload = read_recorded(name)
    return [(of.step, kernels(of, workload.kernels)) for of in workload.variants if of.step is not None]


def tile_of(kernel: Kernel) -> tuple[int, int] | None:
    """Rows and columns of a product's tile; ``None``: it is none."""
    found = TILE.search(kernel.name)
    return (int(found[2]), int(found[1])) if found else None


def products(name: str, model: DenseModel) -> list[MeasuredStep]:
    """Products of a recorded model, one of a kind: decodes with longer contexts have the same ones."""
    times: defaultdict[Product, list[float]] = defaultdict(list)
    layer = len(model.products)
    for step, ran in steps(name):
        found = [(kernel, tile, us) for kernel, us in ran if (tile := tile_of(kernel))]
        assert len(found) == model.layers * layer + 1, (name, step, len(found))
        requests, tokens = (step.batch, step.batch) if isinstance(step, Decode) else (1, step.tokens)
        for place, matrix in enumerate((*model.products, model.answers)):
            same, of = (found[place:-1:layer], tokens) if place < layer else (found[-1:], requests)
            kernel, tile, _ = same[0]
            whole = divided(of, matrix, tile, 1)
            slices = round(kernel.blocks / (whole.rows * whole.columns)) if "splitK" in kernel.name else 1
            times[divided(of, matrix, tile, slices)] += [us for _, _, us in same]
    return [MeasuredStep(product, statistics.fmean(us)) for product, us in times.items()]


def attention(name: str) -> dict[Prefill | Decode, float]:
    """Mean microseconds of attention in one layer, by step."""
    return {step: statistics.fmean(us for kernel, us in ran if "sdpa" in kernel.name) for step, ran in steps(name)}


def small_us(name: str) -> tuple[float, float]:
    """What a small kernel takes that has a token to move (the median), and the choice of a token."""
    ran = dict(steps(name))[Decode(batch=1, context=256)]
    small = [us for kernel, us in ran[:-1] if not tile_of(kernel) and "sdpa" not in kernel.name]
    return statistics.median(small), ran[-1][1]


def fit() -> StepCosts:
    """The costs of steps on the GPU of the recording."""
    gpu, rows, attended = load_gpu(read_recorded(WHOLE).gpu), products(WHOLE, LLAMA_1B), attention(WHOLE)
    small, sampling = small_us(WHOLE)
    costs = StepCosts(1.0, 1.0, 1.0, 1.0, 1.0, 0.0, small, sampling)

    def loss(four: Sequence[float]) -> float:
        return statistics.fmean(map(abs, errors(costs._replace(**dict(zip(costs._fields, four, strict=False))), rows)))

    block, step, load, slice_ = searched(FIRST, loss)
    costs = costs._replace(block_us=block, step_us=step, load_us=load, slice_us=slice_)
    cached = LLAMA_1B.cache_elements * HALF_BYTES / reached_bytes_per_us(gpu)
    starts = [us - of.batch * of.context * cached for of, us in attended.items() if isinstance(of, Decode)]
    start = statistics.median(starts)
    prompts = {of.tokens: us for of, us in attended.items() if isinstance(of, Prefill) and of.tokens >= LONG_PROMPT}
    scores = {tokens: LLAMA_1B.heads * Chunk(tokens).scores for tokens in prompts}
    arithmetic = OPERATIONS * LLAMA_1B.head * step / 2 / gpu.sms
    besides = statistics.fmean((us - start) / scores[tokens] - arithmetic for tokens, us in prompts.items())
    rounded = (float(f"{cost:.4g}") for cost in (start, besides, small, sampling))
    return costs._replace(**dict(zip(costs._fields[4:], rounded, strict=True)))


def errors(costs: StepCosts, rows: Sequence[MeasuredStep]) -> list[float]:
    """Logarithms of predicted over measured durations of products."""
    gpu = load_gpu(read_recorded(WHOLE).gpu)
    known = product_costs(costs, gpu, gpu, HALF_BYTES)
    return [math.log(matrix_us(known, product, gpu.sms) / us) for product, us in rows]


def record() -> dict[str, Any]:
    """The costs, the tiles that ran, and how far products are off, in the fit and out of it."""
    costs, rows = fit(), products(WHOLE, LLAMA_1B)
    share = replace(
        LLAMA_1B, heads=LLAMA_1B.heads // GPUS_OF_SPLIT, shared_heads=LLAMA_1B.shared_heads // GPUS_OF_SPLIT,
        inner=LLAMA_1B.inner // GPUS_OF_SPLIT, vocabulary=LLAMA_1B.vocabulary // GPUS_OF_SPLIT,
    )  # fmt: skip
    off: dict[str, Any] = defaultdict(dict)
    for name, of in ((WHOLE, rows), (SPLIT, products(SPLIT, share))):
        found = sorted(abs(math.expm1(error)) for error in errors(costs, of))
        off[name] = {"rows": len(found), "median": round(statistics.median(found), 4)}
        off[name]["p90"] = round(found[int(0.9 * len(found))], 4)
    return {
        "gpu": read_recorded(WHOLE).gpu,
        "costs": costs._asdict(),
        "tiles": sorted({(row.product.tile_rows, row.product.tile_columns) for row in rows}),
        "slices": sorted({row.product.slices for row in rows}),
        "error": off,
    }


if __name__ == "__main__":
    WHERE.write_text(json.dumps(record(), indent=1) + "\n", encoding="utf-8")
