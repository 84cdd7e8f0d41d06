"""Times of serving engines that others measured on one GPU, and each row as a cell: predicted, and by controls.

What a row does not say is taken from the engines' documentation: a step has 8,192 tokens at most; nine tenths of the
memory that the weights leave hold the cache; its elements have the precision of the model, except under TensorRT-LLM,
which takes eight bits from its checkpoints of eight bits, and reserves room for whole answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.language_models import DenseModel, model_of
from gpusched_env.experiments.papers.time_per_token.serving import EngineModel, time_per_token_us
from gpusched_env.experiments.papers.time_per_token.steps import HALF_BYTES, EngineStep, Formats, Layers
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.reading import read_bytes, table_rows

SILICON: Final = Path(str(resources.files("gpusched_env.data"))) / "measurements" / "engine" / "silicon.csv"
STEP_TOKENS: Final = 8192
CACHE_SHARE: Final = 0.9
SEPARATE: Final = "sglang"
"""The engine that processes prompts in steps of their own."""
TENSORRT: Final = "trtllm"


class SiliconRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table (further columns are left out)."""

    engine: Annotated[str, Meta(min_length=1)] = msgspec.field(name="backend")
    version: str = msgspec.field(name="backend_version")
    model_path: Annotated[str, Meta(min_length=1)]
    system: str
    format: str = msgspec.field(name="gemm_quant_mode")
    """Of the products of layers; empty: sixteen bits."""
    prompt: Annotated[int, Meta(ge=1, le=2**20)] = msgspec.field(name="isl")
    answer: Annotated[int, Meta(ge=2, le=2**20)] = msgspec.field(name="osl")
    clients: Annotated[int, Meta(ge=1, le=2**16)] = msgspec.field(name="batch_size")
    token_ms: Annotated[float, Meta(gt=0)] = msgspec.field(name="silicon_tpot_ms")


def read_rows(path: Path = SILICON) -> list[SiliconRow]:
    """The rows of a table.

    Raises:
        InputError: the file cannot be read, or a value is none; names file and line.
    """
    (_, heads), *lines = table_rows(read_bytes(path), str(path))
    found = []
    for line, values in lines:
        try:
            found.append(msgspec.convert(dict(zip(heads, values, strict=False)), SiliconRow, strict=False))
        except msgspec.ValidationError as error:
            raise InputError(f"{path}, line {line}: {error}") from error
    return found


class SiliconTimes(NamedTuple):
    """Milliseconds a token."""

    predicted_ms: float
    roofline_ms: float
    """With the same engine, by :meth:`~gpusched_env.experiments.papers.time_per_token.steps.Layers.roofline_us`."""
    alone_ms: float
    """Without the steps' share of prompts: all clients' tokens, in the middle of their answers."""


@dataclass(frozen=True)
class SiliconServed:
    """A row of a dense model."""

    row: SiliconRow

    @property
    def model(self) -> DenseModel:
        """The model of the row."""
        model = model_of(self.row.model_path)
        assert model is not None, self.row
        return model

    @property
    def layers(self) -> Layers:
        """The model on the row's GPU."""
        return Layers(self.model, load_gpu(self.row.system.replace("_", "-")), self.formats)

    @property
    def formats(self) -> Formats:
        """Bytes of an element."""
        weights = 1 if self.row.format.startswith("fp8") else HALF_BYTES
        return Formats(weights, weights if self.row.engine == TENSORRT else HALF_BYTES)

    @property
    def engine(self) -> EngineModel:
        """How the row's engine makes steps.

        Raises:
            InputError: the GPU does not hold the weights.
        """
        tokens = self.layers.cache_tokens(CACHE_SHARE)
        if tokens < self.row.prompt + self.row.answer:
            raise InputError(
                f"{self.row.model_path} on {self.row.system}: beside the weights no request fits into the memory"
            )
        engine = self.row.engine
        return EngineModel(engine != SEPARATE, engine == TENSORRT, STEP_TOKENS, tokens, self.row.clients)

    def run(self, device: str) -> SiliconTimes:
        row, layers = self.row, self.layers
        work = row.clients, row.prompt, row.answer, self.engine
        middle = EngineStep(running=row.clients, cached=row.clients * (row.prompt + row.answer // 2))
        return SiliconTimes(
            time_per_token_us(*work, layers.step_us) * 1e-3,
            time_per_token_us(*work, layers.roofline_us) * 1e-3,
            layers.step_us(middle) * 1e-3,
        )


def cells_of(path: Path) -> list[SiliconServed]:
    """The rows of a table that are of dense models, each once."""
    return [SiliconServed(row) for row in dict.fromkeys(read_rows(path)) if model_of(row.model_path)]
