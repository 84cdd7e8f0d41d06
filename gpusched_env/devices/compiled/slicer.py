"""Time slicing: contexts that do not share the GPU take turns on it.

As :mod:`gpusched_env.devices.reference.slicer`. A tenant's context has its number.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.devices.compiled.access import clients, contexts, due, problem
from gpusched_env.devices.compiled.context import activate, deactivate
from gpusched_env.devices.compiled.jit import called
from gpusched_env.devices.compiled.layout import NO_TENANT, SLICER


@called
def next_context(w, current):
    """The next context after ``current`` that has work; :data:`NO_TENANT`: none."""
    count = problem(w).tenants
    for turn in range(1, count):
        tenant = (current + turn) % count
        if clients(w, tenant).kernels_launched > 0:
            return tenant
    return NO_TENANT


@called
def take_turns(w):
    """The slicer looks whether the GPU should change hands."""
    other = next_context(w, w.slicer_context)
    w.slicer_lonely = other == NO_TENANT
    if other != NO_TENANT:
        if clients(w, w.slicer_context).kernels_launched == 0 or w.now_us >= w.slice_end_us:
            deactivate(w, contexts(w, w.slicer_context))
            w.slicer_switching = 1
            w.slicer_context = other
            due(w, SLICER, 0).value = w.now_us + problem(w).switch_us
            return
        due(w, SLICER, 0).value = w.slice_end_us
    w.slicer_asleep = 1


@called
def slicer_wakes(w):
    """A kernel was launched or has left, or a slice has ended."""
    due(w, SLICER, 0).value = np.inf
    while w.slicer_lonely == 1 and w.slice_end_us <= w.now_us:
        w.slice_end_us += problem(w).slice_us
    take_turns(w)


@called
def give_gpu(w):
    """The next context gets the GPU for a slice."""
    w.slicer_switching = 0
    activate(w, contexts(w, w.slicer_context))
    w.slice_end_us = w.now_us + problem(w).slice_us
    take_turns(w)
