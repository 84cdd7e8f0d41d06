"""What :mod:`gpusched_env.scheduling.commands` asks of launches, in compiled code.

Importing this module lets Numba compile what is legal now for an ``ENV`` record.
"""

from __future__ import annotations

from gpusched_env.devices.compiled.access import clients, flight_of, flights, launches, problem
from gpusched_env.devices.compiled.finishing import is_node
from gpusched_env.devices.compiled.forms import forms_of
from gpusched_env.devices.compiled.issuing import is_launchable
from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.devices.compiled.overloading import on_records
from gpusched_env.devices.compiled.tiles import may_synchronise
from gpusched_env.devices.compiled.views import has_blocks, runs
from gpusched_env.scheduling.commands import world
from gpusched_env.scheduling.commands.preempt import may_preempt


@on_records(world.any_launchable)
def _any_launchable(w):
    """Whether a launch that waits for the scheduler may be launched; outside of windows the oldest one may."""
    if w.pending == 0:
        return False
    for tenant in range(problem(w).tenants):
        slot = clients(w, tenant).pending_first
        while slot != NONE:
            if is_launchable(w, launches(w, slot)):
                return True
            slot = launches(w, slot).after
    return False


@on_records(world.on_gpu)
def _on_gpu(w, launch):
    return runs(w, launch) and has_blocks(w, launch) and not is_node(w, launch)


@on_records(world.preemption_of)
def _preemption_of(w, launch):
    return flight_of(w, launch)


@on_records(world.any_synchronisable)
def _any_synchronisable(w):
    """Whether the tiles of a pending launch may be synchronised with its producer's."""
    for tenant in range(problem(w).tenants):
        slot = clients(w, tenant).pending_first
        while slot != NONE:
            if may_synchronise(w, slot):
                return True
            slot = launches(w, slot).after
    return False


@on_records(world.any_reshapable)
def _any_reshapable(w):
    """Whether a pending launch may be given another form."""
    for tenant in range(problem(w).tenants):
        slot = clients(w, tenant).pending_first
        while slot != NONE:
            if forms_of(w, slot) > 0:
                return True
            slot = launches(w, slot).after
    return False


@on_records(world.any_preemptible)
def _any_preemptible(w):
    slot = w.started_first
    while slot != NONE:
        if may_preempt(w, launches(w, slot)):
            return True
        slot = flights(w, slot).started_after
    return False
