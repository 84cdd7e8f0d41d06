"""Time integrals that rewards and metrics are made of, accumulated exactly between events."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Costs:
    """Integrals over simulated time since the reset, without the charge for what is left undone at the end.

    All rates are constant between events, so each integral is exact.
    """

    __slots__ = (
        "arrived",
        "busy_sm_us",
        "completed",
        "dram_bytes",
        "energy_j",
        "jobs_us",
        "makespan_us",
        "over",
        "rejected",
        "slo_misses",
        "throttled_us",
        "time_us",
    )

    def __init__(self, tenants: int) -> None:
        self.time_us = 0.0
        """Up to when the integrals run."""
        self.over = False
        """Whether the episode has ended: the workload is done, or the horizon is reached."""
        self.arrived: NDArray[np.float64] = np.zeros(tenants)
        """Per tenant: jobs that have arrived."""
        self.jobs_us: NDArray[np.float64] = np.zeros(tenants)
        """Per tenant: integral of the number of jobs in the system, and what rejected ones were charged (us)."""
        self.slo_misses: NDArray[np.float64] = np.zeros(tenants)
        """Per tenant: jobs whose turnaround has exceeded the SLO, counted when it happens, and rejected ones."""
        self.completed: NDArray[np.float64] = np.zeros(tenants)
        """Per tenant: completed jobs."""
        self.rejected: NDArray[np.float64] = np.zeros(tenants)
        """Per tenant: rejected jobs."""
        self.makespan_us = 0.0
        """Time during which the workload was not done, and that of rejected jobs alone."""
        self.throttled_us = 0.0
        """For which CPU cores stood because their budgets were spent, summed."""
        self.energy_j = 0.0
        """Integral of board power, and what rejected jobs were charged."""
        self.busy_sm_us = 0.0
        """Integral of the number of SMs with a resident block."""
        self.dram_bytes = 0.0
        """DRAM traffic."""
