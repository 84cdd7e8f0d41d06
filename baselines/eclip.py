"""ECLIP: kernels go to streams with masks of SMs, and change them only so often in a request.

Ryan Quach, Yidi Wang, Ali Jahanshahi, Daniel Wong, Hyoseung Kim, *ECLIP: Energy-efficient and Practical Co-Location of
ML Inference on Spatially Partitioned GPUs* (ISLPED 2025, arXiv 2506.12598). Streams are allocated beforehand
(:mod:`~gpusched_env.baselines.mask_pools`). Who gets how many SMs where is a programme that they solve off line with
Gurobi for each set of models, with at most 14 changes a request; here it is solved by a dynamic programme and best
responses (:mod:`gpusched_env.planning.masks`), when the kernels of a tenant's first request are known. Until then, and
where a request has other kernels than the first one, all SMs are used.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusched_env.baselines.mask_pools import Masked, RequestKernels
from gpusched_env.baselines.pending import JOB
from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.planning.masks import Machine, best_choices
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.reads import Reads


class Eclip(Masked):
    """Kernels go to streams of few or many SMs by a plan for all tenants, with few changes in a request."""

    reads: Reads = ("profiles", "shapes")
    ranges: ClassVar[Ranges] = {"changes": Range(0, 100)}

    def __init__(self, changes: int = 14) -> None:
        """``changes``: of the number of SMs within a request, at most (>= 0). 14 is the paper's, chosen by profiling.

        Raises:
            InputError: ``changes`` is negative.
        """
        if changes < 0:
            raise InputError(f"changes is {changes}, must be at least 0")
        self._changes = changes

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No request is known, and there is no plan."""
        super().reset(knowledge, rng)
        self._requests = RequestKernels(len(knowledge.tenants))
        self._all = knowledge.gpu.sms
        self.plan: dict[int, list[int]] = {}
        """SMs of each kernel of a tenant's request, by tenant whose request is known."""

    def sms_of(self, tenant: int, identity: int, kernel: np.ndarray) -> int:
        """SMs of a kernel, as planned for its place in its request."""
        place = self._requests.place(tenant, int(kernel[JOB]), identity)
        if self._requests.known[tenant] is None or place < 0:
            return self._all
        if tenant not in self.plan:
            self._make_plan()
        return self.plan[tenant][place]

    def _make_plan(self) -> None:
        """Plan the SMs of all tenants whose requests are known."""
        known = {tenant: request for tenant, request in enumerate(self._requests.known) if request is not None}
        sizes = tuple(sorted({size for masks in self.pools for size in masks} | {self._all}))
        machine = Machine(sizes, self._all, self._changes)
        times = []
        for tenant, request in known.items():
            each = [self.times_us(tenant, identity) for identity in request]
            times.append(np.array([[row.get(size, np.inf) for size in sizes] for row in each]))
        choices = best_choices(times, machine)
        self.plan = {tenant: [sizes[c] for c in choice] for tenant, choice in zip(known, choices, strict=True)}
