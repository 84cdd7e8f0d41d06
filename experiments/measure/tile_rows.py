"""What was measured of tiles that synchronise on a GPU, and what is predicted of it: rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import msgspec

from gpusched_env.experiments.lib.files import encode_rows, read_struct
from gpusched_env.experiments.measure.gpu import Took
from gpusched_env.experiments.measure.recording import Measurement, Measurements

TILES_SCHEMA: Final = "gpusched-tiles/1"
Work = Literal["spin", "product"]
"""``spin``: a block takes a set time; ``product``: it computes a tile of a matrix product."""


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two dependent kernels on some SMs."""

    work: Work
    tokens: int
    """Of GPT-3's MLP: whose grids they have."""
    producer: tuple[int, int]
    """Rows and columns of tiles."""
    consumer: tuple[int, int]
    sms: int
    """Which the kernels have; others are occupied."""
    per_sm: int
    """Blocks that an SM holds."""
    shorter: int = 1
    """By which blocks that spin are shorter than those of the V100 that the grids are from."""


class Timed(Measurement, frozen=True, kw_only=True):
    """Times of repetitions, between events."""

    median_us: float
    min_us: float
    max_us: float

    @property
    def range_us(self) -> float:
        return self.max_us - self.min_us


class CostTime(Timed, tag="cost", frozen=True, kw_only=True):
    """What synchronising costs: a ``post`` or a ``wait`` of a block, or the ``wait-kernel``."""

    of: str


class AloneTime(Timed, tag="alone", frozen=True, kw_only=True):
    """One of the two kernels alone."""

    case: Case
    role: Literal["producer", "consumer"]


class PairTime(Timed, tag="pair", frozen=True, kw_only=True):
    """Both kernels, from the first one's start to the second one's end."""

    case: Case
    policy: str
    early: int
    """Steps that began before the tile that they read had ended, in all repetitions."""
    gave_up: int
    """Waits that were given up, in all repetitions."""
    right: bool | None
    """Whether the last result was; null: there is none."""


class Predicted(Measurement, tag="prediction", frozen=True, kw_only=True):
    """A measured pair and the simulated one."""

    case: Case
    policy: str
    measured_us: float
    """Median."""
    predicted_us: float
    stream_us: float
    """The same in stream order, measured."""
    predicted_stream_us: float
    packed_us: float
    """If no slot was ever idle."""

    @property
    def measured(self) -> float:
        """Gain over stream order, per cent."""
        return gain(self.measured_us, self.stream_us)

    @property
    def predicted(self) -> float:
        """The simulated one."""
        return gain(self.predicted_us, self.predicted_stream_us)

    @property
    def packed(self) -> float:
        """The gain if no slot was ever idle: what arithmetic on waves says."""
        return gain(self.packed_us, self.predicted_stream_us)

    @property
    def error(self) -> float:
        """Of the gain, points."""
        return self.predicted - self.measured


class Unmeasured(Measurement, tag="unmeasured", frozen=True, kw_only=True):
    """What was left out."""

    left_out: str
    why: str


TileRow = CostTime | AloneTime | PairTime | Predicted | Unmeasured


class TileMeasurements(Measurements, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that one run of the program measured."""

    schema: str = TILES_SCHEMA
    rows: list[TileRow] = msgspec.field(default_factory=list)  # type: ignore[assignment]

    def encoded(self) -> bytes:
        """The file's content: a line a row."""
        return encode_rows(msgspec.structs.replace(self, rows=[]), self.rows)


def gain(us: float, stream_us: float) -> float:
    """By how much less a time is than that in stream order, per cent."""
    return 100.0 * (1.0 - us / stream_us)


def times(took: Took) -> dict[str, float]:
    """As fields of a row."""
    return {"median_us": took.median_us, "min_us": took.min_us, "max_us": took.max_us}


def read_tiles(path: Path) -> TileMeasurements:
    """A file that ``python -m gpusched_env.experiments.measure.tiles --json`` wrote.

    Raises:
        InputError: it cannot be read, or is none.
    """
    how = "python -m gpusched_env.experiments.measure.tiles --json FILE writes one"
    return read_struct(path, TileMeasurements, TILES_SCHEMA, "not a measurement of tiles", how)
