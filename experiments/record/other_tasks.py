"""What runs beside a task: in another thread of this process, or in another process."""

from __future__ import annotations

import ctypes
import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

from gpusched_env.errors import GpuError
from gpusched_env.experiments.record.ready_tasks import AGES_S, Tasks
from gpusched_env.experiments.record.sharing import Spans, Task

HEAD_START_S: Final = 0.2
"""By which a training runs before requests begin."""
PATIENCE_S: Final = 120.0
"""For an answer of the other process, which has to load PyTorch."""


class Beside:
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

    def __enter__(self) -> Beside:
        self._thread.start()
        self._thread.join(HEAD_START_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.value = 1
        self._thread.join()
        if self._error is not None:
            raise GpuError(f"beside it: {self._error}") from self._error

    def result(self) -> Any:
        """What it returned."""
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
        with Beside(lambda: ready.repeat(stop, AGES_S), stop) as beside:
            pipe.recv()
        pipe.send(beside.result())
    except EOFError:
        return
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
