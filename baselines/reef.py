"""REEF: a request kills running best-effort kernels; best-effort kernels then pad what its kernels leave.

M. Han, H. Zhang, R. Chen, H. Chen, *Microsecond-scale Preemption for Concurrent GPU-accelerated DNN Inferences*
(OSDI 2022): reset-based preemption (section 4) and dynamic kernel padding (section 5). When a real-time request
arrives, queued best-effort kernels are evicted and running ones are killed, to run again from the start, which
idempotent kernels allow. While it is served, a best-effort kernel may run in the compute units (SMs) that the
real-time kernel leaves, if it is shorter and its occupancy is not lower.

What differs here. The authors merge both kernels into one; here the best-effort kernel is a launch of its own,
confined to SMs that the real-time one does not fill (those at the end of the placement order). Queued kernels
cannot be evicted; those behind a killed kernel do not run before it, but their tenant cannot pad until they have
run. Kernels that are not idempotent are drained instead.
"""

from __future__ import annotations

import math

import numpy as np

from gpusched_env.baselines.evict import evict
from gpusched_env.baselines.pending import ID
from gpusched_env.baselines.two_classes import TwoClasses
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Partition, Preempt
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

P, R = PendingColumn, RunningColumn


class Reef:
    """Reset-based preemption and dynamic padding: requests kill best-effort kernels, which then fill idle SMs."""

    commands = ("preempt",)

    def __init__(self, reset: bool = True, padding: bool = True, depth: int = 4) -> None:
        """``reset``: kill running best-effort kernels; off, they finish (REEF-N, the authors' variant for NVIDIA
        GPUs). ``padding``: let best-effort kernels run beside a request. ``depth``: best-effort kernels of a
        tenant in its device queue while no request is served (>= 1).

        Raises:
            InputError: ``depth`` is out of range.
        """
        if depth < 1:
            raise InputError(f"reef: depth is {depth}, must be at least 1")
        self._reset, self._padding, self._depth = reset, padding, depth

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No request is served."""
        self._knowledge = knowledge
        self._classes = TwoClasses(knowledge)
        self._padded: set[int] = set()

    def decide(self, view: View) -> Command:
        """Kill what is in the way of a request, then launch it, then pad; without one, feed best-effort queues."""
        row = self._classes.urgent_row(view)
        if row is None and not self._classes.in_service(view):
            return self._feed(view)
        kill = self._kill(view) if self._reset else None
        if isinstance(kill, Preempt):
            return kill
        if row is not None:
            return self._classes.launch(view, row)
        pad = self._pad(view) if self._padding else None
        return pad or kill or WAIT

    def _feed(self, view: View) -> Command:
        for row in self._classes.best_effort_rows(view):
            tenant = int(view.pending.array[row, P.TENANT])
            if view.tenants.array[tenant, TenantColumn.KERNELS_LAUNCHED] < self._depth:
                return self._classes.launch(view, row)
        return WAIT

    def _kill(self, view: View) -> Command | None:
        best_effort = self._classes.running(view, urgent=False)
        rows = [row for row in best_effort if int(view.running.array[row, R.ID]) not in self._padded]
        return evict(view, rows, "reset", self._knowledge.gpu)

    def _pad(self, view: View) -> Command | None:
        """A best-effort kernel for the SMs that the real-time kernel now running leaves, one at a time."""
        urgent = self._classes.running(view, urgent=True)
        if not urgent or self._padded.intersection(view.running.id.astype(int).tolist()):
            return None
        real_time = view.running.array[urgent[0]]
        profile = self._knowledge.kernels[int(real_time[R.IDENTITY])]
        left = self._knowledge.gpu.sms - profile.sms
        for row in self._classes.best_effort_rows(view) if left > 0 else ():
            kernel = view.pending.array[row]
            if view.tenants.array[int(kernel[P.TENANT]), TenantColumn.KERNELS_LAUNCHED]:
                continue
            slots = kernel[P.BLOCKS_PER_SM]
            waves = math.ceil(kernel[P.BLOCKS] / (left * slots))
            alone = math.ceil(kernel[P.BLOCKS] / (self._knowledge.gpu.sms * slots))
            shorter = kernel[P.PROFILED_US] * waves / alone <= real_time[R.PROFILED_US] - real_time[R.ELAPSED_US]
            if shorter and slots * kernel[P.THREADS] >= profile.blocks_per_sm * profile.threads:
                self._padded.add(int(kernel[ID]))
                launch = self._classes.launch(view, row)
                return Launch(launch.launch, launch.priority, Partition(profile.sms, left))
        return None
