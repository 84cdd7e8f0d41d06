"""How resident blocks slow each other: issue slots within an SM, DRAM bandwidth across SMs.

The laws (measured on an H100, see ``docs/hardware-model.md``):

* *Issue slots.* ``m`` equal blocks with latency ``L`` and issue demand ``I`` (both us) take
  ``(L^p + (m I)^p)^(1/p)``: soft saturation from latency-bound to throughput-bound. For mixed
  residents the demand that a block meets is the sum of everybody's issue fractions ``m_i I_i / L_i``.
* *DRAM.* Bandwidth is shared max-min over SMs: an SM that wants less than the fair level gets what
  it wants, the others share the rest equally. Near the limit latency grows smoothly (exponent ``q``).

All functions are compiled by Numba and callable from Python. Shapes are documented per argument.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True, inline="always")
def issue_pressure(blocks, latency_us, issue_us):  # type: ignore[no-untyped-def]
    """Share of an SM's issue slots that ``blocks`` equal blocks would use unhindered (>= 0, may pass 1)."""
    return blocks * issue_us / latency_us


@njit(cache=True, inline="always")
def issue_slowdown(pressure, norm):  # type: ignore[no-untyped-def]
    """Factor (>= 1) by which blocks stretch under a total issue ``pressure``: ``(1 + pressure^p)^(1/p)``."""
    return (1.0 + pressure**norm) ** (1.0 / norm)


@njit(cache=True)
def fair_level(demands, weights, capacity):  # type: ignore[no-untyped-def]
    """The max-min fair level of ``capacity`` over demands, in the demands' unit.

    Args:
        demands: shape ``(n,)``, what each member would draw (>= 0).
        weights: shape ``(n,)``, how many equal members each entry stands for.
        capacity: what there is to share.

    Returns:
        the level ``x`` with ``sum(weights * min(demands, x)) == capacity``, or infinity if all fit.
    """
    left = capacity
    members = 0.0
    total = 0.0
    for i in range(demands.size):
        total += demands[i] * weights[i]
        members += weights[i]
    if total <= capacity or members == 0.0:
        return float("inf")
    level = left / members
    while True:
        taken = 0.0
        greedy = 0.0
        for i in range(demands.size):
            if demands[i] <= level:
                taken += demands[i] * weights[i]
            else:
                greedy += weights[i]
        new_level = (capacity - taken) / greedy
        if new_level <= level * (1.0 + 1e-12):
            return new_level
        level = new_level


@njit(cache=True, inline="always")
def dram_slowdown(demand, level, load, norm):  # type: ignore[no-untyped-def]
    """Factor (>= 1) on the time of blocks whose SM draws ``demand`` under the fair ``level``.

    ``load`` is total demand over capacity. Below the level the stretch is the smooth approach to
    saturation ``(1 + load^q)^(1/q)`` relative to an idle memory; above it ``demand / level`` dominates.
    """
    if demand <= 0.0:
        return 1.0
    ratio = min(load, demand / level) if level < 1e300 else load
    return (1.0 + ratio**norm) ** (1.0 / norm)
