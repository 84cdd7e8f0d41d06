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

from gpusched_env.compiling import called, native
from gpusched_env.devices.compiled.intrinsics import (
    atomic_add,
    atomic_load,
    atomic_store,
    condition_broadcast,
    condition_init,
    condition_wait,
    copy_bytes,
    mutex_init,
    mutex_lock,
    mutex_unlock,
    pause,
)
from gpusched_env.devices.compiled.layout import DEADLOCK
from gpusched_env.devices.compiled.memory import Kept
from gpusched_env.envs.batch_state import BatchState, ObservationTables, state_at
from gpusched_env.envs.stepping import step_range

# The team's memory: words of 8 bytes by their offsets. What different threads write lies in different lines; two
# of 64 bytes each, because processors fetch them in pairs.
LINE = 128
JOBS = 0
"""Jobs that there have been; a change wakes the threads."""
ENDED = 8
"""Whether the threads are to end."""
DONE = 1 * LINE
"""Environments of the job that are done."""
STOPPED = 1 * LINE + 8
"""Environments of the job that stopped on the way."""
WAITING = 1 * LINE + 16
"""Whether the leader sleeps until the job is done."""
SLEEPERS = 2 * LINE
"""Threads that sleep until there is a job."""
FRESH = 3 * LINE
"""Whether the job's actions are still to be carried out: see :func:`~gpusched_env.envs.stepping.step_range`."""
TARGETS = 3 * LINE + 8
"""Addresses of four tables that the job's observations are copied to, or of the batch's own."""
COUNT = 3 * LINE + 40
"""Environments of the job."""
MUTEX, WAKE, FINISHED = 4 * LINE, 5 * LINE, 6 * LINE
"""A mutex and two condition variables (64 bytes at most, on Linux and macOS)."""
SHARES = 7 * LINE
"""A line a thread: environments of its share that are left, one past its last, and how many it has."""
SHARE_END, SHARE_SIZE = 8, 16

PIECES, LARGEST_PIECE = 8, 8
"""A thread takes an eighth of what is left in a share, but eight environments at most: few takes, and little left to
wait for at the end."""


@native()
def prepare(memory, bounds):
    """Make a team's memory, all zero, ready; shares begin and end at ``bounds`` (int64, one more than threads)."""
    at = memory.ctypes.data
    mutex_init(at + MUTEX, 0)
    condition_init(at + WAKE, 0)
    condition_init(at + FINISHED, 0)
    atomic_store(at + COUNT, bounds[-1])
    for member in range(bounds.size - 1):
        atomic_store(at + SHARES + member * LINE + SHARE_END, bounds[member + 1])
        atomic_store(at + SHARES + member * LINE + SHARE_SIZE, bounds[member + 1] - bounds[member])


@native()
def dismiss(memory):
    """Tell a team's threads to end."""
    at = memory.ctypes.data
    atomic_store(at + ENDED, 1)
    _call_all(at)


@native()
def pause_times(pauses):
    """Do nothing for so many pauses, to find out how long one takes."""
    for _ in range(pauses):
        pause()


@native()
def take_part(memory, member, members, spins, fresh, targets, address):
    """What a thread of a team does.

    Member 0 leads: it sets a job, takes part in it, and returns when it is done. The others work until they are
    dismissed; ``fresh`` and ``targets`` mean nothing to them.

    Args:
        memory: the team's, int64.
        member, members: number of the thread, and of threads.
        spins: pauses to wait before sleeping.
        fresh: as for :func:`~gpusched_env.envs.stepping.step_range`.
        targets: the :class:`~gpusched_env.envs.batch_state.ObservationTables` that observations are copied to.
        address: as for ``step_range``.

    Returns:
        how many environments have to be served or are in a deadlock.
    """
    at = memory.ctypes.data
    if member == 0:
        atomic_store(at + DONE, 0)
        atomic_store(at + STOPPED, 0)
        atomic_store(at + FRESH, fresh)
        atomic_store(at + TARGETS, targets.pending.ctypes.data)
        atomic_store(at + TARGETS + 8, targets.running.ctypes.data)
        atomic_store(at + TARGETS + 16, targets.tenants.ctypes.data)
        atomic_store(at + TARGETS + 24, targets.device.ctypes.data)
        for owner in range(members):
            share = at + SHARES + owner * LINE
            atomic_store(share, atomic_load(share + SHARE_SIZE))
        _call_all(at)
        _work(at, 0, members, address)
        _wait_until_done(at, spins)
        return atomic_load(at + STOPPED)
    seen = 0
    while True:
        _wait_for_job(at, seen, spins)
        if atomic_load(at + ENDED) != 0:
            return 0
        # Read before the work: a job that comes meanwhile is looked at in the next round.
        seen = atomic_load(at + JOBS)
        _work(at, member, members, address)


@called
def _call_all(at):
    """Announce a job (or the end) and wake who sleeps."""
    atomic_add(at + JOBS, 1)
    # A thread counts itself before it looks for a job a last time, so that one of both sees the other.
    if atomic_load(at + SLEEPERS) > 0:
        mutex_lock(at + MUTEX)
        condition_broadcast(at + WAKE)
        mutex_unlock(at + MUTEX)


@called
def _wait_for_job(at, seen, spins):
    for _ in range(spins):
        if atomic_load(at + JOBS) != seen:
            return
        pause()
    mutex_lock(at + MUTEX)
    atomic_add(at + SLEEPERS, 1)
    while atomic_load(at + JOBS) == seen:
        condition_wait(at + WAKE, at + MUTEX)
    atomic_add(at + SLEEPERS, -1)
    mutex_unlock(at + MUTEX)


@called
def _wait_until_done(at, spins):
    count = atomic_load(at + COUNT)
    for _ in range(spins):
        if atomic_load(at + DONE) == count:
            return
        pause()
    mutex_lock(at + MUTEX)
    atomic_store(at + WAITING, 1)
    while atomic_load(at + DONE) != count:
        condition_wait(at + FINISHED, at + MUTEX)
    atomic_store(at + WAITING, 0)
    mutex_unlock(at + MUTEX)


@called
def _work(at, member, members, address):
    """Step what is left in the thread's own share and then in the others', and report it."""
    state = state_at(address)
    done = 0
    stopped = 0
    for step in range(members):
        share = at + SHARES + (member + step) % members * LINE
        end = atomic_load(share + SHARE_END)
        while True:
            left = atomic_load(share)
            if left <= 0:
                break
            wanted = min(max(left // PIECES, 1), LARGEST_PIECE)
            left = atomic_add(share, -wanted)
            if left <= 0:
                break
            # Now that environments of the job are in hand, it cannot end, and what describes it stands.
            first = end - left
            last = min(first + wanted, end)
            stopped += step_range(first, last, atomic_load(at + FRESH) != 0, address)
            for e in range(first, last):
                stopped += state.progress.reasons[e] == DEADLOCK
            _copy_rows(state.observations.pending, first, last, atomic_load(at + TARGETS))
            _copy_rows(state.observations.running, first, last, atomic_load(at + TARGETS + 8))
            _copy_rows(state.observations.tenants, first, last, atomic_load(at + TARGETS + 16))
            _copy_rows(state.observations.device, first, last, atomic_load(at + TARGETS + 24))
            done += last - first
    if done > 0:
        count = atomic_load(at + COUNT)
        atomic_add(at + STOPPED, stopped)
        if atomic_add(at + DONE, done) + done == count and atomic_load(at + WAITING) != 0:
            mutex_lock(at + MUTEX)
            condition_broadcast(at + FINISHED)
            mutex_unlock(at + MUTEX)


@called
def _copy_rows(table, first, last, target):
    """Copy rows of a table to the same place of the one at ``target``, unless that is itself."""
    source = table.ctypes.data
    if target != source:
        row = table.itemsize * (table.size // table.shape[0])
        copy_bytes(target + first * row, source + first * row, (last - first) * row)


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

    def run(self, fresh: bool, targets: ObservationTables) -> int:
        """Step all environments.

        Args:
            fresh: whether actions are carried out; otherwise those go on that were served.
            targets: C-contiguous tables that the observations are copied to, or the batch's own.

        Returns:
            how many environments have to be served or are in a deadlock.
        """
        if self._memory is None:
            self._gather()
        part: Any = take_part
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
        prepare(over, self._bounds)
        dismiss(over)
        _take_part(over, 1, self._members, 0, self._states[1])

    def _gather(self) -> None:
        memory = _memory(self._members)
        prepare(memory, self._bounds)
        self._spins = _spins() if self._members <= cores() else 0
        self._memory = memory
        self._load()
        # The threads keep what they need, but not the team, so that it can be collected.
        self._end = weakref.finalize(self, dismiss, memory)
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
    part: Any = take_part
    part(memory, member, members, spins, False, state.value.observations, state.address)


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory(members: int) -> NDArray[np.int64]:
    """Zeros, from the beginning of a line."""
    line = LINE
    memory = np.zeros((SHARES + (members + 1) * line) // 8, np.int64)
    skipped = -memory.ctypes.data % line // 8
    return memory[skipped:]


def _spins() -> int:
    """Pauses in :data:`SPIN_US`."""
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        pause_times(TRIAL)
        taken.append(time.perf_counter() - began)
    return int(SPIN_US * 1e-6 / (min(taken) / TRIAL))


_TEAMS: weakref.WeakSet[Team] = weakref.WeakSet()
_THREADS: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
"""Threads, also of teams that are gone: the interpreter must not end while one returns from compiled code."""


@atexit.register
def _close_all() -> None:
    for team in list(_TEAMS):
        team.close()
    for thread in list(_THREADS):
        thread.join()


def _forget_all() -> None:
    """Drop all teams in the child of a fork: there are no threads, and one of them may have held the lock."""
    for team in list(_TEAMS):
        team.forget()
    _THREADS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
