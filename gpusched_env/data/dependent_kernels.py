"""Dependent kernels that were measured, as workloads by name: ``mlp(model=gpt3_v100,tokens=1024)``.

Grids and times are those of cuSync's artifact (``published/cusync.json``): blocks last as long as StreamSync's kernels
do, over their waves.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from gpusched_env.data import stored
from gpusched_env.data.products import ProductSize, forms_of
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.dependent import FILTER, TiledKernel, dependent_workload, lead_of
from gpusched_env.workload.generated_names import parameters_of
from gpusched_env.workload.workload import TileNeeds, Workload

FOLD: Final = {"gpt3": 1, "llama": 2}
"""Matrices that the first product of an MLP has side by side."""
PAIRED: Final = {"resnet38": 2, "vgg19": 4}
"""Number of convolutions in a row, where a layer has so many (VGG-19: 256 and 512 channels)."""
DEPTHS: Final = {"gpt3": (12288, 12288 // 2), "llama": (8192, 2816)}
"""Inner dimensions of the two products of an MLP on one of eight GPUs, as the grids and tiles of its rows have them."""
HEAD: Final = {"gpt3": 12288 // 8, "llama": 8192 // 8}
"""Columns of queries, keys and values on one of eight GPUs."""
Count = Annotated[int, Meta(ge=1)]


def published() -> Any:
    """The measured rows."""
    return stored("published", "cusync.json")


def fitting(card: str, tile: tuple[int, int]) -> int:
    """Blocks of a matrix product that an SM holds, by the rows and columns of their tile."""
    return 2 if card == "v100" and tile[0] * tile[1] <= 256 * 128 else 1


def mlp_kernels(model: str, tokens: int) -> list[TiledKernel]:
    """The two products of a row of the MLPs; ``model`` with its GPU: ``gpt3_v100``."""
    row, (name, card, *_) = published()["mlp"][model][str(tokens)], model.split("_")
    first, second = (
        TiledKernel(rows, columns, slices, us, fitting(card, tile))
        for (rows, columns, slices), us, tile in zip(row["grids"], row["gemms"], row["tiles"], strict=True)
    )
    block_us = second.duration_us / second.waves(load_gpu(card).sms)
    return [first, replace(second, needs=TileNeeds(fold=FOLD[name], lead=lead_of(block_us)))]


def attention_kernels(model: str, keys: int, tokens: int) -> list[TiledKernel]:
    """The four products of a row of attention; ``model`` with its GPU: ``gpt3_v100``.

    Queries, keys and values; scores; sums of values, which need all values; output. Scores go through queries and keys,
    the others through rows of the one before. Columns of keys from before wait for new keys as well.

    They were measured as convolutions were. Only the times of the first two are known: the other two share what is left
    of the total by waves times multiplications of the blocks that an SM holds.
    """
    row, spec, head = published()["attention"][model][str(keys)][str(tokens)], load_gpu("v100"), HEAD[model[:-5]]
    trip_us = _trip_us()
    outer, inner = row["tiles"]
    tiles = (outer, inner, inner, outer)
    first, second, third, fourth = (
        TiledKernel(rows, columns, slices, 1.0, _attention_fitting(tile))
        for (rows, columns, slices), tile in zip(row["grids"], tiles, strict=True)
    )
    work = [
        kernel.waves(spec.sms) * kernel.blocks_per_sm * tile[0] * tile[1] * depth / kernel.slices
        for kernel, tile, depth in ((third, inner, tokens + keys), (fourth, outer, head))
    ]
    left_us = row["stream_us"] - row["first_us"] - row["second_us"] - 2 * trip_us
    last_us = left_us * work[1] / sum(work)
    lead = lead_of(last_us / fourth.waves(spec.sms))
    return [
        replace(first, duration_us=row["first_us"] - trip_us),
        replace(second, duration_us=row["second_us"] - trip_us, needs=TileNeeds("product", fold=3)),
        replace(third, duration_us=left_us - last_us, whole=(0,)),
        replace(fourth, duration_us=last_us, needs=TileNeeds(lead=lead)),
    ]


def _attention_fitting(tile: tuple[int, int]) -> int:
    """Blocks of a product of attention that a V100's SM holds, by the rows and columns of their tile."""
    size = tile[0] * tile[1]
    return 1 if size > 256 * 128 else 2 if size >= 128 * 128 else 3


def _trip_us() -> float:
    """How long a host takes that waits for a kernel on a V100, in microseconds."""
    timing = load_gpu("v100").timing
    return timing.launch_latency_us + timing.sync_latency_us


def convolution_kernels(network: str, channels: int, batch: int) -> list[TiledKernel]:
    """The convolutions of a row; ``network`` with its GPU: ``resnet38_v100``.

    They were measured by the host's clock against a host that waits for each: what that takes is not in their times.
    """
    row = published()["conv"][network][str(channels)][str(batch)]
    count = PAIRED[network.split("_")[0]]
    (m, n), (rows, columns) = row["tile"], row["grid"]
    per_sm = max(1, min(4, 2 * 128 * 128 // (m * n)))
    kernel = TiledKernel(rows, columns, row["slices"][0], row["stream_us"] / count - _trip_us(), per_sm)
    return [replace(kernel, needs=TileNeeds(steps=FILTER))] * count


def with_forms(model: str, tokens: int) -> list[TiledKernel]:
    """The two products of a row of the MLPs as measured, with other forms by the law of products."""
    row, (name, card, *_) = published()["mlp"][model][str(tokens)], model.split("_")
    gpu, kernels = load_gpu(card), mlp_kernels(model, tokens)
    # Rows of tiles of all forms are whole rows of each other's.
    rows = max(tile[0] for tile in row["tiles"]) * min(grid[0] for grid in row["grids"])
    found = []
    for kernel, tile, depth, fold in zip(kernels, row["tiles"], DEPTHS[name], (FOLD[name], 1), strict=True):
        size = ProductSize(rows, kernel.columns * tile[1], depth)
        own = (tile[0], tile[1]), kernel.slices
        found.append(replace(kernel, forms=tuple(forms_of(size, gpu, own, fold))))
    return found


class Mlp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The two matrix products of an MLP on one of eight GPUs that share it."""

    EXAMPLE: ClassVar = "mlp(model=gpt3_v100,tokens=1024)"
    PLACE: ClassVar = ("mlp", "model", "tokens")
    model: Literal["gpt3_v100", "gpt3_a100", "llama_v100", "llama_a100"]
    """Name of the model, with the GPU that it was measured on."""
    tokens: Count
    forms: bool = False
    """Whether the products may be given other tiles and slices, which take as long as the law of products says."""

    def kernels(self) -> list[TiledKernel]:
        return with_forms(self.model, self.tokens) if self.forms else mlp_kernels(self.model, self.tokens)


class Attention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The four matrix products of attention on one of eight GPUs that share it, V100s."""

    EXAMPLE: ClassVar = "attention(model=gpt3_v100,tokens=512)"
    PLACE: ClassVar = ("attention", "model", "keys", "tokens")
    model: Literal["gpt3_v100", "llama_v100"]
    """Name of the model, with the GPU that it was measured on."""
    tokens: Count
    keys: Annotated[int, Meta(ge=0)] = 0
    """Number of keys from before; 0: a prompt."""

    def kernels(self) -> list[TiledKernel]:
        return attention_kernels(self.model, self.keys, self.tokens)


class Convolutions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The convolutions of a layer on a V100: two of ResNet-38, four of VGG-19 (256 and 512 channels)."""

    EXAMPLE: ClassVar = "convolutions(network=resnet38_v100,channels=64,batch=1)"
    PLACE: ClassVar = ("conv", "network", "channels", "batch")
    network: Literal["resnet38_v100", "vgg19_v100"]
    """Name of the network, with the GPU that it was measured on."""
    channels: Count
    batch: Count

    def kernels(self) -> list[TiledKernel]:
        return convolution_kernels(self.network, self.channels, self.batch)


Measured = Mlp | Attention | Convolutions
KINDS: Final[dict[str, type[Measured]]] = {"mlp": Mlp, "attention": Attention, "convolutions": Convolutions}


def is_measured_chain(name: str) -> bool:
    """Whether a workload's name is that of measured kernels."""
    return name.partition("(")[0].strip() in KINDS


def measured_of(name: str) -> Measured:
    """What ``mlp(model=gpt3_v100,tokens=1024)`` asks for.

    Raises:
        InputError: it cannot be read, a parameter is unknown, missing or out of range, or there is no such row.
    """
    kind = KINDS[name.partition("(")[0].strip()]
    asked = parameters_of(name, kind, kind.EXAMPLE)
    table, named, *sizes = kind.PLACE
    rows = published()[table][getattr(asked, named)]
    for size in sizes:
        value = str(getattr(asked, size))
        if value not in rows:
            measured = ", ".join(sorted(rows, key=int))
            raise InputError(f"workload {name!r}: {size} is {value}; measured were {measured}")
        rows = rows[value]
    return asked


@functools.lru_cache(maxsize=256)
def measured_chain(name: str) -> Workload:
    """One iteration of measured kernels, each in a stream of its own.

    Raises:
        InputError: as :func:`measured_of`.
    """
    asked = measured_of(name)
    model = str(getattr(asked, asked.PLACE[1]))
    return dependent_workload(name.strip(), load_gpu(model.split("_")[1]), asked.kernels())


def aligned(row: dict[str, Any]) -> bool:
    """Whether rows of tiles of one product of an MLP are whole rows of the other's."""
    first, second = sorted(rows for rows, _, _ in row["grids"])
    return bool(second % first == 0)
