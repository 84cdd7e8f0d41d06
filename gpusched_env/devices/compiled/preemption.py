"""Taking a running kernel off the GPU: drain, save, reset.

As :mod:`gpusched_env.devices.reference.preemption`.
"""

from __future__ import annotations

from gpusched_env.devices.compiled.access import clients, due, grids, kernels, launches, ops, problem
from gpusched_env.devices.compiled.context import context_of, freeze, settle, take_off, withdraw
from gpusched_env.devices.compiled.jit import called
from gpusched_env.devices.compiled.layout import PREEMPTION

DRAIN = 0
SAVE = 1
RESET = 2


@called
def begin_preemption(w, tenant):
    """A preemption of a tenant's kernel takes effect, unless the kernel has ended."""
    client = clients(w, tenant)
    if client.mode == DRAIN:
        due(w, PREEMPTION, tenant).value = w.now_us + problem(w).drain_ack_us
        return
    settle(w, context_of(w, tenant))
    if client.preempting == 0:
        return
    freeze(w, tenant)
    client.dead_us = problem(w).reset_us
    if client.mode == SAVE:
        kernel = kernels(w, ops(w, launches(w, tenant, client.finished).op).identity)
        resident = grids(context_of(w, tenant), tenant).resident
        client.dead_us = resident * kernel.state_bytes / problem(w).nominal_bytes_per_us
    due(w, PREEMPTION, tenant).value = w.now_us + client.dead_us


@called
def end_preemption(w, tenant):
    """The dispatcher has acknowledged a drain; a frozen kernel's blocks are saved or killed."""
    client = clients(w, tenant)
    if client.mode == DRAIN:
        withdraw(w, tenant)
        return
    client.restore_us = client.dead_us if client.mode == SAVE else 0.0
    take_off(w, tenant, client.mode == SAVE)
