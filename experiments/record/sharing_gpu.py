"""The GPU at hand shared by two tasks: threads of this process, or two processes."""

from __future__ import annotations

import ctypes
import importlib.util
import multiprocessing
import os
import platform
import threading
from collections.abc import Callable
from importlib import import_module, metadata
from multiprocessing.connection import Connection
from typing import Any, Final

from gpusched_env.errors import GpuError, InputError
from gpusched_env.experiments.record.board import board_of, metered
from gpusched_env.experiments.record.sharing import SECONDS, AloneRun, SharedRows, Spans, Task
from gpusched_env.experiments.record.tasks import AGES_S, CompiledTask, EagerTask, Tasks
from gpusched_env.versions import versions

HEAD_START_S: Final = 0.2
"""Seconds by which a training runs before requests begin."""
PATIENCE_S: Final = 120.0
"""Seconds to wait for an answer of the other process, which has to load PyTorch."""


class BackgroundThread:
    """Something that a thread does until it is told to stop; its error is raised at the end."""

    def __init__(self, does: Callable[[], Any], stop: ctypes.c_int) -> None:
        """
        Args:
            does: until ``stop`` is set.
            stop: is set at the end.
        """
        self._stop, self._found = stop, []  # type: ctypes.c_int, list[Any]
        self._error: BaseException | None = None

        def run() -> None:
            try:
                self._found.append(does())
            except Exception as error:
                self._error = error

        self._thread = threading.Thread(target=run)

    def __enter__(self) -> BackgroundThread:
        self._thread.start()
        self._thread.join(HEAD_START_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.value = 1
        self._thread.join()
        if self._error is not None:
            raise GpuError(f"beside it: {self._error}") from self._error

    def result(self) -> Any:
        """What the background task returned."""
        return self._found[0]


class OtherProcess:
    """Another process with a task that is ready."""

    def __init__(self, device: str, network: Callable[[str], Any], task: Task) -> None:
        """
        Raises:
            GpuError: it does not get ready.
        """
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, device, network, task), daemon=True)
        self._process.start()
        theirs.close()
        try:
            self._answer()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> OtherProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.join(PATIENCE_S / 4)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def go(self) -> None:
        """Start its task, again and again."""
        self._pipe.send("go")

    def stopped(self) -> Spans:
        """Stop it; what it did."""
        self._pipe.send("stop")
        spans: Spans = self._answer()
        return spans

    def _answer(self) -> Any:
        if not self._pipe.poll(PATIENCE_S):
            raise GpuError(f"the other process does not answer within {PATIENCE_S:.0f} s")
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise GpuError("the other process has ended") from None
        if isinstance(answer, str):
            raise GpuError(f"the other process: {answer}")
        return answer


def serve(pipe: Connection, device: str, network: Callable[[str], Any], task: Task) -> None:
    """What the other process does: get ready, start when told to, stop when told to, or when nobody is left to tell."""
    try:
        ready, stop = Tasks(device, network).ready(task), ctypes.c_int(0)
        pipe.send(None)
        pipe.recv()
        with BackgroundThread(lambda: ready.repeat(stop, AGES_S), stop) as beside:
            pipe.recv()
        pipe.send(beside.result())
    except EOFError:
        return
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")


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
        """The head of the file of rows."""
        self._board = None if properties is None else board_of(properties)

    def alone(self, task: Task) -> AloneRun:
        """Iterations of a task alone."""
        cuda = self._tasks.torch.cuda if self._device == "cuda" else None
        ready = self._tasks.ready(task)
        if cuda is not None:
            cuda.reset_peak_memory_stats()
        spans, board = self._metered(ready)
        return AloneRun(spans, 0 if cuda is None else int(cuda.max_memory_allocated()), board)

    def threads(self, front: Task, behind: Task, priority: int) -> SharedRows:
        """Iterations as two threads of this process, each with a stream of its own."""
        ready = self._tasks.ready(behind), self._tasks.ready(front, priority)
        stop = ctypes.c_int(0)
        with BackgroundThread(lambda: ready[0].repeat(stop, AGES_S), stop) as beside:
            spans, board = self._metered(ready[1])
        return SharedRows(spans, beside.result(), board)

    def locked(self, front: Task) -> Spans:
        """Iterations beside a thread that only runs Python."""
        ready, stop = self._tasks.ready(front), ctypes.c_int(0)

        def count() -> int:
            counted = 0
            while not stop.value:
                counted += 1
            return counted

        with BackgroundThread(count, stop):
            return ready.repeat(ctypes.c_int(0), self._seconds)

    def processes(self, front: Task, behind: Task) -> SharedRows:
        """Iterations as two processes, each with a context of its own, which the GPU runs in turns."""
        # Nothing of the training in this process: both together might not fit.
        self._tasks.clear()
        ready = self._tasks.ready(front)
        with OtherProcess(self._device, self._network, behind) as other:
            other.go()
            threading.Event().wait(HEAD_START_S)
            spans, board = self._metered(ready)
            return SharedRows(spans, other.stopped(), board)

    def _metered(self, ready: CompiledTask | EagerTask) -> tuple[Spans, dict[str, Any]]:
        """Iterations, and energy and clocks of the board meanwhile."""
        return metered(self._board, lambda: ready.repeat(ctypes.c_int(0), self._seconds))

    def clear(self) -> None:
        """Give up what is ready."""
        self._tasks.clear()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
