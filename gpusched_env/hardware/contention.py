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

All functions are compiled by Numba and callable from Python.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

TILT_FULL = 4.83
"""Demand of a sub-partition at which its youngest warp gets no slots (64 warps of arithmetic, waves.jsonl)."""
TILT_POWER = 1.7
"""Growth of that preference beyond a demand of 1 (block ends of 2 to 5 blocks an SM, placement.jsonl)."""
YOUNGER = 0.4
"""How much of the younger warps a light warp waits for (even-numbered pairs)."""
BUSY_MOST = 3.4
"""Bound on the logarithm of a light warp's wait for a free slot (even-numbered pairs)."""
LEAST_WEIGHT = 0.05
"""Least share of its fair progress that the youngest row keeps."""
NEGLIGIBLE = 0.9995
"""If more than this share of the demand for DRAM traffic is served, nobody is held up."""


@njit(cache=True, inline="always")
def mean_stretch(demand, log_idle):
    """Mean stretch (>= 1) of the warps on a sub-partition.

    Args:
        demand: summed share of time that they need its slot (>= 0, may pass 1).
        log_idle: logarithm of the probability that none of them is ready (<= 0).
    """
    if demand <= 0.0:
        return 1.0
    return max(1.0, demand / -math.expm1(log_idle))


@njit(cache=True, inline="always")
def tilt(demand):
    """How much older warps go first under a ``demand``: 0 (all equal) to 1 (the youngest gets nothing)."""
    if demand <= 1.0:
        return 0.0
    return min(1.0, ((demand - 1.0) / (TILT_FULL - 1.0)) ** TILT_POWER)


@njit(cache=True, inline="always")
def block_stretch(rho, wait, mean_rho, mean, leaning, rank, log_idle_older, log_idle_younger):
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


@njit(cache=True, inline="always")
def served_traffic(demand, bandwidth, norm):
    """Traffic served (bytes/us) of a total ``demand`` by a memory of ``bandwidth``: soft saturation."""
    return demand / (1.0 + (demand / bandwidth) ** norm) ** (1.0 / norm)


@njit(cache=True, inline="always")
def granted(demand, level):
    """Traffic (bytes/us) of an SM that asks for ``demand`` where its fair share is ``level``: soft minimum."""
    ratio = demand / level
    return demand / math.sqrt(1.0 + ratio * ratio)


@njit(cache=True, inline="always")
def first_level(demand, weight, capacity):
    """The fair level if all SMs asked for the same in proportion to their weights: where Newton's method starts.

    Args:
        demand: what all SMs ask for (bytes/us).
        weight: sum of their weights.
        capacity: what there is, less than ``demand``.
    """
    ratio = demand / capacity
    return demand / (weight * math.sqrt(ratio * ratio - 1.0))


@njit(cache=True, inline="always")
def newton_gap(capacity, shared, slope):
    """Newton's step on the logarithm of the level at which ``shared`` is given out; bounded, as shares flatten out."""
    gap = (capacity - shared) / max(slope, 1e-9 * capacity)
    return min(0.7, max(-0.7, gap))


@njit(cache=True)
def fair_level(demands, weights, counts, members, capacity):
    """The level at which softly max-min shares add up to ``capacity``.

    Args:
        demands: shape ``(>= members,)``, what an SM of each kind asks for (bytes/us, >= 0).
        weights: its weight in the sharing (loading warps, > 0 where it asks for anything).
        counts: how many such SMs there are.
        members: number of kinds.
        capacity: what there is to share, less than the total demand.

    Returns:
        the traffic (bytes/us) that is fair for a weight of 1, to a relative 1e-12.
    """
    total = 0.0
    total_weight = 0.0
    for i in range(members):
        if demands[i] > 0.0:
            total += demands[i] * counts[i]
            total_weight += weights[i] * counts[i]
    level = first_level(total, total_weight, capacity)
    for _ in range(60):
        shared = 0.0
        slope = 0.0
        for i in range(members):
            if demands[i] > 0.0:
                traffic = granted(demands[i], level * weights[i])
                served = traffic / demands[i]
                shared += traffic * counts[i]
                slope += traffic * (1.0 - served * served) * counts[i]
        gap = newton_gap(capacity, shared, slope)
        level *= math.exp(gap)
        if abs(gap) < 1e-12:
            break
    return level


@njit(cache=True, inline="always")
def equal_blocks_us(gpu, block, residents):
    """Duration of a block among ``residents`` equal blocks on an SM, memory aside."""
    if gpu.issue == 0.0:
        return block.latency_us
    warps = residents * block.warps / gpu.sub_partitions
    return block.latency_us * mean_stretch(warps * block.rho, warps * math.log1p(-block.rho))


@njit(cache=True)
def wave_us(gpu, block, residents, sms, fewer, fewer_sms):
    """Duration of one wave: ``sms`` SMs hold ``residents`` equal blocks, ``fewer_sms`` only ``fewer``.

    The SMs with fewer blocks end no later and leave their bandwidth to the others.

    Args:
        gpu: :data:`~gpusched_env.hardware.records.GPU_DTYPE` record.
        block: :data:`~gpusched_env.hardware.records.BLOCK_DTYPE` record.
        residents: blocks on each of the fuller SMs (>= 1).
        sms: fuller SMs (>= 1).
        fewer: blocks on each of the emptier SMs (< ``residents``).
        fewer_sms: emptier SMs.
    """
    times = np.array([equal_blocks_us(gpu, block, residents), equal_blocks_us(gpu, block, max(fewer, 1))])
    if block.dram_bytes <= 0.0:
        return times[0]
    weights = np.array([float(residents * block.warps), float(fewer * block.warps)])
    demands = np.array([residents, fewer]) * block.dram_bytes / times
    counts = np.array([float(sms), float(fewer_sms)])
    if fewer == 0:
        counts[1] = 0.0
    done = 0.0
    elapsed = 0.0
    while True:
        kinds = 2 if counts[1] > 0.0 else 1
        slow = throttles(demands, weights, counts, kinds, gpu)
        fuller = times[0] / slow[0]
        if kinds == 1:
            return elapsed + (1.0 - done) * fuller
        elapsed = times[1] / slow[1]
        if elapsed >= fuller:
            return fuller
        done = elapsed / fuller
        counts[1] = 0.0


@njit(cache=True)
def throttles(demands, weights, counts, members, gpu):
    """Factors (0, 1] on the progress of memory-using blocks of SMs of each kind (see :func:`fair_level`)."""
    total = 0.0
    for i in range(members):
        total += demands[i] * counts[i]
    factors = np.ones(members)
    served = served_traffic(total, gpu.dram_bytes_per_us, gpu.dram_norm)
    if served < NEGLIGIBLE * total:
        level = fair_level(demands, weights, counts, members, served)
        for i in range(members):
            if demands[i] > 0.0:
                factors[i] = granted(demands[i], level * weights[i]) / demands[i]
    return factors


@njit(cache=True)
def solo_duration_us(gpu, block, blocks, blocks_per_sm):
    """Duration of a kernel of ``blocks`` blocks alone on an idle GPU.

    Full waves keep every SM at ``blocks_per_sm`` residents; blocks of a last, partial wave pack into
    the SMs that free first. A kernel smaller than one wave spreads over all SMs (most-room placement).
    """
    wave = blocks_per_sm * gpu.sms
    full = blocks // wave
    rest = blocks - full * wave
    if full > 0:
        duration = full * wave_us(gpu, block, blocks_per_sm, gpu.sms, 0, 0)
        if rest > 0:
            packed = min(rest, blocks_per_sm)
            odd = rest % packed
            duration += wave_us(gpu, block, packed, rest // packed, odd, 1 if odd > 0 else 0)
        return duration
    least = rest // gpu.sms
    crowded = rest - least * gpu.sms
    if crowded == 0:
        return wave_us(gpu, block, least, gpu.sms, 0, 0)
    return wave_us(gpu, block, least + 1, crowded, least, gpu.sms - crowded)
