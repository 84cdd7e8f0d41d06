"""What Python calls: the compiled functions of this package end up in these, which Numba caches on disk."""

from __future__ import annotations

import functools

from numba import types

from gpusched_env.compiling import cached, cached_callback
from gpusched_env.devices.compiled.access import contexts, env_at, problem
from gpusched_env.devices.compiled.commands import NOTHING, carry_out
from gpusched_env.devices.compiled.context import bring_to_present
from gpusched_env.devices.compiled.dispatch import hand_out
from gpusched_env.devices.compiled.ends import end_all
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.jit import notice_compilation
from gpusched_env.devices.compiled.layout import OVER
from gpusched_env.devices.compiled.loop import run
from gpusched_env.devices.compiled.views import fill_tenant, list_pending, list_running, occupancy


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
    if w.command != NOTHING:
        carry_out(w)
    return run(w) if running else OVER


UNITS = {"settle": _settle, "end": _end, "dispatch": _dispatch, "drive": _drive}


@functools.cache
def compile_units() -> dict[str, int]:
    """The addresses of compiled functions, which :data:`.intrinsics.call` takes, by name.

    Parts of the device that are large, or used at many places, are compiled on their own. ``settle``, ``end``,
    ``dispatch``: :func:`.context.bring_to_present`, :func:`.ends.end_all`, :func:`.dispatch.hand_out` for the
    address of an environment and the number of a context. ``drive``: carry out the command that stands in an
    environment, then run it if the second argument is 1; gives why the event loop stopped (:data:`.layout.OVER`
    ...).
    """
    compile_ = cached_callback(types.int64(types.int64, types.int64))
    with notice_compilation("the simulated GPU"):
        return {name: int(compile_(function).address) for name, function in UNITS.items()}


@cached(_nrt=False, nogil=True)
def command(address, function, kind, tenant, choice, first, sms, until_us, running):
    """Give an environment a command (:data:`.layout.ENV` says what the numbers are), and call ``drive`` of
    :func:`compile_units` at ``function``.

    Returns:
        why the event loop stopped.
    """
    w = env_at(address, 0)
    w.command = kind
    w.command_tenant = tenant
    w.command_choice = choice
    w.command_first = first
    w.command_sms = sms
    w.command_until_us = until_us
    return call(function, address, running)


@cached(_nrt=False, nogil=True)
def look_pending(address, lookahead, pending):
    """Fill the table of pending kernels of an environment, at most ``lookahead`` a tenant; gives their number."""
    return list_pending(env_at(address, 0), lookahead, pending)


@cached(_nrt=False, nogil=True)
def look_running(address, orders, running):
    """Fill the table of launched kernels, by tenant, and ``orders`` (int64) of their launches; gives their number."""
    return list_running(env_at(address, 0), orders, running)


@cached(_nrt=False, nogil=True)
def look_tenants(address, tenants):
    """Fill the table of tenants; gives the occupancy."""
    w = env_at(address, 0)
    for tenant in range(problem(w).tenants):
        fill_tenant(w, tenant, tenants[tenant])
    return occupancy(w)
