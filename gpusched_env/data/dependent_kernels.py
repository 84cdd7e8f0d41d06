"""The dependent kernels that cuSync's authors measured, as workloads by name.

Jangda et al., *A Framework for Fine-Grained Synchronization of Dependent GPU Kernels* (CGO 2024): grids, split-K and
times of StreamSync from the result files of its artifact (``published/cusync.json``). Names are
``mlp(model=gpt3_v100,tokens=512)``, the two matrix products of an MLP, and
``convolutions(network=vgg19_v100,channels=256,batch=8)``, two or four equal convolutions. Blocks last as long as
StreamSync's kernels do, over their waves.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.dependent import FILTER, TiledKernel, dependent, lead_of
from gpusched_env.workload.parameters import parameters_of
from gpusched_env.workload.workload import TileNeeds, Workload

EXAMPLES = {
    "mlp": "mlp(model=gpt3_v100,tokens=512)",
    "convolutions": "convolutions(network=vgg19_v100,channels=256,batch=8)",
}
FOLD = {"gpt3": 1, "llama": 2}
"""Matrices that the first product of an MLP has side by side."""
LAYERS = {"resnet38_v100": 2, "vgg19_v100": 4}
"""Convolutions one after the other."""
Count = Annotated[int, Meta(ge=1)]


class Mlp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two matrix products."""

    model: Literal["gpt3_v100", "gpt3_a100", "llama_v100", "llama_a100"]
    """With the GPU that it was measured on."""
    tokens: Count


class Convolutions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Convolutions of a layer."""

    network: Literal["resnet38_v100", "vgg19_v100"]
    channels: Count
    batch: Count


def is_measured_chain(name: str) -> bool:
    """Whether a workload's name is that of kernels that cuSync's authors measured."""
    return name.partition("(")[0].strip() in EXAMPLES


@functools.lru_cache(maxsize=256)
def measured_chain(name: str) -> Workload:
    """Kernels that cuSync's authors measured.

    Raises:
        InputError: the name cannot be read, a parameter is unknown, missing or out of range, or there is no such row.
    """
    kind = name.partition("(")[0].strip()
    if kind == "mlp":
        return _mlp(name.strip(), parameters_of(name, Mlp, EXAMPLES[kind]))
    return _convolutions(name.strip(), parameters_of(name, Convolutions, EXAMPLES[kind]))


@functools.cache
def _published() -> Any:
    text = (resources.files("gpusched_env.data") / "published" / "cusync.json").read_text(encoding="utf-8")
    return json.loads(text)


def _row(name: str, rows: Any, *keys: object) -> Any:
    for key in map(str, keys):
        if key not in rows:
            raise InputError(f"workload {name!r}: {key} was not measured; {did_you_mean(key, rows)}")
        rows = rows[key]
    return rows


def _mlp(name: str, asked: Mlp) -> Workload:
    row = _row(name, _published()["mlp"][asked.model], asked.tokens)
    model, card = asked.model.split("_")
    gpu = load_gpu(card)
    kernels = [
        # 256 threads with a tile beyond 256 x 128 fill the register file of a V100's SM; on an A100 all do.
        TiledKernel(rows, columns, slices, us, 2 if card == "v100" and m * n <= 256 * 128 else 1)
        for (rows, columns, slices), us, (m, n) in zip(row["grids"], row["gemms"], row["tiles"], strict=True)
    ]
    block_us = kernels[1].duration_us / kernels[1].waves(gpu.sms)
    return dependent(name, gpu, kernels, TileNeeds(fold=FOLD[model], lead=lead_of(block_us)))


def _convolutions(name: str, asked: Convolutions) -> Workload:
    row = _row(name, _published()["conv"][asked.network], asked.channels, asked.batch)
    gpu, count = load_gpu(asked.network.split("_")[1]), LAYERS[asked.network]
    (m, n), (rows, columns) = row["tile"], row["grid"]
    # They were measured by the host's clock, which waits for each.
    us = row["stream_us"] / count - gpu.timing.launch_latency_us - gpu.timing.sync_latency_us
    fitting = max(1, min(4, 2 * 128 * 128 // (m * n)))
    kernel = TiledKernel(rows, columns, row["slices"][0], us, fitting)
    return dependent(name, gpu, [kernel] * count, TileNeeds(steps=FILTER))
