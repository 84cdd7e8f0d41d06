"""Persistent threads: one kernel stays on the GPU and takes the work of all others from a queue, by their dependencies.

As Juggler does (Belviranli et al., PPoPP 2018), which ACS compares with where kernels differ (Durvasula et al., arXiv
2401.12377, section 5): nothing is launched, but what stays reserves what the greediest kernel needs, and every block is
fetched from a queue in device memory.
"""

from __future__ import annotations

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scenarios.window import KernelWindow

WHOLE = 1024
"""Kernels whose tasks the queue holds."""


class PersistentThreads(PassThrough):
    """All kernels as tasks of one kernel that never ends, released by their dependencies on the GPU."""

    def __init__(self, task_us: float = 1.5) -> None:
        """``task_us``: to take a block from the queue, and again to release those that wait for a kernel: about three
        dependent accesses to memory that all SMs share (half a microsecond each).

        Raises:
            InputError: it is negative.
        """
        if not task_us >= 0.0:
            raise InputError(f"persistent-threads: task_us is {task_us}, must be at least 0")
        self._task_us = task_us
        self.set_up = SetUp(task_us=task_us, window=self._window)

    def _window(self, offered: KernelWindow | None, gpu: GpuSpec) -> KernelWindow:
        """The queue: what the application puts there starts when it can."""
        return KernelWindow(
            size=WHOLE, streams=WHOLE, launch_us=0.0, sync_us=self._task_us, checked_by="nobody",
            transfer_us=gpu.timing.launch_latency_us,
        )  # fmt: skip
