"""Tally: best-effort kernels run one at a time once urgent ones have paused, and give way between blocks.

W. Zhao, A. Jayarajan, G. Pekhimenko, *Tally: Non-Intrusive Performance Isolation for Concurrent Deep Learning
Workloads* (ASPLOS 2025), section 4, and its artefact (``priority.cpp``: ``src/tally/scheduler/priority.cpp``; defaults
in ``src/tally/env.cpp``). Clients are served in order of priority:

================================================ ================================= ====================================
rule as published                                source                            here
================================================ ================================= ====================================
Kernels of the first client go at once, on       priority.cpp,                     the same, for all tenants of the
streams of the default priority                  ``run_priority_scheduler``        scenario's highest priority, or
                                                                                   of ``classes`` priorities, on
                                                                                   streams that have them; of others of
                                                                                   equal priority the older one goes
                                                                                   first
Another client's kernel goes only if the first   ``PRIORITY_MIN_WAIT_TIME_MS``,    ``idle_us``, from the end of the
has had none for 100 us                          0.1 ms                            last kernel or copy on
One kernel of the others at a time; a more       priority.cpp, ``in_progress_``    ``in_flight``, 1
urgent client's stops it, and goes at once       ``kernels``
A kernel gets the first form that gives way      ``PRIORITY_MAX_ALLOWED_``         ``turnaround_us``, as published;
within a bound, as blocks that stay and look     ``PREEMPTION_LATENCY_MS``:        ``min_speed``, and for kernels no
at a flag (half a round of blocks) or in slices  0.0316 in the paper (tally-bench, longer than the bound
(one round), and is as fast as it is by itself;  ``tally_config.py``), 0.1 in      ``min_speed_short``; speeds are
else the same at 0.9, 0.8 and so on. Kernels     the server; ``PRIORITY_FALL_``    computed, not measured
without one, and those of no more blocks than    ``BACK_TO_ORIGINAL_THRESHOLD``:
SMs, run as they are                             0.1, and 0.5 for short kernels
As they are, if the first client has been idle   ``PRIORITY_WAIT_TIME_MS_TO_USE_`` ``original_after_us``
for long                                         ``ORIGINAL_CONFIGS``, 100 ms
================================================ ================================= ====================================

What the forms cost. Slices are real here: a kernel is drained as soon as it has started and launched again for the next
round, so each pays a launch. Blocks that stay are a kernel that is drained when it has to go; that they are slower (by
25 % in the paper's overhead study) is charged before the launch: the kernel goes so much later.

What is free here. Profiling and transformation happen before the episode, and every kernel has a transformed form.
Blocks that stay fill the SMs, where the artefact takes at most 1,024 threads of an SM
(``PRIORITY_PTB_MAX_NUM_THREADS_PER_SM``). A kernel that gives way too late in every form is given fewer blocks there
(at least 24); here it runs as it is. Forwarding launches to the server costs what the scenario says of a decision.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from gpusched_env.baselines.evict import SETTLED_US, evict, least_urgent
from gpusched_env.baselines.pending import launchable_kernels
from gpusched_env.baselines.priority_streams import stream_priorities
from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import KernelKnowledge, Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import Command, Launch, Preempt, Wait
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.room import Room
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

P, R, T = PendingColumn, RunningColumn, TenantColumn
Form = Literal["original", "staying", "sliced"]
"""A kernel's form: as it is; as blocks that stay on their SMs and take the work of one block after another; in slices
of a round."""


class Tally:
    """Block-level slicing: one best-effort kernel while urgent ones pause, stopped between blocks within a bound."""

    reads: Reads = ("priorities", "profiles", "shapes", "completions", "progress")
    set_up = SetUp(commands=("preempt",))
    waits_for: Room | None = None
    ranges: ClassVar[Ranges] = {
        "turnaround_us": Range(5.0, 500.0, log=True),
        "idle_us": Range(0.0, 200.0),
        "in_flight": Range(1, 8),
        "original_after_us": Range(1e3, 1e6, log=True),
        "classes": Range(1, 4),
    }

    def __init__(
        self,
        turnaround_us: float = 31.6,
        idle_us: float = 100.0,
        in_flight: int = 1,
        original_after_us: float = 100_000.0,
        overhead: float = 0.25,
        min_speed: float = 0.1,
        min_speed_short: float = 0.5,
        classes: int = 1,
    ) -> None:
        """Defaults are those of the artefact.

        Args:
            turnaround_us: how long a best-effort kernel may take to give way (above 0).
            idle_us: how long urgent tenants must have had no kernel before best-effort ones go (at least 0).
            in_flight: best-effort kernels launched and unfinished at most (at least 1).
            original_after_us: after so long a pause best-effort kernels run as they are (at least 0).
            overhead: how much slower kernels run whose blocks stay, as a share of their duration (at least 0).
            min_speed: least speed of a form, relative to the kernel as it is (above 0, at most 1).
            min_speed_short: the same for kernels no longer than the bound.
            classes: priorities, from the highest on, whose tenants' kernels go at once, on streams that have them (at
                least 1).

        Raises:
            InputError: a value is out of range.
        """
        if not turnaround_us > 0.0:
            raise InputError(f"tally: turnaround_us is {turnaround_us}, must be above 0")
        if not (idle_us >= 0.0 and original_after_us >= 0.0 and overhead >= 0.0):
            given = f"idle_us {idle_us}, original_after_us {original_after_us}, overhead {overhead}"
            raise InputError(f"tally: {given}; must not be negative")
        if not (0.0 < min_speed <= 1.0 and 0.0 < min_speed_short <= 1.0):
            given = f"min_speed {min_speed}, min_speed_short {min_speed_short}"
            raise InputError(f"tally: {given}; must be above 0 and at most 1")
        if in_flight < 1 or classes < 1:
            raise InputError(f"tally: in_flight is {in_flight}, classes {classes}; must be at least 1")
        self._count = classes
        self._bound_us, self._idle_us, self._original_after_us = turnaround_us, idle_us, original_after_us
        self._in_flight = in_flight
        self._overhead, self._min_speed, self._min_speed_short = overhead, min_speed, min_speed_short

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Choose the form of every kernel; nothing is in flight."""
        self._gpu = knowledge.gpu
        urgencies = [tenant.priority for tenant in knowledge.tenants]
        self._least_urgent = least_urgent(urgencies, self._count)
        self._urgent = [row for row, urgency in enumerate(urgencies) if urgency <= self._least_urgent]
        firsts = [min(urgency, self._least_urgent) for urgency in urgencies]
        self._priorities = stream_priorities(firsts, knowledge.gpu.priorities)
        """Stream priority of each tenant: only urgent ones of several classes differ from others."""
        self._forms = [self._form_of(kernel) for kernel in knowledge.kernels]
        """Form of each kernel, by identity."""
        self._any_room = Room.of_any(len(knowledge.tenants))
        self._form: dict[int, Form] = {}
        """Form of each launch of the less urgent tenants, by launch id."""
        self._owed_us: dict[int, float] = {}
        """How much longer a kernel has to wait because it will run slower than the device runs it, by launch id."""
        self._waits: tuple[int, float] | None = None
        """Launch id of the kernel that waits so now, and since when."""

    def decide(self, view: View) -> Command:
        """Stop what has to give way, then launch the most urgent kernel if it may go."""
        if self._waits is not None:
            launch, since_us = self._waits
            self._owed_us[launch] -= view.time_us - since_us
            self._waits = None
        running = view.running.array
        priorities = running[:, R.PRIORITY]
        in_front = float(priorities.min(initial=math.inf))
        kernel = next(iter(launchable_kernels(view)), None)
        goes_us = math.inf if kernel is None else self._goes_us(view, kernel, in_front)
        if kernel is not None and (goes_us <= view.time_us or self._waits is not None):
            in_front = min(in_front, kernel[P.PRIORITY])
        # Urgent kernels never give way, and there may be hundreds: NumPy is the quicker one to find others among them.
        others = (priorities > self._least_urgent).nonzero()[0].tolist()
        # Of urgent kernels alone none gives way, and without a kernel to launch there is nothing to do.
        is_quiet = not others and (kernel is None or kernel[P.PRIORITY] <= self._least_urgent)
        self.waits_for = self._any_room if is_quiet else None
        giving_way = [row for row in others if self._gives_way(running[row].tolist(), in_front)]
        stop = evict(view, giving_way, "drain", self._gpu)
        if isinstance(stop, Preempt):
            return stop
        if kernel is not None and goes_us <= view.time_us:
            return Launch(int(kernel[P.ID]), self._priorities[int(kernel[P.TENANT])] if self._count > 1 else None)
        return Wait(min(goes_us, stop.until_us if isinstance(stop, Wait) else math.inf))

    def _goes_us(self, view: View, kernel: list[float], in_front: float) -> float:
        """When a pending kernel may be launched: now, later, or, ``inf``, at some event.

        Args:
            view: the present.
            kernel: a row of ``view.pending``.
            in_front: priority of the most urgent kernel of ``view.running``; ``inf`` without one.
        """
        if kernel[P.PRIORITY] <= self._least_urgent:
            return view.time_us
        if in_front < kernel[P.PRIORITY]:
            return math.inf
        ends_us = view.tenants.array[:, T.LAST_END_US].tolist()
        ended_us = max(ends_us[tenant] for tenant in self._urgent)
        if ended_us > 0.0 and view.time_us < ended_us + self._idle_us:
            return float(ended_us + self._idle_us)
        running = view.running.array
        in_flight = running[running[:, R.PRIORITY] == kernel[P.PRIORITY]]
        if kernel[P.PREEMPTED]:
            # What was launched behind it waits for it.
            in_flight = in_flight[in_flight[:, R.STREAM] != kernel[P.STREAM]]
        if len(in_flight) >= self._in_flight:
            return math.inf
        launch, identity = int(kernel[P.ID]), int(kernel[P.IDENTITY])
        if launch not in self._form:
            idle = view.time_us - ended_us >= self._original_after_us
            form: Form = "original" if idle else self._forms[identity]
            self._form[launch] = form
            self._owed_us[launch] = self._overhead * kernel[P.PROFILED_US] if form == "staying" else 0.0
        if self._owed_us[launch] <= SETTLED_US:
            return view.time_us
        self._waits = launch, view.time_us
        return view.time_us + self._owed_us[launch]

    def _gives_way(self, kernel: list[float], in_front: float) -> bool:
        """Whether a running kernel stops at its next block boundary: for a more urgent one, or after each slice."""
        form = self._form.get(int(kernel[R.ID]))
        if form == "sliced":
            return bool(kernel[R.BLOCKS_WAITING] or not kernel[R.STARTED])
        return form == "staying" and kernel[R.PRIORITY] > in_front

    def _form_of(self, kernel: KernelKnowledge) -> Form:
        """The first form that is fast enough and gives way in time, in steps of a tenth of the speed."""
        if kernel.graph or kernel.blocks <= self._gpu.sms or math.isnan(kernel.duration_us):
            return "original"
        rounds = math.ceil(kernel.blocks / (self._gpu.sms * kernel.blocks_per_sm))
        staying_us = kernel.duration_us * (1.0 + self._overhead)
        sliced_us = kernel.duration_us + (rounds - 1) * self._gpu.timing.launch_latency_us
        forms: list[tuple[Form, float, float]] = [("staying", staying_us, staying_us / rounds / 2.0)]
        if rounds > 1:
            forms.append(("sliced", sliced_us, sliced_us / rounds))
        tenths = [tenth / 10.0 for tenth in range(10, 0, -1) if tenth / 10.0 >= self._min_speed]
        for least in [self._min_speed_short] if kernel.duration_us <= self._bound_us else tenths:
            for form, takes_us, turnaround_us in forms:
                if turnaround_us <= self._bound_us and kernel.duration_us >= least * takes_us:
                    return form
        return "original"
