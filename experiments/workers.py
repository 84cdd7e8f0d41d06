"""A small pool of worker processes that report progress and can be stopped at any moment.

Workers are fresh interpreters: they neither fork this process's threads nor import its ``__main__``, so a
comparison may be started from a notebook or from a script without a main guard. They run in sessions of
their own: an interrupt at the terminal reaches the parent alone, which keeps what is finished.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from gpusched_env.errors import GpuschedError, InputError

Report = Callable[[float], None]
"""Called by a task with the share of it that is done, 0 to 1."""
Task = Callable[[Any, Report], Any]
"""What workers run: ``task(argument, report) -> result``."""

_REPORT_EVERY_S = 0.1
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from gpusched_env.experiments.workers import serve; serve(int(sys.argv[1]))"
)


def run_tasks(
    task: Task, arguments: Sequence[Any], workers: int, on_progress: Callable[[int, float], None] | None = None
) -> Generator[tuple[int, Any], None, None]:
    """Run ``task`` on every argument; yield ``(index, result)`` as they finish, in any order.

    Closing the generator stops the processes.

    Args:
        task: picklable if ``workers`` > 1 (a function of an importable module, or a ``partial`` of one).
        arguments: handed out in order.
        workers: processes; 1 runs everything in this process.
        on_progress: called with ``(index, share done)``.

    Raises:
        InputError: the task cannot be sent to another process.
        GpuschedError: a worker process died.
        Exception: whatever the task raised, with the worker's traceback as a note.
    """
    notify = on_progress or (lambda index, share: None)
    if workers <= 1 or len(arguments) <= 1:
        for index, argument in enumerate(arguments):
            yield index, task(argument, lambda share, index=index: notify(index, share))  # type: ignore[misc]
        return
    pool = [_Worker(task) for _ in range(min(workers, len(arguments)))]
    try:
        yield from _dispatch(pool, arguments, notify)
    finally:
        for worker in pool:
            worker.stop()


def _dispatch(
    pool: list[_Worker], arguments: Sequence[Any], notify: Callable[[int, float], None]
) -> Iterator[tuple[int, Any]]:
    waiting = iter(enumerate(arguments))
    for worker in pool:
        worker.send(next(waiting))
    busy = {worker.connection: worker for worker in pool}
    while busy:
        for ready in wait(list(busy)):
            assert isinstance(ready, Connection)
            worker = busy[ready]
            kind, index, payload = worker.receive()
            if kind == "progress":
                notify(index, payload)
                continue
            if kind == "error":
                error, trace = payload
                error.add_note(f"in a worker process:\n{trace}")
                raise error
            following = next(waiting, None)
            if following is None:
                del busy[ready]
            else:
                worker.send(following)
            yield index, payload


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, task: Task) -> None:
        try:
            packed = pickle.dumps(task)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"this cannot be sent to worker processes ({error}): define the scheduler at the top level of an "
                "importable module, or use one worker"
            ) from error
        self.connection, theirs = Pipe()
        handle = theirs.fileno()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, str(handle), json.dumps(sys.path)],
            pass_fds=[handle],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self.connection.send_bytes(packed)

    def send(self, item: tuple[int, Any]) -> None:
        self.connection.send(item)

    def receive(self) -> tuple[str, int, Any]:
        try:
            message: tuple[str, int, Any] = self.connection.recv()
        except (EOFError, ConnectionResetError) as error:
            raise GpuschedError(
                f"a worker process ended unexpectedly (exit status {self._process.wait()}); "
                "if it was killed for lack of memory, use fewer workers"
            ) from error
        return message

    def stop(self) -> None:
        # In this order: a worker that sees the pipe close while it reads would complain.
        self._process.terminate()
        self._process.wait()
        self.connection.close()


def serve(handle: int) -> None:
    """A worker process: receive the task, then run it on arguments until the parent hangs up."""
    connection = Connection(handle)
    try:
        task: Task = pickle.loads(connection.recv_bytes())
        while True:
            index, argument = connection.recv()
            connection.send(_outcome(task, index, argument, connection))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _outcome(task: Task, index: int, argument: Any, connection: Connection) -> tuple[str, int, Any]:
    last = time.monotonic()

    def report(share: float) -> None:
        nonlocal last
        if time.monotonic() - last >= _REPORT_EVERY_S:
            last = time.monotonic()
            connection.send(("progress", index, share))

    try:
        return ("done", index, task(argument, report))
    except (BrokenPipeError, ConnectionResetError):
        raise
    except Exception as error:
        trace = traceback.format_exc()
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # an exception class of the user's may fail to pickle in any way
            error = GpuschedError(f"{type(error).__name__}: {error}")
        return ("error", index, (error, trace))
