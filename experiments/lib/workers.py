"""Tasks in worker processes, which are kept for the next tasks, and the grid of schedulers, problems and seeds."""

from __future__ import annotations

import functools
import os
import pickle
import re
import signal
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import cloudpickle
from loky import cpu_count, get_reusable_executor
from loky.process_executor import BrokenProcessPool

from gpusched_env.errors import GpuschedError, InputError

# Loky replaces a worker that was idle for too long, or has grown, and goes on: nothing that its user could act on.
_REPLACED = "A worker (stopped|was restarted) while some jobs were given"
warnings.filterwarnings("ignore", _REPLACED, UserWarning)

WATCH_S = 0.5
"""How often a worker looks whether its parent is there."""
A = TypeVar("A")
R = TypeVar("R")
T = TypeVar("T")
Progress = Callable[[int, float], None]
"""Called with the number of what is finished and its share of all, 0 to 1."""


class Shared(Generic[T]):
    """A value that many tasks have: packed once, and unpacked once in each process."""

    def __init__(self, value: T) -> None:
        self.value = value
        self._number = uuid.uuid4().hex
        """Keeps apart equal values of different calls: files that they name may have changed."""
        self._made: dict[Any, tuple[Any, Any]] = {}

    def make(self, maker: Callable[[A], R], argument: A) -> R:
        """What ``maker`` makes of ``argument``; the last one is kept for the next task in this process."""
        before = self._made.get(maker)
        if before is None or before[0] != argument:
            before = self._made[maker] = (argument, maker(argument))
        made: R = before[1]
        return made

    @functools.cached_property
    def _packed(self) -> bytes:
        return pickle.dumps(self.value, pickle.HIGHEST_PROTOCOL)

    def __reduce__(self) -> Any:
        return _unpacked, (self._packed, self._number)


@functools.lru_cache(maxsize=8)
def _unpacked(packed: bytes, number: str) -> Shared[Any]:
    return Shared(pickle.loads(packed))


def run_tasks(
    task: Callable[[A], R], arguments: Sequence[A], workers: int | None = None
) -> Generator[tuple[int, R], None, None]:
    """Run ``task`` on every argument; yield ``(index, result)`` as they finish, in any order.

    Closing the generator stops the processes.

    Args:
        task: a function or a callable object; also one of a notebook or script.
        arguments: handed out in order.
        workers: processes (default: one a CPU core); 1 runs everything in this process.

    Raises:
        InputError: fewer than one worker, or the task cannot be sent to another process.
        GpuschedError: a worker process died.
        Exception: whatever the task raised.
    """
    workers = cpu_count() if workers is None else workers
    if workers < 1:
        raise InputError(f"workers is {workers}, must be at least 1")
    if workers == 1 or len(arguments) <= 1:
        yield from ((index, task(argument)) for index, argument in enumerate(arguments))
        return
    executor = _executor(min(workers, len(arguments)))
    try:
        futures = {}
        for index, argument in enumerate(arguments):
            try:
                packed = cloudpickle.dumps((task, argument))
            except (pickle.PicklingError, TypeError) as error:
                raise InputError(f"this cannot be sent to worker processes ({error}): use one worker") from error
            futures[executor.submit(_run, packed, tuple(sys.path), Path.cwd())] = index
        for future in as_completed(futures):
            yield futures[future], _result(future)
    except BrokenProcessPool as error:
        raise GpuschedError(_ended(str(error))) from error
    except BaseException:
        # Tasks that are under way would hold up whatever comes next.
        executor.shutdown(wait=True, kill_workers=True)
        raise


def _ended(told: str) -> str:
    """Why a worker ended, if its signal tells: the system kills what has no memory left, and crashes are others."""
    how = re.search(r"SIG[A-Z]+", told)
    advice = "if it was killed for lack of memory, use fewer workers"
    if how is not None and how[0] not in ("SIGKILL", "SIGTERM"):
        advice = "it crashed: please report that, with what was run"
    return f"a worker process ended unexpectedly{f' ({how[0]})' if how else ''}; {advice}"


def _result(future: Future[R]) -> R:
    """Raises what the task raised; of errors that say all there is to know, without the worker's frames."""
    try:
        return future.result()
    except GpuschedError as error:
        error.__cause__ = error.__context__ = None
        raise error.with_traceback(None) from None


def run_all(
    task: Callable[[A], R], arguments: Sequence[A], workers: int | None = None, on_progress: Progress | None = None
) -> list[R]:
    """The results of :func:`run_tasks` in the order of ``arguments``."""
    found: dict[int, Any] = {}
    for index, result in run_tasks(task, arguments, workers):
        found[index] = result
        if on_progress is not None:
            on_progress(len(found), len(found) / len(arguments))
    return [found[index] for index in range(len(arguments))]


def _executor(workers: int) -> Any:
    """The workers of the last call, unless a module that they may have imported was edited since."""
    global _seen
    seen = {}
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or sys.prefix)
        if Path(sys.prefix) not in file.parents and file.is_file():
            seen[name] = (file, file.stat().st_mtime_ns)
    edited = any(seen.get(name, written) != written for name, written in _seen.items())
    # What is imported no longer here may still be in the workers that go on.
    _seen = seen if edited else {**_seen, **seen}
    return get_reusable_executor(
        max_workers=workers,
        initializer=belong_to,
        initargs=(os.getpid(),),
        reuse=False if edited else "auto",
        kill_workers=edited,
    )


_seen: dict[str, tuple[Path, int]] = {}


def _run(packed: bytes, path: tuple[str, ...], folder: Path) -> Any:
    """Run a task in a worker, which finds modules and files where the parent finds them now."""
    sys.path[:] = path
    os.chdir(folder)
    task, argument = pickle.loads(packed)
    return task(argument)


def belong_to(parent: int) -> None:
    """Set up a new worker: interrupts are the parent's, and nobody waits for results once that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(WATCH_S)
    os._exit(1)


C = TypeVar("C")


def run_grid(
    task: Callable[[C], R],
    groups: Sequence[Sequence[C]],
    workers: int | None = None,
    on_finished: Callable[[list[R]], None] = lambda found: None,
) -> bool:
    """Run ``task`` on every cell.

    Args:
        task: a function or callable object that other processes can be sent.
        groups: cells that one process runs after each other, such as those that share what takes long to make; handed
            out in order.
        workers: processes (default: one a CPU core); 1 runs everything in this process.
        on_finished: called with the results of a group, in any order of groups.

    Returns:
        whether everything has been run; an interrupt (Ctrl-C) ends it early.

    Raises:
        Exception: whatever the task raised, and as :func:`~gpusched_env.experiments.lib.workers.run_tasks`.
    """
    try:
        for _, found in run_tasks(_OneByOne(task), [list(group) for group in groups if group], workers):
            on_finished(found)
    except KeyboardInterrupt:
        return False
    return True


def counting(on_progress: Progress | None, total: int, done: int = 0) -> Callable[[int], None]:
    """Tells ``on_progress`` of so many more finished cells, of ``total``; ``done`` were finished before."""
    finished = done

    def tell(more: int) -> None:
        nonlocal finished
        finished += more
        if on_progress is not None:
            on_progress(finished, finished / total)

    return tell


@dataclass(frozen=True)
class _OneByOne(Generic[C, R]):
    """The task of worker processes."""

    task: Callable[[C], R]

    def __call__(self, cells: list[C]) -> list[R]:
        return [self.task(cell) for cell in cells]
