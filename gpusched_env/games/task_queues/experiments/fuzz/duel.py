"""A case of task queues on two devices: both change forms at the same times, and all that they show is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpusched_env.errors import DeadlockError, GpuschedError
from gpusched_env.experiments.fuzz.compare import DuelComparison, outcome_of
from gpusched_env.experiments.fuzz.outcome import Outcome
from gpusched_env.games.task_queues.device import TaskDevice
from gpusched_env.games.task_queues.experiments.fuzz.case import TaskCase
from gpusched_env.games.task_queues.results import fault_of
from gpusched_env.games.task_queues.timeline import LOG, QUEUE, TOTALS, Event
from gpusched_env.hardware.clock import PS_PER_US

MakeTaskDevice = Callable[[], TaskDevice]
MOST_PAUSES = 400
"""Looks at a device before it runs on to its end."""


def play_tasks(case: TaskCase, device: MakeTaskDevice, against: MakeTaskDevice) -> Outcome:
    """Run ``case`` on a new ``device`` and on one that is trusted, and compare.

    Raises:
        InputError: the case is not a valid problem.
    """
    return outcome_of(_TaskDuel(case, device, against))


class _TaskDuel:
    """A case, the trusted device and the one under test."""

    def __init__(self, case: TaskCase, device: MakeTaskDevice, against: MakeTaskDevice) -> None:
        self.case, self.problem = case, case.problem()
        self.devices = (against(), device())
        self.comparison = DuelComparison()
        self._changed_in_flight = False
        forms = {part for form in case.forms for part in (form.strategy, f"workers: {form.worker}s")}
        self.outcome = Outcome(features={case.application, *forms})
        if any(form.threshold for form in case.forms):
            self.outcome.features.add("two queues")
        if case.relaunch:
            self.outcome.features.add("launched again if left early")
        if case.gpus > 1:
            self.outcome.features.update({f"{case.gpus} GPUs", "push" if case.link.batch is None else "aggregation"})

    def run(self) -> None:
        """Play the case; raises ``Differs`` where the devices do."""
        first, *others = self.case.forms
        over = self._both("begin", lambda device: device.begin(self.problem, first))
        at_ps = 0
        for form, stay_ps in zip(others, self.case.stay_ps, strict=False):
            at_ps += stay_ps
            over = self._until(at_ps)
            if over:
                break
            self._changed_in_flight |= bool(self.devices[0].totals["flying"])
            self._both("change", lambda device, form=form: device.change(form))  # type: ignore[misc]
            self.comparison.step += 1
        if not over:
            over = self._until(at_ps + MOST_PAUSES * self.case.pause_ps)
        if not over:
            over = self._both("advance", lambda device: device.advance())
        self._look()
        if over is True:
            self.outcome.features.add("right results")
            for device in self.devices:
                self.comparison.equal("results", "what is wrong", "", fault_of(self.problem, device.data))
        self._count()

    def _until(self, end_ps: int) -> Any:
        """On in steps to a time; whether it is the end."""
        expected = self.devices[0]
        over: Any = False
        while not over and expected.time_ps < end_ps:
            at_ps = min(end_ps, expected.time_ps + self.case.pause_ps)
            over = self._both("advance", lambda device, at_ps=at_ps: device.advance(at_ps))  # type: ignore[misc]
            self._look()
        return over

    def _both(self, what: str, call: Callable[[TaskDevice], Any]) -> Any:
        """The same on both devices: the trusted one's answer; the error, if there is one."""
        results = []
        for device in self.devices:
            try:
                results.append(call(device))
            except Exception as error:
                results.append(error)
        expected = results[0]
        errors = [f"{type(r).__name__}: {r}" if isinstance(r, Exception) else repr(r) for r in results]
        name = next((type(r).__name__ for r in results if isinstance(r, Exception)), "")
        self.comparison.equal(f"error {name}" if name else "answer", what, *errors)
        if isinstance(expected, Exception):
            if not isinstance(expected, GpuschedError):
                # Both fail alike, but no device should.
                self.comparison.differ(f"error {name}", what, "no error", errors[1])
            if isinstance(expected, DeadlockError):
                words = {
                    "link from": "overflow of a link",
                    "overflows": "overflow",
                    "cannot complete": "impossible vote",
                    "too early": "early end",
                }
                self.outcome.features.update(name for word, name in words.items() if word in str(expected))
        return expected

    def _look(self) -> None:
        """At everything."""
        expected, found = self.devices
        self.comparison.time_us = expected.time_ps / PS_PER_US
        self.comparison.equal("time", "time_ps", expected.time_ps, found.time_ps)
        for kind, names in (("totals", TOTALS.names), ("queues", QUEUE.names), ("log", LOG.names)):
            given, other = (np.atleast_1d(getattr(device, kind)) for device in self.devices)
            self.comparison.equal(kind, f"rows of {kind}", len(given), len(other))
            for name in names or ():
                self.comparison.close(kind, f"{kind}.{name}", given[name], other[name])
        for number, alloc in enumerate(expected.queues["alloc"].tolist()):
            items = [device.items[number, :alloc] for device in self.devices]
            self.comparison.close("items", f"items[{number}]", *items)
        for name in expected.data._fields:
            self.comparison.close("data", f"data.{name}", getattr(expected.data, name), getattr(found.data, name))

    def _count(self) -> None:
        device = self.devices[0]
        totals, events = device.totals, set(device.log["event"].tolist())
        self.outcome.counts.update({name: int(totals[name]) for name in ("tasks", "pushed", "kernels", "changes")})
        seen = device.log["event"]
        lagging = device.log[seen == Event.PUBLISH]["a"]
        happened = {
            "idle workers": Event.IDLE in events,
            "votes": Event.VOTE in events,
            "tasks put back": bool((device.log[seen == Event.CHANGE]["a"] > 0).any()),
            "another form": Event.CHANGE in events,
            "tasks sent": bool(totals["sent"]),
            "sent tasks that come too late": bool((device.log[seen == Event.LAND]["b"] == 0).any()),
            "whole batches": bool((device.log[seen == Event.BATCH]["b"] >= (self.case.link.batch or 0)).any()),
            "change while tasks are on the way": self._changed_in_flight,
            "late publishers": len(lagging) > len(set(lagging.tolist())),
        }
        self.outcome.features.update(name for name, there in happened.items() if there)
