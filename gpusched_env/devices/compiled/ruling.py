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
    read_by,
    tilings,
)
from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.devices.compiled.slots import holds
from gpusched_env.devices.rules import world
from gpusched_env.hardware.clock import NEVER
from gpusched_env.hardware.tiles import KERNEL

read_by(world.flight, flight_of)
read_by(world.launch_in, launches)
read_by(world.kernel, kernels)
read_by(world.is_launchable, issuing.is_launchable)
read_by(world.may_synchronise, tiles.may_synchronise)
read_by(world.forms_of, tiles.forms_of)
read_by(world.form_of, tiles.form_of)
read_by(world.blocks_to_run, views.blocks_to_run)
read_by(world.behind, views.behind)
read_by(world.elapsed_us, views.elapsed_us)
read_by(world.on_gpu, views.on_gpu)
read_by(world.fill_left, views.fill_left)


@on_records(world.job_number)
def _job_number(w, launch):
    return launch.job


@on_records(world.copied_bytes)
def _copied_bytes(w, copy):
    return copies(w, ops(w, copy.op).more).bytes


@on_records(world.left_us)
def _left_us(w, launch):
    return ops(w, launch.op).left_us


@on_records(world.was_preempted)
def _was_preempted(w, launch):
    return launch.flight != NONE


@on_records(world.stream_of)
def _stream_of(w, launch):
    return launch.stream if launch.flight != NONE else launch.row


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


@on_records(world.kernels_of)
def _kernels_of(w, tenant):
    return clients(w, tenant).kernels_pending, clients(w, tenant).kernels_launched


@on_records(world.partition_of)
def _partition_of(w, tenant):
    return clients(w, tenant).partition_first, clients(w, tenant).partition_sms
