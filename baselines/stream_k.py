"""Stream-K: matrix products without partial waves, in stream order; what cuSync is compared with.

Osama et al. (PPoPP 2023) divide the steps of a product's last waves evenly between all SMs, at the price of writing and
reading the partial sums of the tiles that are cut (:mod:`gpusched_env.scenarios.adapting`). Kernels still follow each
other.
"""

from __future__ import annotations

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.scenarios.set_up import SetUp


class StreamK(PassThrough):
    """Matrix products that others need tiles of are divided evenly between all SMs; every kernel goes to its stream."""

    set_up = SetUp(stream_k=True)
