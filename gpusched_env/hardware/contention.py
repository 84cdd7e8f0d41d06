"""How resident blocks slow each other: issue slots within an SM, DRAM bandwidth across SMs.

The laws (first calibration on an H100, see ``docs/hardware-model.md``):

* *Issue slots.* A block has a latency ``L`` (its duration alone) and an issue demand ``I`` (SM time of
  its instructions at full throughput); its issue fraction is ``I / L``. Residents with the summed
  fraction ``d`` stretch an average instruction by ``a = (1 + d^p)^(1/p)``: soft saturation from
  latency-bound to throughput-bound. Every issued instruction waits the same, so a block's stretch is
  in proportion to its own fraction relative to the demand-weighted mean fraction.
* *DRAM.* The traffic served saturates softly (exponent ``q``) towards the reachable bandwidth and is
  shared max-min over SMs: an SM that wants less than the fair level gets what it wants, the others get
  the level each.

All functions are compiled by Numba and callable from Python.
"""

from __future__ import annotations

import numpy as np
from numba import njit

NO_LEVEL = 1e300
"""Fair level that limits nobody."""


@njit(cache=True, inline="always")
def issue_stretch(demand, norm):
    """Mean stretch (>= 1) of instructions under a summed issue fraction ``demand`` (>= 0, may pass 1)."""
    return (1.0 + demand**norm) ** (1.0 / norm)


@njit(cache=True, inline="always")
def block_time_us(latency_us, fraction, mean_fraction, stretch):
    """Duration of a block with issue ``fraction`` among residents of ``mean_fraction``, memory aside."""
    if mean_fraction <= 0.0:
        return latency_us
    return latency_us * (1.0 + fraction / mean_fraction * (stretch - 1.0))


@njit(cache=True, inline="always")
def served_traffic(demand, bandwidth, norm):
    """Traffic served (bytes/us) of a total ``demand`` by a memory of ``bandwidth``: soft saturation."""
    return demand / (1.0 + (demand / bandwidth) ** norm) ** (1.0 / norm)


@njit(cache=True)
def fair_level(demands, weights, capacity):
    """The max-min fair level of ``capacity`` over demands, in the demands' unit.

    Args:
        demands: shape ``(n,)``, what each member would draw (>= 0).
        weights: shape ``(n,)``, how many equal members each entry stands for.
        capacity: what there is to share (> 0).

    Returns:
        the level ``x`` with ``sum(weights * min(demands, x)) == capacity``; :data:`NO_LEVEL` if all fit.
    """
    total = 0.0
    members = 0.0
    for i in range(demands.size):
        total += demands[i] * weights[i]
        members += weights[i]
    if total <= capacity * (1.0 + 1e-12) or members == 0.0:
        return NO_LEVEL
    level = capacity / members
    while True:
        taken = 0.0
        greedy = 0.0
        for i in range(demands.size):
            if demands[i] <= level:
                taken += demands[i] * weights[i]
            else:
                greedy += weights[i]
        if greedy == 0.0:
            return level
        higher = (capacity - taken) / greedy
        if higher <= level * (1.0 + 1e-12):
            return level
        level = higher


@njit(cache=True, inline="always")
def throttle(demand, level):
    """Factor (0, 1] on the progress of memory-using blocks of an SM that asks for ``demand`` at ``level``."""
    if demand <= level:
        return 1.0
    return level / demand


@njit(cache=True, inline="always")
def equal_blocks_us(gpu, block, residents):
    """Duration of a block among ``residents`` equal blocks on an SM, memory aside."""
    fraction = block.issue_us / block.latency_us
    stretch = issue_stretch(residents * fraction, gpu.issue_norm)
    return block_time_us(block.latency_us, fraction, fraction, stretch)


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
    times = np.array([equal_blocks_us(gpu, block, residents), equal_blocks_us(gpu, block, fewer)])
    if block.dram_bytes <= 0.0:
        return times[0]
    weights = np.array([float(sms), float(fewer_sms)])
    demands = np.array([residents, fewer]) * block.dram_bytes / times
    both = fewer > 0 and fewer_sms > 0
    done = 0.0
    elapsed = 0.0
    for phase in range(2):
        last = phase == 1 or not both
        total = demands[0] * weights[0]
        if not last:
            total += demands[1] * weights[1]
        else:
            weights[1] = 0.0
        served = served_traffic(total, gpu.dram_bytes_per_us, gpu.dram_norm)
        level = min(fair_level(demands, weights, served), gpu.sm_dram_bytes_per_us)
        fuller = times[0] / throttle(demands[0], level)
        if last:
            return elapsed + (1.0 - done) * fuller
        elapsed = times[1] / throttle(demands[1], level)
        if elapsed >= fuller:
            return fuller
        done = elapsed / fuller
    return elapsed


@njit(cache=True)
def solo_duration_us(gpu, block, blocks, blocks_per_sm):
    """Duration of a kernel of ``blocks`` blocks alone on an idle GPU.

    Full waves keep every SM at ``blocks_per_sm`` residents; blocks of a last, partial wave pack into
    the SMs that free first. A kernel smaller than one wave spreads over all SMs (most-room placement).
    """
    wave = blocks_per_sm * gpu.sms
    full = blocks // wave
    rest = blocks - full * wave
    duration = 0.0
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
