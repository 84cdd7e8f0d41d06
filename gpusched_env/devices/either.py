"""The fast device, and the readable one in its place as long as it is not built: both play to the picosecond alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from gpusched_env.building import build_of
from gpusched_env.devices.reference.device import History, ReferenceDevice
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.contract import OpenDevice
from gpusched_env.scheduling.reward import Costs
from gpusched_env.scheduling.timeline import Detail, Timeline
from gpusched_env.scheduling.view import View

UNITS = "gpusched_env.devices.compiled.entry:UNITS"


def is_compiled_ready() -> bool:
    """Whether the compiled device is to be used now; begins to build it if it is not there."""
    return build_of(UNITS).is_ready()


def await_compiled() -> None:
    """Return when the compiled device is built.

    Raises:
        InputError: nothing compiled is to be used, as ``GPUSCHED_COMPILE`` says.
    """
    build_of(UNITS).wait()


def compiled_device() -> OpenDevice:
    """A compiled device, which waits until it is built."""
    from gpusched_env.devices.compiled.device import CompiledDevice

    return cast("OpenDevice", CompiledDevice())


def reference_device() -> OpenDevice:
    """A reference device."""
    return cast("OpenDevice", ReferenceDevice())


class EitherDevice:
    """A simulated GPU (see :class:`gpusched_env.scheduling.contract.Device`): the fastest that is there.

    It begins on the reference device. As soon as the compiled one is there, that does what was done so far, and goes
    on. A snapshot is of the device that played then, and is played on by it.
    """

    def __init__(self) -> None:
        self._now = reference_device()
        self._done: list[Callable[[OpenDevice], object]] | None = None
        """What was done since the reset, on the reference device; ``None``: it goes on from a snapshot."""

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        """Start an episode and run to the first decision epoch (``None``: it ended before one)."""
        if self._is_slow() and is_compiled_ready():
            self._take(compiled_device())
        stop_us, self._done = self.stop_us, []

        def again(device: OpenDevice) -> None:
            device.stop_us = stop_us
            device.reset(problem, seed, record=record, snapshots=snapshots)

        self._note(again)
        return self._now.reset(problem, seed, record=record, snapshots=snapshots)

    def _is_slow(self) -> bool:
        return isinstance(self._now, ReferenceDevice)

    def _take(self, device: OpenDevice) -> None:
        device.stop_us, self._now = self._now.stop_us, device

    def _note(self, step: Callable[[OpenDevice], object]) -> None:
        if self._done is not None and self._is_slow():
            self._done.append(step)

    @property
    def stop_us(self) -> float:
        """Where :meth:`advance` stands still (``inf``: nowhere)."""
        return self._now.stop_us

    @stop_us.setter
    def stop_us(self, us: float) -> None:
        self._now.stop_us = us
        self._note(lambda device: setattr(device, "stop_us", us))

    @property
    def done(self) -> bool:
        """Whether all tenants with a number of jobs have completed them."""
        return self._now.done

    @property
    def timeline(self) -> Timeline:
        """What happened so far."""
        return self._now.timeline

    @property
    def time_us(self) -> float:
        """Simulated time."""
        return self._now.time_us

    @property
    def costs(self) -> Costs:
        """Time integrals since the reset."""
        return self._now.costs

    def apply(self, command: Command) -> None:
        """Carry out one command."""
        self._now.apply(command)
        self._note(lambda device: device.apply(command))

    def advance(self) -> View | None:
        """The view for the next decision, or ``None`` at the end of the episode."""
        if self._is_slow() and self._done is not None and is_compiled_ready():
            fast = compiled_device()
            for step in self._done:
                step(fast)
            self._now, self._done = fast, None
        self._note(lambda device: device.advance())
        return self._now.advance()

    def view(self) -> View:
        """A snapshot at the present time."""
        return self._now.view()

    def come(self, tenant: int, jobs: int | None = None) -> None:
        """A tenant comes from outside."""
        self._now.come(tenant, jobs)
        self._note(lambda device: device.come(tenant, jobs))

    def go(self, tenant: int) -> None:
        """A tenant sends nothing any more."""
        self._now.go(tenant)
        self._note(lambda device: device.go(tenant))

    def snapshot(self) -> Any:
        """What :meth:`restore` needs to come back to the present decision."""
        return self._now.snapshot()

    def restore(self, snapshot: Any) -> View | None:
        """Return to a snapshot exactly."""
        if isinstance(snapshot, History) != self._is_slow():
            self._take(reference_device() if isinstance(snapshot, History) else compiled_device())
        self._done = None
        return self._now.restore(snapshot)
