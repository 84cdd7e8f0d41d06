"""Paella: the job with the least work left goes first, and its kernels only once the SMs can take them.

K. K. W. Ng, H. M. Demoulin, V. Liu, *Paella: Low-latency Model Serving with Software-defined GPU Scheduling* (SOSP
2023), and its artefact (github.com/eniac/paella), the scheduler ``full3``.

============================================== ========================= ==============================================
As published                                   Where                     Here
============================================== ========================= ==============================================
The job with the least time left goes first    ``calculate_priority``    As published, by profiled time left
The type of job that waited for most launches  ``JobQueue``, ``unfair``, ``unfairness``, in launches: a type that waits
of others goes first once these are more than  1,000,000                 gains an equal share of each launch. A type is
a threshold, which is out of reach by default                            a tenant; its count is gone with its launch
A kernel goes once all of its blocks fit in    ``job_fits``              As published, by blocks that are launched and
what launched ones leave; nothing goes before                            have not ended. Of all SMs together, as who is
the first job's kernel                                                   on which SM is not known
Beyond that, two kernels that do not fit may   ``extra_kernels``, 2      ``extra``, until all their blocks have started
be launched, which hide the next launch
A job's next kernel is queued when the one     ``handle_block_finish``   ``depth``, 1: kernels of a tenant in flight
before it has ended
Blocks tell the scheduler of their start and   instrumented kernels      Looks every :data:`~.evict.POLL_US`, besides
end                                                                      each end of a kernel
============================================== ========================= ==============================================

What is free: the code in kernels that tells of blocks, and the core on which the scheduler spins.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from gpusched_env.baselines.evict import POLL_US
from gpusched_env.baselines.pending import ID, JOB_LEFT, TENANT, launchable_rows
from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Wait
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

P, R, T = PendingColumn, RunningColumn, TenantColumn


class Paella:
    """SRPT in software: kernels of the job with the least time left, held back until their blocks fit on the GPU."""

    reads: Reads = ("requests", "profiles", "shapes", "completions", "progress")
    ranges: ClassVar[Ranges] = {
        "unfairness": Range(1.0, 1_000_000.0, log=True),
        "extra": Range(0, 16),
        "depth": Range(1, 64, log=True),
    }

    def __init__(self, unfairness: float = 1_000_000.0, extra: int = 2, depth: int = 1) -> None:
        """Defaults are those of the artefact.

        Args:
            unfairness: launches that a tenant waits for, each divided by the tenants that wait, before it goes first
                (above 0).
            extra: kernels launched that do not fit (at least 0).
            depth: kernels of a tenant launched and unfinished at most (at least 1).

        Raises:
            InputError: a value is out of range.
        """
        if not unfairness > 0.0 or extra < 0 or depth < 1:
            given = f"unfairness {unfairness}, extra {extra}, depth {depth}"
            raise InputError(f"paella: {given}; must be above 0, at least 0, at least 1")
        self._unfairness, self._extra, self._depth = unfairness, extra, depth

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nobody waits."""
        sms = knowledge.gpu.sms
        self._share = [1.0 / (sms * kernel.blocks_per_sm) for kernel in knowledge.kernels]
        """What one block takes of the GPU, by identity of its kernel."""
        self._deficit: dict[int, float] = {}
        """Launches of others while a tenant waits, each divided by the tenants that waited; by tenant that waits."""
        self._unfit: set[int] = set()
        """Launches that did not fit, until all their blocks have started."""

    def decide(self, view: View) -> Command:
        """Launch the first job's kernel if its blocks fit, or if few are launched that do not."""
        table = view.pending.array
        launched = view.tenants.array[:, T.KERNELS_LAUNCHED]
        heads: dict[int, int] = {}
        for row in launchable_rows(view):
            tenant = int(table[row, TENANT])
            if launched[tenant] < self._depth:
                heads.setdefault(tenant, row)
        if not heads:
            return WAIT
        for tenant in heads:
            self._deficit.setdefault(tenant, 0.0)
        tenant = self._first(view, heads)
        row = heads[tenant]
        if not self._fits(view, row):
            if len(self._unfit) >= self._extra and len(view.running):
                return Wait(view.time_us + POLL_US)
            self._unfit.add(int(table[row, ID]))
        for other in heads:
            self._deficit[other] += 1.0 / len(heads)
        del self._deficit[tenant]
        return Launch(int(table[row, ID]))

    def _first(self, view: View, heads: dict[int, int]) -> int:
        """The tenant that waited too long, or the one whose job has the least time left."""
        waited = max(heads, key=lambda tenant: self._deficit[tenant])
        if self._deficit[waited] >= self._unfairness:
            return waited
        table = view.pending.array

        def left(tenant: int) -> tuple[float, float]:
            left_us = float(table[heads[tenant], JOB_LEFT])
            return math.inf if math.isnan(left_us) else left_us, float(table[heads[tenant], ID])

        return min(heads, key=left)

    def _fits(self, view: View, row: int) -> bool:
        """Whether all blocks of a pending kernel fit beside those that are launched and have not ended."""
        running = view.running.array
        taken, waiting = 0.0, set()
        for kernel in running[:, [R.ID, R.IDENTITY, R.BLOCKS_WAITING, R.BLOCKS_RESIDENT]].tolist():
            launch, identity, blocks_waiting, resident = kernel
            taken += (blocks_waiting + resident) * self._share[int(identity)]
            if blocks_waiting:
                waiting.add(int(launch))
        self._unfit &= waiting
        pending = view.pending.array[row]
        return bool(taken + pending[P.BLOCKS] * self._share[int(pending[P.IDENTITY])] <= 1.0)
