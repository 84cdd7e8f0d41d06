"""Jobs that share a GPU: the rate model, its constants as shipped, and what the controllers of a GPU come to between
two reports.

Its constants are fitted on the simulated device at the granularity of blocks by ``gpusched fleet-rates``, which states
their error. A job is on the GPU for a part of its time, its *activity*; kernels of others that are on it meanwhile
stretch its own in proportion to their activities.

Inner periods are seconds and reports a minute, so what they settle at is taken for all of it. Sources: GPUColo (ICDCS
2024), Section 3; GSLICE as that paper extends it to training.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from gpusched_env.compiling import law, procedure
from gpusched_env.data import stored
from gpusched_env.errors import InputError, did_you_mean


class RateModel(NamedTuple):
    """Constants of the rate model, all at least 0."""

    inference_by_inference: float
    """Stretch of a batch per activity of other inference."""
    inference_by_training: float
    """Stretch of a batch per activity of training that may use all SMs."""
    exponent: float
    """The exponent of a smaller share: the stretch by training goes with ``share ** exponent``."""
    training_by_others: float
    """Stretch of an iteration's kernels per activity of other jobs."""
    cap_knee: float
    """Share of the SMs above which a job alone is no quicker."""
    cap_exponent: float
    """Exponent of the speed of kernels below the knee: ``(share / knee) ** exponent``."""
    apart: float
    """Stretch of kernels per activity of jobs on other SMs (by DRAM and L2)."""
    noise: float = 0.02
    """Noise of a measured latency, standard deviation over mean; it makes controllers change shares, that is, restart
    jobs. Derived, not fitted: GPUColo's models of latency in sleep have R^2 of 0.79 (Section 3) at a slope of 11 ms a
    second and 78 ms (Fig. 6), so that 1.6 ms is left."""


@law
def activity(utilisation: float, sleep_us: float, iteration_us: float) -> float:
    """Part of its time in which a training job that sleeps after each iteration is on the GPU."""
    return utilisation / (1.0 + sleep_us / iteration_us)


@law
def capped_speed(share: float, knee: float, exponent: float) -> float:
    """Speed in (0, 1] of kernels confined to ``share`` in (0, 1] of the SMs, over that on all of them."""
    return 1.0 if share >= knee else math.pow(share / knee, exponent)


@law
def share_of_speed(speed: float, knee: float, exponent: float) -> float:
    """The share in (0, 1] with which kernels run at ``speed``; the inverse of :func:`capped_speed`."""
    return min(1.0, knee * math.pow(min(1.0, speed), 1.0 / exponent))


@law
def iteration_stretch(utilisation: float, kernels: float, sleep_us: float, iteration_us: float) -> float:
    """Length of an iteration over that alone.

    Its kernels take ``kernels`` times as long, its host's part stays, and it sleeps afterwards.
    """
    return (1.0 - utilisation) + utilisation * kernels + sleep_us / iteration_us


FILE: Final = "fleet_rates.json"


def shipped_rates(source: str = "block-level") -> RateModel:
    """The rates that ``gpusched reproduce fleet-rates`` fitted.

    Args:
        source: ``block-level``, or ``published``: what training does to batches is that of GPUColo's Figure 6.

    Raises:
        InputError: there is no such source.
    """
    rates = stored("calibration", FILE)["rates"]
    if source not in rates:
        raise InputError(f"no rates of a fleet are {source!r}; {did_you_mean(source, rates)}")
    return RateModel(**rates[source])


def published_fleet() -> Any:
    """Figures of the paper's fleet, and of its Figure 6."""
    return stored("published", "gpucolo_fleet.json")


SHARED, GPUCOLO, GSLICE, WORST = range(4)
"""Controls: none, or that of a system; :data:`WORST` is GPUColo's that measures the job that is worst off."""
CONTROLS: Final = ("shared", "gpucolo", "gslice", "gpucolo-worst")
NOW: Final = 0
"""Column of a fleet's clock with the time."""
LONGEST_SLEEP_US: Final = 1e6
LEAST_SHARE: Final = 0.01
"""GPUColo, Section 3: sleep is at most 1 s, an MPS percentage at least 1."""
OUTER_ERROR, GSLICE_ERROR = 0.02, 0.01
"""Relative errors of a latency below which shares stay."""
OUTER_PERIOD_US, GSLICE_PERIOD_US = 100e6, 25e6
LATE_US, LATE_REFERENCE = 10e6, 0.5
"""A job that is so far behind its SLO has half of it as its reference until it has caught up (public code of a
simulator whose content matches the paper)."""


@procedure
def false_alarm_probability(rates: Any, error: float) -> float:
    """Probability that a measured latency is off by more than ``error`` by noise alone."""
    return math.erfc(error / rates.noise / math.sqrt(2.0)) if rates.noise > 0.0 else 0.0


@procedure
def settle_controller(fleet: Any, gpu: int, control: int, rates: Any, restart_us: int, end_us: int) -> None:
    """Write sleep and share of a GPU, and ``pace`` and ``lost`` of the jobs that are on it until ``end_us``."""
    asked = 0.0
    inference = training = 0
    for slot in range(fleet.count[gpu]):
        job = fleet.slots[gpu, slot]
        if fleet.training[job]:
            training += 1
        else:
            inference += 1
            asked += own_activity(fleet, gpu, job, 0.0, end_us)
    if control == GSLICE and inference > 0 and inference + training > 1:
        control_gslice(fleet, gpu, rates, asked, inference, training, restart_us, end_us)
        return
    lost = 0.0
    if control in (GPUCOLO, WORST) and inference > 0 and training > 0:
        lost = min(1.0, false_alarm_probability(rates, OUTER_ERROR) * restart_us / OUTER_PERIOD_US)
        control_gpucolo(fleet, gpu, rates, control == WORST, asked, inference, restart_us, end_us)
    elif inference == 0 or training == 0 or control == SHARED:
        fleet.sleep_us[gpu] = 0.0
        fleet.share[gpu] = 1.0
    set_shared_pace(fleet, gpu, rates, asked, lost, end_us)


@procedure
def own_activity(fleet: Any, gpu: int, job: int, sleep_us: float, end_us: int) -> float:
    """The activity of one job; none while it restarts."""
    if fleet.ready_us[job] >= end_us:
        return 0.0
    utilisation = min(1.0, fleet.utilisation[job] / fleet.speed[gpu])
    if fleet.training[job]:
        return float(activity(utilisation, sleep_us, fleet.step_us[job]))
    return float(utilisation)


@procedure
def training_activity(fleet: Any, gpu: int, sleep_us: float, end_us: int) -> float:
    """The activity of all training on a GPU, with that sleep."""
    total = 0.0
    for slot in range(fleet.count[gpu]):
        job = fleet.slots[gpu, slot]
        if fleet.training[job]:
            total += own_activity(fleet, gpu, job, sleep_us, end_us)
    return total


@procedure
def all_activity(fleet: Any, gpu: int, end_us: int) -> float:
    """The activity of all jobs on a GPU, at most 1."""
    total = training_activity(fleet, gpu, fleet.sleep_us[gpu], end_us)
    for slot in range(fleet.count[gpu]):
        job = fleet.slots[gpu, slot]
        if not fleet.training[job]:
            total += own_activity(fleet, gpu, job, 0.0, end_us)
    return min(1.0, total)


@procedure
def set_shared_pace(fleet: Any, gpu: int, rates: Any, asked: float, lost: float, end_us: int) -> None:
    """The pace of jobs that share all SMs, but that training is capped and sleeps."""
    sleep_us, share, speed = fleet.sleep_us[gpu], fleet.share[gpu], fleet.speed[gpu]
    trained = training_activity(fleet, gpu, sleep_us, end_us)
    toll = rates.inference_by_training * math.pow(share, rates.exponent)
    capped = speed * capped_speed(share, rates.cap_knee, rates.cap_exponent)
    for slot in range(fleet.count[gpu]):
        job = fleet.slots[gpu, slot]
        own = own_activity(fleet, gpu, job, sleep_us, end_us)
        fleet.lost[job] = 0.0
        if fleet.training[job]:
            kernels = (1.0 + rates.training_by_others * (asked + trained - own)) / capped
            fleet.pace[job] = 1.0 / iteration_stretch(fleet.utilisation[job], kernels, sleep_us, fleet.step_us[job])
            fleet.lost[job] = lost
        else:
            stretch = (1.0 + rates.inference_by_inference * (asked - own) + toll * trained) / speed
            fleet.pace[job] = stretch * fleet.step_us[job] / fleet.slo_us[job]


@procedure
def control_gpucolo(
    fleet: Any, gpu: int, rates: Any, worst: bool, asked: float, inference: int, restart_us: int, end_us: int
) -> None:
    """GPUColo: the sleep, and where that is not enough the share, with which mean (or worst) latency over SLO is 1."""
    base = weight = 0.0
    late = False
    for slot in range(fleet.count[gpu]):
        job = fleet.slots[gpu, slot]
        if not fleet.training[job]:
            of_slo = fleet.step_us[job] / fleet.slo_us[job] / fleet.speed[gpu]
            own = own_activity(fleet, gpu, job, 0.0, end_us)
            alone = of_slo * (1.0 + rates.inference_by_inference * (asked - own))
            if not worst:
                base += alone / inference
                weight += of_slo * rates.inference_by_training / inference
            elif alone > base:
                base = alone
                weight = of_slo * rates.inference_by_training
            late = late or (not worst and fleet.ratio_us[job] - fleet.served_us[job] > LATE_US)
    free = max(0.0, (LATE_REFERENCE if late else 1.0) - base)
    toll = weight * math.pow(fleet.share[gpu], rates.exponent)
    sleep_us = sleep_of(fleet, gpu, free / toll, end_us)
    error = base + toll * training_activity(fleet, gpu, sleep_us, end_us) - 1.0
    stuck_up = sleep_us >= LONGEST_SLEEP_US and error > OUTER_ERROR
    stuck_down = sleep_us <= 0.0 and error < -OUTER_ERROR and fleet.share[gpu] < 1.0
    if not late and (stuck_up or stuck_down):
        trained = max(1e-9, training_activity(fleet, gpu, sleep_us, end_us))
        share = 1.0  # Where a smaller share disturbs more, and nothing is free.
        if free > 0.0 or rates.exponent > 0.0:
            share = math.pow(free / (weight * trained), 1.0 / rates.exponent)
        share = min(1.0, max(LEAST_SHARE, share))
        if share != fleet.share[gpu]:
            fleet.share[gpu] = share
            for slot in range(fleet.count[gpu]):
                job = fleet.slots[gpu, slot]
                if fleet.training[job]:
                    fleet.ready_us[job] = max(fleet.ready_us[job], fleet.clock[NOW] + restart_us)
    fleet.sleep_us[gpu] = sleep_us


@procedure
def sleep_of(fleet: Any, gpu: int, wanted: float, end_us: int) -> float:
    """The sleep with which training has an activity of ``wanted``, at most :data:`LONGEST_SLEEP_US`.

    Newton's rule from 0: activity is convex in sleep, so that it comes from below and never oversteps.
    """
    sleep_us = 0.0
    for _step in range(8):
        total = slope = 0.0
        for slot in range(fleet.count[gpu]):
            job = fleet.slots[gpu, slot]
            if fleet.training[job]:
                own = own_activity(fleet, gpu, job, sleep_us, end_us)
                total += own
                slope += own / (fleet.step_us[job] + sleep_us)
        if total <= wanted or slope <= 0.0:
            return sleep_us
        sleep_us += (total - wanted) / slope
        if sleep_us >= LONGEST_SLEEP_US:
            return LONGEST_SLEEP_US
    return sleep_us


@procedure
def control_gslice(
    fleet: Any, gpu: int, rates: Any, asked: float, inference: int, training: int, restart_us: int, end_us: int
) -> None:
    """GSLICE: shares that add up to 100 %, of inference as large as its SLO needs, and training has the rest.

    Noise changes the share of an inference job every so often, which restarts it, and all training with it.
    """
    everyone = asked + training_activity(fleet, gpu, 0.0, end_us)
    knee, exponent, speed = rates.cap_knee, rates.cap_exponent, fleet.speed[gpu]
    total = 0.0
    for slot in range(fleet.count[gpu]):
        job = fleet.slots[gpu, slot]
        if not fleet.training[job]:
            apart = 1.0 + rates.apart * (everyone - own_activity(fleet, gpu, job, 0.0, end_us))
            total += share_of_speed(apart * fleet.step_us[job] / fleet.slo_us[job] / speed, knee, exponent)
    scale = min(1.0, (1.0 - LEAST_SHARE * training) / total)
    rest = max(LEAST_SHARE, (1.0 - total * scale) / max(1, training))
    part, steps = min(1.0, restart_us / GSLICE_PERIOD_US), false_alarm_probability(rates, GSLICE_ERROR)
    fleet.sleep_us[gpu] = 0.0
    fleet.share[gpu] = rest
    for slot in range(fleet.count[gpu]):
        job = fleet.slots[gpu, slot]
        apart = 1.0 + rates.apart * (everyone - own_activity(fleet, gpu, job, 0.0, end_us))
        if fleet.training[job]:
            kernels = apart / (speed * capped_speed(rest, knee, exponent))
            fleet.pace[job] = 1.0 / iteration_stretch(fleet.utilisation[job], kernels, 0.0, fleet.step_us[job])
            fleet.lost[job] = part * (1.0 - math.pow(1.0 - steps, float(inference)))
        else:
            of_slo = apart * fleet.step_us[job] / fleet.slo_us[job] / speed
            share = scale * share_of_speed(of_slo, knee, exponent)
            fleet.pace[job] = of_slo / capped_speed(share, knee, exponent)
            fleet.lost[job] = part * steps
