"""Carrying out a scheduler's commands. Whether they are legal is checked before (:mod:`.device`, masks).

As :mod:`gpusched_env.devices.reference.decisions`.
"""

from __future__ import annotations

from gpusched_env.devices.compiled.access import clients, due, launches, problem
from gpusched_env.devices.compiled.handover import hand_over, oldest_pending
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import NO_TENANT, PREEMPTION_BEGINS
from gpusched_env.devices.compiled.preemption import begin_preemption
from gpusched_env.devices.compiled.record import log_decision

LAUNCH = 0
PREEMPT = 1
SET_PARTITION = 2
WAIT = 3
NOTHING = -1
"""Codes of commands; the first three are those of the timeline."""


@inlined
def charge(w):
    """Charge the host time of one decision; returns when its command takes effect."""
    w.busy_until_us = max(w.busy_until_us, w.now_us) + problem(w).decision_us
    return w.busy_until_us


@called
def carry_out(w):
    """Carry out the command that stands in the environment; it is legal."""
    kind = w.command
    w.command = NOTHING
    w.awake = 1
    w.commands += 1
    if kind == LAUNCH:
        launch(w, w.command_tenant, w.command_choice, w.command_first, w.command_sms)
    elif kind == PREEMPT:
        preempt(w, w.command_tenant, w.command_choice, w.command_first, w.command_sms)
    elif kind == SET_PARTITION:
        set_partition(w, w.command_tenant, w.command_first, w.command_sms)
    else:
        w.awake = 0
        w.timer_us = w.command_until_us
        charge(w)


@called
def launch(w, tenant, priority, first, sms):
    """Hand a tenant's oldest pending kernel to its stream."""
    client = clients(w, tenant)
    kernel = launches(w, tenant, oldest_pending(w, tenant))
    client.kernels_pending -= 1
    kernel.priority = priority
    kernel.partition_first = first if sms > 0 else client.partition_first
    kernel.partition_sms = sms if sms > 0 else client.partition_sms
    w.begun = 1
    log_decision(w, LAUNCH, kernel.id)
    hand_over(w, tenant, charge(w))


@called
def preempt(w, tenant, mode, first, sms):
    """Take a tenant's running kernel off the GPU, or off some SMs."""
    client = clients(w, tenant)
    client.preempting = 1
    client.mode = mode
    client.save_first = first
    client.save_sms = sms
    if sms == 0:
        client.preempted_us = w.now_us
    log_decision(w, PREEMPT, launches(w, tenant, client.finished).id)
    effect_us = charge(w)
    if effect_us > w.now_us:
        due(w, PREEMPTION_BEGINS, tenant).value = effect_us
    else:
        begin_preemption(w, tenant)


@called
def set_partition(w, tenant, first, sms):
    """Confine a tenant's later launches to some SMs; all of them are no confinement."""
    client = clients(w, tenant)
    log_decision(w, SET_PARTITION, NO_TENANT)
    client.partition_first = first if sms < problem(w).sms else 0
    client.partition_sms = sms
    client.partitioned_us = w.now_us
    charge(w)
    if w.begun == 1:
        # Partitions made before the first launch are set-up; later ones keep the scheduler's host busy.
        w.busy_until_us += problem(w).partition_change_us
