"""What was measured of tiles that synchronise on a GPU, as rows of a file, the tables that its kernels read, and
what is predicted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.files import read_struct
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.measure.gpu import Measurement, Measurements
from gpusched_env.hardware import tiles as laws
from gpusched_env.hardware.specs import GpuSpec, TileCosts
from gpusched_env.hardware.tiles import Pair
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.dependent import TiledKernel, dependent_workload

STREAM: Final = "stream"
"""Stream order: nothing is posted."""
UNGUARDED: Final = "unguarded"
"""Side by side, and nothing waits: the control, whose consumer reads tiles that are not there."""
POLICIES: Final = {"row": laws.ROW, "tile": laws.TILE}


@dataclass(frozen=True, eq=False)
class TileTables:
    """Tables of two products, the tiles of the first one of which are the steps of the second one's blocks."""

    post: NDArray[np.int32]
    """(tiles,) semaphore that a tile of the producer posts."""
    awaited: NDArray[np.int32]
    """(blocks, waits) semaphore of each wait of a block of the consumer."""
    before: NDArray[np.int32]
    """(blocks, waits) step before which it waits, ascending."""
    value: int
    """Posts of a semaphore that a wait needs."""
    semaphores: int

    @property
    def waits(self) -> int:
        """The number of waits of a block."""
        return int(self.awaited.shape[1])


def tables_of(policy: str, producer: tuple[int, int], consumer: tuple[int, int]) -> TileTables:
    """The tables of a policy: ``stream``, ``unguarded``, ``row`` or ``tile``.

    Args:
        policy: its name.
        producer: rows and columns of tiles.
        consumer: the same; as many rows.

    Raises:
        InputError: there is no such policy, or the rows differ.
    """
    if policy not in (STREAM, UNGUARDED, *POLICIES) or producer[0] != consumer[0]:
        raise InputError(
            f"policy {policy!r} for {producer[0]} and {consumer[0]} rows of tiles: must be one of "
            f"{', '.join((STREAM, UNGUARDED, *POLICIES))}, for as many rows"
        )
    pair = Pair(
        POLICIES.get(policy, laws.KERNEL), 1, *producer, *consumer, consumer_slices=1, needs=laws.NEEDS_ROW, fold=1,
        lead=0.0,
    )  # fmt: skip
    blocks = range(consumer[0] * consumer[1])
    waits = [range(laws.waits_of(pair, block)) for block in blocks]
    steps = [laws.steps_of(pair, block) for block in blocks]
    awaited = [[laws.awaited_semaphore(pair, block, number) for number in waits[block]] for block in blocks]
    before = [[round(laws.work_before(pair, block, n) * steps[block]) for n in waits[block]] for block in blocks]
    shape = (len(blocks), len(waits[0]))
    return TileTables(
        np.array([laws.semaphore_of(pair, tile) for tile in range(producer[0] * producer[1])], np.int32),
        np.array(awaited, np.int32).reshape(shape),
        np.array(before, np.int32).reshape(shape),
        laws.awaited_value(pair, 0),
        laws.semaphores(pair),
    )


TILES_SCHEMA: Final = "gpusched-tiles/1"
Work = Literal["spin", "product"]
"""``spin``: a block takes a set time; ``product``: it computes a tile of a matrix product."""


class TileCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Two dependent kernels on some SMs."""

    work: Work
    tokens: int
    """Tokens of GPT-3's MLP, whose grids the kernels have."""
    producer: tuple[int, int]
    """Rows and columns of tiles."""
    consumer: tuple[int, int]
    sms: int
    """SMs that the kernels have; others are occupied."""
    per_sm: int
    """Blocks that an SM holds."""
    shorter: int = 1
    """The factor by which blocks that spin are shorter than those of the V100 that the grids are from."""


class TimedRow(Measurement, frozen=True, kw_only=True):
    """Times of repetitions, between events."""

    median_us: float
    min_us: float
    max_us: float

    @property
    def range_us(self) -> float:
        return self.max_us - self.min_us


class CostTime(TimedRow, tag="cost", frozen=True, kw_only=True):
    """What synchronising costs: a ``post`` or a ``wait`` of a block, or the ``wait-kernel``."""

    of: str


class AloneTime(TimedRow, tag="alone", frozen=True, kw_only=True):
    """One of the two kernels alone."""

    case: TileCase
    role: Literal["producer", "consumer"]


class PairTime(TimedRow, tag="pair", frozen=True, kw_only=True):
    """Both kernels, from the first one's start to the second one's end."""

    case: TileCase
    policy: str
    early: int
    """Steps that began before the tile that they read had ended, in all repetitions."""
    gave_up: int
    """Waits that were given up, in all repetitions."""
    right: bool | None
    """Whether the last result was; null: there is none."""


class Predicted(Measurement, tag="prediction", frozen=True, kw_only=True):
    """A measured pair and the simulated one."""

    case: TileCase
    policy: str
    measured_us: float
    """Median of the measured times."""
    predicted_us: float
    stream_us: float
    """Measured time in stream order."""
    predicted_stream_us: float
    packed_us: float
    """The time if no slot was ever idle."""

    @property
    def measured(self) -> float:
        """Gain over stream order, per cent."""
        return gain(self.measured_us, self.stream_us)

    @property
    def predicted(self) -> float:
        """The simulated gain over stream order, per cent."""
        return gain(self.predicted_us, self.predicted_stream_us)

    @property
    def packed(self) -> float:
        """The gain if no slot was ever idle: what arithmetic on waves says."""
        return gain(self.packed_us, self.predicted_stream_us)

    @property
    def error(self) -> float:
        """The error of the predicted gain, points."""
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


def gain(us: float, stream_us: float) -> float:
    """The percentage by which a time is less than that in stream order."""
    return 100.0 * (1.0 - us / stream_us)


def read_tiles(path: Path) -> TileMeasurements:
    """A file that ``python -m gpusched_env.experiments.measure.tiles --json`` wrote.

    Raises:
        InputError: it cannot be read, or is none.
    """
    how = "python -m gpusched_env.experiments.measure.tiles --json FILE writes one"
    return read_struct(path, TileMeasurements, TILES_SCHEMA, "not a measurement of tiles", how)


PAIR = "pair"


def predictions(rows: Sequence[TileRow], gpu: GpuSpec, device: str = "compiled") -> Iterator[Predicted]:
    """Predictions of every case whose kernels were measured alone, together in stream order, and by a policy.

    Args:
        rows: measured.
        gpu: that they were measured on; its SMs and what synchronising costs there are those of the rows.
        device: that simulates.
    """
    costs = {row.of: row.median_us for row in rows if isinstance(row, CostTime)}
    alone = {(row.case, row.role): row.median_us for row in rows if isinstance(row, AloneTime)}
    pairs = {(row.case, row.policy): row.median_us for row in rows if isinstance(row, PairTime)}
    priced = TileCosts(
        post_us=costs.get("post", 0.0), wait_us=costs.get("wait", 0.0), wait_kernel_us=costs.get("wait-kernel", 0.0)
    )
    for case in dict.fromkeys(case for case, _ in pairs):
        if (case, STREAM) in pairs and {(case, "producer"), (case, "consumer")} <= set(alone):
            kernels = kernels_of(case, alone[case, "producer"], alone[case, "consumer"])
            problem = problem_of(case, kernels, gpu, priced)
            for policy in (STREAM, *POLICIES):
                if (case, policy) in pairs:
                    yield Predicted(
                        case=case,
                        policy=policy,
                        measured_us=pairs[case, policy],
                        predicted_us=round(play(_scheduler(policy), problem, 0, device=device).end_us, 3),
                        stream_us=pairs[case, STREAM],
                        predicted_stream_us=round(play(_scheduler(STREAM), problem, 0, device=device).end_us, 3),
                        packed_us=round(packed_us(case, kernels), 3),
                    )


def kernels_of(case: TileCase, producer_us: float, consumer_us: float) -> list[TiledKernel]:
    """Both kernels, by their times alone."""
    return [
        TiledKernel(rows, columns, 1, us, case.per_sm)
        for (rows, columns), us in ((case.producer, producer_us), (case.consumer, consumer_us))
    ]


def packed_us(case: TileCase, kernels: Sequence[TiledKernel]) -> float:
    """What the kernels would take if no slot was ever idle: nothing is quicker."""
    slots = case.sms * case.per_sm
    return sum(kernel.duration_us / kernel.waves(case.sms) * kernel.blocks / slots for kernel in kernels)


def problem_of(case: TileCase, kernels: Sequence[TiledKernel], gpu: GpuSpec, costs: TileCosts) -> Problem:
    """Both kernels once, on a GPU whose launches cost nothing: they are in the kernels' times."""
    timing = msgspec.structs.replace(gpu.timing, launch_latency_us=0.0, stream_gap_us=0.0, event_latency_us=0.0)
    gpu = msgspec.structs.replace(gpu, sms=case.sms, sm_order="linear", timing=timing, tiles=costs)
    workload = dependent_workload(PAIR, gpu, kernels)
    scenario = make_scenario(
        {
            "name": "tiles", "gpu": gpu.name, "horizon_us": 1e7, "variation": False, "lookahead": 2,
            "tenants": [{"name": "model", "workload": PAIR, "arrivals": {"kind": "backlog"}, "jobs": 1}],
        }
    )  # fmt: skip
    return build_problem(scenario, gpu=gpu, workloads={PAIR: workload})


def _scheduler(policy: str) -> str:
    if policy == STREAM:
        return "pass-through"
    return f"cusync(policy={policy},order=native,wait_kernel=true,reorder=false)"


def whole_waves(case: TileCase) -> tuple[float, float]:
    """Waves of each kernel."""
    first, second = (rows * columns / (case.sms * case.per_sm) for rows, columns in (case.producer, case.consumer))
    return first, second
