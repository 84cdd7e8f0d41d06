"""The world that :mod:`gpusched_env.devices.rules` works on in compiled code: its access functions on records.

Importing this module lets Numba compile the rules for an ``ENV`` record.
"""

from __future__ import annotations

from gpusched_env.devices.compiled import hosting, issuing, tiles, views  # noqa: F401 (rules read what hosts have)
from gpusched_env.devices.compiled.access import (
    clients,
    copies,
    flight_of,
    kernels,
    launches,
    on_records,
    ops,
    problem,
    tilings,
)
from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.devices.compiled.slots import holds
from gpusched_env.devices.rules import world
from gpusched_env.hardware.clock import NEVER
from gpusched_env.hardware.tiles import KERNEL


@on_records(world.flight)
def _flight(w, launch):
    return flight_of(w, launch)


@on_records(world.job_number)
def _job_number(w, launch):
    return launch.job


@on_records(world.copied_bytes)
def _copied_bytes(w, copy):
    return copies(w, ops(w, copy.op).more).bytes


@on_records(world.launch_in)
def _launch_in(w, slot):
    return launches(w, slot)


@on_records(world.kernel)
def _kernel(w, identity):
    return kernels(w, identity)


@on_records(world.is_launchable)
def _is_launchable(w, launch):
    return issuing.is_launchable(w, launch)


@on_records(world.may_synchronise)
def _may_synchronise(w, slot):
    return tiles.may_synchronise(w, slot)


@on_records(world.forms_of)
def _forms_of(w, slot):
    return tiles.forms_of(w, slot)


@on_records(world.form_of)
def _form_of(w, identity, form):
    return tiles.form_of(w, identity, form)


@on_records(world.left_us)
def _left_us(w, launch):
    return ops(w, launch.op).left_us


@on_records(world.was_preempted)
def _was_preempted(w, launch):
    return launch.flight != NONE


@on_records(world.stream_of)
def _stream_of(w, launch):
    return launch.stream if launch.flight != NONE else launch.row


@on_records(world.blocks_to_run)
def _blocks_to_run(w, launch):
    return views.blocks_to_run(w, launch)


@on_records(world.behind)
def _behind(w, launch):
    return views.behind(w, launch)


@on_records(world.needed_tiles)
def _needed_tiles(w, launch):
    op = ops(w, launch.op)
    if op.tiles < 0:
        return NONE, 0, 0
    return int(op.needs), int(op.fold), int(op.steps)


@on_records(world.tiling)
def _tiling(w, slot):
    if problem(w).tiled == 0:
        return NONE, KERNEL, KERNEL
    t = tilings(w, slot)
    producer = int(t.producer_id) if holds(w, t.producer, t.producer_id) else NONE
    return producer, int(t.policy), int(t.posts)


@on_records(world.started_ps)
def _started_ps(w, launch):
    return flight_of(w, launch).started_ps if launch.flight != NONE else NEVER


@on_records(world.preempting)
def _preempting(w, launch):
    return flight_of(w, launch).preempting if launch.flight != NONE else 0


@on_records(world.elapsed_us)
def _elapsed_us(w, launch):
    return views.elapsed_us(w, launch)


@on_records(world.on_gpu)
def _on_gpu(w, slot):
    return views.on_gpu(w, slot)


@on_records(world.kernels_of)
def _kernels_of(w, tenant):
    return clients(w, tenant).kernels_pending, clients(w, tenant).kernels_launched


@on_records(world.partition_of)
def _partition_of(w, tenant):
    return clients(w, tenant).partition_first, clients(w, tenant).partition_sms


@on_records(world.fill_left)
def _fill_left(w, out):
    views.fill_left(w, out)
