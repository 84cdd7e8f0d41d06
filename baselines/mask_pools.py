"""Pools of streams with masks of SMs, and which kernels the requests of a tenant consist of."""

from __future__ import annotations

import abc
from typing import Final

import numpy as np

from gpusched_env.baselines.pending import ID, TENANT, oldest_row
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.planning.masks import masked_times_us
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scenarios.tenant_program import Mask
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Partition
from gpusched_env.scheduling.view import PendingColumn, View


class RequestKernels:
    """The kernels of each tenant's first request, and where in a request it is."""

    def __init__(self, tenants: int) -> None:
        self._job: list[int | None] = [None] * tenants
        self._place = [0] * tenants
        self._first: list[list[int]] = [[] for _ in range(tenants)]
        self.known: list[tuple[int, ...] | None] = [None] * tenants
        """Identities of the kernels of each tenant's first request in order of launch, once a second one has begun."""

    def place(self, tenant: int, job: int, identity: int) -> int:
        """The place of a kernel that is launched next in its request; -1 if the first one had another kernel there."""
        if self._job[tenant] != job:
            if self._job[tenant] is not None and self.known[tenant] is None:
                self.known[tenant] = tuple(self._first[tenant])
            self._job[tenant], self._place[tenant] = job, 0
        place, self._place[tenant] = self._place[tenant], self._place[tenant] + 1
        known = self.known[tenant]
        if known is None:
            self._first[tenant].append(identity)
            return place
        return place if place < len(known) and known[place] == identity else -1


ENGINES: Final = 4
"""Shader engines: parts that masks are made of."""
SIZES: Final = {1: (1, 2, 3), 2: (1, 2, 3), 3: (2, 3), 4: (2,), 5: (2,), 6: (2,), 7: (2,)}
"""Engines of each worker's masks, by the number of workers."""


def pool(worker: int, workers: int, sms: int) -> dict[int, Mask]:
    """Masks of a worker by their number of SMs; all SMs have none."""
    found = {}
    for engines in SIZES.get(workers, ()):
        size = max(1, engines * sms // ENGINES)
        first = (0, sms - size, sms // ENGINES)[worker] if worker < 3 else (worker % ENGINES) * sms // ENGINES
        if size < sms:
            found[size] = (first, size)
    return found


def pools(scenario: Scenario, gpu: GpuSpec) -> list[Mask | None]:
    """Masks of all workers' streams, and that of the default stream: none."""
    workers = len(scenario.tenants)
    return [*(mask for w in range(workers) for mask in pool(w, workers, gpu.sms).values()), None]


def default_stream(scenario: Scenario, gpu: GpuSpec) -> list[Mask | None]:
    """One stream for all kernels."""
    return [None]


class Masked(abc.ABC):
    """Kernels are launched in order of issue, each on as many SMs as :meth:`sms_of` says."""

    set_up = SetUp(streams=pools)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Learn which streams there are; kernels' times on fewer SMs are worked out when they come."""
        self._gpu, self._kernels, workers = knowledge.gpu, knowledge.kernels, len(knowledge.tenants)
        self.pools = [pool(worker, workers, self._gpu.sms) for worker in range(workers)]
        self._rows = {stream.mask: row for row, stream in enumerate(knowledge.streams) if stream.tenant < 0}
        self._times: dict[tuple[int, int], dict[int, float]] = {}

    def decide(self, view: View) -> Command:
        """Launch the oldest kernel."""
        row = oldest_row(view)
        if row is None:
            return WAIT
        kernel = view.pending.array[row]
        tenant, identity = int(kernel[TENANT]), int(kernel[PendingColumn.IDENTITY])
        return self.launch(int(kernel[ID]), self.pools[tenant].get(self.sms_of(tenant, identity, kernel)))

    def launch(self, kernel: int, mask: Mask | None) -> Command:
        """Launch into the stream that has a mask; where there is none such, into the kernel's own, with a partition."""
        if mask in self._rows:
            return Launch(kernel, stream=self._rows[mask])
        return Launch(kernel, partition=None if mask is None else Partition(*mask))

    @abc.abstractmethod
    def sms_of(self, tenant: int, identity: int, kernel: np.ndarray) -> int:
        """The number of SMs on which a kernel runs.

        Args:
            tenant: whose it is.
            identity: which kernel of the knowledge.
            kernel: its row of ``view.pending``.
        """

    def times_us(self, tenant: int, identity: int) -> dict[int, float]:
        """A kernel's times alone by the SMs that its tenant's masks have, fewest first, and on all of them."""
        key = tenant, identity
        if key not in self._times:
            sizes = [*self.pools[tenant], self._gpu.sms]
            times = masked_times_us(self._kernels[identity], self._gpu, sizes)
            self._times[key] = dict(zip(sizes, times.tolist(), strict=True))
        return self._times[key]

    def threshold(self, tenant: int, identity: int, slowdown: float) -> int:
        """The fewest SMs on which a kernel takes at most ``1 + slowdown`` times as long as on all of them."""
        times = self.times_us(tenant, identity)
        return next(sms for sms, us in times.items() if us <= (1.0 + slowdown) * times[self._gpu.sms])
