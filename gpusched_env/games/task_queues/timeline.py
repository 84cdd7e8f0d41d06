"""What a run of tasks leaves behind: sums, what is seen of it on the way, and a log of events."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import numpy as np

TOTALS: Final = np.dtype(
    [
        (name, np.int64)
        for name in (
            "tasks",
            "edges",
            "steps",
            "rounds",
            "pushed",
            "kernels",
            "copies",
            "changes",
            "idle",
            "voted",
            "worked_ps",
            "sent",
            "sendings",
            "flying",
        )
    ]
)
"""Sums over a run, and what is so now.

* ``tasks``: taken. ``edges``: looked at, one at least a task. ``steps``, ``rounds`` of workers. ``pushed``: tasks.
* ``kernels``: launched; ``copies`` of the queue's end to the host. ``changes``: of the form.
* ``idle``: workers that poll now; ``voted``: that have voted for the end of this form.
* ``worked_ps``: when the last step so far ended.
* ``sent``: tasks to another GPU; ``sendings``: how many went over a link at a time. ``flying``: now on the way.
"""
QUEUE: Final = np.dtype([(name, np.int64) for name in ("start", "alloc", "count", "top", "end")])
"""Counters of a queue (:mod:`gpusched_env.games.task_queues.hardware.laws`)."""


class Event(IntEnum):
    """What a row of the log is of."""

    GRAB = 0
    """A worker takes a segment: its first index."""
    STEP = 1
    """It begins with tasks: the first index, and how many."""
    RESERVE = 2
    """It reserves room: the first index, and for how many."""
    PUBLISH = 3
    """What it reserved is written: the queue's end after that."""
    IDLE = 4
    """There is nothing to do at its index."""
    VOTE = 5
    """It votes for the end: votes so far."""
    LEAVE = 6
    """It leaves the GPU."""
    COPY = 7
    """The host has a copy of the queue's end: that, and which queue (two times the GPU, and 1 for its second)."""
    LAUNCH = 8
    """A kernel reaches the GPU: its number, and its tasks."""
    OVER = 9
    """All of the form's workers have left."""
    CHANGE = 10
    """Another form begins: tasks that were put back."""
    SEND = 11
    """A worker has tasks for another GPU: which, and how many."""
    BATCH = 12
    """A communication kernel sends to another GPU: which, and how many."""
    LAND = 13
    """They change what their owner knows: the GPU that they are from, and how many improve something."""
    ANNOUNCE = 14
    """Those can be read: the GPU that they are from, and the queue's end after that."""


LOG: Final = np.dtype(
    [("time_ps", np.int64), ("event", np.int64), ("worker", np.int64), ("a", np.int64), ("b", np.int64)]
)
"""``worker``: of GPU g, -1 - g is its host; so it is in rows of what its links do."""
