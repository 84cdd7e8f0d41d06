"""Model-wise masks: each model has a mask of the fewest SMs that do not slow it, for all its kernels.

Model-Wise of Quach et al. (ECLIP, ISLPED 2025). A request's time on fewer SMs is the sum of its kernels' times alone
there; the first request of each tenant, on all SMs, shows which these are.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.kernel_wise import KernelWise
from gpusched_env.baselines.mask_pools import RequestKernels
from gpusched_env.baselines.pending import JOB
from gpusched_env.scenarios.knowledge import Knowledge


class ModelWise(KernelWise):
    """All kernels of a tenant go to one stream, of the fewest SMs that do not slow its requests."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No request is known."""
        super().reset(knowledge, rng)
        self._requests = RequestKernels(len(knowledge.tenants))
        self._sms: dict[int, int] = {}
        self._all = knowledge.gpu.sms

    def sms_of(self, tenant: int, identity: int, kernel: np.ndarray) -> int:
        """The number of SMs of the tenant's stream."""
        self._requests.place(tenant, int(kernel[JOB]), identity)
        request = self._requests.known[tenant]
        if request is None:
            return self._all
        if tenant not in self._sms:
            times = [self.times_us(tenant, each) for each in request]
            total = {sms: sum(each[sms] for each in times) for sms in times[0]}
            most = (1.0 + self._slowdown) * total[self._all]
            self._sms[tenant] = next(sms for sms, us in total.items() if us <= most)
        return self._sms[tenant]
