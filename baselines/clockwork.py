"""Clockwork: one request at a time, the one that has to start first; what cannot make its deadline is not served.

A. Gujarati, R. Karimi, S. Alzayat, W. Hao, A. Kaufmann, Y. Vigfusson, J. Mace, *Serving DNNs like Clockwork:
Performance Predictability from the Bottom Up* (OSDI 2020), and its artefact, ``infer5_scheduler.h`` and ``.cpp`` in
``src/clockwork/controller/infer5``, for one GPU whose models are loaded.

======================================== ================================= ===========================================
As published                             Where                             Here
======================================== ================================= ===========================================
A GPU runs one inference at a time       the paper                         ``concurrent``, 1. Its kernels go at once;
                                                                           no other request's do until it is complete.
                                                                           Of several, ``streams``: all alike, or
                                                                           ``ranked``, the one chosen first in the
                                                                           stream of the highest priority
Of all requests the one goes first that  ``Model::new_strategies``         As published; deadlines are by the tenants'
has the earliest latest start: deadline                                    objectives. Only those are asked whose
less predicted execution time                                              first kernel is there, as inputs are there
A request that can no longer make it is  ``Model::try_dequeue``            As published (``reject``) where the scenario
cancelled before it runs                                                   offers it; else such requests go after all
                                                                           that can make it, in the same order
Execution time is a high percentile of   ``estimate_percentile``, 0.99;    ``estimate``: the tenant's profiled
the last ten measurements                ``estimate_window_size``          turnaround alone, which is what is measured
                                                                           where one runs at a time; or ``measured``,
                                                                           the longest of the last ten, from choice to
                                                                           completion. Either times ``margin``
A deadline is met some time before it is ``buffer``, 5 ms                  Left out: ``margin`` has a like effect
due
The GPU is given work until its          ``schedule_ahead``, 10 ms;        ``schedule_ahead_us``; off by default. It
predicted end of work is some time       ``WorkerTracker``                 hides the network to a worker there, which
away; a request is late by that end                                        queues what it gets; a stream is as near as
                                                                           a launch. Work given ahead shares the GPU
                                                                           with the work before it here, so it is best
                                                                           with ``ranked``
Requests of a model are batched          ``batch_size``                    Left out: recorded jobs have their batch
Models are loaded and evicted            ``LoadTracker``                   Left out: all are on the GPU
======================================== ================================= ===========================================

All requests have a deadline there. Here tenants without an objective run while no other has a job.
"""

from __future__ import annotations

import math
from collections import deque
from typing import ClassVar, Literal, get_args

import numpy as np

from gpusched_env.baselines.evict import SETTLED_US
from gpusched_env.baselines.in_turn import DUE, InTurn, Request
from gpusched_env.baselines.pending import ID, JOB, TENANT
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Launch
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View

WINDOW = 10
"""Measurements of which the longest is the estimate."""
Streams = Literal["alike", "ranked"]
Estimate = Literal["profiled", "measured"]


class Clockwork(InTurn):
    """One request at a time, the earliest latest start first; rejects what cannot make its deadline, if it may."""

    reads: Reads = ("objectives", "requests", "profiles", "completions")
    ranges: ClassVar[Ranges] = {
        "concurrent": Range(1, 4),
        "margin": Range(1.0, 2.0),
        "reject": Choice((True, False)),
        "schedule_ahead_us": Range(0.0, 10_000.0),
        "streams": Choice(get_args(Streams)),
        "estimate": Choice(get_args(Estimate)),
    }

    def __init__(
        self,
        concurrent: int = 1,
        margin: float = 1.0,
        reject: bool = True,
        schedule_ahead_us: float = 0.0,
        streams: Streams = "alike",
        estimate: Estimate = "profiled",
    ) -> None:
        """
        Args:
            concurrent: requests that run at one time (at least 1; one in the paper).
            margin: predicted execution time, in multiples of the estimate (above 0).
            reject: cancel requests that can no longer make it, where the scenario offers ``reject``.
            schedule_ahead_us: further requests are chosen while the predicted end of those chosen is less than so far
                away (at least 0; 10,000 in the artefact).
            streams: of requests that run at one time, all alike, or in order of choice.
            estimate: of an execution time: the profiled turnaround alone, or the longest of the last ten served.

        Raises:
            InputError: a value is out of range.
        """
        if concurrent < 1 or not 0.0 < margin < math.inf:
            given = f"concurrent {concurrent}, margin {margin}"
            raise InputError(f"clockwork: {given}; concurrent must be at least 1, margin above 0 and finite")
        if not isinstance(reject, bool):
            raise InputError(f"clockwork: reject is {reject!r}, must be true or false")
        if not 0.0 <= schedule_ahead_us < math.inf:
            raise InputError(f"clockwork: schedule_ahead_us is {schedule_ahead_us}, must be at least 0 and finite")
        if streams not in get_args(Streams) or estimate not in get_args(Estimate):
            given = f"streams {streams!r}, estimate {estimate!r}"
            raise InputError(f"clockwork: {given}; must be alike or ranked, profiled or measured")
        super().__init__(margin, reject)
        self._concurrent, self._ahead_us = concurrent, schedule_ahead_us
        self._ranked, self._measures = streams == "ranked", estimate == "measured"

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No request runs, and none was measured."""
        super().reset(knowledge, rng)
        self._levels = knowledge.gpu.priorities
        self._measured_us: list[deque[float]] = [deque(maxlen=WINDOW) for _ in knowledge.tenants]
        self._outstanding_us: dict[Request, float] = {}
        """Execution time of each request that runs as predicted when it was chosen, in order of choice."""
        self._begun_us = 0.0
        """When the first of the requests that run began."""

    def choose(self, view: View, waiting: list[int]) -> int | None:
        """The request that has to start first."""
        if not self._has_room(view):
            return None
        table = view.pending.array
        begins_us = self.starts_us(view)

        def order(row: int) -> tuple[bool, float, float]:
            starts_us = float(table[row, DUE]) - self._predicted_us[int(table[row, TENANT])]
            return starts_us < begins_us, starts_us, float(table[row, ID])

        row = min(waiting, key=order)
        if not self._outstanding_us:
            self._begun_us = view.time_us
        tenant = int(table[row, TENANT])
        self._outstanding_us[tenant, int(table[row, JOB])] = self._predicted_us[tenant]
        return row

    def launch(self, view: View, row: int) -> Launch:
        """Launch it in the tenant's stream, or in one of a priority by its request's place among those that run."""
        launch, tenant, job = view.pending.array[row, [ID, TENANT, JOB]].astype(int).tolist()
        if not self._ranked:
            return Launch(launch)
        place = list(self._served).index((tenant, job)) if (tenant, job) in self._served else self._levels
        return Launch(launch, min(0, place + 1 - self._levels))

    def starts_us(self, view: View) -> float:
        """The predicted end of the work given, if more is given ahead; else now."""
        return self._available_us(view) if self._ahead_us > 0.0 and self._has_room(view) else view.time_us

    def looks_us(self, view: View) -> float:
        """When there will be room ahead."""
        if self._ahead_us == 0.0 or not self._served or self._has_room(view):
            return math.inf
        return self._available_us(view) - self._ahead_us + SETTLED_US

    def completed(self, view: View, request: Request, chosen_us: float) -> None:
        """Keep how long it took, and go on from its end."""
        is_first = request == next(iter(self._outstanding_us))
        took_us = self._outstanding_us.pop(request)
        self._begun_us = view.time_us if is_first else self._begun_us + took_us
        if self._measures:
            measured_us = self._measured_us[request[0]]
            measured_us.append(view.time_us - chosen_us)
            self._predicted_us[request[0]] = self._margin * max(measured_us)

    def _has_room(self, view: View) -> bool:
        """Whether one more request may run."""
        return len(self._served) < self._concurrent or self._available_us(view) < view.time_us + self._ahead_us

    def _available_us(self, view: View) -> float:
        """When the GPU is predicted to have done all that it was given."""
        return max(view.time_us, self._begun_us + sum(self._outstanding_us.values()))
