"""Which launches and jobs the tables of a :class:`~gpusched_env.scheduling.view.View` have, or its shown ones."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled import ruling  # noqa: F401 (what rows read)
from gpusched_env.devices.compiled.access import clients, edges, flights, launches, problem
from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.devices.compiled.slots import holds
from gpusched_env.devices.compiled.views import EMPTY, runs
from gpusched_env.devices.rules.rows import fill_pending, fill_running
from gpusched_env.hardware.clock import NEVER
from gpusched_env.scheduling.view import DependencyColumn, PendingColumn, RunningColumn


@called
def show_pending(w, lookahead, out):
    """Rows of each tenant's ``lookahead`` oldest pending launches; ``out``: shape ``(slots * lookahead, columns)``."""
    for tenant in range(out.shape[0] // lookahead):
        place = tenant * lookahead
        end = place + lookahead
        if tenant < problem(w).tenants:
            slot = clients(w, tenant).pending_first
            while slot != NONE and place < end:
                fill_pending(w, slot, out[place])
                place += 1
                slot = launches(w, slot).after
        while place < end:
            out[place, PendingColumn.ID] = EMPTY
            place += 1


@called
def show_pending_at(w, place, lookahead, out):
    """One row of :func:`show_pending`."""
    slot = NONE
    if place // lookahead < problem(w).tenants:
        slot = clients(w, place // lookahead).pending_first
        for _ in range(place % lookahead):
            if slot != NONE:
                slot = launches(w, slot).after
    if slot != NONE:
        fill_pending(w, slot, out[place])
    else:
        out[place, PendingColumn.ID] = EMPTY


@called
def show_running(w, out):
    """Launched ones, in rows: those that have started, then each other tenant's first, the rest in order of launch.

    ``out``: shape ``(running slots, columns)``.
    """
    room = out.shape[0]
    filled = 0
    slot = w.started_first
    while slot != NONE and filled < room:
        fill_running(w, slot, out[filled])
        filled += 1
        slot = flights(w, slot).started_after
    filled = show_first_ones(w, filled, out)
    begin_merge(w)
    while filled < room:
        slot = next_launched(w)
        if slot == NONE:
            break
        launch = launches(w, slot)
        if not runs(w, launch) and clients(w, launch.tenant).running_first != slot:
            fill_running(w, slot, out[filled])
            filled += 1
    for place in range(filled, room):
        out[place, RunningColumn.ID] = EMPTY


@called
def show_first_ones(w, filled, out):
    """The first launched one of each tenant, if it does not run, in order of launch; see :func:`show_running`."""
    tenants = problem(w).tenants
    last = -1
    while filled < out.shape[0]:
        best = NONE
        for tenant in range(tenants):
            slot = clients(w, tenant).running_first
            if slot == NONE or runs(w, launches(w, slot)) or launches(w, slot).order <= last:
                continue
            if best == NONE or launches(w, slot).order < launches(w, best).order:
                best = slot
        if best == NONE:
            break
        fill_running(w, best, out[filled])
        last = launches(w, best).order
        filled += 1
    return filled


@inlined
def begin_merge(w):
    """Begin to walk through all launched ones in order of launch (:func:`next_launched`)."""
    for tenant in range(problem(w).tenants):
        move_cursor(w, clients(w, tenant), clients(w, tenant).running_first)


@inlined
def move_cursor(w, client, slot):
    """Put a tenant's cursor on one of its launched ones, or behind the last (-1)."""
    client.cursor = slot
    client.cursor_order = launches(w, slot).order if slot != NONE else NEVER


@called
def next_launched(w):
    """The launched one next in order of launch among all tenants'; -1: there is no more."""
    best = 0
    for tenant in range(1, problem(w).tenants):
        if clients(w, tenant).cursor_order < clients(w, best).cursor_order:
            best = tenant
    client = clients(w, best)
    slot = client.cursor
    if slot != NONE:
        move_cursor(w, client, launches(w, slot).after)
    return slot


@called
def list_pending(w, lookahead, out):
    """Rows of pending launches, at most ``lookahead`` a tenant; returns their number."""
    rows = 0
    for tenant in range(problem(w).tenants):
        slot = clients(w, tenant).pending_first
        listed = 0
        while slot != NONE and listed < lookahead:
            fill_pending(w, slot, out[rows])
            rows += 1
            listed += 1
            slot = launches(w, slot).after
    return rows


@called
def list_dependencies(w, lookahead, out):
    """Pairs of a pending launch of the window and an unfinished one that it waits for; returns their number.

    As many as fit are written.
    """
    rows = 0
    for tenant in range(problem(w).tenants):
        slot = clients(w, tenant).pending_first
        listed = 0
        while slot != NONE and listed < lookahead:
            number = launches(w, slot).edges_in
            while number != NONE:
                edge = edges(w, number)
                if holds(w, edge.source, edge.source_id):
                    if rows < out.shape[0]:
                        out[rows, DependencyColumn.LAUNCH] = launches(w, slot).id
                        out[rows, DependencyColumn.WAITS_FOR] = edge.source_id
                    rows += 1
                number = edge.next_in
            before = launches(w, slot).previous
            if before != NONE:
                if rows < out.shape[0]:
                    out[rows, DependencyColumn.LAUNCH] = launches(w, slot).id
                    out[rows, DependencyColumn.WAITS_FOR] = launches(w, before).id
                rows += 1
            listed += 1
            slot = launches(w, slot).after
    return rows


@called
def list_running(w, out):
    """Rows of launched, unfinished kernels and graphs, in order of launch; returns their number.

    As many as fit are written.
    """
    begin_merge(w)
    slot = next_launched(w)
    rows = 0
    while slot != NONE:
        if rows < out.shape[0]:
            fill_running(w, slot, out[rows])
        rows += 1
        slot = next_launched(w)
    return rows
