"""What a run of an application with child launches leaves behind."""

from __future__ import annotations

from typing import Final

import numpy as np

LAUNCH: Final = np.dtype(
    [
        (name, np.int64)
        for name in ("parent", "request", "blocks", "created_ps", "queued_ps", "started_ps", "ended_ps", "finished_ps")
    ]
)
"""A launch, a row each, in order of creation; its id is its row.

* ``parent``: the launch that it is a child of, -1 for the host's. ``request``: its row in the problem's tables, or -1.
* ``blocks``: of its grid.
* ``created_ps``: the decision to launch it. ``queued_ps``: it has a hardware queue. ``started_ps``: its first block is
  on an SM. ``ended_ps``: its last block has ended. ``finished_ps``: its children have finished, too.
"""

TOTALS: Final = np.dtype(
    [
        (name, np.int64)
        for name in ("warp_ps", "decisions", "spawned", "refused", "spilled", "resident_blocks", "peak_blocks")
    ]
)
"""Sums over a run.

* ``warp_ps``: time integral of the warps on SMs that have not ended.
* ``decisions``, ``spawned``: requests that were asked about; those answered with a launch that was not refused.
* ``refused``: launches that failed because the pool was full. ``spilled``: that took longer because it was.
* ``resident_blocks``: now; ``peak_blocks``: at most.
"""
