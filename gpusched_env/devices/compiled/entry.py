"""What Python calls: the compiled functions of this package end up in these, which Numba caches on disk."""

from __future__ import annotations

import functools
from typing import Final

from numba import types

from gpusched_env.building import build_of
from gpusched_env.compiling import cached_callback, callback_unit, inlined, native, notice_compilation, unit
from gpusched_env.devices.compiled.access import contexts, env_at, flight_of, given, launches, outbox, problem
from gpusched_env.devices.compiled.commands import carry_out
from gpusched_env.devices.compiled.context import bring_to_present
from gpusched_env.devices.compiled.dispatch import hand_out
from gpusched_env.devices.compiled.ends import end_all
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.layout import IDLE, NONE, OVER
from gpusched_env.devices.compiled.listing import list_dependencies, list_pending, list_running
from gpusched_env.devices.compiled.loop import run
from gpusched_env.devices.compiled.seeding import seed_tenants
from gpusched_env.devices.compiled.starting import end_reported, left_reported, start_reported
from gpusched_env.devices.compiled.views import occupancy
from gpusched_env.devices.rules.rows import fill_tenants, list_jobs
from gpusched_env.scheduling.commands import NOTHING
from gpusched_env.scheduling.cores import fill_cores
from gpusched_env.workload.cores.ticking import begin_cores
from gpusched_env.workload.host import begin_arrivals, start_closed_loop, stop_closed_loop


def _settle(address, number):
    w = env_at(address, 0)
    bring_to_present(w, contexts(w, number))
    return 0


def _end(address, number):
    w = env_at(address, 0)
    end_all(w, contexts(w, number))
    return 0


def _dispatch(address, number):
    w = env_at(address, 0)
    hand_out(w, contexts(w, number))
    return 0


def _drive(address, running):
    w = env_at(address, 0)
    if given(w).code != NOTHING:
        carry_out(w)
    return run(w) if running else OVER


LARGE: Final = {"drive": _drive, "settle": _settle, "end": _end, "dispatch": _dispatch}
"""Parts of the device that are large, or used at many places, and compiled on their own."""


@functools.cache
def compile_units() -> dict[str, int]:
    """The addresses of compiled functions, which :data:`.intrinsics.call` takes, by name; waits until they are built.

    ``settle``, ``end``, ``dispatch``: :func:`.context.bring_to_present`, :func:`.ends.end_all`,
    :func:`.dispatch.hand_out` for the address of an environment and the number of a context. ``drive``: carry out the
    command that an environment was given, then run it if the second argument is 1; gives why the event loop stopped
    (:data:`.layout.OVER` ...).

    Raises:
        InputError: nothing compiled is to be used, as ``GPUSCHED_COMPILE`` says.
    """
    build_of(DEVICE).wait()
    with notice_compilation("the simulated GPU"):
        return {name: compile_unit(name) for name in LARGE}


def compile_unit(name: str) -> int:
    """The address of one of :data:`LARGE`, compiled now unless it was before."""
    return int(cached_callback(types.int64(types.int64, types.int64))(LARGE[name]).address)


@native()
def begin_hosts(address, words, scratch):
    """Set the random numbers and the first timers of an environment that was reset.

    Args:
        words, scratch: of its seed, as :func:`.seeding.seed_tenants` has them.
    """
    w = env_at(address, 0)
    seed_tenants(w, words, scratch)
    for tenant in range(problem(w).tenants):
        begin_arrivals(w, tenant)
    begin_cores(w)


@native()
def tenant_comes(address, tenant, jobs):
    """:func:`gpusched_env.workload.host.start_closed_loop` in an environment."""
    return start_closed_loop(env_at(address, 0), tenant, jobs)


@native()
def tenant_goes(address, tenant):
    """:func:`gpusched_env.workload.host.stop_closed_loop` in an environment."""
    return stop_closed_loop(env_at(address, 0), tenant)


@native()
def drive(address, function, running):
    """Call ``drive`` of :func:`compile_units`, at ``function``.

    Returns:
        why the event loop stopped.
    """
    return call(function, address, running)


@native()
def report(address, function, reports, first, now_ps):
    """Let happen what a GPU outside reports and what is due up to the present, in order of time.

    Calls ``drive`` of :func:`compile_units` at ``function``. The scheduler is asked when all is told.

    Args:
        reports: rows of time, slot of a launch, 0: it has started, or 1: it has ended, and how many blocks it has
            left where it was recalled; in order of time.
        first: row to begin with.
        now_ps: the real time.

    Returns:
        the next row to begin with, and why the event loop stopped: with rows left, for something that Python serves.
    """
    w = env_at(address, 0)
    for row in range(first, len(reports)):
        at_ps = reports[row, 0]
        # What was due before it comes before it.
        if at_ps > w.now_ps:
            w.real_ps = at_ps - 1
            w.hushed = 1
            reason = call(function, address, 1)
            if reason != IDLE:
                return row, reason
            w.now_ps = at_ps
        if reports[row, 3] > 0:
            left_reported(w, reports[row, 1], reports[row, 3])
        elif reports[row, 2] == 1:
            end_reported(w, reports[row, 1])
        else:
            start_reported(w, reports[row, 1])
    # The scheduler sees what there is now, not what there was when it could first have been asked.
    w.real_ps = now_ps
    w.hushed = 1
    reason = call(function, address, 1)
    if reason == IDLE:
        w.hushed = 0
        reason = call(function, address, 1)
    return len(reports), reason


@inlined
def is_behind_another_queue(w, launch):
    """Whether what is before a launch in its stream went to another queue: a stream at a priority on some SMs."""
    if launch.previous == NONE:
        return False
    before = launches(w, launch.previous)
    if before.partition_first != launch.partition_first or before.partition_sms != launch.partition_sms:
        return True
    return before.stream != launch.stream or before.priority != launch.priority


@native()
def empty_outbox(address, out):
    """Fill the table of launches for a GPU outside, in order: slot, id, operation, stream, priority, first SM and how
    many, 1 if it may have to wait for launches of other queues, blocks that it has left (-1: all), and 1 if it is
    recalled."""
    w = env_at(address, 0)
    for place in range(w.sent):
        entry = outbox(w, place).value
        slot = entry if entry >= 0 else -1 - entry
        launch = launches(w, slot)
        out[place, 0] = slot
        out[place, 1] = launch.id
        out[place, 2] = launch.op
        out[place, 3] = launch.stream
        out[place, 4] = launch.priority
        out[place, 5] = launch.partition_first
        out[place, 6] = launch.partition_sms
        out[place, 7] = 1 if launch.edges_in != NONE or is_behind_another_queue(w, launch) else 0
        out[place, 8] = flight_of(w, launch).blocks
        out[place, 9] = 1 if entry < 0 else 0
    w.sent = 0


@native()
def look_pending(address, out):
    """Fill the table of pending launches of an environment, for which there is room; gives their number."""
    w = env_at(address, 0)
    return list_pending(w, problem(w).lookahead, out)


@native()
def look_dependencies(address, out):
    """Fill the table of what pending launches wait for, as far as there is room; gives the number of pairs."""
    w = env_at(address, 0)
    return list_dependencies(w, problem(w).lookahead, out)


@native()
def look_running(address, out):
    """Fill the table of launched kernels and graphs, as far as there is room; gives their number."""
    return list_running(env_at(address, 0), out)


@native()
def look_jobs(address, out):
    """Fill the table of jobs in the system, as far as there is room; gives their number."""
    return list_jobs(env_at(address, 0), out)


@native()
def look_cores(address, out):
    """Fill the table of the CPU's cores, for which there is room; gives their number."""
    w = env_at(address, 0)
    fill_cores(w, out)
    return problem(w).cores


@native()
def look_tenants(address, out):
    """Fill the table of tenants, for which there is room; gives their number."""
    w = env_at(address, 0)
    fill_tenants(w, out)
    return problem(w).tenants


@native()
def look_occupancy(address):
    """Resident threads over the GPU's maximum."""
    return occupancy(env_at(address, 0))


_TABLE: Final = types.float64[:, ::1]
_WORDS: Final = types.uint64[::1]
DEVICE: Final = f"{__name__}:UNITS"
"""Where :data:`UNITS` stands, for :func:`gpusched_env.building.build_of`."""
UNITS: Final = (
    *(callback_unit(function, functools.partial(compile_unit, name)) for name, function in LARGE.items()),
    unit(begin_hosts, types.int64, _WORDS, _WORDS),
    unit(drive, types.int64, types.int64, types.boolean),
    unit(look_pending, types.int64, _TABLE),
    unit(look_running, types.int64, _TABLE),
    unit(look_tenants, types.int64, _TABLE),
    unit(look_jobs, types.int64, _TABLE),
    unit(look_occupancy, types.int64),
)
"""What a device needs before its first decision, the largest first."""
