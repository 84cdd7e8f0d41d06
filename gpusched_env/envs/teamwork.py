"""The compiled side of a :class:`~gpusched_env.envs.team.Team`: threads step the environments of a batch together.

The environments are cut into one share a thread, always the same, so that an environment's memory stays in the cache
of one core. Whoever has finished its share helps with the others'. A share counts down how many of its environments
are left; a thread takes some by subtracting, and owns what it has taken if there were any left. So nothing depends on
who comes when: a thread that wakes up late finds what is left, if anything, and the job is over when all environments
have been reported done, whether or not all threads took part.

Threads wait for the next job in a loop for a short while, then asleep.
"""

from __future__ import annotations

from gpusched_env.compiling import cached, called
from gpusched_env.devices.compiled.atomics import (
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
from gpusched_env.envs.batch_state import state_at
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
"""How many of them stopped on the way."""
WAITING = 1 * LINE + 16
"""Whether the leader sleeps until the job is done."""
SLEEPERS = 2 * LINE
"""Threads that sleep until there is a job."""
FRESH = 3 * LINE
"""Of the job: see :func:`~gpusched_env.envs.stepping.step_range`."""
TARGETS = 3 * LINE + 8
"""Of the job: addresses of four tables that observations are copied to, or of the batch's own."""
COUNT = 3 * LINE + 40
"""Environments."""
MUTEX, WAKE, FINISHED = 4 * LINE, 5 * LINE, 6 * LINE
SHARES = 7 * LINE
"""A line a thread: environments of its share that are left, one past its last, and how many it has."""
SHARE_END, SHARE_SIZE = 8, 16

PIECES, LARGEST_PIECE = 8, 8
"""A thread takes an eighth of what is left in a share, but eight environments at most: few takes, and little left to
wait for at the end."""


@cached()
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


@cached(nogil=True)
def dismiss(memory):
    """Tell a team's threads to end."""
    at = memory.ctypes.data
    atomic_store(at + ENDED, 1)
    _call_all(at)


@cached(nogil=True)
def rest(pauses):
    """Do nothing for so many pauses, to find out how long one takes."""
    for _ in range(pauses):
        pause()


@cached(nogil=True)
def take_part(memory, member, members, spins, fresh, targets, address):
    """What a thread of a team does.

    Member 0 leads: it sets a job, takes part in it, and returns when it is done. The others work until they are
    dismissed; ``fresh`` and ``targets`` mean nothing to them.

    Args:
        memory: the team's, int64.
        member, members: number of the thread, and of threads.
        spins: pauses to wait before sleeping.
        fresh: as for :func:`~gpusched_env.envs.stepping.step_range`.
        targets: the :class:`~gpusched_env.envs.batch_state.Tables` that observations are copied to.
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
