"""What runs an environment's episode, and that for any device: through views and commands."""

from __future__ import annotations

import threading
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.building import build_of
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

if TYPE_CHECKING:
    from gpusched_env.envs.state import EpisodeProgress


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


UNITS = ("gpusched_env.devices.compiled.entry:UNITS", "gpusched_env.envs.stepping:UNITS")
"""Where the compiled code of an environment stands."""


class Drivers:
    """Makes drivers of an environment, each with a device of its own, unless that is given as such.

    The compiled device is driven in compiled code. As long as that is not there, the reference device plays the same.
    """

    def __init__(self, device: str | Device, layout: ActionLayout, encoder: ObservationEncoder, wait_us: float) -> None:
        self._device = device
        self._layout = layout
        self._encoder = encoder
        self._wait_us = wait_us

    def __call__(self) -> Driver:
        """A new one.

        Raises:
            InputError: there is no such device.
        """
        if self._device == "compiled":
            return self._compiled(None) if build_of(*UNITS).is_ready() else self._through_views("reference")
        return self._through_views(self._device)

    def fastest(self, driver: Driver, so_far: EpisodeProgress | None, record: Detail) -> Driver:
        """What goes on in place of ``driver``: a compiled one as soon as it is there, which plays the episode again.

        Args:
            so_far: the present episode; ``None``: another one begins.
            record: what is recorded of it.
        """
        if self._device != "compiled" or not isinstance(driver, DeviceDriver) or not build_of(*UNITS).is_ready():
            return driver
        faster = self._compiled(driver.entry)
        if so_far is not None:
            faster.reset(so_far.problem, so_far.seed, record)
            for action in so_far.actions:
                faster.step(action)
            if faster.time_us != driver.time_us:
                # Somebody has driven the device past the environment.
                self._device = "reference"
                return driver
        return faster

    def for_state(self, driver: Driver, state: Any) -> Driver:
        """What plays on from what a driver has saved: ``driver``, or one like that."""
        if self._device != "compiled" or isinstance(state[0], Point) == isinstance(driver, DeviceDriver):
            return driver
        return self._compiled(driver.entry) if isinstance(driver, DeviceDriver) else self._through_views("reference")

    def _compiled(self, entry: threading.RLock | None) -> Driver:
        # The other devices need nothing of this one.
        from gpusched_env.envs.batch import BatchDriver

        return BatchDriver(self._layout, self._wait_us, entry)

    def _through_views(self, device: str | Device) -> Driver:
        behind = make_device(device) if isinstance(device, str) else device
        check_device(behind)
        return DeviceDriver(behind, self._encoder, self._layout, self._wait_us)
