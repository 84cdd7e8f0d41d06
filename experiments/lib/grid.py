"""The grid under comparisons, rankings, searches for options and runs on a GPU: schedulers, problems and seeds.

All of them play the same cells, an episode each, in worker processes, and keep what is finished at an interrupt. What
they keep of an episode differs, and so do their results: a comparison has whole timelines, a ranking a row of figures
that a file can have thousands of, a run on a GPU what was measured beside what was predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from gpusched_env.experiments.lib.workers import Progress, run_tasks

C = TypeVar("C")
R = TypeVar("R")


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
