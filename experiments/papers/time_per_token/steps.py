"""How long a step of a language model takes on a GPU: its kernels one after the other, as a CUDA graph runs them.

* *Products* follow the law of products (:func:`~gpusched_env.hardware.solo.product_us`): tiles in waves over the SMs,
  by the tile and slices that are quickest. Weights are read from the start of the first block on, at the bandwidth that
  kernels reach by the GPU's specification.
* *Attention* of a decode reads the cache at that bandwidth. Of a prompt it takes a time for each score, to which the
  width of a head adds its arithmetic.
* *Small kernels*, four a layer (two norms, rotation with the write to the cache, the gate), move what they read and
  write at that bandwidth.

With weights of eight bits half the bytes are read, arithmetic takes half the time, as data sheets have it, and a small
kernel before each product turns its input into eight bits.

Costs were read off a recording of another, smaller model (:mod:`gpusched_env.experiments.calibrate.steps`). On another
GPU arithmetic goes by the specifications' matrix rates, loads by their clocks. No product goes faster than the fastest
that others measured on the board (:data:`SUSTAINED_TFLOPS`), whose power limit lowers its clock.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from gpusched_env.data import stored
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.language_models import DenseModel, Matrix
from gpusched_env.hardware.solo import Product, ProductCosts, product_us
from gpusched_env.hardware.specs import GpuSpec, load_gpu

HALF_BYTES: Final = 2
"""Bytes of an element of what kernels hand to each other."""
SMALL_KERNELS: Final = 4
"""Kernels of a layer besides its products and attention, norms of heads and conversions to eight bits."""
OPERATIONS: Final = 4
"""Floating-point operations of a score for each element of a head: in two products, two each."""


SUSTAINED_TFLOPS: Final = {
    ("h100-sxm", 2): 794.5, ("h200-sxm", 2): 794.5, ("h100-sxm", 1): 1402.6, ("h200-sxm", 1): 1453.4,
}  # fmt: skip
"""Fastest product of any shape by GPU and bytes of a factor: Bekman, *Machine Learning Engineering Open Book*, table of
maximum achievable matmul FLOPS (PyTorch 2.7, CUDA 12.6 and 12.8; of sixteen bits it says that an H200 does the same).
"""


class StepCosts(NamedTuple):
    """What kernels take on the GPU of the recording, in microseconds."""

    block_us: float
    step_us: float
    load_us: float
    slice_us: float
    """As of :class:`~gpusched_env.hardware.solo.ProductCosts`."""
    attention_us: float
    """Start of a kernel of attention."""
    score_us: float
    """A score of a prompt's attention, besides its arithmetic, on the whole GPU."""
    small_us: float
    """Start of a small kernel."""
    sampling_us: float
    """The choice of the next tokens."""


class Recorded(NamedTuple):
    """Costs, the GPU of their recording, and the tiles that ran there."""

    gpu: str
    costs: StepCosts
    tiles: tuple[tuple[int, int], ...]
    """Rows (tokens) and columns (outputs) of a tile."""
    slices: tuple[int, ...]


@functools.cache
def recorded() -> Recorded:
    """What ``calibration/steps.json`` holds."""
    found: dict[str, Any] = stored("calibration", "steps.json")
    tiles = tuple((rows, columns) for rows, columns in found["tiles"])
    return Recorded(found["gpu"], StepCosts(**found["costs"]), tiles, tuple(found["slices"]))


class Formats(NamedTuple):
    """Bytes of an element of the layers' weights, and of the cache of keys and values."""

    weights: int
    cache: int


class Chunk(NamedTuple):
    """Tokens of a prompt that a step processes."""

    tokens: int
    before: int = 0
    """Tokens of the prompt that earlier steps have processed."""

    @property
    def scores(self) -> float:
        """Scores of a head: each token sees those before it, and itself."""
        return self.tokens * (self.before + 0.5 * (self.tokens + 1))


class EngineStep(NamedTuple):
    """What a step processes: chunks of prompts, and a token of each request that runs."""

    chunks: tuple[Chunk, ...] = ()
    ended: int = 0
    """Prompts that end with this step, which yields their first tokens."""
    running: int = 0
    cached: int = 0
    """Tokens in the cache of all requests that run."""


def reached_bytes_per_us(gpu: GpuSpec) -> float:
    """DRAM bandwidth that kernels reach."""
    return gpu.dram_bytes_per_us * gpu.contention.dram_efficiency


def product_costs(costs: StepCosts, recorded_on: GpuSpec, gpu: GpuSpec, element_bytes: int) -> ProductCosts:
    """Costs of the law of products on a GPU, with factors of one or two bytes.

    Raises:
        InputError: nobody knows what matrix arithmetic takes on one of the GPUs.
    """
    rates = recorded_on.matrix_rates, gpu.matrix_rates
    if rates[0] is None or rates[1] is None:
        raise InputError(f"{gpu.name}: has no matrix_rates; time of products needs them, as of {recorded_on.name}")
    clocks, bits = recorded_on.clock_mhz / gpu.clock_mhz, element_bytes / HALF_BYTES
    return ProductCosts(
        block_us=costs.block_us,
        step_us=costs.step_us * clocks * bits * rates[0].half / rates[1].half,
        beside_us=0.0,
        load_us=costs.load_us * clocks * bits,
        dram_us=element_bytes / reached_bytes_per_us(gpu),
        slice_us=costs.slice_us,
    )


def sustained_costs(gpu: GpuSpec, element_bytes: int) -> ProductCosts:
    """The recorded costs on a GPU, where no product goes faster than the fastest that was measured there."""
    found = recorded()
    costs = product_costs(found.costs, load_gpu(found.gpu), gpu, element_bytes)
    fastest_us = 2e-6 * gpu.sms / SUSTAINED_TFLOPS.get((gpu.name, element_bytes), math.inf)
    return costs._replace(step_us=max(costs.step_us, fastest_us))


def divided(rows: int, matrix: Matrix, tile: tuple[int, int], slices: int) -> Product:
    """A product of so many tokens with a matrix of weights, by tiles and slices; an SM holds one block."""
    high, wide = tile
    return Product(high, wide, -(-rows // high), -(-matrix.outputs // wide), slices, matrix.inputs / slices, 1)


def matrix_us(costs: ProductCosts, product: Product, sms: int) -> float:
    """Duration of a product whose weights come from the DRAM, from the start of its first block on."""
    weights = product.columns * product.tile_columns * product.depth * product.slices
    return max(product_us(costs, product, sms), costs.block_us + weights * costs.dram_us)


@dataclass(frozen=True)
class Layers:
    """A model on a GPU."""

    model: DenseModel
    gpu: GpuSpec
    formats: Formats

    def step_us(self, step: EngineStep) -> float:
        """Duration of a step."""
        return self._rows_us(step.running + sum(chunk.tokens for chunk in step.chunks)) + (
            self.model.layers * self._attention_us(step) + self._answers_us(step.running + step.ended)
        )

    @property
    def token_bytes(self) -> int:
        """Bytes of a token in the cache."""
        return self.model.layers * self.model.cache_elements * self.formats.cache

    def cache_tokens(self, share: float) -> int:
        """Tokens of a cache that takes a share of the memory beside the weights; below 0: these do not fit."""
        free = self.gpu.memory_bytes - self.model.weight_bytes(self.formats.weights)
        return int(share * free / self.token_bytes)

    def roofline_us(self, step: EngineStep) -> float:
        """A control: the longer of a step's arithmetic and its bytes, at the peaks of the GPU's specification."""
        model, spec, words = self.model, self.gpu, self.model.answers
        assert spec.matrix_rates is not None
        per_us = spec.matrix_rates.half * spec.sms * spec.clock_mhz
        tokens = step.running + sum(chunk.tokens for chunk in step.chunks)
        scores = step.cached + sum(chunk.scores for chunk in step.chunks)
        operations: float = tokens * model.layer_weights * self.formats.weights
        operations += 2 * (step.running + step.ended) * words.outputs * words.inputs
        operations += OPERATIONS * model.layers * model.heads * model.head * scores
        read = self.formats.weights * model.layer_weights + HALF_BYTES * words.outputs * words.inputs
        return max(operations / per_us, (read + step.cached * self.token_bytes) / spec.dram_bytes_per_us)

    @functools.lru_cache(maxsize=4096)  # noqa: B019 - a handful of models
    def _rows_us(self, rows: int) -> float:
        """What all layers take for so many tokens, attention aside."""
        model, spec, costs = self.model, self.gpu, recorded().costs
        products_us = sum(self.product_us(rows, matrix, self.formats.weights) for matrix in model.products)
        # Norms read and write a token and what is added to it; the gate reads two and writes one.
        heads = (model.heads + 2 * model.shared_heads) * model.head
        moved, small = HALF_BYTES * rows * (2 * 4 * model.width + 2 * heads + 3 * model.inner), SMALL_KERNELS
        if model.head_norms:
            moved, small = moved + HALF_BYTES * rows * 2 * heads, small + 2
        if self.formats.weights < HALF_BYTES:
            read = sum(matrix.inputs for matrix in model.products)
            moved, small = moved + (HALF_BYTES + self.formats.weights) * rows * read, small + len(model.products)
        small_us = small * costs.small_us + moved / reached_bytes_per_us(spec)
        kernels = len(model.products) + small + 1
        return model.layers * (products_us + small_us + kernels * spec.timing.graph_gap_us)

    @functools.lru_cache(maxsize=4096)  # noqa: B019
    def _answers_us(self, rows: int) -> float:
        """The last product and the choice of tokens."""
        return self.product_us(rows, self.model.answers, HALF_BYTES) + recorded().costs.sampling_us if rows else 0.0

    def product_us(self, rows: int, matrix: Matrix, element_bytes: int) -> float:
        """Duration of a product with a matrix of weights by the quickest tile."""
        found, spec = recorded(), self.gpu
        costs = sustained_costs(spec, element_bytes)
        ways = itertools.product(found.tiles, found.slices)
        return min(matrix_us(costs, divided(rows, matrix, *way), spec.sms) for way in ways)

    def _attention_us(self, step: EngineStep) -> float:
        """Attention of one layer, of prompts and of requests that run in kernels of their own."""
        model, spec, costs = self.model, self.gpu, recorded().costs
        us = 0.0
        if step.running:
            read = step.cached * model.cache_elements * self.formats.cache
            us += costs.attention_us + read / reached_bytes_per_us(spec)
        if step.chunks:
            scores = model.heads * sum(chunk.scores for chunk in step.chunks)
            us += costs.attention_us + scores * self._score_us
        return us

    @functools.cached_property
    def _score_us(self) -> float:
        found, spec = recorded(), self.gpu
        own = load_gpu(found.gpu)
        # Attention multiplies in sixteen bits, whatever the format of the weights.
        operation_us = sustained_costs(spec, HALF_BYTES).step_us / 2 / spec.sms
        beside_us = found.costs.score_us * own.clock_mhz * own.sms / (spec.clock_mhz * spec.sms)
        return beside_us + OPERATIONS * self.model.head * operation_us
