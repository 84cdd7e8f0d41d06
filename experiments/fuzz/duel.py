"""Two devices side by side: what both duels, on devices and through the environment, share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import DeadlockError, IllegalCommand
from gpusched_env.experiments.fuzz.case import Case
from gpusched_env.experiments.fuzz.compare import Comparison
from gpusched_env.experiments.fuzz.outcome import Outcome, case_features, timeline_features, view_features
from gpusched_env.experiments.fuzz.timelines import IN_ORDER, compare_timelines
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.device import Device
from gpusched_env.scheduling.metrics import episode_metrics
from gpusched_env.scheduling.session import Episode
from gpusched_env.scheduling.view import View

T = TypeVar("T")
MakeDevice = Callable[[], Device]

EXPECTED_ERRORS = (IllegalCommand, DeadlockError)
"""What a device may raise; anything else is a finding."""


class Duel:
    """A case, the trusted device and the one under test, and what is known of them so far."""

    def __init__(self, case: Case, device: MakeDevice, against: MakeDevice) -> None:
        self.case = case
        self.problem: Problem = case.problem()
        self.makers = (against, device)
        self.devices = (against(), device())
        """The trusted one comes first, here and in all pairs."""
        self.comparison = Comparison()
        self.outcome = Outcome(features=case_features(case, self.problem))

    def run(self) -> None:
        """Play the case.

        Raises:
            Differs: where the devices do.
        """
        raise NotImplementedError

    def both(self, what: str, call: Callable[[T], Any], pair: tuple[T, T]) -> tuple[Any, Any]:
        """The results of the same call on two devices or environments.

        Raises:
            Differs: only one raised, they raised different errors, or one that nobody should raise.
            IllegalCommand, DeadlockError: both raised it.
        """
        results: list[Any] = []
        errors: list[Exception | None] = []
        for one in pair:
            try:
                results.append(call(one))
                errors.append(None)
            except Exception as error:  # whatever a device raises is a finding
                results.append(None)
                errors.append(error)
        expected, found = errors
        if expected is None and found is None:
            return results[0], results[1]
        if type(expected) is not type(found) or not isinstance(expected, EXPECTED_ERRORS):
            worse = found if found is not None else expected
            self.comparison.differ(f"error {type(worse).__name__}", what, expected or "no error", found or "no error")
        assert expected is not None
        raise expected

    def compare_state(self, views: tuple[View, View]) -> None:
        """Views, integrals and whether the workload is done."""
        comparison = self.comparison
        expected, found = self.devices
        comparison.views(*views)
        comparison.costs(*self.both("costs", lambda device: device.costs, self.devices), self.problem)
        comparison.equal("done", "done", bool(expected.done), bool(found.done))
        comparison.equal("time", "time_us", expected.time_us, found.time_us)
        view_features(views[0], self.outcome.features)

    def compare_end(self) -> None:
        """What is left of an episode: timelines and metrics."""
        timelines = self.both("timeline", lambda device: device.timeline, self.devices)
        compare_timelines(self.comparison, *timelines)
        metrics = self.both("metrics", self._metrics, self.devices)
        self.comparison.plain("metrics", "metrics", *metrics)
        features, counts = timeline_features(timelines[0], self.problem)
        self.outcome.features |= features
        self.outcome.counts += counts

    def _metrics(self, device: Device) -> dict[str, Any]:
        episode = Episode(
            self.problem, self.case.seed, device.timeline, device.costs, device.time_us, device.done, 0, wall_s=0.0
        )
        return episode_metrics(episode).as_dict()

    def compare_with_record(self, before: tuple[dict[str, Any], dict[str, Any]]) -> None:
        """Each device against its own :func:`record` of the first time: the same to the last bit."""
        for device, kept in zip(self.devices, before, strict=True):
            again = record(device)
            for name, value in kept.items():
                if not np.array_equal(value, again[name]):
                    self.comparison.differ("restore", f"{name}, played again from a snapshot", value, again[name])


def record(device: Device) -> dict[str, NDArray[Any]]:
    """Everything about a finished episode, as arrays by name."""
    costs, timeline = device.costs, device.timeline
    kept = {f"costs.{name}": np.array(getattr(costs, name)) for name in type(costs).__slots__}
    for name in (*IN_ORDER, "blocks", "sms"):
        columns = getattr(timeline, name)
        kept |= {f"timeline.{name}": columns.array, f"timeline.{name}, picoseconds": columns.exact}
    return kept | {"time_us": np.array(device.time_us), "done": np.array(float(device.done))}
