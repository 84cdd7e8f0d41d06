"""GPreempt: best-effort kernels leave the GPU by a context switch, before the request's first kernel is there.

R. Fan, T. Ren, M. Xie, S. Gao, J. Shu, Y. Lu, *GPreempt: GPU Preemptive Scheduling Made General and Efficient* (USENIX
ATC 2025), and its artefact (github.com/thustorage/GPreempt), ``src/cuda-clients/gpreemptclient.cpp``.

=============================================== ======================= ================================================
As published                                    Where                   Here
=============================================== ======================= ================================================
Two contexts: of latency-critical tasks, which  ``g_ctx``               The tenants of the ``classes`` (1) most urgent
run side by side, and of best-effort ones,                              priorities, each in streams of its own priority,
which do too                                                            and all others
The first has a time slice longer than any      ``set_priority``: 1 s   ``save``: kernels of the others are saved when
task, the second the least one: it yields by a  and 1 us                one of the first is there, whole, and go on
context switch as soon as the first has work,                           after it. The device says how long that takes;
within about 100 us                                                     the wait for the end of a slice is left out
A finished task drops its slice at once         the paper               As published: the others go on when no kernel of
                                                                        the first is launched or pending
A kernel that only blocks is launched in front  ``start_blocking_``     ``hint``: from the arrival of a request on, to
of a request's, 100 us before that is expected  ``stream``,             its end. How long a host prepares is not known,
(``SWITCH_TIME``), while inputs are prepared,   ``end_blocking_stream`` so it is blocked at once, as in the artefact
so that the switch is hidden                                            without reservations
=============================================== ======================= ================================================

Contexts share nothing in time there. Here kernels that are launched do not wait for the switch of all others to end:
they take the room of what has been saved so far.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusched_env.baselines.evict import JOBS_WAITING, TwoClasses, evict
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import WAIT, Command, Preempt
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import TenantColumn, View

T = TenantColumn


class GPreempt:
    """Context switches by time slices: best-effort kernels are saved as soon as a request is there, and go on later."""

    reads: Reads = ("priorities", "requests", "completions", "progress")
    set_up = SetUp(commands=("preempt",))
    ranges: ClassVar[Ranges] = {"hint": Choice((True, False)), "classes": Range(1, 4)}

    def __init__(self, hint: bool = True, classes: int = 1) -> None:
        """
        Args:
            hint: others leave when a request arrives, not only when a kernel of it is there.
            classes: priorities, from the highest on, whose tenants are latency-critical (at least 1).

        Raises:
            InputError: a value is out of range.
        """
        if classes < 1 or not isinstance(hint, bool):
            raise InputError(f"gpreempt: hint {hint!r}, classes {classes}; must be true or false, at least 1")
        self._hint, self._count = hint, classes

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing is launched."""
        self._gpu = knowledge.gpu
        self._classes = TwoClasses(knowledge, self._count)
        self._critical = np.array(self._classes.urgent)

    def decide(self, view: View) -> Command:
        """Save what is in the way of a request, then launch it; without one, launch whatever there is."""
        urgent, best_effort = self._classes.launchable(view)
        columns = [T.KERNELS_PENDING, T.KERNELS_LAUNCHED, *([JOBS_WAITING] if self._hint else [])]
        if view.tenants.array[self._critical][:, columns].any():
            save = evict(view, self._classes.running(view, urgent=False), "save", self._gpu)
            if isinstance(save, Preempt):
                return save
            return self._classes.launch(urgent[0]) if urgent else save or WAIT
        return self._classes.launch(best_effort[0]) if best_effort else WAIT
