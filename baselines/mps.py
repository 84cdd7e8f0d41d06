"""NVIDIA MPS: tenants share a context; each can be limited to a percentage of the SMs.

NVIDIA, *Multi-Process Service* (docs.nvidia.com/deploy/mps), sections by their titles; Gilman and Walls (Performance
2021), MPS: kernels of all clients run concurrently in order of arrival.

==================================== ==================================== ==============================================
As documented                        Where                                Here
==================================== ==================================== ==============================================
A client may use all threads unless  CUDA_MPS_ACTIVE_THREAD_PERCENTAGE    100 by default. The percentage caps
it is given a percentage                                                  the SMs that a client can use, rounded to
                                                                          whole TPCs (measured: 50 % of 170 SMs is 84)
Advice for N clients: 100 / N        Volta MPS Execution Resource         ``share``: 50 and 100 for two. Which
percent each; 200 / N, for load      Provisioning                         SMs they are is not documented; here they lie
balance; or by their needs                                                as far apart as the shares allow
                                                                          (:func:`sms_of_clients`). By their needs:
                                                                          ``urgent_share``, ``other_share``
A client is of normal priority or    CUDA_MPS_CLIENT_PRIORITY             ``client_priority``, off by default: the most
below, which lowers that of all its                                       urgent tenants are of normal priority, all
streams                                                                   others below, at the next stream priority
==================================== ==================================== ==============================================
"""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.baselines.pending import ID, TENANT, oldest_row
from gpusched_env.baselines.priority_streams import stream_priorities
from gpusched_env.baselines.ranges import Choice, Range
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Partition, SetPartition
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View

SMS_PER_TPC = 2


def sm_cap(sms: int, share: float) -> int:
    """SMs that a client with ``share`` percent sees, at least one, whole TPCs where there is more than one."""
    cap = int(sms * share / 100.0 + 1e-9)
    return sms if cap >= sms else max(cap - cap % SMS_PER_TPC, min(SMS_PER_TPC, sms), 1)


def sms_of_clients(sms: int, shares: list[float]) -> list[Partition | None]:
    """The SMs of each client: beginning where the shares before its own end, scaled to the whole GPU.

    They are disjoint where all shares together are 100 at most, and overlap by as much as each other above.

    Args:
        sms: of the GPU.
        shares: percentage of each client, in (0, 100]; with 100 it is not confined (``None``).
    """
    ends = list(itertools.accumulate(shares))
    caps = [sm_cap(sms, share) for share in shares]
    firsts = [int(sms * (end - share) / ends[-1] + 1e-9) for end, share in zip(ends, shares, strict=True)]
    return [Partition(first, cap) if cap < sms else None for first, cap in zip(firsts, caps, strict=True)]


class Mps(PassThrough):
    """Every kernel goes straight to its stream; a tenant may be limited to a share of the SMs."""

    reads: Reads = ("priorities",)
    set_up = SetUp(commands=("partition",), own_processes=True)
    ranges: ClassVar = {
        "urgent_share": Range(10.0, 100.0),
        "other_share": Range(10.0, 100.0),
        "client_priority": Choice((False, True)),
    }

    def __init__(
        self,
        share: float | None = None,
        urgent_share: float = 100.0,
        other_share: float = 100.0,
        client_priority: bool = False,
    ) -> None:
        """Shares are active thread percentages, in (0, 100].

        Args:
            share: of each tenant, in place of both others.
            urgent_share: of each tenant of the highest priority.
            other_share: of each other tenant.
            client_priority: whether these other tenants are below normal priority.

        Raises:
            InputError: a share is out of range.
        """
        given = {"share": share, "urgent_share": urgent_share, "other_share": other_share}
        for name, value in given.items():
            if value is not None and not 0.0 < value <= 100.0:
                raise InputError(f"mps: {name} is {value}, must be above 0 and at most 100 (percent of the SMs)")
        self._urgent, self._other = (urgent_share, other_share) if share is None else (share, share)
        self._client_priority = client_priority

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Prepare what caps there are, to be set before the first launch."""
        urgencies = [tenant.priority for tenant in knowledge.tenants]
        below = [int(urgency > min(urgencies)) for urgency in urgencies]
        partitions = sms_of_clients(knowledge.gpu.sms, [self._other if low else self._urgent for low in below])
        caps = [SetPartition(t, partition) for t, partition in enumerate(partitions) if partition is not None]
        self._caps = caps[::-1]
        self._priorities = stream_priorities(below, knowledge.gpu.priorities) if self._client_priority else None

    def decide(self, view: View) -> Command:
        """Set the caps first, then pass kernels through."""
        if self._caps:
            return self._caps.pop()
        row = oldest_row(view)
        if row is None:
            return WAIT
        kernel = view.pending.array[row]
        return Launch(int(kernel[ID]), None if self._priorities is None else self._priorities[int(kernel[TENANT])])
