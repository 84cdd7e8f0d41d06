"""The lists that launches are in."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import clients, flight_of, flights, kernels, launches, problem
from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.hardware.clock import NEVER

# ---- pending launches, in order of id --------------------------------------------------------------------


@called
def add_pending(w, slot):
    """Put a launch into its tenant's list: behind all of lower ids."""
    launch = launches(w, slot)
    client = clients(w, launch.tenant)
    w.pending += 1
    client.kernels_pending += 1
    before = client.pending_last
    while before != NONE and launches(w, before).id > launch.id:
        before = launches(w, before).before
    launch.before = before
    if before == NONE:
        launch.after = client.pending_first
        client.pending_first = slot
    else:
        launch.after = launches(w, before).after
        launches(w, before).after = slot
    if launch.after == NONE:
        client.pending_last = slot
    else:
        launches(w, launch.after).before = slot


@called
def remove_pending(w, slot):
    """Take a launch out of its tenant's list."""
    launch = launches(w, slot)
    client = clients(w, launch.tenant)
    w.pending -= 1
    client.kernels_pending -= 1
    if launch.before == NONE:
        client.pending_first = launch.after
    else:
        launches(w, launch.before).after = launch.after
    if launch.after == NONE:
        client.pending_last = launch.before
    else:
        launches(w, launch.after).before = launch.before


@called
def find_pending(w, id_):
    """The slot of a launch that the scheduler may launch: among the first of a tenant."""
    for tenant in range(problem(w).tenants):
        slot = clients(w, tenant).pending_first
        while slot != NONE and launches(w, slot).id <= id_:
            if launches(w, slot).id == id_:
                return slot
            slot = launches(w, slot).after
    return NONE


# ---- launched ones, in order of launch ---------------------------------------------------------------------


@called
def add_running(w, slot):
    """A kernel or graph was launched."""
    launch = launches(w, slot)
    client = clients(w, launch.tenant)
    launch.order = w.launch_count
    w.launch_count += 1
    launch.before = client.running_last
    launch.after = NONE
    if client.running_last == NONE:
        client.running_first = slot
    else:
        launches(w, client.running_last).after = slot
    client.running_last = slot
    client.kernels_launched += 1
    client.launched_profiled_us += left_to_run_us(w, launch)


@called
def remove_running(w, slot):
    """A kernel or graph has finished, or is pending again."""
    launch = launches(w, slot)
    client = clients(w, launch.tenant)
    if launch.before == NONE:
        client.running_first = launch.after
    else:
        launches(w, launch.before).after = launch.after
    if launch.after == NONE:
        client.running_last = launch.before
    else:
        launches(w, launch.after).before = launch.before
    client.kernels_launched -= 1
    if flight_of(w, launch).started_ps < NEVER:
        remove_started(w, slot)
    # The sum starts anew when nothing is launched, so that rounding does not pile up.
    left_us = left_to_run_us(w, launch)
    client.launched_profiled_us = client.launched_profiled_us - left_us if client.kernels_launched else 0.0


@inlined
def left_to_run_us(w, launch):
    """Profiled duration of a launch, less what it ran before it was preempted."""
    profiled_us = kernels(w, launch.identity).profiled_us
    return profiled_us if launch.flight == NONE else profiled_us - min(profiled_us, flight_of(w, launch).ran_ps / 1e6)


@called
def note_start(w, slot):
    """The first block of a launch, or of a graph's node, starts: it stands among those that have."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    if flight.started_ps < NEVER:
        return
    flight.started_ps = w.now_ps
    before = w.started_last
    while before != NONE and launches(w, before).order > launch.order:
        before = flights(w, before).started_before
    flight.started_before = before
    if before == NONE:
        flight.started_after = w.started_first
        w.started_first = slot
    else:
        flight.started_after = flights(w, before).started_after
        flights(w, before).started_after = slot
    if flight.started_after == NONE:
        w.started_last = slot
    else:
        flights(w, flight.started_after).started_before = slot


@called
def remove_started(w, slot):
    """A launch that had started has finished, or is pending again."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    if flight.started_before == NONE:
        w.started_first = flight.started_after
    else:
        flights(w, flight.started_before).started_after = flight.started_after
    if flight.started_after == NONE:
        w.started_last = flight.started_before
    else:
        flights(w, flight.started_after).started_before = flight.started_before


@called
def find_started(w, id_):
    """The slot of a launch that has started."""
    slot = w.started_first
    while slot != NONE and launches(w, slot).id != id_:
        slot = flights(w, slot).started_after
    return slot
