"""What tenants have in the L2, kernel by kernel (:mod:`gpusched_env.hardware.l2`).

A tenant has, at run time: ``l2_job``, its last job of which a kernel has become resident (-1: none); ``brought_bytes``
by its kernels since the episode began; ``seen_bytes``, what others had brought when that job's first kernel became
resident; ``missing``, the share of its data that this job does not find any more.
"""

from __future__ import annotations

from gpusched_env.compiling import procedure
from gpusched_env.hardware.l2 import l2_share_lost
from gpusched_env.workload.host.world import client, program, rules


@procedure
def cold_l2_factor(w, tenant, number, cold):
    """How much longer a kernel takes that becomes resident now than in a warm L2, as a factor.

    All kernels of a job find what was left when its first one became resident: whoever ran meanwhile ran between the
    two touches of each of them.

    Args:
        number: of its job.
        cold: share by which it takes longer where the L2 has lost its data.
    """
    if rules(w).l2_bytes == 0.0:
        return 1.0
    c = client(w, tenant)
    if number > c.l2_job:
        others = w.brought_bytes - c.brought_bytes
        c.missing = 1.0
        if c.l2_job >= 0:
            c.missing = l2_share_lost(rules(w).l2_bytes, program(w, tenant).footprint_bytes, others - c.seen_bytes)
        c.seen_bytes = others
        c.l2_job = number
    return 1.0 + cold * c.missing


@procedure
def note_l2_traffic(w, tenant, profiled_bytes):
    """A kernel has ended: what it read and wrote has passed the L2, by its profile ``profiled_bytes``."""
    if rules(w).l2_bytes > 0.0:
        c = client(w, tenant)
        p = program(w, tenant)
        brought = profiled_bytes * p.brings
        if p.keeps == 1:
            brought *= c.missing
        w.brought_bytes += brought
        c.brought_bytes += brought
