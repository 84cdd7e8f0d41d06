"""Kernel-wise masks by system calls: the mask of a worker's queue is set anew for each kernel.

KW-IOCTL of Quach et al. (ECLIP, ISLPED 2025), as KRISP (Chow, Jahanshahi and Wong, HPCA 2023) does on hardware of
today. A call keeps the host busy for ``partition_change_us`` (up to 55.4 us on an MI50). Here a kernel that needs all
SMs needs no call; in the paper it does.
"""

from __future__ import annotations

from gpusched_env.baselines.kernel_wise import KernelWise
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scenarios.tenant_program import Mask
from gpusched_env.scheduling.commands import Command, Launch, Partition


class KernelWiseIoctl(KernelWise):
    """Every kernel runs on the fewest SMs that do not slow it, which the driver is told by a call."""

    set_up = SetUp()

    def launch(self, kernel: int, mask: Mask | None) -> Command:
        """Launch a kernel into its own stream."""
        return Launch(kernel, partition=None if mask is None else Partition(*mask))
