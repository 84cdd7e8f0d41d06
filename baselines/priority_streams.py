"""CUDA stream priorities: urgent tenants' blocks are dispatched first, running blocks are not disturbed.

Gilman and Walls, *Characterizing Concurrency Mechanisms for NVIDIA GPUs under Deep Learning Workloads*
(Performance 2021), priority streams: no preemption, only the choice of the next block. Amert et al.
(RTSS 2017), rules A1 and A2: a block is eligible only if all more urgent queues are empty.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.pending import ID, TENANT, oldest_row
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View


def stream_priorities(urgencies: list[int], levels: int) -> list[int]:
    """Stream priority (0 or negative, lower is more urgent) of each tenant.

    The least urgent tenants get 0, the default. Each distinct urgency gets a level of its own while the
    GPU has enough of them; otherwise urgencies are spread evenly, in order, over the levels.

    Args:
        urgencies: per tenant, 0 is the most urgent.
        levels: stream priority levels of the GPU (>= 1).
    """
    ranks = {urgency: rank for rank, urgency in enumerate(sorted(set(urgencies)))}
    used = min(levels, len(ranks))
    return [ranks[urgency] * used // len(ranks) - (used - 1) for urgency in urgencies]


class PriorityStreams:
    """Every kernel goes straight to its stream, whose priority follows the tenant's urgency."""

    reads: Reads = ("priorities",)

    def __init__(self) -> None:
        self._priorities: list[int] = []

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Give each tenant a stream priority."""
        urgencies = [tenant.priority for tenant in knowledge.tenants]
        self._priorities = stream_priorities(urgencies, knowledge.gpu.priorities)

    def decide(self, view: View) -> Command:
        """Launch the oldest pending kernel at its tenant's priority."""
        row = oldest_row(view)
        if row is None:
            return WAIT
        kernel = view.pending.array[row]
        return Launch(int(kernel[ID]), self._priorities[int(kernel[TENANT])])
