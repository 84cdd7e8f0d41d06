"""The queues of the copy engines (:mod:`gpusched_env.devices.rules.copies`)."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import copies, engines, flight_of, flights, launches, ops
from gpusched_env.devices.compiled.finishing import ended, is_node
from gpusched_env.devices.compiled.layout import ENGINE, NONE, READY
from gpusched_env.devices.compiled.lists import note_start
from gpusched_env.devices.compiled.timing import arm_launch
from gpusched_env.devices.rules.copies import ON_DEVICE, direction, engine_for
from gpusched_env.devices.rules.logs import log_copy


@called
def request_copy(w, slot):
    """A copy is ready: it waits for its engine, if it needs one."""
    launch = launches(w, slot)
    launch.state = READY
    flight_of(w, launch).behind = NONE
    way = direction(ops(w, launch.op).kind)
    if way == ON_DEVICE:
        start_copy(w, slot)
        return
    engine = engines(w, engine_for(w, way))
    if engine.busy == 0:
        engine.busy = 1
        start_copy(w, slot)
    elif engine.first == NONE:
        engine.first = slot
        engine.last = slot
    else:
        flights(w, engine.last).behind = slot
        engine.last = slot


@inlined
def start_copy(w, slot):
    """A copy starts."""
    launch = launches(w, slot)
    flight_of(w, launch).started_ps = w.now_ps
    if is_node(w, launch):
        note_start(w, launch.parent)
    arm_launch(w, slot, w.now_ps + copies(w, ops(w, launch.op).more).device_ps, ENGINE)


@called
def end_copy(w, slot):
    """A copy has ended; the next one for its engine starts."""
    launch = launches(w, slot)
    way = direction(ops(w, launch.op).kind)
    if way != ON_DEVICE:
        engine = engines(w, engine_for(w, way))
        follower = engine.first
        if follower == NONE:
            engine.busy = 0
        else:
            engine.first = flights(w, follower).behind
            start_copy(w, follower)
    log_copy(w, way, launch)
    ended(w, slot)
