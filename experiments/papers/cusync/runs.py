"""What is simulated of cuSync: dependent kernels alone, and whole models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import msgspec

from gpusched_env.data.dependent_kernels import (
    FOLD,
    aligned,
    attention_kernels,
    convolution_kernels,
    mlp_kernels,
    published,
)
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.papers.cusync.costs import priced
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.dependent import Launched, TiledKernel, dependent_workload
from gpusched_env.workload.workload import Workload

Scheme = Literal["waited-for", "stream", "row", "tile", "strided", "stream-k"]
"""``waited-for``: in stream order, and the host waits for each kernel."""
SCHEMES: Final[tuple[Scheme, ...]] = ("row", "tile")
BASELINES: Final[tuple[Scheme, ...]] = ("waited-for", "stream")
OF_ATTENTION: Final[tuple[Scheme, ...]] = (*SCHEMES, "strided")
ALONE: Final = {"waited-for": "pass-through", "stream": "pass-through", "stream-k": "stream-k"}
"""Schedulers of schemes that synchronise nothing."""


@dataclass(frozen=True, slots=True)
class RunTimes:
    """What one run takes."""

    time_us: float


def _problem(gpu: GpuSpec, workload: Workload) -> Problem:
    """The problem of one iteration alone."""
    scenario = make_scenario(
        {
            "name": "cuSync", "gpu": gpu.name, "horizon_us": 1e7, "variation": False, "lookahead": 8,
            "tenants": [{"name": "model", "workload": workload.name, "arrivals": {"kind": "backlog"}, "jobs": 1}],
        }
    )  # fmt: skip
    return build_problem(scenario, gpu=gpu, workloads={workload.name: workload})


def _scheduler(scheme: Scheme, options: str, policy: str = "") -> str:
    """The scheduler of a scheme with the artifact's options: T and W leave order and wait kernel out, R reorders.

    ``policy``: that of the scheme, where it has another name.
    """
    if scheme in ALONE:
        return ALONE[scheme]
    order = "native" if "T" in options else "row-major"
    wait_kernel, reorder = str("W" not in options).lower(), str("R" in options).lower()
    return f"cusync(policy={policy or scheme},order={order},wait_kernel={wait_kernel},reorder={reorder})"


def _options(row: dict[str, Any], scheme: Scheme) -> str:
    """The artifact's options; those of StridedSync are TileSync's."""
    return "" if scheme in ALONE else str(row["options"][scheme != "row"])


@dataclass(frozen=True, slots=True)
class MlpRun:
    """Two products of a model on a number of tokens."""

    model: str
    """The model and its GPU."""
    tokens: int
    scheme: Scheme
    post_us: float | None = None
    wait_us: float | None = None
    """``None``: as counted and timed elsewhere."""
    options: str | None = None
    """Options of the scheme; ``None``: the artifact's."""

    @property
    def row(self) -> Any:
        return published()["mlp"][self.model][str(self.tokens)]

    def run(self, device: str) -> RunTimes:
        model, card, *_ = self.model.split("_")
        kernels = mlp_kernels(self.model, self.tokens)
        gpu = _free_launches(priced(load_gpu(card), kernels), self.post_us, self.wait_us)
        options = _options(self.row, self.scheme) if self.options is None else self.options
        # What is called TileSync of LLaMA's products is StridedSync with tiles of the two that are fused.
        spec = _scheduler(self.scheme, options, "strided" if self.scheme == "tile" and FOLD[model] > 1 else "")
        problem = _problem(gpu, dependent_workload(self.model, gpu, kernels))
        return RunTimes(play(spec, problem, 0, device=device).end_us)


def _free_launches(gpu: GpuSpec, post_us: float | None, wait_us: float | None) -> GpuSpec:
    """A GPU whose launches cost nothing: they are in the measured times of kernels."""
    timing = msgspec.structs.replace(gpu.timing, launch_latency_us=0.0, stream_gap_us=0.0, event_latency_us=0.0)
    costs = {"post_us": post_us, "wait_us": wait_us}
    tiles = msgspec.structs.replace(gpu.tiles, **{name: us for name, us in costs.items() if us is not None})
    return msgspec.structs.replace(gpu, timing=timing, tiles=tiles)


def _host_timed(name: str, kernels: list[TiledKernel], scheme: Scheme, spec: str, device: str) -> RunTimes:
    """Kernels on a V100, from the first launch until the host knows of the end of the last one."""
    gpu = priced(load_gpu("v100"), kernels)
    launched: dict[str, Launched] = {"waited-for": "waited-for", "stream": "in-order"}
    workload = dependent_workload(name, gpu, kernels, launched=launched.get(scheme, "beside"))
    return RunTimes(play(spec, _problem(gpu, workload), 0, device=device).end_us + gpu.timing.sync_latency_us)


@dataclass(frozen=True, slots=True)
class AttentionRun:
    """Four products on a V100."""

    model: str
    """The model and its GPU."""
    keys: int
    """The number of keys from before."""
    tokens: int
    scheme: Scheme

    @property
    def row(self) -> Any:
        return published()["attention"][self.model][str(self.keys)][str(self.tokens)]

    def run(self, device: str) -> RunTimes:
        # StridedSync, as released: queries, keys and values of a row have a semaphore each.
        policy = "matrix" if self.scheme == "strided" else ""
        spec = _scheduler(self.scheme, _options(self.row, self.scheme), policy)
        kernels = attention_kernels(self.model, self.keys, self.tokens)
        return _host_timed(self.model, kernels, self.scheme, spec, device)


@dataclass(frozen=True, slots=True)
class ConvolutionsRun:
    """Two or four convolutions on a V100."""

    network: str
    """The network and its GPU."""
    channels: int
    batch: int
    scheme: Scheme

    @property
    def row(self) -> Any:
        return published()["conv"][self.network][str(self.channels)][str(self.batch)]

    @property
    def same(self) -> bool:
        """Whether all schemes have the same split-K."""
        return len(set(self.row["slices"])) == 1

    def run(self, device: str) -> RunTimes:
        spec = _scheduler(self.scheme, _options(self.row, self.scheme))
        kernels = convolution_kernels(self.network, self.channels, self.batch)
        return _host_timed(f"{self.network}-{self.channels}", kernels, self.scheme, spec, device)


@dataclass(frozen=True, slots=True)
class Toy:
    """Two products of 3 x 2 tiles on 4 SMs: waves of 10 us."""

    scheme: Scheme

    def run(self, device: str) -> RunTimes:
        gpu = load_gpu("toy-4sm")
        workload = dependent_workload("toy", gpu, [TiledKernel(3, 2, 1, 20.0)] * 2)
        return RunTimes(play(_scheduler(self.scheme, "TW"), _problem(gpu, workload), 0, device=device).end_us)


def all_mlps() -> Iterator[tuple[str, int]]:
    """Rows of the MLPs whose grids can be synchronised: model with its GPU, tokens."""
    for model, rows in published()["mlp"].items():
        yield from ((model, int(tokens)) for tokens, row in rows.items() if aligned(row))


def all_attention() -> Iterator[tuple[str, int, int]]:
    """Rows of attention: model with its GPU, keys from before, tokens."""
    for model, by_keys in published()["attention"].items():
        for keys, rows in by_keys.items():
            yield from ((model, int(keys), int(tokens)) for tokens in rows)


def all_convolutions() -> Iterator[tuple[str, int, int]]:
    """Rows of the convolutions: network with its GPU, channels, batch."""
    for network, by_channels in published()["conv"].items():
        for channels, rows in by_channels.items():
            yield from ((network, int(channels), int(batch)) for batch in rows)


LAYERS: Final = {
    "ResNet-38": {64: 3, 128: 4, 256: 6, 512: 3},
    "VGG-19": {64: 1, 128: 1, 256: 1, 512: 1},
}
"""The number of layers by their channels."""
COLUMNS: Final = {"gpt3_v100": 12288, "llama_v100": 8192}
"""Columns of a layer's output."""
LEAST_PROMPT = 512
"""The least prompt of the paper's sizes."""
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
    """Time that no scheme makes shorter."""

    def measured_us(self) -> tuple[float, float]:
        """Times in stream order, and by the best scheme."""
        row = self.cell(self.plain).row
        plain_us = row["stream_us"] if "stream_us" in row else sum(row["gemms"])
        return self._both(plain_us, [row[f"{scheme}_us"] for scheme in self.schemes])

    def ours_us(self, time_us: Callable[[Any], float]) -> tuple[float, float]:
        """Simulated times in stream order, and by the best scheme."""
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
    """The gain of all parts together, per cent."""
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
        _Part(partial(AttentionRun, key, keys, tokens), "waited-for", OF_ATTENTION, besides_us=besides_us),
        _Part(partial(MlpRun, key, tokens), "stream", SCHEMES, besides_us=besides_us),
    ]


def _layer(key: str, channels: int, batch: int, layers: int) -> _Part:
    # VGG-19's layers of few channels have two convolutions, which are ResNet-38's.
    key = key if str(channels) in published()["conv"][key] else NETWORKS["ResNet-38"]
    return _Part(partial(ConvolutionsRun, key, channels, batch), "waited-for", SCHEMES, layers)
