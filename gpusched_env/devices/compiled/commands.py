"""Commands in compiled code: what is legal now, and carrying it out.

Importing this module lets Numba compile what :mod:`gpusched_env.scheduling.commands` asks of launches.
"""

from __future__ import annotations

from typing import Final

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import (
    clients,
    flight_of,
    flights,
    given,
    grids,
    launches,
    on_records,
    problem,
    read_by,
    stream_rows,
    streams,
    tilings,
)
from gpusched_env.devices.compiled.context import context_of, settle_context
from gpusched_env.devices.compiled.finishing import is_node, vanish
from gpusched_env.devices.compiled.hosting import fill_window
from gpusched_env.devices.compiled.issuing import (
    hand_over,
    hand_over_copies,
    is_launchable,
    is_windowed,
    relaunch_preempted,
    take_stream,
    wake_slicer,
)
from gpusched_env.devices.compiled.layout import NONE, PREEMPTION_BEGINS
from gpusched_env.devices.compiled.preemption import begin_preemption
from gpusched_env.devices.compiled.slots import add_running, find_pending, find_started, holds, remove_pending
from gpusched_env.devices.compiled.tiles import form_of, forms_of, may_synchronise, synchronise
from gpusched_env.devices.compiled.timing import arm_preemption
from gpusched_env.devices.compiled.views import has_blocks, runs
from gpusched_env.devices.rules.world import log_decision
from gpusched_env.scheduling.commands import (
    COMMANDS,
    LAUNCH,
    NOTHING,
    OWN_STREAM,
    PREEMPT,
    PRIORITY_OF_STREAM,
    REJECT,
    RESHAPE,
    SET_BUDGET,
    SET_PARTITION,
    SYNCHRONISE,
    THROTTLE,
    WAITING,
    world,
)
from gpusched_env.scheduling.commands.preempt import may_preempt
from gpusched_env.workload.cores.ticking import set_budget as give_budget
from gpusched_env.workload.host import delay
from gpusched_env.workload.host import reject as reject_job
from gpusched_env.workload.host import throttle as throttle_host

OF_LAUNCHES: Final = sum(1 << code for code, command in enumerate(COMMANDS) if "launch" in command.NUMBERS)
"""Codes of commands that are about a launch, a bit for each."""
ONCE: Final = sum(1 << code for code, command in enumerate(COMMANDS) if command.ONCE)
"""Codes of commands that are legal once at an instant, a bit for each."""


@called
def carry_out(w):
    """Carry out the command that an environment was given; it is legal."""
    command = given(w)
    code = command.code
    command.code = NOTHING
    w.commands += 1
    # It takes effect when the host time of all decisions so far is spent.
    w.busy_until_ps = max(w.busy_until_ps, w.now_ps) + problem(w).decision_ps
    if code == WAITING:
        w.awake = 0
        # At least a picosecond: no sequence of commands stops the clock.
        w.timer_ps = max(w.now_ps + 1, command.until_ps)
        return
    w.awake = 1
    if (ONCE >> code) & 1 == 1:
        w.once_ps = w.now_ps
    log_decision(w, code, command.launch if (OF_LAUNCHES >> code) & 1 == 1 else NONE)
    if code == LAUNCH:
        launch(w, command)
    elif code == PREEMPT:
        preempt(w, command)
    elif code == SET_PARTITION:
        set_partition(w, command.tenant, command.first_sm, command.sms)
    elif code == REJECT:
        reject(w, command.tenant, command.job)
    elif code == SYNCHRONISE:
        synchronise_tiles(w, command)
    elif code == RESHAPE:
        reshape(w, command.launch, command.form)
    elif code == THROTTLE:
        throttle(w, command.tenant, command.pause_ps)
    elif code == SET_BUDGET:
        set_budget(w, command.core, command.events, command.always)


@inlined
def own_priority(w, launch):
    """The priority of a launch's stream; a child without one has its parent's (0: that went with its job)."""
    if launch.stream != NONE:
        return stream_rows(w, launch.stream).priority
    return launches(w, launch.parent).priority if holds(w, launch.parent, launch.parent_id) else 0


@called
def launch(w, command):
    """Hand a pending launch to its stream."""
    slot = find_pending(w, command.launch)
    kernel = launches(w, slot)
    client = clients(w, kernel.tenant)
    again = kernel.flight != NONE
    if not again:
        if is_windowed(w, kernel):
            take_stream(w, kernel, command.stream)
        else:
            kernel.stream = command.stream if command.stream != OWN_STREAM else kernel.row
    kernel.priority = own_priority(w, kernel) if command.priority == PRIORITY_OF_STREAM else command.priority
    kernel.partition_first = client.partition_first
    kernel.partition_sms = client.partition_sms
    if kernel.stream != NONE and stream_rows(w, kernel.stream).mask_sms > 0:
        kernel.partition_first = stream_rows(w, kernel.stream).mask_first
        kernel.partition_sms = stream_rows(w, kernel.stream).mask_sms
    if command.sms > 0:
        whole = command.sms == problem(w).sms
        first = 0 if whole else command.first_sm
        if w.begun == 1 and (first != kernel.partition_first or command.sms != kernel.partition_sms):
            w.busy_until_ps += problem(w).partition_change_ps
        kernel.partition_first = first
        kernel.partition_sms = command.sms
    w.begun = 1
    launch_at(w, slot, w.busy_until_ps, again)


@called
def launch_at(w, slot, at_ps, again):
    """Hand a pending kernel or graph, whose stream, priority and partition are set, to its stream.

    ``again``: it was launched before, and preempted.
    """
    launch = launches(w, slot)
    remove_pending(w, slot)
    add_running(w, slot)
    wake_slicer(w)
    if again:
        relaunch_preempted(w, slot, at_ps)
        hand_over_copies(w, at_ps)
        return
    if launch.stream != NONE:
        streams(w, launch.stream).priority = launch.priority
    hand_over(w, slot, at_ps)
    hand_over_copies(w, at_ps)
    if launch.row != NONE:
        streams(w, launch.row).window -= 1
        fill_window(w, launch.row, at_ps)


@called
def preempt(w, command):
    """Take a running kernel off the GPU, or off some SMs."""
    slot = find_started(w, command.launch)
    kernel = launches(w, slot)
    flight = flight_of(w, kernel)
    flight.preempting = 1
    flight.mode = command.mode
    flight.save_first = command.first_sm
    flight.save_sms = command.sms
    flight.preempted_ps = w.now_ps
    if w.busy_until_ps > w.now_ps:
        arm_preemption(w, slot, w.busy_until_ps, PREEMPTION_BEGINS)
    else:
        begin_preemption(w, slot)


@called
def set_partition(w, tenant, first, sms):
    """Confine a tenant's later launches to some SMs (0: all of them, which are no confinement)."""
    client = clients(w, tenant)
    whole = sms == 0 or sms == problem(w).sms
    client.partition_first = 0 if whole else first
    client.partition_sms = problem(w).sms if whole else sms
    client.partitioned_ps = w.now_ps
    if w.begun == 1:
        # Partitions made before the first launch are set-up; later ones keep the scheduler's host busy.
        w.busy_until_ps += problem(w).partition_change_ps
        delay(w, tenant, problem(w).restart_ps)


@called
def synchronise_tiles(w, command):
    """Let the tiles of a pending kernel wait for those of its producer."""
    slot = find_pending(w, command.launch)
    synchronise(w, slot, command.policy, command.policy_size, command.order, command.reorder, command.wait_kernel)
    producer = launches(w, tilings(w, slot).producer)
    if producer.flight != NONE and flight_of(w, producer).grid != NONE:
        # It is resident, and none of its blocks has started.
        context = context_of(w, producer.tenant)
        grids(context, flight_of(w, producer).grid).tiled = 1
        context.tiles += 1


@called
def reshape(w, id_, form):
    """Let a pending kernel do its work in another form."""
    kernel = launches(w, find_pending(w, id_))
    kernel.identity = form_of(w, kernel.identity, form)


@called
def throttle(w, tenant, pause_ps):
    """Let a tenant's host sleep before each job."""
    throttle_host(w, tenant, pause_ps)


@called
def set_budget(w, sm_class, events, always):
    """Give a core of the CPU another budget."""
    give_budget(w, sm_class, events, always)


@called
def reject(w, tenant, number):
    """Give a job up."""
    reject_job(w, tenant, number)
    vanish(w, tenant, number)
    # Blocks may have waited for the tiles of a launch that vanished.
    settle_context(w, context_of(w, tenant))


def any_pending(may):
    """An access function ``(w)``: whether ``may(w, slot)`` is so for a launch that waits for the scheduler."""

    def anywhere(w):
        if w.pending == 0:
            return False
        for tenant in range(problem(w).tenants):
            slot = clients(w, tenant).pending_first
            while slot != NONE:
                if may(w, slot):
                    return True
                slot = launches(w, slot).after
        return False

    return anywhere


@inlined
def may_launch(w, slot):
    """Whether a launch that waits for the scheduler may be launched; outside of windows the oldest one may."""
    return is_launchable(w, launches(w, slot))


on_records(world.any_launchable)(any_pending(may_launch))
on_records(world.any_synchronisable)(any_pending(may_synchronise))
on_records(world.any_reshapable)(any_pending(forms_of))
read_by(world.preemption_of, flight_of)


@on_records(world.on_gpu)
def _on_gpu(w, launch):
    return runs(w, launch) and has_blocks(w, launch) and not is_node(w, launch)


@on_records(world.any_preemptible)
def _any_preemptible(w):
    slot = w.started_first
    while slot != NONE:
        if may_preempt(w, launches(w, slot)):
            return True
        slot = flights(w, slot).started_after
    return False
