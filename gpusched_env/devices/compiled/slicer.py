"""Time slicing: contexts that do not share the GPU take turns on it.

As :mod:`gpusched_env.devices.reference.slicer`. A tenant's context has its number.
"""

from __future__ import annotations

from gpusched_env.compiling import called
from gpusched_env.devices.compiled.access import clients, contexts, problem
from gpusched_env.devices.compiled.context import activate, deactivate
from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.devices.compiled.timing import SLICER_S, arm_slicer, stop
from gpusched_env.devices.rules.logs import log_turn


@called
def next_context(w, current):
    """The next context after ``current`` that has work; :data:`NONE`: none."""
    count = problem(w).tenants
    for turn in range(1, count):
        tenant = (current + turn) % count
        if clients(w, tenant).kernels_launched > 0:
            return tenant
    return NONE


@called
def take_turns(w):
    """The slicer looks whether the GPU should change hands."""
    other = next_context(w, w.slicer_context)
    w.slicer_lonely = other == NONE
    if other != NONE:
        if clients(w, w.slicer_context).kernels_launched == 0 or w.now_ps >= w.slice_end_ps:
            deactivate(w, contexts(w, w.slicer_context))
            w.slicer_switching = 1
            log_turn(w, NONE)
            w.slicer_context = other
            arm_slicer(w, w.now_ps + problem(w).switch_ps)
            return
        arm_slicer(w, w.slice_end_ps)
    w.slicer_asleep = 1


@called
def slicer_due(w):
    """A switch is over, or: a kernel was launched or has left, or a slice has ended."""
    if w.slicer_switching == 1:
        w.slicer_switching = 0
        log_turn(w, w.slicer_context)
        activate(w, contexts(w, w.slicer_context))
        w.slice_end_ps = w.now_ps + problem(w).slice_ps
        take_turns(w)
        return
    w.slicer_asleep = 0
    stop(w, SLICER_S)
    while w.slicer_lonely == 1 and w.slice_end_ps <= w.now_ps:
        w.slice_end_ps += problem(w).slice_ps
    take_turns(w)
