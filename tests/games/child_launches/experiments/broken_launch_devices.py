"""Reference devices of child launches with one fault each, for the fuzzer to find."""

from __future__ import annotations

from typing import Any

from gpusched_env.games.child_launches.device import RequestView
from gpusched_env.games.child_launches.devices.parts import LaunchedGrid, WarpBlock, WarpGroup, WarpSm
from gpusched_env.games.child_launches.devices.reference import ReferenceWarpDevice
from gpusched_env.games.child_launches.problem import LaunchProblem


class LastSm(ReferenceWarpDevice):
    """Of SMs with equal room the last one gets a block."""

    def _most_room(self, grid: LaunchedGrid) -> WarpSm | None:
        self._sms.reverse()
        try:
            return super()._most_room(grid)
        finally:
            self._sms.reverse()


class NewestFirst(ReferenceWarpDevice):
    """Children of a warp go into their queues last lane first."""

    def _enter(self, warps: WarpGroup) -> None:
        if not self._problem.aggregated:
            warps.spawned.reverse()
        super()._enter(warps)


class Keeps(ReferenceWarpDevice):
    """Blocks of children keep their registers."""

    def _occupy(self, grid: LaunchedGrid, sm: WarpSm, sign: int) -> None:
        super()._occupy(grid, sm, sign)
        if sign < 0 and grid.nesting == 2:
            sm.registers -= 256


class Uncounted(ReferenceWarpDevice):
    """Forgets a child block that a second-level child launches."""

    def _block_ends(self, block: WarpBlock) -> None:
        super()._block_ends(block)
        if block.grid.nesting == 2:
            self._monitor.inside += 1


class Forgetful(ReferenceWarpDevice):
    """Comes back to a snapshot without its last decision."""

    def _load(self, problem: LaunchProblem, saved: Any) -> RequestView | None:
        return super()._load(problem, saved[:-1])


class Silent(ReferenceWarpDevice):
    """Says less about a deadlock."""

    def _deadlock(self) -> str:
        return super()._deadlock().partition(":")[0]
