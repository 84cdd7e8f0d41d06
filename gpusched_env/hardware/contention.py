"""How resident blocks slow each other: issue slots within an SM, DRAM bandwidth across SMs.

Each law was found on recordings of an H100 (``docs/hardware-model.md`` has the measurements, the errors and
what each mechanism is worth):

* *Issue slots.* A warp of latency ``L`` (its block's duration with nobody else there) needs the issue slot of
  its sub-partition a share ``rho`` of the time. A slot is lost only while no warp is ready: of the demand
  ``D = sum(n rho)`` of a sub-partition's warps it serves ``1 - prod((1 - rho)^n)``, so that on average
  instructions stretch by ``A = D / (1 - prod(...))``. There is no constant in this.
* *Oldest first.* The more ``D`` exceeds 1, the more older warps are served before younger ones, until at
  :data:`TILT_FULL` the youngest gets nothing.
* *Light warps among heavier ones* wait, at each instruction that co-residents can hold up (a share ``wait``
  of their latency), for a slot in which no older warp, and only some younger one, is ready.
* *DRAM.* What is served of the total demand saturates softly towards the reachable bandwidth, and is shared
  softly max-min between SMs in proportion to their loading warps.

A device goes over the cohorts of an SM (equal blocks of one grid that started together) twice: :func:`with_warps` sums
up those that run, :func:`share_slots` says how they share; then, oldest first, :func:`slot_stretch` gives the stretch
of each, and :func:`with_traffic` sums up what the SM asks of DRAM. Over the kinds of SMs, :func:`share_bandwidth` gives
the fair level, from which :func:`throttle` and :func:`block_rate` follow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import law

TILT_FULL = 4.83
"""Demand of a sub-partition at which its youngest warp gets no slots (64 warps of arithmetic, waves.jsonl)."""
TILT_POWER = 1.7
"""Exponent of the tilt to older warps beyond a demand of 1 (block ends of 2 to 5 blocks an SM, placement.jsonl)."""
YOUNGER = 0.4
"""How much of the younger warps a light warp waits for (even-numbered pairs)."""
BUSY_MOST = 3.4
"""Bound on the logarithm of a light warp's wait for a free slot (even-numbered pairs)."""
LEAST_WEIGHT = 0.05
"""Least share of its fair progress that the youngest row keeps."""
NEGLIGIBLE = 0.9995
"""If more than this share of the demand for DRAM traffic is served, nobody is held up."""

Numbers = Sequence[float] | NDArray[np.float64]

# ---- issue slots within an SM ------------------------------------------------------------------------


class Warps(NamedTuple):
    """Sums over the running warps on a sub-partition (see :func:`with_warps`)."""

    demand: float
    """Sum of ``rho``: how much of the slot the warps need."""
    squared: float
    """Sum of the square of ``rho``."""
    log_idle: float
    """Sum of ``log(1 - rho)``: the logarithm of the probability that none of the warps is ready."""


NO_WARPS = Warps(0.0, 0.0, 0.0)


class Sharing(NamedTuple):
    """How the running warps on a sub-partition share its issue slots (see :func:`share_slots`)."""

    demand: float
    """Summed demand of the running warps; 0: nobody stretches."""
    log_idle: float
    mean_rho: float
    """Demand-weighted mean of ``rho``."""
    mean: float
    """Mean stretch of the warps, by :func:`mean_stretch`."""
    leaning: float
    """How much older warps go first, by :func:`tilt`; 0 if that mechanism is off."""
    light_wait: float
    """Whether warps with little demand wait for heavier ones: above 0 if they do."""


@law
def warps_on(blocks: int, warps: int, sub_partitions: float) -> float:
    """Warps on each sub-partition of an SM that holds ``blocks`` blocks of ``warps`` warps."""
    return blocks * warps / sub_partitions


@law
def with_warps(sums: Warps, warps: float, rho: float, log_idle: float) -> Warps:
    """The sums with those over a cohort added.

    Args:
        sums: over the cohorts before.
        warps: of the cohort on a sub-partition (:func:`warps_on`).
        rho: share of time that one of them needs the slot, alone.
        log_idle: ``log1p(-rho)``.
    """
    return Warps(sums.demand + warps * rho, sums.squared + warps * rho * rho, sums.log_idle + warps * log_idle)


@law
def share_slots(running: Warps, issue: float, oldest_first: float, light_wait: float) -> Sharing:
    """How the ``running`` warps of an SM share issue slots; the other arguments are 1 where a mechanism is on."""
    if issue <= 0.0 or running.demand <= 0.0:
        return Sharing(0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    return Sharing(
        running.demand,
        running.log_idle,
        running.squared / running.demand,
        mean_stretch(running.demand, running.log_idle),
        tilt(running.demand) * oldest_first,
        light_wait,
    )


@law
def slot_stretch(sharing: Sharing, older: Warps, warps: float, rho: float, wait: float, log_idle: float) -> float:
    """Factor (>= 1) on the latency of a running cohort's blocks from sharing issue slots, memory aside.

    Args:
        sharing: of all running cohorts of the SM.
        older: sums over those that are older than this one.
        warps, rho, log_idle: of the cohort, as for :func:`with_warps`.
        wait: share of its latency that heavier co-residents can stretch.
    """
    if sharing.demand <= 0.0:
        return 1.0
    return block_stretch(
        rho,
        wait if sharing.light_wait > 0.0 else 0.0,
        sharing.mean_rho,
        sharing.mean,
        sharing.leaning,
        (older.demand + 0.5 * (warps * rho)) / sharing.demand,
        older.log_idle,
        sharing.log_idle - older.log_idle - warps * log_idle,
    )


@law
def mean_stretch(demand: float, log_idle: float) -> float:
    """Mean stretch (>= 1) of the warps on a sub-partition.

    Args:
        demand: summed share of time that they need its slot (>= 0, may pass 1).
        log_idle: logarithm of the probability that none of them is ready (<= 0).
    """
    if demand <= 0.0:
        return 1.0
    return max(1.0, demand / -math.expm1(log_idle))


@law
def tilt(demand: float) -> float:
    """How much older warps go first under a ``demand``: 0 (all equal) to 1 (the youngest gets nothing)."""
    if demand <= 1.0:
        return 0.0
    return min(1.0, math.pow((demand - 1.0) / (TILT_FULL - 1.0), TILT_POWER))


@law
def block_stretch(
    rho: float,
    wait: float,
    mean_rho: float,
    mean: float,
    leaning: float,
    rank: float,
    log_idle_older: float,
    log_idle_younger: float,
) -> float:
    """Factor on the latency of a block from sharing issue slots, memory aside.

    Args:
        rho: share of time that one of its warps needs the slot, alone.
        wait: share of its latency that heavier co-residents can stretch.
        mean_rho: demand-weighted mean of ``rho`` over all residents (> 0).
        mean: :func:`mean_stretch` of the residents.
        leaning: :func:`tilt` of the residents' demand.
        rank: middle of the row's own demand in the residents' by age, 0 (oldest) to 1.
        log_idle_older, log_idle_younger: logarithms of the probability that no older (younger) warp is ready.
    """
    weight = max(LEAST_WEIGHT, 1.0 + leaning * (1.0 - 2.0 * rank))
    extra = max(0.0, mean / weight - 1.0)
    light = 1.0 - rho / mean_rho
    if light > 0.0:
        busy = min(BUSY_MOST, -(log_idle_older + YOUNGER * log_idle_younger))
        extra = (1.0 - light) * extra + light * wait * (math.exp(busy) - 1.0)
    return 1.0 + extra


# ---- DRAM bandwidth across SMs -----------------------------------------------------------------------


class Traffic(NamedTuple):
    """What an SM asks of DRAM (see :func:`with_traffic`)."""

    demand: float
    """Demand in bytes/us, at the pace of its blocks without throttling."""
    loading: float
    """Weight of the SM in the sharing of bandwidth: loading warps on a sub-partition."""


NO_TRAFFIC = Traffic(0.0, 0.0)


class Bandwidth(NamedTuple):
    """How SMs share DRAM (see :func:`share_bandwidth`)."""

    traffic: float
    """Traffic that is served, in bytes/us."""
    level: float
    """Fair level of traffic for a weight of 1 (bytes/us); 0: nobody is held up."""


@law
def with_traffic(sums: Traffic, blocks: int, warps: float, dram_bytes: float, time_us: float) -> Traffic:
    """The sums with what a running cohort asks for.

    Args:
        sums: of the SM's cohorts before.
        blocks, warps: of the cohort; the latter on a sub-partition.
        dram_bytes: traffic of one block.
        time_us: duration of a block, stretched by the sharing of issue slots.
    """
    if dram_bytes <= 0.0:
        return sums
    return Traffic(sums.demand + blocks * dram_bytes / time_us, sums.loading + warps)


@law
def share_bandwidth(
    demands: Numbers, loadings: Numbers, sms: Numbers, kinds: int, bandwidth: float, norm: float
) -> Bandwidth:
    """How the SMs that ask for traffic share DRAM; sums run in the order of the kinds.

    Args:
        demands, loadings: at least ``kinds`` of each, :class:`Traffic` of an SM of each kind (> 0).
        sms: how many such SMs there are.
        kinds: their number.
        bandwidth: reachable (bytes/us).
        norm: exponent of the soft saturation.
    """
    total = 0.0
    for i in range(kinds):
        total += demands[i] * sms[i]
    if total <= 0.0:
        return Bandwidth(0.0, 0.0)
    served = served_traffic(total, bandwidth, norm)
    if served >= NEGLIGIBLE * total:
        return Bandwidth(total, 0.0)
    return Bandwidth(served, fair_level(demands, loadings, sms, kinds, served))


@law
def throttle(demand: float, loading: float, level: float) -> float:
    """Factor (0, 1] on the progress of the memory-using blocks of an SM (its :class:`Traffic`) at a fair level."""
    if level <= 0.0 or demand <= 0.0:
        return 1.0
    return granted(demand, level * loading) / demand


@law
def block_rate(time_us: float, dram_bytes: float, throttled: float) -> float:
    """Progress (shares of a block a us) of blocks of duration ``time_us`` on an SM of that :func:`throttle`."""
    return throttled / time_us if dram_bytes > 0.0 else 1.0 / time_us


@law
def served_traffic(demand: float, bandwidth: float, norm: float) -> float:
    """Traffic served (bytes/us) of a total ``demand`` by a memory of ``bandwidth``: soft saturation."""
    return demand / math.pow(1.0 + math.pow(demand / bandwidth, norm), 1.0 / norm)


@law
def granted(demand: float, level: float) -> float:
    """Traffic (bytes/us) of an SM that asks for ``demand`` where its fair share is ``level``: soft minimum."""
    ratio = demand / level
    return demand / math.sqrt(1.0 + ratio * ratio)


@law
def fair_level(demands: Numbers, loadings: Numbers, sms: Numbers, kinds: int, capacity: float) -> float:
    """The level at which softly max-min shares add up to ``capacity``: Newton's method on its logarithm.

    Args:
        demands, loadings, sms, kinds: as for :func:`share_bandwidth`.
        capacity: what there is to share (bytes/us), less than the total demand.

    Returns:
        the traffic (bytes/us) that is fair for a weight of 1, to a relative 1e-12.
    """
    total = 0.0
    weight = 0.0
    for i in range(kinds):
        total += demands[i] * sms[i]
        weight += loadings[i] * sms[i]
    # Where all SMs ask for the same in proportion to their weights, this is the solution.
    ratio = total / capacity
    level = total / (weight * math.sqrt(ratio * ratio - 1.0))
    for _ in range(60):
        shared = 0.0
        slope = 0.0
        for i in range(kinds):
            traffic = granted(demands[i], level * loadings[i])
            served = traffic / demands[i]
            shared += traffic * sms[i]
            slope += traffic * (1.0 - served * served) * sms[i]
        # Bounded, as shares flatten out.
        gap = min(0.7, max(-0.7, (capacity - shared) / max(slope, 1e-9 * capacity)))
        level *= math.exp(gap)
        if abs(gap) < 1e-12:
            break
    return level
