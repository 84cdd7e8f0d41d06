"""What tenants have in the L2, kernel by kernel (:mod:`gpusched_env.hardware.l2`)."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import clients, kernels, ops, problem, programs
from gpusched_env.hardware.l2 import missing


@called
def stretch(w, launch):
    """How much longer a kernel takes that becomes resident now than in a warm L2, as a factor."""
    c = clients(w, launch.tenant)
    if launch.job > c.l2_job:
        others = w.brought_bytes - c.brought_bytes
        c.missing = 1.0
        if c.l2_job >= 0:
            footprint_bytes = programs(w, launch.tenant).footprint_bytes
            c.missing = missing(problem(w).l2_bytes, footprint_bytes, others - c.seen_bytes)
        c.seen_bytes = others
        c.l2_job = launch.job
    return 1.0 + ops(w, launch.op).cold * c.missing


@inlined
def bring(w, launch):
    """A kernel has ended: what it read and wrote has passed the L2."""
    if problem(w).l2_bytes > 0.0:
        c = clients(w, launch.tenant)
        p = programs(w, launch.tenant)
        brought = kernels(w, launch.identity).brought_bytes * ops(w, launch.op).scale * p.brings
        if p.keeps == 1:
            brought *= c.missing
        w.brought_bytes += brought
        c.brought_bytes += brought
