"""Launches that waited for a place in the queue of pending ones: that is no work of the host.

A process may have about 1,024 launches pending; the next call blocks until one of them has ended. The devices play such
a queue themselves (:data:`~gpusched_env.workload.idle_gpu.LAUNCH_DEPTH`).
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from gpusched_env.workload.idle_gpu import LAUNCH_DEPTH
from gpusched_env.workload.importers.ordering import Action

NEARLY: Final = 0.9
"""The queue is full from this share of its places on (V100, PyTorch 2.2: calls block at 1,022 launches that the
profiler counts; what it does not count may take places too)."""


def find_blocked(actions: Sequence[Action]) -> None:
    """Set :attr:`.ordering.Action.returns_us` of launches that blocked: they would have returned as soon as others.

    A call has blocked if the queue was full when it began, and a place came free before it returned.

    Args:
        actions: in order of the calls.
    """
    launches = [action for action in actions if action.events]
    ends = sorted(launch.end_us for launch in launches)
    pending = [before - bisect_right(ends, launch.call.start_us) for before, launch in enumerate(launches)]
    most = max(pending, default=0)
    if most < NEARLY * LAUNCH_DEPTH:
        return
    usual: defaultdict[str, list[float]] = defaultdict(list)
    blocked = []
    for launch, others in zip(launches, pending, strict=True):
        call = launch.call
        if others < NEARLY * most:
            usual[call.name].append(call.duration_us)
        elif bisect_right(ends, call.end_us) > bisect_right(ends, call.start_us):
            blocked.append(launch)
    usual_us = {name: statistics.median(found) for name, found in usual.items()}
    for launch in blocked:
        launch.returns_us = launch.call.start_us + usual_us.get(launch.call.name, launch.call.duration_us)
