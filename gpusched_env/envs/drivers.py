"""What runs an environment's episode, and that for any device: through views and commands."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices import make_device
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.observations import Observation, ObservationEncoder, ShownLaunches
from gpusched_env.envs.setup import check_device
from gpusched_env.errors import InputError
from gpusched_env.planning.dispatcher import IntervalDispatcher
from gpusched_env.planning.interval import Serve
from gpusched_env.planning.outlook import NOTHING_AHEAD, outlook_of
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.reward import cost_terms, total_cost
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View


class Driver(Protocol):
    """One episode at a time, in action numbers."""

    device: Device
    """The device, which holds the timeline and the costs."""
    entry: threading.RLock
    """Lock of the thread that is inside (:class:`~gpusched_env.scheduling.guards.OneThread`)."""

    @property
    def view(self) -> View:
        """What the next action is decided on, or the final state."""

    @property
    def deciding(self) -> bool:
        """Whether the device waits for a command (otherwise it has reached the end)."""

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Legal actions; overwritten by the next step."""

    @property
    def cost(self) -> float:
        """Total cost so far."""

    @property
    def time_us(self) -> float:
        """Simulated time of the present observation."""

    @property
    def illegal(self) -> int:
        """Illegal actions so far."""

    def reset(self, problem: Problem, seed: int, record: Detail) -> None:
        """Start an episode and run to its first decision."""

    def step(self, action: int) -> None:
        """Carry out an action and run to the next decision; an illegal one is a wait."""

    def observe(self) -> Observation:
        """The present observation, in arrays of its own."""

    def save(self) -> Any:
        """The state, to go back to; can be pickled."""

    def restore(self, state: Any) -> None:
        """Go back to a state exactly."""


@dataclass(slots=True)
class Point:
    """Where an episode on a device stands. Arrays are replaced, never written to, so that shallow copies stay valid."""

    problem: Problem
    view: View
    shown: ShownLaunches
    mask: NDArray[np.bool_]
    deciding: bool
    illegal: int = 0


class DeviceDriver:
    """Any device, through its views and commands."""

    def __init__(self, device: Device, encoder: ObservationEncoder, layout: ActionLayout, wait_us: float) -> None:
        self.device = device
        self.entry = threading.RLock()
        self._encoder = encoder
        self._layout = layout
        self._wait_us = wait_us
        self._point: Point

    @property
    def view(self) -> View:
        return self._point.view

    @property
    def deciding(self) -> bool:
        return self._point.deciding

    @property
    def mask(self) -> NDArray[np.bool_]:
        return self._point.mask

    @property
    def cost(self) -> float:
        problem = self._point.problem
        return total_cost(problem, cost_terms(problem, self.device.costs))

    @property
    def time_us(self) -> float:
        return float(self._point.view.time_us)

    @property
    def illegal(self) -> int:
        return self._point.illegal

    def reset(self, problem: Problem, seed: int, record: Detail) -> None:
        self._point = self._look(problem, self.device.reset(problem, seed, record=record, snapshots=True))

    def step(self, action: int) -> None:
        point = self._point
        illegal = point.illegal
        if not point.mask[action]:
            action, illegal = 0, illegal + 1
        serve = self._layout.serve(action)
        if serve is not None:
            view = self._pass_interval(serve)
        else:
            command = self._layout.decode(
                action, point.view, wait_us=self._wait_us, streams=point.problem.streams, shown=point.shown
            )
            self.device.apply(command)
            view = self.device.advance()
        self._point = self._look(point.problem, view, illegal)

    def _pass_interval(self, serve: Serve) -> View | None:
        """Let ``serve`` stand until the next decision; ``None``: the episode is over."""
        now, problem = self._point.view, self._point.problem
        dispatcher = IntervalDispatcher(
            self._layout.interval_us, problem.scenario.stream_priorities, problem.once(outlook_of)
        )
        dispatcher.set(now, serve)
        view: View | None = now
        while view is not None and not dispatcher.asks(view):
            self.device.apply(dispatcher.command(view))
            view = self.device.advance()
        return view

    def observe(self) -> Observation:
        point = self._point
        outlook = point.problem.once(outlook_of) if self._encoder.plans else NOTHING_AHEAD
        return self._encoder.encode(point.view, point.shown, outlook)

    def save(self) -> Any:
        point = self._point
        # The view must not depend on the device any more.
        view = View(**{field.name: getattr(point.view, field.name) for field in fields(View)})
        kept = Point(point.problem, view, point.shown, point.mask, point.deciding, point.illegal)
        return kept, self.device.snapshot()

    def restore(self, state: Any) -> None:
        point, snapshot = state
        if not isinstance(point, Point):
            raise InputError("the state is of an environment whose device is driven in compiled code")
        self.device.restore(snapshot)
        self._point = point

    def _look(self, problem: Problem, view: View | None, illegal: int = 0) -> Point:
        now = view if view is not None else self.device.view()
        shown = self._layout.select(now)
        if view is not None:
            mask = self._layout.mask(now, shown)
        else:
            mask = np.zeros(self._layout.n, np.bool_)
            mask[0] = True
        return Point(problem, now, shown, mask, deciding=view is not None, illegal=illegal)


def driver_maker(
    device: str | Device, layout: ActionLayout, encoder: ObservationEncoder, wait_us: float
) -> Callable[[], Driver]:
    """What makes drivers of an environment, each with a device of its own, unless that is given as such.

    Raises:
        InputError: it is no device; when it is called.
    """
    if device == "compiled":
        # The other devices need nothing of this one.
        from gpusched_env.envs.batch import BatchDriver

        return functools.partial(BatchDriver, layout, wait_us)

    def make() -> Driver:
        behind = make_device(device) if isinstance(device, str) else device
        check_device(behind)
        return DeviceDriver(behind, encoder, layout, wait_us)

    return make
