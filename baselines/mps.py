"""NVIDIA MPS: tenants share a context, each limited to a percentage of the SMs.

Gilman and Walls (Performance 2021), MPS: kernels of all clients run concurrently in order of arrival,
without priorities, up to an upper limit of threads per client; NVIDIA's MPS documentation advises
100 / N percent for N clients (``CUDA_MPS_ACTIVE_THREAD_PERCENTAGE``). In practice the percentage caps
the number of SMs that a client can use, rounded to whole TPCs (50 % of 170 SMs shows 84).
"""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Command, Partition, SetPartition
from gpusched_env.scheduling.view import View

SMS_PER_TPC = 2


def sm_cap(sms: int, share: float) -> int:
    """SMs that a client with ``share`` percent sees, at least one, whole TPCs where there is more than one."""
    cap = int(sms * share / 100.0 + 1e-9)
    return sms if cap >= sms else max(cap - cap % SMS_PER_TPC, min(SMS_PER_TPC, sms), 1)


class Mps(PassThrough):
    """Every kernel goes straight to its stream; a tenant uses at most ``share`` percent of the SMs."""

    commands = ("partition",)
    own_processes = True

    def __init__(self, share: float | None = None) -> None:
        """``share``: active thread percentage of each tenant, in (0, 100]; ``None``: 100 / N.

        Partitions start evenly spaced in placement order: disjoint up to 100 / N percent, overlapping
        above. At 100 there is no cap.

        Raises:
            InputError: ``share`` is out of range.
        """
        if share is not None and not 0.0 < share <= 100.0:
            raise InputError(f"mps: share is {share}, must be above 0 and at most 100 (percent of the SMs)")
        self._share = share
        self._caps: list[SetPartition] = []

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Prepare one cap a tenant, to be set before the first launch."""
        tenants = len(knowledge.tenants)
        sms = knowledge.gpu.sms
        cap = sm_cap(sms, 100.0 / tenants if self._share is None else self._share)
        self._caps = []
        if cap < sms:
            self._caps = [SetPartition(t, Partition(t * sms // tenants, cap)) for t in reversed(range(tenants))]

    def decide(self, view: View) -> Command:
        """Set the caps first, then pass kernels through."""
        return self._caps.pop() if self._caps else super().decide(view)
