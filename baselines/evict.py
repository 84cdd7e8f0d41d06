"""Clearing the GPU of kernels: preempt what runs, look again for what is about to start."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.pending import launchable_rows
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scheduling.commands import Command, Preempt, PreemptionMode, Wait
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

P, R = PendingColumn, RunningColumn
SETTLED_US = 0.1
"""A kernel is looked at this much after it may have started, when everything of that instant has happened."""
POLL_US = 20.0
"""A kernel that could have started and has not waits for room on an SM; it is looked at this often."""


def evict(view: View, rows: Sequence[int], mode: PreemptionMode, gpu: GpuSpec) -> Command | None:
    """The next command that takes kernels off the GPU; ``None`` once none of them runs or is about to.

    A launched kernel can only be preempted once it has started. For one that is next in its stream the command is
    a wait until it may have, after which the scheduler has to ask again. Kernels behind a preempted one do not
    start before it. Graphs cannot be preempted: they end, and until then what is behind them does not start.

    Args:
        view: the present.
        rows: which kernels of ``view.running``, in order of launch.
        mode: how; kernels that are not idempotent are drained instead of reset.
        gpu: says how soon a launched kernel starts.
    """
    if not rows:
        return None
    kernels = view.running.array[rows]
    is_kernel = kernels[:, R.NODES] == 1
    runs = is_kernel & (kernels[:, R.STARTED] != 0) & (kernels[:, R.PREEMPTING] == 0)
    stoppable = runs & (kernels[:, R.PREEMPTIBLE] != 0)
    if stoppable.any():
        kernel = kernels[int(stoppable.argmax())]
        can_be_reset = mode != "reset" or kernel[R.IDEMPOTENT]
        return Preempt(int(kernel[R.ID]), mode if can_be_reset else "drain")
    looks_again_us = view.time_us + SETTLED_US if runs.any() else math.inf
    for kernel in kernels[_next_in_streams(view, kernels[:, R.STREAM], runs)]:
        if kernel[R.NODES] == 1 and not kernel[R.STARTED]:
            looks_again_us = min(looks_again_us, may_start_us(view, kernel, gpu))
    return Wait(looks_again_us) if looks_again_us < math.inf else None


def _next_in_streams(view: View, streams: NDArray[np.float64], runs: NDArray[np.bool_]) -> list[int]:
    """Which launches nothing is in front of.

    Args:
        view: the present.
        streams: of the launches, in order of launch. Children have none (below 0), and wait for none of each other.
        runs: which of them run and cannot be stopped: such a one keeps nothing from being looked at.
    """
    pending = view.pending.array
    held = {float(pending[row, P.STREAM]) for row in launchable_rows(view) if pending[row, P.PREEMPTED]}
    """Streams in which nothing starts."""
    found = []
    for row, (stream, passed_over) in enumerate(zip(streams.tolist(), runs.tolist(), strict=True)):
        if passed_over:
            continue
        if stream < 0 or stream not in held:
            found.append(row)
        held.add(stream)
    return found


def reaches_us(view: View, kernel: NDArray[np.float64], gpu: GpuSpec) -> float:
    """When a launched kernel that is next in its stream reaches (or reached) the SMs (a row of ``view.running``)."""
    arrives_us = float(kernel[R.LAUNCHED_US]) + gpu.timing.launch_latency_us
    free_us = float(view.tenants.array[int(kernel[R.TENANT]), TenantColumn.LAST_END_US]) + gpu.timing.stream_gap_us
    return max(arrives_us, free_us)


def may_start_us(view: View, kernel: NDArray[np.float64], gpu: GpuSpec) -> float:
    """When to look whether a launched kernel that is next in its stream has started (a row of ``view.running``)."""
    starts_us = reaches_us(view, kernel, gpu) + SETTLED_US
    return starts_us if starts_us > view.time_us else view.time_us + POLL_US
