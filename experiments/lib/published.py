"""Which schedulers are systems from papers."""

from __future__ import annotations

from typing import Final

from gpusched_env.baselines.tuning import PREFIX

PUBLISHED: Final = frozenset(
    [
        *("orion", "reef", "tally", "xsched", "lithos", "fikit", "clockwork"),
        *("nexus", "paella", "tgs", "gpreempt", "cusync", "stream-k", "gslice", "gpucolo"),
        *("acs-sw", "acs-hw", "persistent-threads", "cuda-graph"),
        *("spawn", "dtbl", "aggregation"),
        *("atos-guideline", "atos-discrete", "atos-discrete-priority", "atos-persistent-block", "atos-persistent-warp"),
    ]
)
"""Names of systems that were published as a whole; other schedulers are rules, or what a GPU offers."""


def is_published(scheduler: str) -> bool:
    """Whether a scheduler, as it is named in rankings, is a system that was published as a whole."""
    return scheduler.removeprefix(PREFIX).partition("(")[0] in PUBLISHED
