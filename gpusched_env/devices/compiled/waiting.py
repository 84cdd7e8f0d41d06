"""Episodes of schedulers that say what they wait for, on the compiled device: compiled code goes on waiting for them.

Asked at each event, and behind each launch, a scheduler looks at a view and waits up to ten times as often as it
launches. What is given here in its place are the waits that it would give.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import called, native
from gpusched_env.devices.compiled import ruling  # noqa: F401 (what the rules read)
from gpusched_env.devices.compiled.access import clients, env_at, flights, given, launches, problem
from gpusched_env.devices.compiled.arena import Arena
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.issuing import is_launchable
from gpusched_env.devices.compiled.layout import DEADLOCK, DECIDE, IDLE, NONE, OVER
from gpusched_env.devices.compiled.views import launched_left_us, on_gpu
from gpusched_env.devices.rules.world import preempting, started_ps
from gpusched_env.hardware.clock import PS_PER_US, to_ps, to_us
from gpusched_env.scheduling.commands import LAUNCH, NOTHING, WAITING, Command, Wait
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.room import Room, WaitsForRoom
from gpusched_env.scheduling.view import View


@called
def can_launch(w, tenant):
    """Whether a kernel of a tenant is shown as launchable."""
    slot = clients(w, tenant).pending_first
    for _ in range(problem(w).lookahead):
        if slot == NONE:
            return False
        if is_launchable(w, launches(w, slot)):
            return True
        slot = launches(w, slot).after
    return False


@called
def has_changed(w, stock):
    """Whether other numbers of launches are in flight and pending; ``stock`` has them as they were, and is written.

    While no command is given the first only falls, and while that stays the second only rises: equal ones are of the
    same launches.
    """
    launched = pending = 0
    for tenant in range(problem(w).tenants):
        launched += clients(w, tenant).kernels_launched
        pending += clients(w, tenant).kernels_pending
    changed = stock[0] != launched or stock[1] != pending
    stock[0], stock[1] = launched, pending
    return changed


@called
def next_due_us(w, room):
    """When the first started kernel with blocks yet to run is due; ``inf``: none is."""
    first_us = np.inf
    slot = w.started_first if len(room.due_us) > 0 else NONE
    while slot != NONE:
        launch = launches(w, slot)
        waiting, _ = on_gpu(w, slot)
        if waiting > 0 and not preempting(w, launch):
            started_us = to_us(started_ps(w, launch))
            first_us = min(first_us, started_us + room.due_us[launch.identity] + room.least_us)
        slot = flights(w, slot).started_after
    return first_us


@called
def waits_on(w, room, stock):
    """Whether a scheduler that waits for room would wait again; then that is the command that is given."""
    if room.any_change and has_changed(w, stock):
        return False
    now_us = w.now_ps / PS_PER_US
    due_us = next_due_us(w, room)
    early_us = np.inf
    for tenant in range(problem(w).tenants):
        if clients(w, tenant).kernels_launched < room.most_launched[tenant] and can_launch(w, tenant):
            early_us = min(early_us, launched_left_us(w, tenant) - room.most_left_us[tenant])
    if due_us <= now_us or early_us <= 0.0:
        return False
    command = given(w)
    until_us = min(max(due_us, now_us + room.least_us), now_us + max(early_us, room.least_us))
    command.code, command.until_ps = WAITING, to_ps(until_us)
    return True


@native()
def wait_for_room(address, drive_at, room, stock):
    """Carry out the command that was given, and wait for room.

    Until a scheduler has to be asked, the end, or the environment has to be served.

    Args:
        address: of an environment's record; its scheduler gave a command, or it has been served.
        drive_at: of :func:`~gpusched_env.devices.compiled.entry.compile_units`.
        room: a :class:`~gpusched_env.scheduling.room.Room`.
        stock: launches in flight and pending that are known, ``(2,)``; written.

    Returns:
        why the event loop stopped last.
    """
    w = env_at(address, 0)
    if room.any_change and given(w).code != NOTHING:
        has_changed(w, stock)
        if given(w).code == LAUNCH:
            stock[0], stock[1] = stock[0] + 1, stock[1] - 1
    reason = call(drive_at, address, 1)
    while reason == DECIDE and waits_on(w, room, stock):
        reason = call(drive_at, address, 1)
    return reason


class Waits:
    """One episode of a scheduler that says what it waits for, on a device that stands at its first decision."""

    def __init__(self, arena: Arena, drive_at: int, scheduler: Scheduler) -> None:
        """``scheduler``: is asked when there may be room."""
        assert isinstance(scheduler, WaitsForRoom)
        self._arena, self._drive_at, self._scheduler = arena, drive_at, scheduler
        self._stock: NDArray[np.int64] = np.zeros(2, np.int64)
        self.commands = 0
        """Commands that were no waits."""

    def play(self, view: Callable[[], View], tell: Callable[[Command], None], go_on: Callable[[], int]) -> int:
        """Play to the end; returns why it ended.

        Args:
            view: what the scheduler is shown.
            tell: checks a command, and gives it to the device.
            go_on: carries it out, and goes on; says why it stopped.
        """
        scheduler, reason = self._scheduler, DECIDE
        while reason == DECIDE:
            command = scheduler.decide(view())
            tell(command)
            self.commands += not isinstance(command, Wait)
            room = scheduler.waits_for
            reason = go_on() if room is None else self._wait(room)
        return reason

    def _wait(self, room: Room) -> int:
        while True:
            reason = int(wait_for_room(self._arena.address, self._drive_at, room, self._stock))
            if reason in (OVER, DECIDE, DEADLOCK, IDLE):
                return reason
            self._arena.serve(reason)
