"""Copy engines: one copy at a time each, in order of arrival (Amert et al., RTSS 2017, rules C1-C4)."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import copies, flight_of, flights, launches, ops, problem
from gpusched_env.devices.compiled.finishing import ended, is_node
from gpusched_env.devices.compiled.layout import ENGINE, NONE, READY
from gpusched_env.devices.compiled.lists import note_start
from gpusched_env.devices.compiled.timing import arm_launch
from gpusched_env.devices.rules.logs import log_copy
from gpusched_env.workload.workload import OpKind

TO_DEVICE = 0
TO_HOST = 1
ON_DEVICE = 2
"""Engine numbers in the timeline."""

COPY_TO_DEVICE = int(OpKind.COPY_TO_DEVICE)
COPY_TO_HOST = int(OpKind.COPY_TO_HOST)


@inlined
def direction(w, launch):
    """Where a copy goes."""
    kind = ops(w, launch.op).kind
    if kind == COPY_TO_DEVICE:
        return TO_DEVICE
    return TO_HOST if kind == COPY_TO_HOST else ON_DEVICE


@inlined
def engine_for(w, way):
    """The engine for a direction between host and device: both may share one."""
    return way if problem(w).copy_engines == 2 else 0


@called
def request_copy(w, slot):
    """A copy is ready: it waits for its engine, if it needs one."""
    launch = launches(w, slot)
    launch.state = READY
    flight_of(w, launch).behind = NONE
    way = direction(w, launch)
    if way == ON_DEVICE:
        start_copy(w, slot)
    elif engine_for(w, way) == 0:
        if w.engine_busy_0 == 0:
            w.engine_busy_0 = 1
            start_copy(w, slot)
        elif w.engine_first_0 == NONE:
            w.engine_first_0 = slot
            w.engine_last_0 = slot
        else:
            flights(w, w.engine_last_0).behind = slot
            w.engine_last_0 = slot
    elif w.engine_busy_1 == 0:
        w.engine_busy_1 = 1
        start_copy(w, slot)
    elif w.engine_first_1 == NONE:
        w.engine_first_1 = slot
        w.engine_last_1 = slot
    else:
        flights(w, w.engine_last_1).behind = slot
        w.engine_last_1 = slot


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
    way = direction(w, launch)
    if way != ON_DEVICE:
        if engine_for(w, way) == 0:
            w.engine_busy_0 = 0
            if w.engine_first_0 != NONE:
                w.engine_busy_0 = 1
                follower = w.engine_first_0
                w.engine_first_0 = flights(w, follower).behind
                start_copy(w, follower)
        else:
            w.engine_busy_1 = 0
            if w.engine_first_1 != NONE:
                w.engine_busy_1 = 1
                follower = w.engine_first_1
                w.engine_first_1 = flights(w, follower).behind
                start_copy(w, follower)
    log_copy(w, way, launch)
    ended(w, slot)
