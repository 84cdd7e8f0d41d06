"""The observation of ``gpusched/Fleet-v0``: its columns, and the rows of what a GPU would be with a job, for plain
Python and compiled code alike; and what dispatchers have in common that go by such rows and empty a GPU now and
then.

``fleet`` is :attr:`gpusched_env.games.fleet.device.FleetView.shown`, or the state itself: neither what a job has left
nor later jobs are looked at.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Final

from gpusched_env.compiling import native, procedure
from gpusched_env.envs.features import FLAG, SHARE, Feature
from gpusched_env.envs.features import RATIO as SQUASHED
from gpusched_env.games.fleet.co_location import LONGEST_SLEEP_US, NOW, activity
from gpusched_env.games.fleet.device import WAIT, Command, FleetView, Move, Place
from gpusched_env.games.fleet.problem import CLIENTS, TOP, WAITS, FleetState, GpuKind
from gpusched_env.games.fleet.windows import PackingRule, has_room

AGE: Final = "log minutes"
"""Unit of ages: ``log1p(minutes) / log1p(20160)``, 1 at the longest run time, two weeks."""
AGE_TOP: Final = 20_160.0
COLUMNS_NOTE: Final = """\
### Columns
Row `k` is candidate `k`; the row behind them is an empty GPU. All that is said of loads, memory and latencies is with
the job there. Latencies are predicted by the [rate model](fleet-rates.md). `log minutes`: log1p(minutes) /
log1p(20160), at most 1. Sources are fields of `gpusched_env.games.fleet.device.FleetView`.
"""


class FleetFeature(Feature):
    """A candidate GPU, with the job that is to be placed."""

    PRESENT = ("1 if the job can go there; otherwise the row is 0", FLAG, 0, 1, "load, claimed_gb, count")
    TRAINING = ("1: the job is training", FLAG, 0, 1, "jobs.training")
    UTILISATION = ("of the job", SHARE, 0, 1, "jobs.utilisation")
    EMPTY = ("1: nothing is there", FLAG, 0, 1, "count")
    LOAD = ("utilisations there", SHARE, 0, 1, "load")
    INFERENCE_LOAD = ("of these, those of inference", SHARE, 0, 1, "jobs.utilisation")
    CLAIMED = ("memory, of all", SHARE, 0, 1, "claimed_gb, size_gb")
    COUNT = ("jobs that are there, of 48", SHARE, 0, 1, "count")
    TRAININGS = ("of these, training, of 48", SHARE, 0, 1, "jobs.training")
    SLEEP = ("sleep of training after an iteration, of 1 s", SHARE, 0, 1, "sleep_us")
    RATIO = ("worst mean latency over SLO since the last report", SQUASHED, 0, 1, "ratio")
    LEAST = ("worst latency over SLO if training sleeps as much as it can", SQUASHED, 0, 1, "jobs, share")
    FULL = ("the same if it does not sleep", SQUASHED, 0, 1, "jobs, share")
    DISTURBS = ("1: no sleep of training holds every SLO there", FLAG, 0, 1, "jobs, share")
    OLDEST = ("time that the job there longest has been known", AGE, 0, 1, "jobs.arrival_us")
    YOUNGEST = ("the same of the newest job", AGE, 0, 1, "jobs.arrival_us")


WIDTH: Final = len(FleetFeature)
CANDIDATES: Final = 8
ROOM: Final = PackingRule()
"""A job has room where all utilisations are at most 1, as for GPUColo: rates are not known beyond that."""


@procedure
def ratio_of(value: float) -> float:
    """A value in the unit :data:`~gpusched_env.envs.features.RATIO`."""
    return value / (1.0 + value)


@procedure
def age_of(time_us: float) -> float:
    """A time in the unit :data:`~gpusched_env.games.fleet.environment.encoding.AGE`."""
    return min(1.0, math.log1p(max(0.0, time_us) / 60e6) / math.log1p(AGE_TOP))


@procedure
def worst_latency(fleet: Any, rates: Any, job: int, gpu: int, asked: float, trained: float) -> float:
    """Largest predicted latency over SLO on a GPU with a job, 0 without inference.

    Args:
        asked: activity of all inference there, the job's included.
        trained: the same of training, as it sleeps.
    """
    toll = rates.inference_by_training * math.pow(fleet.share[gpu], rates.exponent)
    worst = 0.0
    for slot in range(fleet.count[gpu] + 1):
        other = job if slot == fleet.count[gpu] else fleet.slots[gpu, slot]
        if fleet.training[other] == 0:
            own = min(1.0, fleet.utilisation[other] / fleet.speed[gpu])
            stretch = (1.0 + rates.inference_by_inference * (asked - own) + toll * trained) / fleet.speed[gpu]
            worst = max(worst, stretch * fleet.step_us[other] / fleet.slo_us[other])
    return worst


@procedure
def encode_row(fleet: Any, rates: Any, job: int, gpu: int, row: Any) -> None:
    """Write the row of a GPU that has room for a job, which is not there."""
    now_us, count, speed = fleet.clock[NOW], fleet.count[gpu], fleet.speed[gpu]
    asked = trained = asleep = 0.0
    trainings = 0
    oldest = youngest = float(fleet.arrival_us[job])
    for slot in range(count + 1):
        other = job if slot == count else fleet.slots[gpu, slot]
        own = min(1.0, fleet.utilisation[other] / speed)
        if fleet.training[other] == 1:
            trained += own
            asleep += activity(own, LONGEST_SLEEP_US, fleet.step_us[other])
            trainings += 1
        else:
            asked += own
        if slot < count:
            oldest = min(oldest, float(fleet.arrival_us[other]))
            youngest = max(youngest, float(fleet.arrival_us[other])) if slot > 0 else float(fleet.arrival_us[other])
    least = worst_latency(fleet, rates, job, gpu, asked, asleep)
    row[FleetFeature.PRESENT] = 1.0
    row[FleetFeature.TRAINING] = fleet.training[job]
    row[FleetFeature.UTILISATION] = fleet.utilisation[job]
    row[FleetFeature.EMPTY] = 1.0 if count == 0 else 0.0
    row[FleetFeature.LOAD] = min(1.0, asked + trained)
    row[FleetFeature.INFERENCE_LOAD] = min(1.0, asked)
    row[FleetFeature.CLAIMED] = min(1.0, (fleet.claimed_gb[gpu] + fleet.memory_gb[job]) / fleet.size_gb[gpu])
    row[FleetFeature.COUNT] = (count + 1) / CLIENTS
    row[FleetFeature.TRAININGS] = trainings / CLIENTS
    row[FleetFeature.SLEEP] = min(1.0, fleet.sleep_us[gpu] / LONGEST_SLEEP_US)
    row[FleetFeature.RATIO] = ratio_of(fleet.ratio[gpu]) if count > 0 else 0.0
    row[FleetFeature.LEAST] = ratio_of(least)
    row[FleetFeature.FULL] = ratio_of(worst_latency(fleet, rates, job, gpu, asked, trained))
    row[FleetFeature.DISTURBS] = 1.0 if least > 1.0 else 0.0
    row[FleetFeature.OLDEST] = age_of(now_us - oldest) if count > 0 else 0.0
    row[FleetFeature.YOUNGEST] = age_of(now_us - youngest) if count > 0 else 0.0


@procedure
def empty_gpu(fleet: Any, job: int) -> int:
    """The first GPU without jobs that has the memory for one, or :data:`~gpusched_env.games.fleet.problem.WAITS`."""
    for gpu in range(len(fleet.count)):
        if fleet.count[gpu] == 0 and fleet.memory_gb[job] <= fleet.size_gb[gpu]:
            return gpu
    return WAITS


@procedure
def encode(fleet: Any, rates: Any, job: int, rows: Any, gpus: Any) -> None:
    """Write all rows, and which GPUs they are.

    Args:
        rows: shape ``(CANDIDATES + 1, WIDTH)``; rows of no GPU become 0.
        gpus: shape ``(CANDIDATES + 1,)``: of GPUs in use that have room those with the most load, the fullest first
            and of equal ones the first; behind them an empty one. ``WAITS``: there is none.
    """
    for place in range(CANDIDATES + 1):
        gpus[place] = WAITS
        for column in range(WIDTH):
            rows[place, column] = 0.0
    for gpu in range(fleet.clock[TOP]):
        if fleet.count[gpu] == 0 or not has_room(fleet, job, gpu, ROOM):
            continue
        place = CANDIDATES
        while place > 0 and (gpus[place - 1] == WAITS or fleet.load[gpu] > fleet.load[gpus[place - 1]]):
            place -= 1
        for later in range(CANDIDATES - 1, place, -1):
            gpus[later] = gpus[later - 1]
        if place < CANDIDATES:
            gpus[place] = gpu
    gpus[CANDIDATES] = empty_gpu(fleet, job)
    for place in range(CANDIDATES + 1):
        if gpus[place] != WAITS:
            encode_row(fleet, rates, job, gpus[place], rows[place])


@native()
def encode_compiled(fleet: Any, rates: Any, job: int, rows: Any, gpus: Any) -> None:
    """The compiled :func:`encode`."""
    encode(fleet, rates, job, rows, gpus)


@native()
def first_undisturbed(fleet: Any, rates: Any, job: int, but: int, best: bool, row: Any) -> int:
    """The GPU in use, other than ``but``, with room where every SLO is predicted to be kept, or ``WAITS``.

    Args:
        best: the fullest of them, in place of the first.
        row: scratch, of :data:`WIDTH`.
    """
    found = WAITS
    for gpu in range(fleet.clock[TOP]):
        if gpu == but or fleet.count[gpu] == 0 or not has_room(fleet, job, gpu, ROOM):
            continue
        if found != WAITS and not (best and fleet.load[gpu] > fleet.load[found]):
            continue
        encode_row(fleet, rates, job, gpu, row)
        if row[FleetFeature.DISTURBS] == 0.0:
            found = gpu
    return found


@native()
def empty_gpu_compiled(fleet: Any, job: int) -> int:
    """The compiled :func:`empty_gpu`."""
    return empty_gpu(fleet, job)


class ConsolidatingDispatcher(ABC):
    """Every job that has a GPU is placed; then, once a report, the jobs of one GPU are moved, the last one first."""

    def reset(self, kinds: tuple[GpuKind, ...]) -> None:
        """Nothing has been moved yet."""
        self._looked_us, self._old = -1, WAITS

    def decide(self, view: FleetView) -> Command:
        """The next command of the dispatcher."""
        fleet = view.shown
        for job in view.waiting.tolist():
            gpu = self._gpu_for(fleet, job)
            if gpu != WAITS:
                return Place(job, gpu)
        if self._looked_us != view.now_us:
            self._looked_us, self._old = view.now_us, self._gpu_to_empty(fleet)
        old = self._old
        if old != WAITS and fleet.count[old] > 0:
            job = int(fleet.slots[old, fleet.count[old] - 1])
            gpu = self._beside(fleet, job, old)
            if gpu != WAITS:
                return Move(job, gpu)
        self._old = WAITS
        return WAIT

    @abstractmethod
    def _gpu_for(self, fleet: FleetState, job: int) -> int:
        """The GPU that a job that waits goes to, or ``WAITS``."""

    @abstractmethod
    def _gpu_to_empty(self, fleet: FleetState) -> int:
        """The GPU whose jobs are moved now, or ``WAITS``."""

    @abstractmethod
    def _beside(self, fleet: FleetState, job: int, but: int) -> int:
        """The GPU in use other than ``but`` that a job goes to, or ``WAITS``."""
