"""Records of the SMs, their resident blocks and the grids they belong to."""

from __future__ import annotations

import numpy as np

from gpusched_env.hardware.records import BLOCK_DTYPE

SM_DTYPE = np.dtype(
    [
        ("threads", np.int64),
        ("warps", np.int64),
        ("blocks", np.int64),
        ("registers", np.int64),
        ("shared", np.int64),
        ("carveout", np.int64),
        ("rows", np.int64),
        ("demand", np.float64),
        ("throttle", np.float64),
        ("dirty", np.int64),
    ],
    align=True,
)
"""One SM: resources in use, its carve-out, number of rows, DRAM demand (bytes/us) and throttle factor."""

ROW_DTYPE = np.dtype(
    [
        ("grid", np.int64),
        ("blocks", np.int64),
        ("left", np.float64),
        ("time_us", np.float64),
        ("rate", np.float64),
        ("since_us", np.float64),
    ],
    align=True,
)
"""Equal blocks of one grid on one SM that started together.

``left`` is the share of a block's work still to do; whole numbers on top of it are further waves that
will follow on the same slots (see :func:`~gpusched_env.devices.reference.blocks.jump`). ``time_us`` is
the block's duration before memory throttling, ``rate`` its present progress per microsecond.
"""

GRID_DTYPE = np.dtype(
    [
        ("block", BLOCK_DTYPE),
        ("waiting", np.int64),
        ("resident", np.int64),
        ("saved", np.int64),
        ("saved_left", np.float64),
        ("priority", np.int64),
        ("order", np.int64),
        ("first", np.int64),
        ("sms", np.int64),
        ("queued", np.int64),
        ("frozen", np.int64),
        ("started", np.int64),
    ],
    align=True,
)
"""One grid on the device: ``waiting`` blocks not dispatched (``saved`` of them continue with
``saved_left`` of their work), ``resident`` blocks on SMs; SM ranks ``first``.. of its partition."""

STATE_DTYPE = np.dtype(
    [
        ("now", np.float64),
        ("next_us", np.float64),
        ("queue", np.int64),
        ("busy_sms", np.int64),
        ("traffic", np.float64),
        ("resident_threads", np.int64),
        ("finished", np.int64),
        ("dispatched", np.int64),
        ("started", np.int64),
        ("ended_rows", np.int64),
    ],
    align=True,
)
"""The whole array: clock, time of the next block end (``inf``: none), queue length, counters, and the
numbers of entries in the event lists of the last step."""
