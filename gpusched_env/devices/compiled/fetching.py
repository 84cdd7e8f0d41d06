"""Bringing the memory of environments into the processor's caches before their turn comes.

Where one thread steps hundreds of environments, these are larger together than the caches, and each would wait for most
of its first accesses, one after the other.
"""

from __future__ import annotations

from typing import Final

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import clients, contexts, env_at, problem, used
from gpusched_env.devices.compiled.intrinsics import fetch
from gpusched_env.devices.compiled.layout import CONTEXT, ENV, GRID, LAUNCH, NONE, ROW, SM_CLASS
from gpusched_env.devices.compiled.memory import LINE
from gpusched_env.scheduling.legality import COMMAND_RECORD

HEAD_BYTES: Final = 2 * LINE + ENV.itemsize + COMMAND_RECORD.itemsize + CONTEXT.itemsize
"""Bytes of what lies in front (:func:`~gpusched_env.devices.compiled.sections.allocate`), up to the first context."""
GRID_BYTES: Final = GRID.itemsize
CLASS_BYTES: Final = SM_CLASS.itemsize
ROW_BYTES: Final = ROW.itemsize
LAUNCH_BYTES: Final = LAUNCH.itemsize


@called
def fetch_ahead(addresses, index, end):
    """Fetch what the environments from ``index`` on will read, those before ``end``.

    Addresses in a record are known when that has come: of the third one the records in front are fetched, of the
    second the tables that they name, and of the first what these name.
    """
    if index + 2 < end:
        fetch_bytes(addresses[index + 2], HEAD_BYTES)
    if index + 1 < end:
        fetch_tables(env_at(addresses[index + 1], 0))
    if index < end:
        fetch_residents(env_at(addresses[index], 0))


@inlined
def fetch_bytes(address, count):
    """Fetch so many bytes from an address on."""
    for line in range(0, count, LINE):
        fetch(address + line)


@called
def fetch_tables(w):
    """Fetch the tables that every step reads, up to the first timers."""
    fetch_bytes(w.clients_at, w.heap_at + LINE - w.clients_at)
    fetch_bytes(w.timers_at, 4 * LINE)
    context = contexts(w, w.slicer_context)
    fetch(context.used_at)
    fetch(context.queue_at)
    fetch(context.class_ends_at)
    fetch(context.members_at)
    fetch(context.kinds_at)


@called
def fetch_residents(w):
    """Fetch what is on the SMs, and the launches that tenants have first."""
    context = contexts(w, w.slicer_context)
    fetch_bytes(context.classes_at, context.classes * CLASS_BYTES)
    fetch_bytes(context.rows_at, context.classes * ROW_BYTES)
    for place in range(context.grids):
        fetch_bytes(context.grids_at + used(context, place).value * GRID_BYTES, GRID_BYTES)
    for tenant in range(problem(w).tenants):
        client = clients(w, tenant)
        fetch_launch(w, client.pending_first)
        fetch_launch(w, client.running_first)


@inlined
def fetch_launch(w, slot):
    """Fetch the launch in a slot, if there is one."""
    if slot != NONE:
        fetch_bytes(w.launches_at + slot * LAUNCH_BYTES, LAUNCH_BYTES)
