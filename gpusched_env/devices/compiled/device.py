"""The compiled device: one environment behind the protocol that all devices share."""

from __future__ import annotations

import threading

from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.arena import Arena, Saved
from gpusched_env.devices.compiled.entry import compile_units, drive, tenant_comes, tenant_goes
from gpusched_env.devices.compiled.snapshot_view import BUILDERS
from gpusched_env.devices.rules.deadlock import deadlock
from gpusched_env.errors import DeadlockError
from gpusched_env.hardware.clock import NEVER, to_ps, to_us
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.coming import check_loop, jobs_to_come, misplaced
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.costs import Costs
from gpusched_env.scheduling.given import write_numbers
from gpusched_env.scheduling.legality import check
from gpusched_env.scheduling.one_thread import alone
from gpusched_env.scheduling.showing import Showing, complete_view
from gpusched_env.scheduling.timeline import Detail, Timeline
from gpusched_env.scheduling.view import View


class CompiledDevice:
    """One simulated GPU with its tenants (see :class:`gpusched_env.scheduling.device.Device`)."""

    def __init__(self) -> None:
        # All at once, so that whoever makes a device before starting processes compiles for all of them.
        self._drive_at = compile_units()["drive"]
        self.arena: Arena = Arena()
        self._showing = Showing(self.arena, BUILDERS)
        self._place = (0, 0)
        """Commands and time of what it shows."""
        self._stop_ps = NEVER

    @property
    def entry(self) -> threading.RLock:
        """Of the memory, which one thread uses at a time."""
        return self.arena.entry

    @alone
    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        """Start an episode and run to the first decision epoch (``None``: it ended before one)."""
        self._showing.change()
        self.arena.reset(problem, seed, record)
        self.arena.env["real_ps"] = self._stop_ps
        return self.advance()

    @property
    def stop_us(self) -> float:
        """Where :meth:`advance` stands still (``inf``: nowhere); not before the present time."""
        return to_us(self._stop_ps)

    @stop_us.setter
    def stop_us(self, us: float) -> None:
        self._stop_ps = to_ps(us)
        if self.arena.address:
            self.arena.env["real_ps"] = self._stop_ps

    @alone
    def come(self, tenant: int, jobs: int | None = None) -> None:
        """A tenant comes from outside.

        Raises:
            IllegalCommand: it may not.
        """
        problem = self.arena.problem
        if not tenant_comes(self.arena.address, tenant, jobs_to_come(problem, tenant, jobs)):
            raise misplaced(problem, tenant, "come")
        self._showing.change()

    @alone
    def go(self, tenant: int) -> None:
        """A tenant sends nothing any more.

        Raises:
            IllegalCommand: it may not.
        """
        problem = self.arena.problem
        check_loop(problem, tenant, "go")
        if not tenant_goes(self.arena.address, tenant):
            raise misplaced(problem, tenant, "go")
        self._showing.change()

    @property
    def done(self) -> bool:
        """Every tenant with a finite number of jobs has completed them (and there is one)."""
        return bool(self.arena.env["done"])

    @property
    @alone
    def timeline(self) -> Timeline:
        """What happened so far."""
        self.arena.flush()
        return self.arena.timeline

    @property
    def time_us(self) -> float:
        """Simulated time."""
        return int(self.arena.env["now_ps"]) / 1e6

    @property
    @alone
    def costs(self) -> Costs:
        """Time integrals since the reset, exact at :attr:`time_us`."""
        return self.arena.costs()

    @alone
    def apply(self, command: Command) -> None:
        """Carry out one command; a refused one changes nothing.

        Raises:
            IllegalCommand: names the command and why it is not legal now.
        """
        legal = check(command, self._look(), self.arena.problem, self.arena.operation_of)
        write_numbers(legal, self.arena.given)
        self._drive(running=False)
        self._showing.change()

    @alone
    def advance(self) -> View | None:
        """The view for the next decision, or ``None`` at the end of the episode."""
        reason = self._drive(running=True)
        if reason == layout.DEADLOCK:
            raise self.deadlock()
        return self._look().view() if reason == layout.DECIDE else None

    def _look(self) -> Showing:
        """What it shows at present."""
        # A batch takes steps behind this object's back.
        place = self.arena.place
        if place != self._place:
            self._showing.change()
            self._place = place
        return self._showing

    def _drive(self, *, running: bool) -> int:
        while True:
            reason = int(drive(self.arena.address, self._drive_at, running))
            if reason in (layout.OVER, layout.DECIDE, layout.DEADLOCK, layout.IDLE):
                return reason
            self.arena.serve(reason)

    @alone
    def view(self) -> View:
        """A snapshot at the present time, whether or not it is a decision epoch."""
        return complete_view(self.arena, BUILDERS)

    def deadlock(self) -> DeadlockError:
        """The error that says what waits for what."""
        arena = self.arena
        return deadlock(arena.problem, self.view(), arena.clients["outstanding"].tolist(), arena.held())

    # ---- snapshots -------------------------------------------------------------------------------

    @alone
    def snapshot(self) -> Saved:
        """The whole state, as it is: costs as much as copying it."""
        return self.arena.save()

    @alone
    def restore(self, snapshot: Saved) -> View | None:
        """Return to a snapshot exactly."""
        self.arena.load(snapshot)
        self.arena.env["real_ps"] = self._stop_ps
        self._showing.change()
        return None if self.arena.env["over"] or self.arena.env["stands"] else self._look().view()
