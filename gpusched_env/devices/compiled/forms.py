"""Kernels that do their work in another form: with other tiles, or another number of slices."""

from __future__ import annotations

import numpy as np

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import forms, kernels, launches, ops, problem, stream_rows, tilings
from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.hardware.tiles import KERNEL
from gpusched_env.scheduling.view import PendingColumn

FORM_WIDTH = int(PendingColumn.FORM2_US - PendingColumn.FORM1_US)
"""Columns of a form."""


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


@called
def fill_forms(w, slot, row):
    """What the row of a pending launch says of its forms."""
    count = forms_of(w, slot)
    row[PendingColumn.FORMS] = count
    row[PendingColumn.FORM1_US : PendingColumn.FORM3_PER_SM + 1] = 0.0
    for form in range(count):
        kernel = kernels(w, form_of(w, launches(w, slot).identity, form))
        first = PendingColumn.FORM1_US + form * FORM_WIDTH
        row[first] = kernel.profiled_us if kernel.profiled_us > 0.0 else np.nan
        row[first + 1] = kernel.rows
        row[first + 2] = kernel.columns
        row[first + 3] = kernel.slices
        row[first + 4] = kernel.blocks_per_sm
