"""The fleet rule: which jobs share a GPU, by linear functions of what a GPU would be with a job.

*Placing.* A job goes to the GPU with room where ``place[class] . terms``, less :data:`DISTURBANCE_PENALTY` where an SLO
is predicted to be missed however long training sleeps, is largest, the first of equal ones; to an empty GPU if that is
below -1. With all weights 0 it is first fit where every SLO is kept. The terms are what that leaves out: how much
training would have to sleep (by the rate model); whether load and memory run out together; how old the jobs are, as run
times have a heavy tail: what has been there for long stays longest.

*Moving.* At each report, GPUs whose number ``1/2 - load + move . terms`` is at least 0 are looked at, the largest
first, :data:`TRIES` at most. One all of whose jobs have another GPU by the first rule is emptied; each of its jobs
restarts.

How long training sleeps on each GPU, and its share of the SMs, is up to GPUColo's controller, which holds the inference
job that is worst off at its SLO; how much of that is needed follows from who shares.

Below the rule are the file of its weights, whole days that are played in compiled code, and the trained rule as a
dispatcher.
"""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policy_file import GamePolicyInfo, Weights
from gpusched_env.agents.shipped import FOLDER
from gpusched_env.agents.training.folder import policy_file
from gpusched_env.compiling import native, procedure
from gpusched_env.games.fleet.co_location import CONTROLS, NOW, shipped_rates
from gpusched_env.games.fleet.device import FleetRun
from gpusched_env.games.fleet.environment.encoding import (
    ROOM,
    WIDTH,
    ConsolidatingDispatcher,
    FleetFeature,
    empty_gpu,
    encode_row,
)
from gpusched_env.games.fleet.problem import CLIENTS, TOP, WAITS, FleetProblem, FleetState, new_state
from gpusched_env.games.fleet.windows import advance, has_room, in_use, place_job, remove_job

Singles = NDArray[np.float32]

CONTROL: Final = "gpucolo-worst"
TRIES: Final = 3
HALF: Final = 0.5
DISTURBANCE_PENALTY: Final = 2.0
EMPTY_GPU_SCORE: Final = -1.0
"""The number of an empty GPU."""
TENS: Final = CLIENTS / 10.0
"""Factor from a column of clients to tens of jobs."""


class PlaceTerm(enum.IntEnum):
    """What the weights ``place`` stand for, of a GPU with the job there: one row for inference, one for training."""

    ONE = 0
    LOAD = enum.auto()
    INFERENCE_LOAD = enum.auto()
    CLAIMED = enum.auto()
    """Share of the GPU's memory that is claimed."""
    JOBS = enum.auto()
    """Tens of jobs."""
    TRAININGS = enum.auto()
    """Tens of training jobs."""
    OVER = enum.auto()
    """Ten times what the worst latency over SLO is above 1 if training sleeps as long as it can, at most 1."""
    LEAST = enum.auto()
    """``x / (1 + x)`` of that latency over SLO."""
    UNLIKE = enum.auto()
    """The difference of the shares of utilisation and memory."""
    SLEEPS = enum.auto()
    """What the worst latency over SLO is above 1 if training does not sleep, at most 1."""
    RATIO = enum.auto()
    """``x / (1 + x)`` of the worst latency over SLO in the last report."""
    OLDEST = enum.auto()
    YOUNGEST = enum.auto()
    """Ages, 1 for two weeks, on a logarithmic scale."""


class MoveTerm(enum.IntEnum):
    """What the weights ``move`` stand for, of a GPU as it is."""

    ONE = 0
    LOAD = enum.auto()
    CLAIMED = enum.auto()
    JOBS = enum.auto()
    """Tens of jobs."""
    RATIO = enum.auto()


SHAPES: Final[dict[str, tuple[int, ...]]] = {"place": (2, len(PlaceTerm)), "move": (len(MoveTerm),)}
"""Weights by name; the first row of ``place`` is for inference."""
OF_CLASS: Final = len(PlaceTerm)
OF_MOVES: Final = 2 * OF_CLASS
"""The place at which the weights for training and those of ``move`` begin, if all stand in one row."""
READS: Final = (
    *("PRESENT", "TRAINING", "LOAD", "INFERENCE_LOAD", "CLAIMED", "COUNT", "TRAININGS", "RATIO", "LEAST", "FULL"),
    *("DISTURBS", "OLDEST", "YOUNGEST"),
)
"""Columns of an observation that the rule reads."""


@procedure
def excess_over_one(ratio: float) -> float:
    """What ``x`` is above 1, given ``x / (1 + x)``."""
    return max(0.0, ratio / (1.0 - ratio) - 1.0)


@procedure
def placement_score(weights: Any, row: Any) -> float:
    """The larger, the sooner a job goes there.

    Args:
        weights: all of :data:`SHAPES` in one row.
        row: of the observation.
    """
    at = OF_CLASS if row[FleetFeature.TRAINING] > 0.0 else 0
    number: float = (
        weights[at + PlaceTerm.ONE]
        - DISTURBANCE_PENALTY * row[FleetFeature.DISTURBS]
        + weights[at + PlaceTerm.LOAD] * row[FleetFeature.LOAD]
        + weights[at + PlaceTerm.INFERENCE_LOAD] * row[FleetFeature.INFERENCE_LOAD]
        + weights[at + PlaceTerm.CLAIMED] * row[FleetFeature.CLAIMED]
        + weights[at + PlaceTerm.JOBS] * TENS * row[FleetFeature.COUNT]
        + weights[at + PlaceTerm.TRAININGS] * TENS * row[FleetFeature.TRAININGS]
        + weights[at + PlaceTerm.OVER] * min(1.0, 10.0 * excess_over_one(row[FleetFeature.LEAST]))
        + weights[at + PlaceTerm.LEAST] * row[FleetFeature.LEAST]
        + weights[at + PlaceTerm.UNLIKE] * abs(row[FleetFeature.LOAD] - row[FleetFeature.CLAIMED])
        + weights[at + PlaceTerm.SLEEPS] * min(1.0, excess_over_one(row[FleetFeature.FULL]))
        + weights[at + PlaceTerm.RATIO] * row[FleetFeature.RATIO]
        + weights[at + PlaceTerm.OLDEST] * row[FleetFeature.OLDEST]
        + weights[at + PlaceTerm.YOUNGEST] * row[FleetFeature.YOUNGEST]
    )
    return number


@procedure
def best_shared_gpu(fleet: Any, rates: Any, weights: Any, job: int, but: int, row: Any) -> int:
    """The GPU in use other than ``but`` that a job goes to, ``WAITS`` if an empty one is better; ``row`` is scratch."""
    found, best = WAITS, EMPTY_GPU_SCORE
    for gpu in range(fleet.clock[TOP]):
        if gpu != but and fleet.count[gpu] > 0 and has_room(fleet, job, gpu, ROOM):
            encode_row(fleet, rates, job, gpu, row)
            number = placement_score(weights, row)
            if number > best or (found == WAITS and number >= best):
                found, best = gpu, number
    return found


@procedure
def gpu_for(fleet: Any, rates: Any, weights: Any, job: int, row: Any) -> int:
    """The GPU that a job that waits goes to; ``WAITS`` if there is neither room nor an empty GPU."""
    found = best_shared_gpu(fleet, rates, weights, job, WAITS, row)
    if found != WAITS:
        return found
    return empty_gpu(fleet, job)


@procedure
def emptying_score(fleet: Any, weights: Any, gpu: int) -> float:
    """The number of a GPU to be emptied; at least 0: empty it."""
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
def can_be_emptied(fleet: Any, rates: Any, weights: Any, gpu: int, row: Any) -> bool:
    """Whether none of its jobs is restarting and each, looked at alone, has another GPU."""
    for slot in range(fleet.count[gpu]):
        if fleet.ready_us[fleet.slots[gpu, slot]] > fleet.clock[NOW]:
            return False
    for slot in range(fleet.count[gpu]):
        if best_shared_gpu(fleet, rates, weights, fleet.slots[gpu, slot], gpu, row) == WAITS:
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
                number = emptying_score(fleet, weights, gpu)
                later = number < last or (number == last and gpu > before)
                if later and (number > best or (found == WAITS and number >= best)):
                    found, best = gpu, number
        if found == WAITS or can_be_emptied(fleet, rates, weights, found, row):
            return found
        last, before = best, found
    return WAITS


class FleetPolicyInfo(GamePolicyInfo, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a fleet rule is, and where it comes from."""

    RULE = "fleet rule"
    TERMS = (*(term.name for term in PlaceTerm), *(f"MOVE_{term.name}" for term in MoveTerm))
    SHAPES = SHAPES
    COLUMNS = FleetFeature.__members__

    format: Literal["gpusched-fleet-rule"] = "gpusched-fleet-rule"
    terms: tuple[str, ...] = TERMS
    reads: tuple[str, ...] = READS
    control: str = CONTROL
    """Control of each GPU."""


@native()
def play_to_horizon(
    fleet: Any, rates: Any, weights: Any, control: int, times_us: Any, moves: bool, counts: Any, row: Any
) -> int:
    """Play from the beginning of a day to its horizon; gives the number of decisions.

    Args:
        times_us: between two reports, and of a restart.
        moves: whether jobs are moved.
        counts: as of :func:`gpusched_env.games.fleet.windows.run_windows`.
    """
    first = arrived = decisions = 0
    for report in range(counts.shape[1]):
        while arrived < len(fleet.training) and fleet.arrival_us[arrived] <= fleet.clock[NOW]:
            arrived += 1
        waiting = 0
        for job in range(first, arrived):
            if fleet.gpu_of[job] != WAITS:
                continue
            gpu = gpu_for(fleet, rates, weights, job, row)
            decisions += 1
            if gpu == WAITS:
                waiting += 1
                continue
            place_job(fleet, job, gpu)
        if waiting == 0:
            first = arrived
        old = gpu_to_empty(fleet, rates, weights, row) if moves else WAITS
        while old != WAITS and fleet.count[old] > 0:
            job = fleet.slots[old, fleet.count[old] - 1]
            gpu = best_shared_gpu(fleet, rates, weights, job, old, row)
            decisions += 1
            if gpu == WAITS:
                break
            remove_job(fleet, old, fleet.count[old] - 1)
            fleet.ready_us[job] = fleet.clock[NOW] + times_us[1]
            place_job(fleet, job, gpu)
        counts[0, report] = in_use(fleet, 0)
        for gpu in range(len(fleet.count)):
            counts[1, report] += fleet.count[gpu]
        counts[2, report] = waiting
        advance(fleet, control, rates, times_us[0], times_us[1])
    return decisions


def weights_in_a_row(weights: Weights) -> NDArray[np.float32]:
    """All weights in one row, as the rule takes them."""
    return np.concatenate([weights["place"].ravel(), weights["move"]]).astype(np.float32)


def play_day(
    weights: NDArray[np.float32], problem: FleetProblem, *, control: str = CONTROL, moves: bool = True
) -> tuple[FleetRun, int]:
    """A day of the fleet rule, and its decisions.

    Args:
        weights: as of :func:`weights_in_a_row`.
        problem: its GPUs and jobs.
        control: what runs on each GPU.
        moves: whether jobs are moved.
    """
    state, counts = new_state(problem), np.zeros((3, -(-problem.horizon_us // problem.report_us)), np.int64)
    times_us = (problem.report_us, problem.restart_us)
    row = np.zeros(WIDTH, np.float32)
    decisions = play_to_horizon(state, problem.rates, weights, CONTROLS.index(control), times_us, moves, counts, row)
    return FleetRun(problem, state, [], *counts), int(decisions)


@native()
def gpu_for_compiled(fleet: Any, rates: Any, weights: Any, job: int, row: Any) -> int:
    """The compiled :func:`~gpusched_env.games.fleet.agents.rule.gpu_for`."""
    return gpu_for(fleet, rates, weights, job, row)


@native()
def gpu_to_empty_compiled(fleet: Any, rates: Any, weights: Any, row: Any) -> int:
    """The compiled :func:`~gpusched_env.games.fleet.agents.rule.gpu_to_empty`."""
    return gpu_to_empty(fleet, rates, weights, row)


@native()
def beside_compiled(fleet: Any, rates: Any, weights: Any, job: int, but: int, row: Any) -> int:
    """The compiled :func:`~gpusched_env.games.fleet.agents.rule.best_shared_gpu`."""
    return best_shared_gpu(fleet, rates, weights, job, but, row)


NAME = "Fleet"


class LearnedFleet(ConsolidatingDispatcher):
    """A fleet rule whose weights were searched on generated days: placing, moving, and who shares with whom."""

    def __init__(self, path: str | Path | None = None, *, moves: bool = True, rates: str = "block-level") -> None:
        """
        Args:
            path: of a file or of the folder of a training; ``None``: the agent that is shipped.
            moves: whether jobs are moved.
            rates: that latencies are predicted with (:func:`~gpusched_env.games.fleet.co_location.shipped_rates`).

        Raises:
            InputError: there is none, or it does not fit.
        """
        self.file = FOLDER / f"{NAME}.npz" if path is None else policy_file(Path(path))
        self.info, weights = FleetPolicyInfo.read(self.file)
        self.control, self.weights, self.moves = self.info.control, weights_in_a_row(weights), moves
        self._rates = shipped_rates(rates)
        self._row = np.zeros(WIDTH, np.float32)

    def _gpu_for(self, fleet: FleetState, job: int) -> int:
        return int(gpu_for_compiled(fleet, self._rates, self.weights, job, self._row))

    def _beside(self, fleet: FleetState, job: int, but: int) -> int:
        return int(beside_compiled(fleet, self._rates, self.weights, job, but, self._row))

    def _gpu_to_empty(self, fleet: FleetState) -> int:
        return int(gpu_to_empty_compiled(fleet, self._rates, self.weights, self._row)) if self.moves else WAITS

    def describe(self) -> str:
        """A line about the dispatcher."""
        return self.info.summary()
