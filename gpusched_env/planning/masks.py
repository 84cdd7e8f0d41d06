"""How many SMs each kernel of several programs gets, where changing the number costs, and how long it takes on them.

Quach, Wang, Jahanshahi, Wong and Kim (ECLIP, ISLPED 2025) choose the SMs (compute units) of each kernel of a request so
that the sum of its kernels' times is least, with each time stretched by ``1 + overlap / sms``, and at most so many
changes of the number. ``overlap`` is the mean number of the request's SMs plus the means of all others'. (As written: a
request alone on all SMs is stretched by 2.) They give it to a solver as a programme that is linear but for the product
of two sums of the choice.

Here the others are fixed for a moment. Then the product of the summed times ``T`` and ``A + B * C`` with the summed SMs
``C`` is wanted. A product of two growing linear functions is least at a corner of the hull of all ``(T, C)``, and each
corner is least in ``T + m * C`` for some multiplier ``m``: that is a sum over kernels, which a dynamic programme over
(kernel, SMs, changes) minimises. Requests take turns to be planned until none changes (best response).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached
from gpusched_env.hardware.occupancy import gpu_record
from gpusched_env.hardware.solo import solo_duration_us
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.knowledge import KernelKnowledge
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import SHORTEST_BLOCK_US, profile_kernel

Floats = NDArray[np.float64]
Choice = NDArray[np.int64]
"""Which of the numbers of SMs each kernel gets."""
ROUNDS = 50
"""Rounds of best responses at most; two requests may answer each other for ever."""
CLOSE = 1e-12


@dataclass(frozen=True, slots=True)
class Machine:
    """What the requests share."""

    sizes: tuple[int, ...]
    """Numbers of SMs that a kernel can have."""
    sms: int
    """SMs of the GPU."""
    changes: int
    """Most changes of the number within a request (>= 0)."""


@cached()
def cheapest(prices: Floats, most: int, choice: Choice, best: Floats, origin: Choice) -> None:
    """The choice of least summed price with at most ``most`` changes; the first one of equal price.

    Args:
        prices: of each kernel with each choice, shape ``(kernels, choices)``.
        most: changes from one kernel to the next.
        choice: written, shape ``(kernels,)``.
        best: scratch, shape ``(2, choices, most + 1)``.
        origin: scratch, shape ``(kernels, choices, most + 1)``, of whole numbers.
    """
    kernels, choices = prices.shape
    for c in range(choices):
        for used in range(most + 1):
            best[0, c, used] = prices[0, c]
    for k in range(1, kernels):
        before, after = (k + 1) % 2, k % 2
        for used in range(most + 1):
            for c in range(choices):
                least, source = best[before, c, used], c
                if used > 0:
                    for other in range(choices):
                        if best[before, other, used - 1] < least:
                            least, source = best[before, other, used - 1], other
                best[after, c, used] = least + prices[k, c]
                origin[k, c, used] = source
    last = (kernels + 1) % 2
    c = 0
    for other in range(1, choices):
        if best[last, other, most] < best[last, c, most]:
            c = other
    used = most
    for k in range(kernels - 1, -1, -1):
        choice[k] = c
        if k > 0 and origin[k, c, used] != c:
            c = origin[k, c, used]
            used -= 1


def objective(times: Floats, choice: Choice, others: float, machine: Machine) -> float:
    """What a request's choice costs beside others, in microseconds.

    Args:
        times: of each kernel alone with each number of SMs (us), shape ``(kernels, sizes)``.
        choice: of the request.
        others: mean SMs of all other requests, summed.
    """
    rows = np.arange(len(times))
    mean = float(np.array(machine.sizes)[choice].mean())
    return float(times[rows, choice].sum()) * (1.0 + (mean + others) / machine.sms)


def best_choice(times: Floats, others: float, machine: Machine) -> Choice:
    """The choice of least :func:`objective`; arguments as there."""
    sizes = np.array(machine.sizes, np.float64)
    rows = np.arange(len(times))
    states = len(sizes), machine.changes + 1
    scratch = np.empty((2, *states)), np.zeros((len(times), *states), np.int64)

    def corner(time_weight: float, size_weight: float) -> tuple[Choice, float, float]:
        choice = np.empty(len(times), np.int64)
        cheapest(time_weight * times + size_weight * sizes, machine.changes, choice, *scratch)
        return choice, float(times[rows, choice].sum()), float(sizes[choice].sum())

    def cost(time: float, size: float) -> float:
        return time * (1.0 + (size / len(times) + others) / machine.sms)

    fastest, smallest = corner(1.0, CLOSE), corner(CLOSE, 1.0)
    best = min(fastest, smallest, key=lambda found: cost(*found[1:]))
    left = [(fastest, smallest)]
    while left:
        (_, fast, large), (_, slow, small) = pair = left.pop()
        # No choice between them is faster than the one and smaller than the other.
        if cost(fast, small) >= cost(*best[1:]) * (1.0 - CLOSE):
            continue
        found = corner(large - small, slow - fast)
        gained = (large - small) * (fast - found[1]) + (slow - fast) * (large - found[2])
        if gained <= 1e-9 * (large * slow):
            continue
        best = min(best, found, key=lambda choice: cost(*choice[1:]))
        left += [(pair[0], found), (found, pair[1])]
    return best[0]


def best_choices(requests: Sequence[Floats], machine: Machine) -> list[Choice]:
    """Choices of several requests at a time, each the best beside the others'.

    Begins with all SMs for all. Of a circle of answers the last one is taken.

    Args:
        requests: times of each, as for :func:`objective`.
        machine: what they share.
    """
    sizes = np.array(machine.sizes, np.float64)
    choices: list[Choice] = [np.full(len(times), int(sizes.argmax()), np.int64) for times in requests]
    for _ in range(ROUNDS):
        changed = False
        for w, times in enumerate(requests):
            others = math.fsum(float(sizes[choices[v]].mean()) for v in range(len(requests)) if v != w)
            found = best_choice(times, others, machine)
            better = objective(times, found, others, machine) < objective(times, choices[w], others, machine) - 1e-9
            if better:
                choices[w], changed = found, True
        if not changed:
            break
    return choices


def masked_times_us(known: KernelKnowledge, gpu: GpuSpec, sizes: Sequence[int]) -> NDArray[np.float64]:
    """Durations alone on so many SMs, in microseconds, shape ``(len(sizes),)``.

    The knee of the curve is where a wave of blocks less is needed, or where the SMs that are left saturate the
    bandwidth of the DRAM (:mod:`gpusched_env.hardware.solo`).

    Args:
        known: the kernel's profile on all SMs; of a graph, or of a kernel that was never measured (0 us there),
            nothing is known of fewer: ``inf``.
        gpu: where it was profiled.
        sizes: numbers of SMs, 1 to all of them.
    """
    if known.graph or math.isnan(known.duration_us):
        alone_us = 0.0 if math.isnan(known.duration_us) else known.duration_us
        return np.where([size == gpu.sms for size in sizes], alone_us, np.inf)
    # A wrong profile may be shorter than blocks can be.
    least_us = SHORTEST_BLOCK_US * math.ceil(known.blocks / (gpu.sms * known.blocks_per_sm))
    duration_us = max(known.duration_us, least_us)
    kernel = Kernel(
        name=known.name,
        grid=known.grid,
        block=known.block,
        registers=known.registers,
        shared_bytes=known.shared_bytes,
        duration_us=duration_us,
        issue_fraction=known.issue,
        dram_bytes=known.dram * gpu.dram_bytes_per_us * duration_us,
    )
    block, record = profile_kernel(kernel, gpu, gpu).block[0], gpu_record(gpu).copy()
    times = []
    for size in sizes:
        record["sms"] = size
        times.append(float(solo_duration_us(record[0], block, known.blocks, known.blocks_per_sm)))
    return np.array(times)
