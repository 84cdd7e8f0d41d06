"""Dependent kernels that were measured, as workloads by name: ``mlp(model=gpt3,tokens=1024)``.

Grids and times are those of cuSync's artifact (``published/cusync.json``): blocks last as long as StreamSync's kernels
do, over their waves.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable
from dataclasses import replace
from importlib import resources
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.dependent import TiledKernel, dependent
from gpusched_env.workload.parameters import parameters_of
from gpusched_env.workload.workload import TileNeeds, Workload

FOLD: Final = {"gpt3": 1, "llama": 2}
"""Matrices that the first product of an MLP has side by side."""
LEAD_US: Final = 13.0
"""What reordered loads save (cuSync, Table V): work of a block that needs nothing of the producer."""
FILTER: Final = 9
"""Elements of a 3 x 3 filter: steps a tile."""
PAIRED: Final = {"resnet38": 2, "vgg19": 4}
"""Convolutions in a row, where a layer has so many (VGG-19: 256 and 512 channels)."""
HEAD: Final = {"gpt3": 12288 // 8, "llama": 8192 // 8}
"""Columns of queries, keys and values on one of eight GPUs."""
Card = Literal["v100", "a100"]
Tokens = Annotated[int, Meta(ge=1)]


@functools.cache
def published() -> Any:
    """The measured rows."""
    text = (resources.files("gpusched_env.data") / "published" / "cusync.json").read_text(encoding="utf-8")
    return json.loads(text)


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
    return [first, replace(second, needs=TileNeeds(fold=FOLD[name], lead=min(0.9, LEAD_US / block_us)))]


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
    lead = min(0.9, LEAD_US / (last_us / fourth.waves(spec.sms)))
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
    """What a host takes that waits for a kernel on a V100."""
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


class Mlp(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The two matrix products of an MLP on one of eight GPUs that share it."""

    EXAMPLE: ClassVar = "mlp(model=gpt3,tokens=1024)"
    KEYS: ClassVar = ("tokens",)
    model: Literal["gpt3", "llama"]
    tokens: Tokens
    gpu: Card = "v100"

    @property
    def rows(self) -> Any:
        return published()["mlp"][f"{self.model}_{self.gpu}"]

    def kernels(self) -> list[TiledKernel]:
        return mlp_kernels(f"{self.model}_{self.gpu}", self.tokens)


class Attention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The four matrix products of attention on one of eight GPUs that share it, V100s."""

    EXAMPLE: ClassVar = "attention(model=gpt3,tokens=512)"
    KEYS: ClassVar = ("keys", "tokens")
    model: Literal["gpt3", "llama"]
    tokens: Tokens
    keys: Annotated[int, Meta(ge=0)] = 0
    """From before: of a prompt none."""
    gpu: Literal["v100"] = "v100"

    @property
    def rows(self) -> Any:
        return published()["attention"][f"{self.model}_{self.gpu}"]

    def kernels(self) -> list[TiledKernel]:
        return attention_kernels(f"{self.model}_{self.gpu}", self.keys, self.tokens)


class Convolutions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The convolutions of a layer on a V100: two of ResNet-38, four of VGG-19 (256 and 512 channels)."""

    EXAMPLE: ClassVar = "convolutions(network=resnet38,channels=64,batch=1)"
    KEYS: ClassVar = ("channels", "batch")
    network: Literal["resnet38", "vgg19"]
    channels: Tokens
    batch: Tokens
    gpu: Literal["v100"] = "v100"

    @property
    def rows(self) -> Any:
        return published()["conv"][f"{self.network}_{self.gpu}"]

    def kernels(self) -> list[TiledKernel]:
        return convolution_kernels(f"{self.network}_{self.gpu}", self.channels, self.batch)


Measured = Mlp | Attention | Convolutions
KINDS: Final[dict[str, type[Measured]]] = {"mlp": Mlp, "attention": Attention, "convolutions": Convolutions}


def is_measured(name: str) -> bool:
    """Whether a workload's name is that of measured kernels."""
    return name.partition("(")[0].strip() in KINDS


def measured_of(name: str) -> Measured:
    """What ``mlp(model=gpt3,tokens=1024)`` asks for.

    Raises:
        InputError: it cannot be read, a parameter is unknown, missing or out of range, or there is no such row.
    """
    kind = KINDS[name.partition("(")[0].strip()]
    asked = parameters_of(name, kind, kind.EXAMPLE)
    rows = asked.rows
    for key in kind.KEYS:
        value = str(getattr(asked, key))
        if value not in rows:
            raise InputError(f"workload {name!r}: {key} is {value}; measured were {_listed(rows)}")
        rows = rows[value]
    return asked


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(values, key=int))


@functools.lru_cache(maxsize=256)
def measured_workload(name: str) -> Workload:
    """One iteration of measured kernels, each in a stream of its own.

    Raises:
        InputError: as :func:`measured_of`.
    """
    asked = measured_of(name)
    return dependent(name.strip(), load_gpu(asked.gpu), asked.kernels())


def measured_names() -> list[str]:
    """Names of all rows whose grids can be synchronised: those of each kernel are whole rows of the next one's."""
    mlps = [
        f"mlp(model={model},tokens={tokens},gpu={card})"
        for key, rows in published()["mlp"].items()
        for model, card in [key.split("_")[:2]]
        if key == f"{model}_{card}"
        for tokens, row in rows.items()
        if aligned(row)
    ]
    attention = [
        f"attention(model={key.split('_')[0]},tokens={tokens},keys={keys})"
        for key, by_keys in published()["attention"].items()
        for keys, rows in by_keys.items()
        for tokens in rows
    ]
    convolutions = [
        f"convolutions(network={key.split('_')[0]},channels={channels},batch={batch})"
        for key, by_channels in published()["conv"].items()
        for channels, rows in by_channels.items()
        for batch in rows
    ]
    return [*mlps, *attention, *convolutions]


def aligned(row: dict[str, Any]) -> bool:
    """Whether rows of tiles of one product of an MLP are whole rows of the other's."""
    first, second = sorted(rows for rows, _, _ in row["grids"])
    return bool(second % first == 0)
