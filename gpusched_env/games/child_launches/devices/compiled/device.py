"""The compiled device at warp granularity: the run from request to request, and what Python sees of it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import called, native
from gpusched_env.errors import DeadlockError
from gpusched_env.games.child_launches.device import AskingDevice, RequestView, deadlock_text, request_view
from gpusched_env.games.child_launches.devices.compiled.queues import (
    becomes_ready,
    dispatch,
    enqueue,
    new_grid,
    update_room,
)
from gpusched_env.games.child_launches.devices.compiled.sms import NEVER, arrive, due_sm, end_phase, next_phase_end
from gpusched_env.games.child_launches.devices.compiled.state import MachineState, Saved, load, new_state, save
from gpusched_env.games.child_launches.devices.compiled.turns import answer, next_turn, pop_stall, stall_over
from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.scheduling.guards import one_thread_at_a_time

DONE: Final = 0
ASKS: Final = 1
DEADLOCK: Final = 2


@called
def run_on(state: Any) -> int:
    """Run to the next request (:data:`ASKS`), the end or a deadlock."""
    core = state.core[0]
    while True:
        if core.finished:
            if core.kernel + 1 == state.kernels.size:
                return DONE
            _launch_kernel(state)
        if core.changed:
            core.changed = 0
            dispatch(state)
        at = due_sm(state)
        if at >= 0:
            if next_turn(state, end_phase(state, at)):
                return ASKS
        elif core.stalls > 0 and state.stall_ends[0, 0] <= core.now_ps:
            if stall_over(state, pop_stall(state)):
                return ASKS
        elif _one_is_ready(state):
            core.changed = 1
        elif not _go_on(state):
            return DEADLOCK


@called
def decide_and_run_on(state: Any, spawn: bool) -> int:
    """Answer the present request, then :func:`run_on`."""
    if answer(state, spawn):
        return ASKS
    return run_on(state)


@native()
def begin(state):
    """Start the application and run to its first request."""
    return run_on(state)


@native()
def proceed(state, spawn):
    """Answer a request and run to the next one."""
    return decide_and_run_on(state, spawn)


@called
def _launch_kernel(state):
    core = state.core[0]
    core.kernel += 1
    core.finished = 0
    kernel = state.kernels[core.kernel]
    for at in range(state.sms.size):
        update_room(state, at)
    blocks = (kernel.threads + kernel.block_threads - 1) // kernel.block_threads
    core.kernel_grid = new_grid(state, kernel.first_thread, 0, kernel.threads, blocks, -1, -1)
    enqueue(state, core.kernel_grid)


@called
def _one_is_ready(state):
    """Whether a launch becomes ready now."""
    number = becomes_ready(state)
    if number < 0 or state.grids[number].ready_ps > state.core[0].now_ps:
        return False
    state.grids[number].ready = 1
    return True


@called
def _go_on(state):
    """Go on to the time of the next event; ``False``: there is none."""
    core = state.core[0]
    next_ps = next_phase_end(state)
    if core.stalls > 0:
        next_ps = min(next_ps, state.stall_ends[0, 0])
    number = becomes_ready(state)
    if number >= 0:
        next_ps = min(next_ps, state.grids[number].ready_ps)
    if next_ps == NEVER:
        return False
    state.totals[0].warp_ps += (next_ps - core.now_ps) * core.live_warps
    core.now_ps = next_ps
    arrive(state, next_ps)
    return True


class CompiledWarpDevice(AskingDevice):
    """See :class:`gpusched_env.games.child_launches.device.LaunchDevice`."""

    @one_thread_at_a_time
    def reset(self, problem: LaunchProblem) -> RequestView | None:
        self._start(problem)
        return self.reached(begin(self.state))

    def _start(self, problem: LaunchProblem) -> None:
        self._problem, self._answer = problem, None
        self.state: MachineState = new_state(problem)

    def _run_on(self, answer: bool) -> RequestView | None:
        return self.reached(proceed(self.state, answer))

    def reached(self, status: int) -> RequestView | None:
        """What ``advance`` gives after compiled code has run on to a status of the loop.

        Raises:
            DeadlockError: the status says so.
        """
        self._status, self._asked, self._stuck = status, status == ASKS, status == DEADLOCK
        if self._stuck:
            raise DeadlockError(self._deadlock())
        return request_view(self.state.request[0], self.state.monitor[0]) if self._asked else None

    @property
    def time_ps(self) -> int:
        return int(self.state.core[0]["now_ps"])

    @property
    def totals(self) -> np.void:
        row: np.void = self.state.totals[0]
        return row

    @property
    def launches(self) -> NDArray[np.void]:
        return self.state.launches[: int(self.state.core[0]["grids"])]

    def _saved(self) -> tuple[int, Saved]:
        return self._status, save(self.state)

    def _load(self, problem: LaunchProblem, saved: tuple[int, Saved]) -> RequestView | None:
        self._start(problem)
        status, tables = saved
        load(self.state, tables)
        return self.reached(status)

    def _deadlock(self) -> str:
        core = self.state.core[0]
        first, end, head = int(core["handing_first"]), int(core["handing_end"]), int(core["kernel_grid"])
        host = self.state.grids[head]
        if host["handed_out"] == host["blocks"]:
            head = int(self.state.handing[first]) if first < end else -1
        return deadlock_text(
            self._problem,
            self.time_ps,
            waiting=int(core["waiting_end"] - core["waiting_first"]),
            in_use=int(core["in_use"]),
            head=head,
            live_warps=int(core["live_warps"]),
            resident_blocks=int(self.totals["resident_blocks"]),
        )
