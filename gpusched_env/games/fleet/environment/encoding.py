"""What a GPU would be with a job: the rows of observations, for plain Python and compiled code alike.

``fleet`` is :attr:`gpusched_env.games.fleet.dispatcher.FleetView.shown`, or the state itself: neither what a job has
left nor later jobs are looked at.
"""

from __future__ import annotations

import math
from typing import Any, Final

from gpusched_env.compiling import cached, procedure
from gpusched_env.games.fleet.co_location import LONGEST_SLEEP_US, NOW
from gpusched_env.games.fleet.environment.features import AGE_TOP, FleetFeature
from gpusched_env.games.fleet.hardware.co_location import activity
from gpusched_env.games.fleet.state import CLIENTS, TOP, WAITS
from gpusched_env.games.fleet.windows import PackingRule, fits

WIDTH: Final = len(FleetFeature)
CANDIDATES: Final = 8
ROOM: Final = PackingRule()
"""A job has room where all utilisations are at most 1, as for GPUColo: rates are not known beyond that."""


@procedure
def ratio_of(value: float) -> float:
    """Unit :data:`~gpusched_env.envs.features.RATIO`."""
    return value / (1.0 + value)


@procedure
def age_of(time_us: float) -> float:
    """Unit :data:`~gpusched_env.games.fleet.environment.features.AGE`."""
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
    """The first GPU without jobs that has the memory for one, or :data:`~gpusched_env.games.fleet.state.WAITS`."""
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
        if fleet.count[gpu] == 0 or not fits(fleet, job, gpu, ROOM):
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


@cached()
def encode_compiled(fleet: Any, rates: Any, job: int, rows: Any, gpus: Any) -> None:
    """:func:`encode`, compiled."""
    encode(fleet, rates, job, rows, gpus)


@cached()
def first_undisturbed(fleet: Any, rates: Any, job: int, but: int, best: bool, row: Any) -> int:
    """The GPU in use, other than ``but``, with room where every SLO is predicted to be kept, or ``WAITS``.

    Args:
        best: the fullest of them, in place of the first.
        row: scratch, of :data:`WIDTH`.
    """
    found = WAITS
    for gpu in range(fleet.clock[TOP]):
        if gpu == but or fleet.count[gpu] == 0 or not fits(fleet, job, gpu, ROOM):
            continue
        if found != WAITS and not (best and fleet.load[gpu] > fleet.load[found]):
            continue
        encode_row(fleet, rates, job, gpu, row)
        if row[FleetFeature.DISTURBS] == 0.0:
            found = gpu
    return found


@cached()
def empty_gpu_compiled(fleet: Any, job: int) -> int:
    """:func:`empty_gpu`, compiled."""
    return empty_gpu(fleet, job)
