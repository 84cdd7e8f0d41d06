"""Tasks of this process that are ready: built, and run a few times on streams of their own."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Protocol

from gpusched_env.experiments.record.compiled_task import CompiledTask
from gpusched_env.experiments.record.eager_task import EagerTask
from gpusched_env.experiments.record.gpu import more_queues
from gpusched_env.experiments.record.sharing import WARM_UP, Spans, Task

AGES_S: Final = 1e9
"""Until somebody stops it."""


class Repeated(Protocol):
    """A task that is ready."""

    def repeat(self, stop: ctypes.c_int, seconds: float, most: int = ...) -> Spans:
        """Iterations until ``stop`` is set, the time is over or there are so many."""

    def free(self) -> None:
        """Give its memory back."""


class Tasks:
    """Tasks of this process that are ready, all of one launcher."""

    def __init__(self, device: str, network: Callable[[str], Any]) -> None:
        """
        Args:
            device: ``cuda`` or ``cpu``.
            network: makes one by its name, on the CPU.
        """
        more_queues()
        self.torch = import_module("torch")
        self.torch.manual_seed(0)
        # TF32 for matrices as for convolutions, which have it by default.
        self.torch.set_float32_matmul_precision("high")
        self.device, self.network = device, network
        self._ready: dict[tuple[Task, int], Repeated] = {}

    def ready(self, task: Task, priority: int = 0) -> Repeated:
        """A task that has run a few times on a stream of a priority.

        Raises:
            GpuError: it cannot be run.
        """
        key = task, priority
        if any(other.launcher != task.launcher for other, _ in self._ready):
            self.clear()
        if key not in self._ready:
            stream = self.torch.cuda.Stream(priority=priority) if self.device == "cuda" else None
            made = CompiledTask if task.launcher == "compiled" else EagerTask
            one: Repeated = made(task, self.network(task.network), self.device, stream)
            self._ready[key] = one
            self.synchronize()
            one.repeat(ctypes.c_int(0), AGES_S, WARM_UP[task.trains])
        return self._ready[key]

    def synchronize(self) -> None:
        """Wait for all streams."""
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def clear(self) -> None:
        """Give all memory back."""
        for task in self._ready.values():
            task.free()
        self._ready.clear()
        gc.collect()
        if self.device == "cuda":
            self.torch.cuda.empty_cache()
