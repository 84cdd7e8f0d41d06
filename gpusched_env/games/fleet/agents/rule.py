"""The fleet rule: which jobs share a GPU, by linear functions of what a GPU would be with a job.

*Placing.* A job goes to the GPU with room where ``place[class] . terms``, less :data:`LATE` where an SLO is predicted
to be missed however long training sleeps, is largest, the first of equal ones; to an empty GPU if that is below -1.
With all weights 0 it is first fit where every SLO is kept. The terms are what that leaves out: how much training would
have to sleep (by the rate model); whether load and memory run out together; how old the jobs are, as run times have a
heavy tail: what has been there for long stays longest.

*Moving.* At each report, GPUs whose number ``1/2 - load + move . terms`` is at least 0 are looked at, the largest
first, :data:`TRIES` at most. One all of whose jobs have another GPU by the first rule is
emptied; each of its jobs restarts.

How long training sleeps on each GPU, and its share of the SMs, is up to GPUColo's controller, which holds the inference
job that is worst off at its SLO; how much of that is needed follows from who shares.
"""

from __future__ import annotations

import enum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import procedure
from gpusched_env.games.fleet.co_location import NOW
from gpusched_env.games.fleet.environment.encoding import ROOM, empty_gpu, encode_row
from gpusched_env.games.fleet.environment.features import FleetFeature
from gpusched_env.games.fleet.state import CLIENTS, TOP, WAITS
from gpusched_env.games.fleet.windows import fits

Singles = NDArray[np.float32]

CONTROL: Final = "gpucolo-worst"
TRIES: Final = 3
HALF: Final = 0.5
LATE: Final = 2.0
NEW: Final = -1.0
"""The number of an empty GPU."""
TENS: Final = CLIENTS / 10.0
"""From a column of clients to tens of jobs."""


class PlaceTerm(enum.IntEnum):
    """Of the weights ``place``, for inference and for training: of a GPU with the job there."""

    ONE = 0
    LOAD = enum.auto()
    INFERENCE_LOAD = enum.auto()
    CLAIMED = enum.auto()
    """Share of its memory."""
    JOBS = enum.auto()
    """Tens."""
    TRAININGS = enum.auto()
    """Tens."""
    OVER = enum.auto()
    """Ten times what the worst latency over SLO is above 1 if training sleeps as long as it can, at most 1."""
    LEAST = enum.auto()
    """``x / (1 + x)`` of that latency over SLO."""
    UNLIKE = enum.auto()
    """By how much the shares of utilisation and memory differ."""
    SLEEPS = enum.auto()
    """What that is above 1 if training does not sleep, at most 1."""
    RATIO = enum.auto()
    """``x / (1 + x)`` of the worst latency over SLO in the last report."""
    OLDEST = enum.auto()
    YOUNGEST = enum.auto()
    """Ages, 1 for two weeks, on a logarithmic scale."""


class MoveTerm(enum.IntEnum):
    """Of the weights ``move``: of a GPU as it is."""

    ONE = 0
    LOAD = enum.auto()
    CLAIMED = enum.auto()
    JOBS = enum.auto()
    """Tens."""
    RATIO = enum.auto()


SHAPES: Final[dict[str, tuple[int, ...]]] = {"place": (2, len(PlaceTerm)), "move": (len(MoveTerm),)}
"""Weights by name; the first row of ``place`` is for inference."""
OF_CLASS: Final = len(PlaceTerm)
OF_MOVES: Final = 2 * OF_CLASS
"""Where the weights for training and those of ``move`` begin, if all stand in one row."""
READS: Final = (
    *("PRESENT", "TRAINING", "LOAD", "INFERENCE_LOAD", "CLAIMED", "COUNT", "TRAININGS", "RATIO", "LEAST", "FULL"),
    *("DISTURBS", "OLDEST", "YOUNGEST"),
)
"""Columns of an observation that the rule reads."""


@procedure
def above(ratio: float) -> float:
    """What ``x`` is above 1, given ``x / (1 + x)``."""
    return max(0.0, ratio / (1.0 - ratio) - 1.0)


@procedure
def place_number(weights: Any, row: Any) -> float:
    """The larger, the sooner a job goes there.

    Args:
        weights: all of :data:`SHAPES` in one row.
        row: of the observation.
    """
    at = OF_CLASS if row[FleetFeature.TRAINING] > 0.0 else 0
    number: float = (
        weights[at + PlaceTerm.ONE]
        - LATE * row[FleetFeature.DISTURBS]
        + weights[at + PlaceTerm.LOAD] * row[FleetFeature.LOAD]
        + weights[at + PlaceTerm.INFERENCE_LOAD] * row[FleetFeature.INFERENCE_LOAD]
        + weights[at + PlaceTerm.CLAIMED] * row[FleetFeature.CLAIMED]
        + weights[at + PlaceTerm.JOBS] * TENS * row[FleetFeature.COUNT]
        + weights[at + PlaceTerm.TRAININGS] * TENS * row[FleetFeature.TRAININGS]
        + weights[at + PlaceTerm.OVER] * min(1.0, 10.0 * above(row[FleetFeature.LEAST]))
        + weights[at + PlaceTerm.LEAST] * row[FleetFeature.LEAST]
        + weights[at + PlaceTerm.UNLIKE] * abs(row[FleetFeature.LOAD] - row[FleetFeature.CLAIMED])
        + weights[at + PlaceTerm.SLEEPS] * min(1.0, above(row[FleetFeature.FULL]))
        + weights[at + PlaceTerm.RATIO] * row[FleetFeature.RATIO]
        + weights[at + PlaceTerm.OLDEST] * row[FleetFeature.OLDEST]
        + weights[at + PlaceTerm.YOUNGEST] * row[FleetFeature.YOUNGEST]
    )
    return number


@procedure
def beside(fleet: Any, rates: Any, weights: Any, job: int, but: int, row: Any) -> int:
    """The GPU in use other than ``but`` that a job goes to, ``WAITS`` if an empty one is better; ``row`` is scratch."""
    found, best = WAITS, NEW
    for gpu in range(fleet.clock[TOP]):
        if gpu != but and fleet.count[gpu] > 0 and fits(fleet, job, gpu, ROOM):
            encode_row(fleet, rates, job, gpu, row)
            number = place_number(weights, row)
            if number > best or (found == WAITS and number >= best):
                found, best = gpu, number
    return found


@procedure
def gpu_for(fleet: Any, rates: Any, weights: Any, job: int, row: Any) -> int:
    """Where a job that waits goes; ``WAITS`` if there is neither room nor an empty GPU."""
    found = beside(fleet, rates, weights, job, WAITS, row)
    if found != WAITS:
        return found
    return empty_gpu(fleet, job)


@procedure
def move_number(fleet: Any, weights: Any, gpu: int) -> float:
    """At least 0: empty this GPU."""
    at = OF_MOVES
    number: float = (
        HALF
        - fleet.load[gpu]
        + weights[at + MoveTerm.ONE]
        + weights[at + MoveTerm.LOAD] * fleet.load[gpu]
        + weights[at + MoveTerm.CLAIMED] * fleet.claimed_gb[gpu] / fleet.size_gb[gpu]
        + weights[at + MoveTerm.JOBS] * fleet.count[gpu] / 10.0
        + weights[at + MoveTerm.RATIO] * fleet.ratio[gpu] / (1.0 + fleet.ratio[gpu])
    )
    return number


@procedure
def all_go(fleet: Any, rates: Any, weights: Any, gpu: int, row: Any) -> bool:
    """Whether none of its jobs is restarting and each, looked at alone, has another GPU."""
    for slot in range(fleet.count[gpu]):
        if fleet.ready_us[fleet.slots[gpu, slot]] > fleet.clock[NOW]:
            return False
    for slot in range(fleet.count[gpu]):
        if beside(fleet, rates, weights, fleet.slots[gpu, slot], gpu, row) == WAITS:
            return False
    return True


@procedure
def gpu_to_empty(fleet: Any, rates: Any, weights: Any, row: Any) -> int:
    """The GPU to be emptied now, or ``WAITS``."""
    last, before = np.inf, -1
    for _try in range(TRIES):
        found, best = WAITS, 0.0
        for gpu in range(fleet.clock[TOP]):
            if fleet.count[gpu] > 0:
                number = move_number(fleet, weights, gpu)
                later = number < last or (number == last and gpu > before)
                if later and (number > best or (found == WAITS and number >= best)):
                    found, best = gpu, number
        if found == WAITS or all_go(fleet, rates, weights, found, row):
            return found
        last, before = best, found
    return WAITS
