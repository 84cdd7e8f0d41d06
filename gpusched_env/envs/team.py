"""Threads that stay, and step the environments of a batch together."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.compiled.kept import Kept
from gpusched_env.envs import teamwork
from gpusched_env.envs.batch_state import BatchState, Tables

SPIN_US = 100.0
"""How long a thread waits for work, or the leader for the others, before it sleeps: longer than what a loop of random
actions does between two steps, shorter than what a learner does. To be woken takes some tens of microseconds."""
TRIAL = 1000
"""Pauses that are timed to know how many make :data:`SPIN_US`."""
JOIN_S = 1.0
"""Longest wait for a thread to end. It takes microseconds; but who closes may be the garbage collector, at a moment
when the thread cannot get to its end."""


class Team:
    """The calling thread and ``threads - 1`` others, which are made at the first job.

    They end with :meth:`close`, when the team is not used any more, and when the interpreter exits. After a fork,
    which copies no threads, the child's team makes new ones at its next job. Jobs are given by one thread at a time.
    """

    def __init__(self, states: Sequence[Kept[BatchState]]) -> None:
        """``states``: of the batch, one for each thread, with scratch of its own."""
        self._members = len(states)
        self._bounds = np.linspace(0, states[0].value.progress.reasons.size, self._members + 1).astype(np.int64)
        self._states = states
        self._threads: list[threading.Thread] = []
        self._memory: NDArray[np.int64] | None = None
        self._spins = 0
        self._end: weakref.finalize[..., Team] | None = None
        _TEAMS.add(self)

    @property
    def threads(self) -> list[threading.Thread]:
        """The threads besides the caller's, as far as they have been made."""
        return list(self._threads)

    def run(self, fresh: bool, targets: Tables) -> int:
        """Step all environments.

        Args:
            fresh: whether actions are carried out; otherwise those go on that were served.
            targets: C-contiguous tables that the observations are copied to, or the batch's own.

        Returns:
            how many environments have to be served or are in a deadlock.
        """
        if self._memory is None:
            self._gather()
        part: Any = teamwork.take_part
        return int(part(self._memory, 0, self._members, self._spins, fresh, targets, self._states[0].address))

    def close(self) -> None:
        """End the threads; a later job would make new ones."""
        if self._end is not None:
            self._end()
        threads = self._threads
        self.forget()
        for thread in threads:
            thread.join(JOIN_S)

    def forget(self) -> None:
        """Begin anew with the next job, whatever the threads do."""
        if self._end is not None:
            self._end.detach()
        self._end = self._memory = None
        self._threads = []

    def _load(self) -> None:
        """Load what threads do before there are any, by doing it where there is nothing to do.

        A thread that loads it holds Numba's lock; who forks then has a child in which nobody ever gives it back.
        """
        over = _memory(self._members)
        teamwork.prepare(over, self._bounds)
        teamwork.dismiss(over)
        _take_part(over, 1, self._members, 0, self._states[1])

    def _gather(self) -> None:
        memory = _memory(self._members)
        teamwork.prepare(memory, self._bounds)
        self._spins = _spins() if self._members <= cores() else 0
        self._memory = memory
        self._load()
        # The threads keep what they need, but not the team, so that it can be collected.
        self._end = weakref.finalize(self, teamwork.dismiss, memory)
        self._end.atexit = False
        for member in range(1, self._members):
            thread = threading.Thread(
                target=_take_part,
                args=(memory, member, self._members, self._spins, self._states[member]),
                name=f"gpusched-{member}",
                daemon=True,
            )
            thread.start()
            self._threads.append(thread)
            _THREADS.add(thread)


def _take_part(memory: NDArray[np.int64], member: int, members: int, spins: int, state: Kept[BatchState]) -> None:
    """What a thread does that is not the leader; it holds ``state``, so that its address stands."""
    part: Any = teamwork.take_part
    part(memory, member, members, spins, False, state.value.observations, state.address)


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory(members: int) -> NDArray[np.int64]:
    """Zeros, from the beginning of a line."""
    line = teamwork.LINE
    memory = np.zeros((teamwork.SHARES + (members + 1) * line) // 8, np.int64)
    skipped = -memory.ctypes.data % line // 8
    return memory[skipped:]


def _spins() -> int:
    """Pauses in :data:`SPIN_US`."""
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        teamwork.rest(TRIAL)
        taken.append(time.perf_counter() - began)
    return int(SPIN_US * 1e-6 / (min(taken) / TRIAL))


_TEAMS: weakref.WeakSet[Team] = weakref.WeakSet()
_THREADS: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
"""Also of teams that are gone: the interpreter must not end while a thread returns from compiled code."""


@atexit.register
def _close_all() -> None:
    for team in list(_TEAMS):
        team.close()
    for thread in list(_THREADS):
        thread.join()


def _forget_all() -> None:
    """In the child of a fork: there are no threads, and one of them may have held the lock."""
    for team in list(_TEAMS):
        team.forget()
    _THREADS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
