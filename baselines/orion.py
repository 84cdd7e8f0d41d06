"""Orion: a best-effort kernel runs beside a request only if it needs what the request's kernels do not.

F. Strati, X. Ma, A. Klimovic, *Orion: Interference-aware, Fine-grained GPU Sharing for ML Applications*
(EuroSys 2024), section 5, and its artefact (github.com/eth-easl/orion), ``src/scheduler/scheduler_eval.cpp``, function
``busy_wait_profile``, where no other file is named.

============================================= ======================= ==================================================
As published                                  Where                   Here
============================================= ======================= ==================================================
One client has high priority: its kernels go  Section 5.1             As published, for all tenants of the highest
at once, on a stream of high priority                                 priority; with ``classes``, of so many priorities,
                                                                      on streams that have them
Best-effort clients take turns                ``start``, ``t``        As published (``turns``); or by priority, then age
Without a request in service they go          ``seen[hp_client]==0``  As published; a gap in a request is service
Beside one, if bound by another resource than ``profiles``            As published; bound is who uses at least 60 % of
the high-priority kernel launched last, or if roofline_analysis.py    it (``bound``)
either is bound by none
... and if it needs fewer SMs than a          ``sm_threshold``        ``<``, as in the paper's listing (the artefact has
threshold: all SMs beside inference                                   ``<=``, of all that it launches in one pass of its
                                                                      loop). Kernels can need more SMs than there are
... which beside training is searched between ``low_sms``,            ``search_slowdown``: off by default, as for
0 and the largest best-effort need: a step    ``high_sms``            inference. The tolerated time of an iteration is
after 10 iterations, down if they took longer                         set by hand in the artefact, here as a multiple of
than tolerated                                                        that alone
Best-effort time in flight is bounded: once   ``sum > depth``,        160 us: ``duration_threshold`` times
above, nothing follows until all has finished ``run_orion.py``: 100   ``reference_us``, as the paper has 2.5 % of the
                                              to 160 us               latency of a request, of some milliseconds there
A training's update phase stands any kernel   ``update_start``        Left out: where it begins is set by hand
The first 10 iterations of each client go     ``cur_iters <= 10``     Left out: the artefact's warm-up, not measured
============================================= ======================= ==================================================
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, get_args

import numpy as np

from gpusched_env.baselines.evict import Row, TwoClasses
from gpusched_env.baselines.ranges import Choice, Range
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.room import Room
from gpusched_env.scheduling.view import PendingColumn, TenantColumn, View

T = TenantColumn
ITERATIONS = 10
"""Jobs between two steps of the search."""


class SmSearch:
    """Binary search of the largest threshold with which urgent jobs take as long as is tolerated.

    It begins half way between 0 and the largest need of a best-effort kernel. After each :data:`ITERATIONS` jobs it
    goes down if these took longer on average than tolerated, or else up, until nothing is left between its bounds.
    What a job took is its turnaround, over that alone; several urgent tenants count together.
    """

    def __init__(self, knowledge: Knowledge, urgent: list[bool], slowdown: float) -> None:
        """``urgent``: by tenant; the others are best-effort. ``slowdown``: tolerated time of a job over that alone."""
        self._alone_us = {t: knowledge.tenants[t].alone_us for t, is_urgent in enumerate(urgent) if is_urgent}
        others = [tenant for tenant, is_urgent in zip(knowledge.tenants, urgent, strict=True) if not is_urgent]
        kernels = [knowledge.kernels[identity] for tenant in others for identity in tenant.kernels]
        self._low = 0
        self._high = max((math.ceil(kernel.blocks / kernel.blocks_per_sm) for kernel in kernels), default=0)
        self._slowdown = slowdown
        self._done = dict.fromkeys(self._alone_us, 0)
        self._slowdowns: list[float] = []
        """Slowdowns of jobs that ended since the last step."""

    def threshold(self, view: View) -> int:
        """SMs that a best-effort kernel may need at most now, after the jobs that ended since it was asked last."""
        for tenant, alone_us in self._alone_us.items():
            row = view.tenants.array[tenant]
            if row[T.JOBS_DONE] > self._done[tenant]:
                self._done[tenant] = int(row[T.JOBS_DONE])
                self._slowdowns.append(float(row[T.LAST_TURNAROUND_US]) / alone_us)
        middle = (self._low + self._high) // 2
        if len(self._slowdowns) >= ITERATIONS and middle > self._low:
            if sum(self._slowdowns) / len(self._slowdowns) > self._slowdown:
                self._high = middle
            else:
                self._low = middle
            self._slowdowns.clear()
            middle = (self._low + self._high) // 2
        return middle


P = PendingColumn
Resource = Literal["compute", "memory", "neither"]
Turns = Literal["round-robin", "priority"]


def bound_by(issue: float, dram: float, share: float) -> Resource:
    """What bounds a kernel that uses these shares of the issue slots and of the DRAM bandwidth alone."""
    if max(issue, dram) < share:
        return "neither"
    return "compute" if issue >= dram else "memory"


class Orion:
    """Profile-aware co-scheduling: best-effort kernels only beside kernels bound by another resource."""

    reads: Reads = ("priorities", "requests", "profiles", "demands", "shapes", "completions")
    waits_for: Room | None = None
    ranges: ClassVar = {
        "sm_threshold": Choice((0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0, math.inf)),
        # Limits of 10 us to 10 ms.
        "reference_us": Range(400.0, 400_000.0, log=True),
        "bound": Range(0.2, 1.0),
        "turns": Choice(get_args(Turns)),
        "search_slowdown": Choice((None, 1.05, 1.1, 1.2, 1.5, 2.0)),
        "classes": Range(1, 4),
    }

    def __init__(
        self,
        sm_threshold: float = 1.0,
        duration_threshold: float = 0.025,
        reference_us: float | None = 6400.0,
        bound: float = 0.6,
        turns: Turns = "round-robin",
        search_slowdown: float | None = None,
        classes: int = 1,
    ) -> None:
        """All thresholds are above 0.

        Args:
            sm_threshold: a best-effort kernel beside a request must need fewer SMs than this, in multiples of the
                GPU's; a kernel of more blocks than the GPU holds needs more than 1, ``inf`` lets all through.
            duration_threshold: best-effort work in flight, as a share of ``reference_us``.
            reference_us: latency of a request, by default such that 160 us may be in flight; ``None``: that of the
                shortest urgent tenant alone.
            bound: a kernel that uses at least this share of a resource is bound by it, at most 1 (the paper's profiler
                rule, 60 %).
            turns: which best-effort tenant is asked first: the one after the last to launch, or the most urgent one.
            search_slowdown: the SM threshold is searched while the urgent tenants run, such that their jobs take as
                many times as long as alone at most; ``sm_threshold`` is ignored. ``None``: it is fixed.
            classes: priorities, from the highest on, whose tenants are urgent (at least 1).

        Raises:
            InputError: a value is out of range.
        """
        reference_fits = reference_us is None or reference_us > 0.0
        search_fits = search_slowdown is None or search_slowdown > 0.0
        numbers_fit = sm_threshold > 0.0 and duration_threshold > 0.0 and reference_fits and 0.0 < bound <= 1.0
        numbers_fit = numbers_fit and classes >= 1
        if not (numbers_fit and search_fits and turns in get_args(Turns)):
            given = f"sm_threshold {sm_threshold}, duration_threshold {duration_threshold}"
            given += f", reference_us {reference_us}, bound {bound}, search_slowdown {search_slowdown}, turns {turns!r}"
            given += f", classes {classes}"
            right = f"above 0, bound at most 1, classes at least 1, turns {' or '.join(get_args(Turns))}"
            raise InputError(f"orion: got {given}; {right}")
        self._sm_share, self._bound = sm_threshold, bound
        self._turns, self._search_slowdown, self._count = turns, search_slowdown, classes
        self._duration_share, self._reference_us = duration_threshold, reference_us

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing is in flight."""
        self._classes = TwoClasses(knowledge, self._count)
        alone = [t.alone_us for t, urgent in zip(knowledge.tenants, self._classes.urgent, strict=True) if urgent]
        latency_us = min(alone, default=math.inf) if self._reference_us is None else self._reference_us
        self._limit_us = self._duration_share * latency_us
        self._sms = self._sm_share * knowledge.gpu.sms
        self._search = None
        self.waits_for = Room.of_any(len(knowledge.tenants)) if self._search_slowdown is None else None
        if self._search_slowdown is not None:
            self._search = SmSearch(knowledge, self._classes.urgent, self._search_slowdown)
        self._last = -1
        """The best-effort tenant whose kernel was launched last."""
        self._in_flight_us = 0.0
        self._urgent_bound: Resource = "neither"

    def decide(self, view: View) -> Command:
        """Urgent kernels first; then the first best-effort kernel that the policy lets go."""
        if self._search is not None:
            self._sms = self._search.threshold(view) + 1
        urgent, best_effort = self._classes.launchable(view)
        if urgent:
            kernel = urgent[0]
            self._urgent_bound = bound_by(kernel[P.PROFILED_ISSUE], kernel[P.PROFILED_DRAM], self._bound)
            return self._classes.launch(kernel)
        if self._in_flight_us > self._limit_us:
            if self._classes.running(view, urgent=False):
                return WAIT
            self._in_flight_us = 0.0
        in_service = self._classes.in_service(view)
        if self._turns != "priority":
            tenants = len(self._classes.urgent)
            best_effort.sort(key=lambda kernel: ((kernel[P.TENANT] - self._last - 1) % tenants, kernel[P.ID]))
        for kernel in best_effort:
            if not in_service or self._complements(kernel):
                self._last = int(kernel[P.TENANT])
                self._in_flight_us += kernel[P.PROFILED_US]
                return self._classes.launch(kernel)
        return WAIT

    def _complements(self, kernel: Row) -> bool:
        """Whether a best-effort kernel is small enough and wants another resource than the last urgent one."""
        if math.ceil(kernel[P.BLOCKS] / kernel[P.BLOCKS_PER_SM]) >= self._sms:
            return False
        own = bound_by(kernel[P.PROFILED_ISSUE], kernel[P.PROFILED_DRAM], self._bound)
        return own == "neither" or own != self._urgent_bound
