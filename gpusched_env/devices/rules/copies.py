"""Copy engines: one copy at a time each, in order of arrival (Amert et al., RTSS 2017, rules C1-C4).

Copies and memsets within the device need none, and start at once.
"""

from __future__ import annotations

from typing import Final

from gpusched_env.compiling import procedure
from gpusched_env.workload.host.world import rules
from gpusched_env.workload.workload import OpKind

TO_DEVICE: Final = 0
TO_HOST: Final = 1
ON_DEVICE: Final = 2
"""Where a copy goes, as the timeline has it."""

COPY_TO_DEVICE: Final = int(OpKind.COPY_TO_DEVICE)
COPY_TO_HOST: Final = int(OpKind.COPY_TO_HOST)


@procedure
def direction(kind):
    """Where a copy of a kind goes."""
    if kind == COPY_TO_DEVICE:
        return TO_DEVICE
    return TO_HOST if kind == COPY_TO_HOST else ON_DEVICE


@procedure
def engine_for(w, way):
    """The engine for a direction between host and device: both may share the first."""
    return way if rules(w).copy_engines == 2 else 0
