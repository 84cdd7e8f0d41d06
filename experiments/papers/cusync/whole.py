"""Whole models: the gains of their layers together, each part by the scheme that takes least time, or by none.

A layer of a transformer that eight GPUs share has attention, an MLP, and an all-reduce behind each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from gpusched_env.data.dependent_kernels import published
from gpusched_env.experiments.papers.cusync.runs import (
    OF_ATTENTION,
    SCHEMES,
    Attention,
    Convolutions,
    Mlp,
    Scheme,
    all_attention,
    all_convolutions,
)

LAYERS: Final = {
    "ResNet-38": {64: 3, 128: 4, 256: 6, 512: 3},
    "VGG-19": {64: 1, 128: 1, 256: 1, 512: 1},
}
"""By channels."""
COLUMNS: Final = {"gpt3_v100": 12288, "llama_v100": 8192}
"""Of a layer's output."""
LEAST_PROMPT = 512
"""Of the paper's sizes."""
TRANSFORMERS: Final = {"GPT-3": "gpt3_v100", "LLaMA": "llama_v100"}
NETWORKS: Final = {"ResNet-38": "resnet38_v100", "VGG-19": "vgg19_v100"}


@dataclass(frozen=True, slots=True)
class Whole:
    """A model, end to end."""

    model: str
    size: str
    measured: float
    """What the measured times of its parts add up to, per cent."""
    ours: float
    low: float
    high: float
    """Published for all sizes."""

    @property
    def holds(self) -> bool:
        return self.low <= self.ours <= self.high


@dataclass(frozen=True, slots=True)
class _Part:
    """Kernels of a layer, and how many layers have them."""

    cell: Callable[[Scheme], Any]
    plain: Scheme
    schemes: tuple[Scheme, ...]
    layers: int = 1
    besides_us: float = 0.0
    """What no scheme makes shorter."""

    def measured_us(self) -> tuple[float, float]:
        """In stream order, and by the best scheme."""
        row = self.cell(self.plain).row
        plain_us = row["stream_us"] if "stream_us" in row else sum(row["gemms"])
        return self._both(plain_us, [row[f"{scheme}_us"] for scheme in self.schemes])

    def ours_us(self, time_us: Callable[[Any], float]) -> tuple[float, float]:
        """The same, simulated."""
        return self._both(time_us(self.cell(self.plain)), [time_us(self.cell(scheme)) for scheme in self.schemes])

    def _both(self, plain_us: float, times_us: list[float]) -> tuple[float, float]:
        best_us = min(plain_us, *times_us)
        return self.layers * (plain_us + self.besides_us), self.layers * (best_us + self.besides_us)


def whole_models(time_us: Callable[[Any], float]) -> list[Whole]:
    """All models at all sizes at which all their parts were measured; ``time_us``: of a cell, simulated."""
    found = []
    for model, size, parts in _models():
        measured = _gain([part.measured_us() for part in parts])
        ours = _gain([part.ours_us(time_us) for part in parts])
        low, high = published()["ranges"]["end_to_end"][model]
        found.append(Whole(model, size, measured, ours, low, high))
    return found


def _gain(times_us: list[tuple[float, float]]) -> float:
    """Of all parts together, per cent."""
    plain_us, best_us = sum(plain_us for plain_us, _ in times_us), sum(best_us for _, best_us in times_us)
    return 100.0 * (1.0 - best_us / plain_us)


def _models() -> Iterator[tuple[str, str, list[_Part]]]:
    for model, key in TRANSFORMERS.items():
        for name, keys, tokens in all_attention():
            if name == key and (keys or tokens >= LEAST_PROMPT):
                size = f"tokens {tokens}" + (f", keys {keys}" if keys else "")
                yield model, size, _transformer(key, keys, tokens)
    for model, key in NETWORKS.items():
        batches = sorted({batch for _, _, batch in all_convolutions()})
        yield from ((model, f"batch {b}", [_layer(key, c, b, n) for c, n in LAYERS[model].items()]) for b in batches)


def _transformer(key: str, keys: int, tokens: int) -> list[_Part]:
    all_reduce = published()["all_reduce"]
    # Of LLaMA none was measured: as many bytes take as long.
    besides_us = all_reduce["us"][str(tokens)] * COLUMNS[key] / all_reduce["columns"]
    return [
        _Part(partial(Attention, key, keys, tokens), "waited-for", OF_ATTENTION, besides_us=besides_us),
        _Part(partial(Mlp, key, tokens), "stream", SCHEMES, besides_us=besides_us),
    ]


def _layer(key: str, channels: int, batch: int, layers: int) -> _Part:
    # VGG-19's layers of few channels have two convolutions, which are ResNet-38's.
    key = key if str(channels) in published()["conv"][key] else NETWORKS["ResNet-38"]
    return _Part(partial(Convolutions, key, channels, batch), "waited-for", SCHEMES, layers)
