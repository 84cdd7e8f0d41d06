"""What is simulated of cuSync: one iteration of dependent kernels alone, in stream order or synchronised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.dependent import Launched, TiledKernel, dependent
from gpusched_env.workload.workload import Workload

Scheme = Literal["waited-for", "stream", "row", "tile", "strided", "stream-k"]
"""``waited-for``: in stream order, and the host waits for each kernel."""
SCHEMES: Final[tuple[Scheme, ...]] = ("row", "tile")
BASELINES: Final[tuple[Scheme, ...]] = ("waited-for", "stream")
OF_ATTENTION: Final[tuple[Scheme, ...]] = (*SCHEMES, "strided")
ALONE: Final = {"waited-for": "pass-through", "stream": "pass-through", "stream-k": "stream-k"}
"""Schedulers of schemes that synchronise nothing."""


@dataclass(frozen=True, slots=True)
class Took:
    """Of one run."""

    time_us: float


def _problem(gpu: GpuSpec, workload: Workload) -> Problem:
    """One iteration alone."""
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
    """The artifact's; those of StridedSync are TileSync's."""
    return "" if scheme in ALONE else str(row["options"][scheme != "row"])


@dataclass(frozen=True, slots=True)
class Mlp:
    """Two products."""

    model: str
    """With its GPU."""
    tokens: int
    scheme: Scheme
    post_us: float | None = None
    wait_us: float | None = None
    """``None``: as the GPU's specification says."""
    options: str | None = None
    """``None``: the artifact's."""

    @property
    def row(self) -> Any:
        return published()["mlp"][self.model][str(self.tokens)]

    def run(self, device: str) -> Took:
        model, card, *_ = self.model.split("_")
        gpu = _free_launches(load_gpu(card), self.post_us, self.wait_us)
        options = _options(self.row, self.scheme) if self.options is None else self.options
        # What is called TileSync of LLaMA's products is StridedSync with tiles of the two that are fused.
        spec = _scheduler(self.scheme, options, "strided" if self.scheme == "tile" and FOLD[model] > 1 else "")
        problem = _problem(gpu, dependent(self.model, gpu, mlp_kernels(self.model, self.tokens)))
        return Took(play(spec, problem, 0, device=device).end_us)


def _free_launches(gpu: GpuSpec, post_us: float | None, wait_us: float | None) -> GpuSpec:
    """A GPU whose launches cost nothing: they are in the measured times of kernels."""
    timing = msgspec.structs.replace(gpu.timing, launch_latency_us=0.0, stream_gap_us=0.0, event_latency_us=0.0)
    costs = {"post_us": post_us, "wait_us": wait_us}
    tiles = msgspec.structs.replace(gpu.tiles, **{name: us for name, us in costs.items() if us is not None})
    return msgspec.structs.replace(gpu, timing=timing, tiles=tiles)


def _host_timed(name: str, kernels: list[TiledKernel], scheme: Scheme, spec: str, device: str) -> Took:
    """Kernels on a V100, from the first launch until the host knows of the end of the last one."""
    gpu = load_gpu("v100")
    launched: dict[str, Launched] = {"waited-for": "waited-for", "stream": "in-order"}
    workload = dependent(name, gpu, kernels, launched=launched.get(scheme, "beside"))
    return Took(play(spec, _problem(gpu, workload), 0, device=device).end_us + gpu.timing.sync_latency_us)


@dataclass(frozen=True, slots=True)
class Attention:
    """Four products on a V100."""

    model: str
    """With its GPU."""
    keys: int
    """From before."""
    tokens: int
    scheme: Scheme

    @property
    def row(self) -> Any:
        return published()["attention"][self.model][str(self.keys)][str(self.tokens)]

    def run(self, device: str) -> Took:
        # StridedSync, as released: queries, keys and values of a row have a semaphore each.
        policy = "matrix" if self.scheme == "strided" else ""
        spec = _scheduler(self.scheme, _options(self.row, self.scheme), policy)
        kernels = attention_kernels(self.model, self.keys, self.tokens)
        return _host_timed(self.model, kernels, self.scheme, spec, device)


@dataclass(frozen=True, slots=True)
class Convolutions:
    """Two or four convolutions on a V100."""

    network: str
    """With its GPU."""
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

    def run(self, device: str) -> Took:
        spec = _scheduler(self.scheme, _options(self.row, self.scheme))
        kernels = convolution_kernels(self.network, self.channels, self.batch)
        return _host_timed(f"{self.network}-{self.channels}", kernels, self.scheme, spec, device)


@dataclass(frozen=True, slots=True)
class Toy:
    """Two products of 3 x 2 tiles on 4 SMs: waves of 10 us."""

    scheme: Scheme

    def run(self, device: str) -> Took:
        gpu = load_gpu("toy-4sm")
        workload = dependent("toy", gpu, [TiledKernel(3, 2, 1, 20.0)] * 2)
        return Took(play(_scheduler(self.scheme, "TW"), _problem(gpu, workload), 0, device=device).end_us)


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
