"""One stream: launches are handed over as they come and run one after the other.

What frameworks do unless told otherwise, and the baseline of ACS (Durvasula et al., arXiv 2401.12377, section 5): the
host runs ahead, so that a launch is hidden behind the kernels before it.
"""

from __future__ import annotations

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.scenarios.set_up import SetUp


class Serial(PassThrough):
    """Every kernel goes straight to its program's own stream, past any window."""

    set_up = SetUp(window=lambda offered, gpu: None)
