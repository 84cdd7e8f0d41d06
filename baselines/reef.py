"""REEF: a request kills running best-effort kernels; best-effort kernels then pad what its kernels leave.

M. Han, H. Zhang, R. Chen, H. Chen, *Microsecond-scale Preemption for Concurrent GPU-accelerated DNN Inferences*
(OSDI 2022).

================================================= ============== ====================================================
As published                                      Where          Here
================================================= ============== ====================================================
Two classes: real-time requests, whose kernels go Section 3      The tenants of the scenario's highest priority, and
at once, and best-effort tasks                                   all others; with ``classes`` of so many priorities, on
                                                                 streams that have them
A request kills the best-effort kernels that run, Section 4      ``reset``. Those that are not idempotent are drained.
which start over later                                           Off: they finish (REEF-N, for NVIDIA GPUs)
Queued ones are evicted: from the host's queues,  Section 4      ``recall``. Launched kernels cannot be taken back
and from the device's, which hold few                            here: one joins the device queue (``depth``, 2) so
                                                                 late that it starts right behind the one before it,
                                                                 and hardly one is queued when a request comes; where
                                                                 one is, its tenant does not pad. Off: the queue is
                                                                 always full
Dynamic padding: while it is served, a            Section 5      ``padding``. The same conditions. Both kernels become
best-effort kernel runs on the compute units that                one there, the real-time kernel's blocks in front;
the real-time kernel leaves, if it is shorter and                here the best-effort kernel is a launch of its own, at
its occupancy is not lower                                       a lower priority. It goes if all its blocks fit beside
                                                                 the real-time kernel's, or else if it does within the
                                                                 SMs that those do not fill (at the end of the
                                                                 placement order)
Without a request best-effort tasks run freely    Section 3      The same, up to ``depth`` kernels a tenant
================================================= ============== ====================================================
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from gpusched_env.baselines.evict import SETTLED_US, Row, TwoClasses, evict
from gpusched_env.baselines.pending import ID
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Partition, Preempt, Wait
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

P, R, T = PendingColumn, RunningColumn, TenantColumn


class Reef:
    """Reset-based preemption and dynamic padding: requests kill best-effort kernels, which then fill idle SMs."""

    reads: Reads = ("priorities", "requests", "profiles", "shapes", "completions", "progress")
    set_up = SetUp(commands=("preempt",))
    ranges: ClassVar[Ranges] = {
        "reset": Choice((True, False)),
        "padding": Choice((True, False)),
        "depth": Range(1, 16, log=True),
        "recall": Choice((True, False)),
        "classes": Range(1, 4),
    }

    def __init__(
        self, reset: bool = True, padding: bool = True, depth: int = 2, recall: bool = True, classes: int = 1
    ) -> None:
        """``reset``: kill running best-effort kernels; off, they finish (REEF-N, the authors' variant for NVIDIA
        GPUs). ``padding``: let best-effort kernels run beside a request. ``depth``: best-effort kernels of a
        tenant in its device queue while no request is served (>= 1). ``recall``: queued kernels are taken back when a
        request comes, as said above; off, the queue is always full, and what is in it runs behind a killed kernel.
        ``classes``: priorities, from the highest on, whose tenants are real-time (>= 1).

        Raises:
            InputError: ``depth`` or ``classes`` is out of range.
        """
        if depth < 1 or classes < 1:
            raise InputError(f"reef: depth is {depth}, classes {classes}; must be at least 1")
        self._reset, self._padding, self._depth, self._recall = reset, padding, depth, recall
        self._count = classes

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No request is served."""
        self._knowledge = knowledge
        self._classes = TwoClasses(knowledge, self._count)
        self._padded: set[int] = set()

    def decide(self, view: View) -> Command:
        """Kill what is in the way of a request, then launch it, then pad; without one, feed best-effort queues."""
        urgent, best_effort = self._classes.launchable(view)
        if not urgent and not self._classes.in_service(view):
            return self._feed(view, best_effort)
        kill = self._kill(view) if self._reset else None
        if isinstance(kill, Preempt):
            return kill
        if urgent:
            return self._classes.launch(urgent[0])
        pad = self._pad(view, best_effort) if self._padding else None
        return pad or kill or WAIT

    def _feed(self, view: View, best_effort: list[Row]) -> Command:
        """The next best-effort kernel in time for its queue, or when to look again."""
        looks_us = math.inf
        for kernel in best_effort:
            # What was launched behind a killed kernel waits for it: it always comes back.
            if kernel[P.PREEMPTED]:
                return self._classes.launch(kernel)
            tenant = view.tenants.array[int(kernel[P.TENANT])].tolist()
            if tenant[T.KERNELS_LAUNCHED] >= self._depth:
                continue
            early_us = tenant[T.LAUNCHED_LEFT_US] - self._knowledge.gpu.timing.launch_latency_us
            if not self._recall or not tenant[T.KERNELS_LAUNCHED] or early_us <= 0.0:
                return self._classes.launch(kernel)
            looks_us = min(looks_us, view.time_us + max(early_us, SETTLED_US))
        return Wait(looks_us) if looks_us < math.inf else WAIT

    def _kill(self, view: View) -> Command | None:
        best_effort = self._classes.running(view, urgent=False)
        rows = [row for row in best_effort if int(view.running.array[row, R.ID]) not in self._padded]
        return evict(view, rows, "reset", self._knowledge.gpu)

    def _pad(self, view: View, best_effort: list[Row]) -> Command | None:
        """A best-effort kernel for the room that the real-time kernel now running leaves, one at a time."""
        urgent = self._classes.running(view, urgent=True)
        if not urgent or not self._padded.isdisjoint(view.running.array[:, R.ID].tolist()):
            return None
        real_time = view.running.array[urgent[0]].tolist()
        left_us = real_time[R.PROFILED_US] - real_time[R.ELAPSED_US]
        profile = self._knowledge.kernels[int(real_time[R.IDENTITY])]
        sms = self._knowledge.gpu.sms
        left = sms - profile.sms
        free = 1.0 - profile.blocks / (sms * profile.blocks_per_sm)
        for kernel in best_effort:
            slots = kernel[P.BLOCKS_PER_SM]
            queued = view.tenants.array[int(kernel[P.TENANT]), T.KERNELS_LAUNCHED]
            if queued or slots * kernel[P.THREADS] < profile.blocks_per_sm * profile.threads:
                continue
            alone = math.ceil(kernel[P.BLOCKS] / (sms * slots))
            partition, waves = None, 1
            if kernel[P.BLOCKS] > free * sms * slots:
                if left <= 0:
                    continue
                partition, waves = Partition(profile.sms, left), math.ceil(kernel[P.BLOCKS] / (left * slots))
            if kernel[P.PROFILED_US] * waves / alone <= left_us:
                self._padded.add(int(kernel[ID]))
                launch = self._classes.launch(kernel)
                return Launch(launch.launch, launch.priority, partition)
        return None
