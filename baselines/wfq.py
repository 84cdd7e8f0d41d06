"""Weighted fair queueing of GPU time: tenants that wait get device time in proportion to their weights.

P. Goyal, H. M. Vin, H. Cheng, *Start-time Fair Queuing: A Scheduling Algorithm for Integrated Services Packet Switching
Networks* (SIGCOMM 1996), with kernels for packets and tenants for flows. A kernel's start tag is the virtual time when
it came or its tenant's last finish tag, whichever is later; its finish tag is that and its length over the tenant's
weight. The least start tag goes first. Virtual time is the start tag of the kernel in service, and after a busy period
the greatest finish tag of all that were served. K. Menychtas, K. Shen, M. L. Scott, *Disengaged Scheduling for Fair,
Protected Access to Fast Computational Accelerators* (ASPLOS 2014) has fair queueing for GPUs that does not intercept
every launch; here all are, as those of any scheduler.

A packet's length is known, that of a kernel or a graph is its profile here, and is not corrected by what it took. The
paper has one packet in service; with more kernels in flight virtual time is the start tag of the one launched last.
Equal start tags go in the order of issue.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, get_args

import numpy as np

from gpusched_env.baselines.in_flight import FewInFlight
from gpusched_env.baselines.pending import ID, TENANT, launchable_rows
from gpusched_env.baselines.ranges import Choice, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import PendingColumn, View

Share = Literal["weight", "equal"]
NEVER_MEASURED_US = 10.0
"""Length of a kernel without a profile: that of a short one. With none at all tenants would get it for nothing."""
PROFILED = int(PendingColumn.PROFILED_US)


class WeightedFairQueueing(FewInFlight):
    """WFQ: the kernel of the tenant that is furthest behind its share of the profiled device time."""

    reads: Reads = ("weights", "profiles", "completions")
    ranges: ClassVar[Ranges] = {**FewInFlight.ranges, "share": Choice(get_args(Share))}

    def __init__(self, in_flight: int = 1, share: Share = "weight") -> None:
        """``in_flight``: see :class:`~gpusched_env.baselines.in_flight.FewInFlight`.

        ``share``: tenants that wait get device time in proportion to their ``weight``, those without weight what the
        others leave; or all get an ``equal`` one.

        Raises:
            InputError: no such ``share``, or ``in_flight`` is out of range.
        """
        super().__init__(in_flight)
        if share not in get_args(Share):
            raise InputError(f"wfq: share is {share!r}, must be {' or '.join(get_args(Share))}")
        self._share = share

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing was served."""
        self._weights = [tenant.weight if self._share == "weight" else 1.0 for tenant in knowledge.tenants]
        self._virtual = 0.0
        self._finish = [0.0] * len(self._weights)
        """Finish tag of the kernel of each tenant that was launched last."""
        self._starts: dict[int, tuple[int, float]] = {}
        """Id of the oldest kernel and its start tag, by tenant with a kernel to launch."""

    def decide(self, view: View) -> Command:
        """Launch the kernel with the least start tag if there is room for it in flight; ties: the older kernel."""
        rows = self._heads(view)
        # What waits while nothing runs either waited before, or it begins a busy period.
        if not self._starts and not len(view.running):
            self._virtual = max(self._virtual, *self._finish)
        starts: dict[int, tuple[int, float]] = {}
        for tenant, (launch, _) in rows.items():
            known = self._starts.get(tenant)
            starts[tenant] = known if known is not None and known[0] == launch else (launch, self._start(tenant))
        self._starts = starts
        if not starts or self.is_full(view):
            return WAIT
        tenant = min(starts, key=lambda tenant: (starts[tenant][1], starts[tenant][0]))
        launch, start = starts.pop(tenant)
        if start < math.inf:
            length_us = float(view.pending.array[rows[tenant][1], PROFILED])
            self._virtual = start
            self._finish[tenant] = start + (length_us if length_us > 0.0 else NEVER_MEASURED_US) / self._weights[tenant]
        return Launch(launch)

    def _start(self, tenant: int) -> float:
        """Start tag of a tenant's kernel that has become its oldest one."""
        return max(self._virtual, self._finish[tenant]) if self._weights[tenant] > 0.0 else math.inf

    @staticmethod
    def _heads(view: View) -> dict[int, tuple[int, int]]:
        """Id and row of the oldest kernel that may be launched, by tenant."""
        table = view.pending.array
        heads: dict[int, tuple[int, int]] = {}
        for row in launchable_rows(view):
            tenant, launch = int(table[row, TENANT]), int(table[row, ID])
            if tenant not in heads or launch < heads[tenant][0]:
                heads[tenant] = launch, row
        return heads
