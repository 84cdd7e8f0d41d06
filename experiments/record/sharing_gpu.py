"""The GPU at hand shared by two tasks: threads of this process on streams of their own, or two processes."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import threading
from collections.abc import Callable
from importlib import import_module, metadata
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.experiments.record.other_tasks import HEAD_START_S, Beside, OtherProcess
from gpusched_env.experiments.record.ready_tasks import AGES_S, Tasks
from gpusched_env.experiments.record.sharing import SECONDS, Spans, Task, Together
from gpusched_env.versions import versions


def torchvision(name: str) -> Any:
    """A network of torchvision with random weights, on the CPU."""
    return import_module("torchvision").models.get_model(name, weights=None)


class TorchSharing:
    """Tasks that share the GPU at hand."""

    def __init__(
        self, device: str = "cuda", network: Callable[[str], Any] = torchvision, seconds: float = SECONDS
    ) -> None:
        """
        Args:
            device: ``cuda``, or ``cpu`` to try the programs out.
            network: makes a network by its name; it can be pickled.
            seconds: of requests.

        Raises:
            InputError: PyTorch or torchvision is not installed, or PyTorch sees no GPU.
        """
        for package in ("torch", "torchvision") if network is torchvision else ("torch",):
            if importlib.util.find_spec(package) is None:
                raise InputError(f"recording how tasks share a GPU needs {package}: pip install {package}")
        self._tasks = Tasks(device, network)
        torch = self._tasks.torch
        if device == "cuda" and not torch.cuda.is_available():
            raise InputError("PyTorch sees no GPU; recording how tasks share one needs it")
        self._device, self._network, self._seconds = device, network, seconds
        properties = torch.cuda.get_device_properties(0) if device == "cuda" else None
        self.head: dict[str, Any] = {
            "gpu": platform.processor() if properties is None else str(properties.name),
            "torch": versions()["torch"],
            "torchvision": _version("torchvision"),
            "cuda": torch.version.cuda,
            "python": platform.python_version(),
            "cpus": os.cpu_count(),
            "unit": "us",
            "seconds": seconds,
        }
        """Of the file of rows."""

    def alone(self, task: Task) -> tuple[Spans, int]:
        """Iterations of a task alone, and the most memory that was in use in them, bytes."""
        cuda = self._tasks.torch.cuda if self._device == "cuda" else None
        ready = self._tasks.ready(task)
        if cuda is not None:
            cuda.reset_peak_memory_stats()
        spans = ready.repeat(ctypes.c_int(0), self._seconds)
        return spans, 0 if cuda is None else int(cuda.max_memory_allocated())

    def threads(self, front: Task, behind: Task, priority: int) -> Together:
        """As two threads of this process, each with a stream of its own."""
        ready = self._tasks.ready(behind), self._tasks.ready(front, priority)
        stop = ctypes.c_int(0)
        with Beside(lambda: ready[0].repeat(stop, AGES_S), stop) as beside:
            spans = ready[1].repeat(ctypes.c_int(0), self._seconds)
        return Together(spans, beside.result())

    def locked(self, front: Task) -> Spans:
        """Beside a thread that only runs Python."""
        ready, stop = self._tasks.ready(front), ctypes.c_int(0)

        def count() -> int:
            counted = 0
            while not stop.value:
                counted += 1
            return counted

        with Beside(count, stop):
            return ready.repeat(ctypes.c_int(0), self._seconds)

    def processes(self, front: Task, behind: Task) -> Together:
        """As two processes, each with a context of its own, which the GPU runs in turns."""
        # Nothing of the training in this process: both together might not fit.
        self._tasks.clear()
        ready = self._tasks.ready(front)
        with OtherProcess(self._device, self._network, behind) as other:
            other.go()
            threading.Event().wait(HEAD_START_S)
            spans = ready.repeat(ctypes.c_int(0), self._seconds)
            return Together(spans, other.stopped())

    def clear(self) -> None:
        """Give up what is ready."""
        self._tasks.clear()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
