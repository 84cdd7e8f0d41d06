"""Episodes of schedulers that decide for an interval, on the compiled device: compiled code launches in between.

A scheduler is asked as often as it decides, and shown a view then. Asked for every launch, it would be some ten
thousand times in a tenth of a second, and views and commands in Python would take most of an episode's time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import native
from gpusched_env.devices.compiled.access import env_at, given
from gpusched_env.devices.compiled.arena import Arena
from gpusched_env.devices.compiled.interval import NO_KNOBS, StandingDecision, put_next_command
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.layout import DEADLOCK, DECIDE, IDLE, OVER
from gpusched_env.hardware.clock import to_ps
from gpusched_env.planning.dispatcher import DecidesForIntervals, IntervalDispatcher
from gpusched_env.planning.interval import BY_PLAN, Knob, levels_of
from gpusched_env.planning.plans import MOST_JOBS, NOBODY, SCRATCH, PlanColumn
from gpusched_env.scheduling.commands import WAITING, Command, Wait
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.view import JobColumn, PendingColumn, TenantColumn, View

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ONE_EACH = 1
"""Pending launches of a tenant that plans look at."""


class PlanScratch(NamedTuple):
    """Tables that plans are made of."""

    pending: Floats
    """Pending launches, one row a tenant."""
    tenants: Floats
    jobs: Floats
    plan: Floats

    @classmethod
    def of(cls, tenants: int) -> PlanScratch:
        """Tables for so many tenants."""
        return cls(
            np.zeros((tenants, len(PendingColumn))), np.zeros((tenants, len(TenantColumn))),
            np.zeros((MOST_JOBS, len(JobColumn))), np.zeros(SCRATCH),
        )  # fmt: skip


def dispatcher_of(scheduler: Scheduler) -> IntervalDispatcher | None:
    """The dispatcher of a scheduler that decides for intervals; ``None``: it decides about every launch."""
    return scheduler.dispatcher if isinstance(scheduler, DecidesForIntervals) else None


def first_decision(stream_priorities: tuple[int, ...], tenants: int) -> StandingDecision:
    """What stands at the beginning of an episode: going by the plan."""
    return StandingDecision(
        np.array([BY_PLAN.tenant, BY_PLAN.others, NO_KNOBS, NOBODY], np.int64),
        np.zeros((tenants, len(PlanColumn))),
        np.zeros((len(Knob), tenants), np.int64),
        levels_of(stream_priorities, tenants),
    )


@native()
def launch_until(address, drive_at, standing, outlook, lookahead, scratch, until_ps, counts):
    """Launch by the decision that stands, until a time, the end, or until the environment has to be served.

    Args:
        address: of an environment's record; its scheduler is asked, or it has been served.
        drive_at: of :func:`~gpusched_env.devices.compiled.entry.compile_units`.
        standing, outlook, lookahead, scratch, until_ps: as for
            :func:`~gpusched_env.devices.compiled.interval.put_next_command`.
        counts: why the event loop stopped last, and commands so far but for waits; written.
    """
    w = env_at(address, 0)
    if counts[0] != DECIDE:
        counts[0] = call(drive_at, address, 1)
    while counts[0] == DECIDE and w.now_ps < until_ps:
        put_next_command(w, standing, outlook, lookahead, scratch, until_ps)
        counts[1] += given(w).code != WAITING
        counts[0] = call(drive_at, address, 1)


class Intervals:
    """One episode of a scheduler that decides for intervals, on a device that stands at its first decision."""

    def __init__(self, arena: Arena, drive_at: int, scheduler: Scheduler) -> None:
        """``scheduler``: is asked whenever its dispatcher says so, whose place compiled code takes."""
        dispatcher = dispatcher_of(scheduler)
        assert isinstance(scheduler, DecidesForIntervals)
        assert dispatcher is not None
        self._arena, self._drive_at, self._scheduler, self._dispatcher = arena, drive_at, scheduler, dispatcher
        tenants = len(arena.problem.programs)
        self._standing = first_decision(dispatcher.stream_priorities, tenants)
        self._scratch = PlanScratch.of(tenants)
        self._counts: Ints = np.array([DECIDE, 0])

    @property
    def commands(self) -> int:
        """Commands that were no waits."""
        return int(self._counts[1])

    def play(self, view: Callable[[], View], tell: Callable[[Command], None], go_on: Callable[[], int]) -> int:
        """Play to the end; returns why it ended.

        Args:
            view: what the scheduler is shown.
            tell: checks a command that it gives instead of a decision, and gives it to the device.
            go_on: carries that out, and goes on; says why it stopped.
        """
        counts, scheduler, dispatcher = self._counts, self._scheduler, self._dispatcher
        while counts[0] == DECIDE:
            shown = view()
            command = scheduler.stand(shown) if dispatcher.asks(shown) else None
            if command is not None:
                tell(command)
                counts[0] = go_on()
                counts[1] += not isinstance(command, Wait)
                continue
            if dispatcher.let_stand(shown):
                serve = dispatcher.stands
                self._standing.decision[:3] = serve.tenant, serve.others, NO_KNOBS
            self._launch_until(to_ps(dispatcher.next_us))
        return int(counts[0])

    def _launch_until(self, until_ps: int) -> None:
        while True:
            launch_until(
                self._arena.address, self._drive_at, self._standing, self._dispatcher.outlook, ONE_EACH, self._scratch,
                until_ps, self._counts,
            )  # fmt: skip
            if self._counts[0] in (OVER, DECIDE, DEADLOCK, IDLE):
                return
            self._arena.serve(int(self._counts[0]))
