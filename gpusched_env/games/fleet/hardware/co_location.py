"""The rate model: how jobs that share a GPU slow each other, as a function of sleep and share.

Its constants are fitted on the simulated device at the granularity of blocks by ``gpusched fleet-rates``, which states
their error. A job is on the GPU for a part of its time, its *activity*; kernels of others that are on it meanwhile
stretch its own in proportion to their activities.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gpusched_env.compiling import law


class RateModel(NamedTuple):
    """Constants of the rate model, all at least 0."""

    inference_by_inference: float
    """Stretch of a batch per activity of other inference."""
    inference_by_training: float
    """Stretch of a batch per activity of training that may use all SMs."""
    exponent: float
    """By how much less it is with a smaller share: the stretch goes with ``share ** exponent``."""
    training_by_others: float
    """Stretch of an iteration's kernels per activity of other jobs."""
    cap_knee: float
    """Share of the SMs above which a job alone is no quicker."""
    cap_exponent: float
    """Below the knee its kernels' speed is ``(share / knee) ** exponent``."""
    apart: float
    """Stretch of kernels per activity of jobs on other SMs (by DRAM and L2)."""
    noise: float = 0.02
    """Of a measured latency, standard deviation over mean; it makes controllers change shares, that is, restart jobs.
    Derived, not fitted: GPUColo's models of latency in sleep have R^2 of 0.79 (Section 3) at a slope of 11 ms a second
    and 78 ms (Fig. 6), so that 1.6 ms is left."""


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
