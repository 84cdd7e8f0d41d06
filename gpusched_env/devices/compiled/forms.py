"""Kernels that do their work in another form: with other tiles, or another number of slices."""

from __future__ import annotations

from gpusched_env.compiling import inlined
from gpusched_env.devices.compiled.access import forms, kernels, launches, ops, problem, stream_rows, tilings
from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.hardware.tiles import KERNEL


@inlined
def forms_of(w, slot):
    """How many forms a pending launch may be given."""
    launch = launches(w, slot)
    kernel = kernels(w, launch.identity)
    if kernel.forms == 0 or launch.flight != NONE or launch.identity != ops(w, launch.op).identity:
        return 0
    if launch.row != NONE and stream_rows(w, launch.row).windowed == 1:
        return 0
    if problem(w).tiled == 1 and (tilings(w, slot).policy != KERNEL or tilings(w, slot).posts != KERNEL):
        return 0
    return kernel.forms


@inlined
def form_of(w, identity, form):
    """The identity of a kernel in another form."""
    return forms(w, kernels(w, identity).first_form + form)
