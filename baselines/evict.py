"""How systems protect urgent tenants from best-effort ones: who is urgent, and clearing the GPU of the kernels of
others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.pending import ID, JOB, TENANT, launchable_kernels, launchable_rows
from gpusched_env.baselines.priority_streams import stream_priorities
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Command, Launch, Preempt, PreemptionMode, Wait
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

P, R = PendingColumn, RunningColumn
SETTLED_US = 0.1
"""Time after a kernel may have started until it is looked at, when everything of that instant has happened."""
POLL_US = 20.0
"""Time between two looks at a kernel that could have started and has not: it waits for room on an SM."""


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


Row = list[float]
RUNNING_PRIORITY = int(RunningColumn.PRIORITY)
JOBS_WAITING = int(TenantColumn.JOBS_WAITING)
JOBS_DONE = int(TenantColumn.JOBS_DONE)


def least_urgent(urgencies: list[int], classes: int) -> int:
    """The last of the ``classes`` (>= 1) most urgent of some urgencies (0 is the most urgent)."""
    return sorted(set(urgencies))[:classes][-1]


class TwoClasses:
    """The tenants of the scenario's highest priorities are urgent, all others best-effort.

    Also keeps which request of an urgent tenant is in service: from the launch of its first kernel to its
    completion, the gaps between its kernels included.
    """

    def __init__(self, knowledge: Knowledge, classes: int = 1) -> None:
        """``classes``: priorities, from the highest on, whose tenants are urgent (>= 1); each has a stream priority of
        its own, as far as the GPU has enough."""
        urgencies = [tenant.priority for tenant in knowledge.tenants]
        self._least_urgent = least_urgent(urgencies, classes)
        self.urgent = [urgency <= self._least_urgent for urgency in urgencies]
        """Whether each tenant is urgent."""
        self.priorities = stream_priorities(urgencies, knowledge.gpu.priorities)
        """Stream priority of each tenant."""
        self._begun = [-1] * len(urgencies)
        """The newest job of each tenant of which a kernel was launched; -1: none was."""

    def launchable(self, view: View) -> tuple[list[Row], list[Row]]:
        """Rows of ``view.pending`` that may be launched now: of urgent tenants and of best-effort ones, each by
        priority, then age."""
        urgent: list[Row] = []
        best_effort: list[Row] = []
        for kernel in launchable_kernels(view):
            (urgent if self.urgent[int(kernel[TENANT])] else best_effort).append(kernel)
        return urgent, best_effort

    def running(self, view: View, *, urgent: bool) -> list[int]:
        """Rows of ``view.running`` of one class, in order of launch."""
        # Urgent tenants may have hundreds of kernels in flight, of which NumPy is the quicker one to find few others.
        is_urgent = view.running.array[:, RUNNING_PRIORITY] <= self._least_urgent
        rows: list[int] = (is_urgent if urgent else ~is_urgent).nonzero()[0].tolist()
        return rows

    def launch(self, kernel: Row) -> Launch:
        """The command that launches a pending kernel at its tenant's stream priority."""
        tenant = int(kernel[TENANT])
        self._begun[tenant] = max(self._begun[tenant], int(kernel[JOB]))
        return Launch(int(kernel[ID]), self.priorities[tenant])

    def in_service(self, view: View) -> bool:
        """Whether a request of an urgent tenant has begun and is not complete."""
        tenants = view.tenants.array
        columns = tenants[:, JOBS_WAITING].tolist(), tenants[:, JOBS_DONE].tolist()
        # Jobs of a tenant are numbered from 0 and begin in order.
        return any(
            urgent and waiting > 0 and begun >= done
            for urgent, begun, waiting, done in zip(self.urgent, self._begun, *columns, strict=True)
        )
