"""The knob rule: how long a training sleeps and how many SMs it has beside services.

What it reads, and the rule in compiled code.
"""

from __future__ import annotations

import enum
import math

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import called
from gpusched_env.envs.action_fields import PAUSES, QUARTERS
from gpusched_env.envs.encoding import COUNT_HALF, LOG_SCALE, Bools
from gpusched_env.envs.features import TenantFeature


class PauseTerm(enum.IntEnum):
    """Columns of ``pause``, near -2 to 2."""

    ONE = 0
    LATENCY = enum.auto()
    """Exponential mean of the service's turnarounds ``x``, in times of its objective: ``4 x / (1 + x) - 2``."""
    LAST = enum.auto()
    """Last turnaround of the service ``x``, in times of its objective: ``4 x / (1 + x) - 2``."""
    QUEUE = enum.auto()
    """Time alone of the service's jobs in the system ``x``, in times of its objective: ``4 x / (1 + x)``, from 0 on."""
    PRICE = enum.auto()
    """``1 + ln x`` of the weight over the time alone, ``x`` times that of services: what a pause costs beside what it
    can save."""
    LENGTH = enum.auto()
    """``ln x - 1`` of its own time alone, in times of the objective."""


class SmShareTerm(enum.IntEnum):
    """Columns of ``share``, near -2 to 2."""

    ONE = 0
    LATENCY = enum.auto()
    PRICE = enum.auto()


READS: dict[str, tuple[str, ...]] = {
    "tenants": (
        "PRESENT", "HAS_SLO", "SLO", "ALONE", "JOBS", "LAST_SLOWDOWN", "MEAN_SLOWDOWN", "PARTITION_SMS", "EARNS",
    ),
}  # fmt: skip
"""Columns of an observation that the rule reads, by name: others may come and go."""

SHAPES: dict[str, tuple[int, ...]] = {"pause": (len(PauseTerm),), "share": (len(SmShareTerm),)}
"""Shapes of the weights, by name."""


Singles = NDArray[np.float32]

SHARE_AT = len(PauseTerm)
"""Where the weights ``share`` begin; ``pause`` comes first."""
LONGEST = len(PAUSES) - 1
WHOLE = len(QUARTERS)
UP_TO_LAST = len(QUARTERS) - 1
"""A tenant's sizes below a whole GPU come twice: from the first SM on, then up to the last."""


@called
def knob_numbers(
    partitions: int, throttles_after: int, throttles: int, weights: Singles, tenants: Singles, mask: Bools, out: Singles
) -> None:
    """Write one number an action.

    Args:
        partitions: actions of a tenant that set its SMs, the first ones; 0: there are none.
        throttles_after: actions of a tenant that come before those that set its pause.
        throttles: these.
        weights: ``pause``, then ``share``.
        tenants: of the observation.
        mask: legal actions.
        out: written.
    """
    out[:] = -1.0
    out[0] = 0.0
    slots = tenants.shape[0]
    service = _worst(tenants)
    if service < 0:
        return
    latency = _near(_of_slo(tenants[service], TenantFeature.MEAN_SLOWDOWN)) - 2.0
    slo_us = _microseconds(tenants[service, TenantFeature.SLO])
    for tenant in range(slots):
        row = tenants[tenant]
        if row[TenantFeature.PRESENT] < 0.5 or row[TenantFeature.HAS_SLO] > 0.5:
            continue
        price = 1.0 + math.log(max(_ratio(row[TenantFeature.EARNS]), 1e-3))
        length = math.log(max(_microseconds(row[TenantFeature.ALONE]), 1.0) / slo_us) - 1.0
        pause = _pause_terms(weights, tenants[service], latency, price, length)
        action = 1 + slots * throttles_after + tenant * throttles + _round(pause, LONGEST)
        if mask[action]:
            out[action] = 1.0
        if partitions == 0:
            continue
        quarters = (
            math.floor(WHOLE * row[TenantFeature.PARTITION_SMS] + 0.5)
            + weights[SHARE_AT + SmShareTerm.ONE]
            + weights[SHARE_AT + SmShareTerm.LATENCY] * latency
            + weights[SHARE_AT + SmShareTerm.PRICE] * price
        )
        action = 1 + tenant * partitions + UP_TO_LAST + max(1, _round(quarters, WHOLE)) - 1
        if mask[action]:
            out[action] = 2.0


@called
def _worst(tenants: Singles) -> int:
    """Row of the service whose turnarounds are longest beside its objective; -1: there is none."""
    found, most = -1, -1.0
    for tenant in range(tenants.shape[0]):
        if tenants[tenant, TenantFeature.HAS_SLO] > 0.5:
            latency = _of_slo(tenants[tenant], TenantFeature.MEAN_SLOWDOWN)
            if latency > most:
                found, most = tenant, latency
    return found


@called
def _pause_terms(weights: Singles, service: Singles, latency: float, price: float, length: float) -> float:
    jobs = COUNT_HALF * _ratio(service[TenantFeature.JOBS])
    slo_us = _microseconds(service[TenantFeature.SLO])
    queue = jobs * _microseconds(service[TenantFeature.ALONE]) / slo_us
    return float(
        weights[PauseTerm.ONE]
        + weights[PauseTerm.LATENCY] * latency
        + weights[PauseTerm.LAST] * (_near(_of_slo(service, TenantFeature.LAST_SLOWDOWN)) - 2.0)
        + weights[PauseTerm.QUEUE] * _near(queue)
        + weights[PauseTerm.PRICE] * price
        + weights[PauseTerm.LENGTH] * length
    )


@called
def _of_slo(row: Singles, slowdown: int) -> float:
    """The turnaround in times of the objective, from a column of slowdowns."""
    return _ratio(row[slowdown]) * _microseconds(row[TenantFeature.ALONE]) / _microseconds(row[TenantFeature.SLO])


@called
def _near(x: float) -> float:
    return 4.0 * x / (1.0 + x)


@called
def _microseconds(log: float) -> float:
    return math.expm1(log * LOG_SCALE)


@called
def _ratio(saturated: float) -> float:
    """The number ``x``, from ``x / (1 + x)``."""
    return saturated / (1.0 - min(saturated, 0.9999))


@called
def _round(value: float, most: int) -> int:
    return int(min(max(math.floor(value + 0.5), 0.0), most))
