"""The compiled device at warp granularity, as Python sees it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import DeadlockError
from gpusched_env.games.child_launches.device import deadlock_text
from gpusched_env.games.child_launches.devices.asking import AskingDevice
from gpusched_env.games.child_launches.devices.compiled.loop import ASKS, DEADLOCK, begin, proceed
from gpusched_env.games.child_launches.devices.compiled.state import MachineState, Saved, load, new_state, save
from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.games.child_launches.view import RequestView, request_view
from gpusched_env.scheduling.one_thread import alone


class CompiledWarpDevice(AskingDevice):
    """See :class:`gpusched_env.games.child_launches.device.LaunchDevice`."""

    @alone
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
        first, end = int(core["handing_first"]), int(core["handing_end"])
        return deadlock_text(
            self._problem,
            self.time_ps,
            waiting=int(core["waiting_end"] - core["waiting_first"]),
            in_use=int(core["in_use"]),
            head=int(self.state.handing[first]) if first < end else -1,
            live_warps=int(core["live_warps"]),
            resident_blocks=int(self.totals["resident_blocks"]),
        )
