"""The readable device at warp granularity: plain Python, a class a concept, nothing clever.

An application's kernels run one after another; the next one starts when the one before it has finished, its children
included. ``docs/warp-devices.md`` has the rules; the compiled device beside it follows them, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import DeadlockError
from gpusched_env.games.child_launches import monitors
from gpusched_env.games.child_launches.device import (
    LAUNCH,
    NO_LIMIT,
    REQUEST,
    SERIALISE,
    SPAWN,
    TOTALS,
    AskingDevice,
    RequestView,
    deadlock_text,
    request_view,
)
from gpusched_env.games.child_launches.devices.parts import LaunchedGrid, Queues, WarpBlock, WarpGroup, WarpSm
from gpusched_env.games.child_launches.hardware.warp_machine import clock_now, demand, stretch, time_of
from gpusched_env.games.child_launches.monitors import MONITOR, WINDOW_CYCLES
from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.hardware.occupancy import WARP_THREADS
from gpusched_env.hardware.placement import fit
from gpusched_env.scheduling.guards import one_thread_at_a_time

Asking = Generator[RequestView, bool | None, None]
"""Gives requests, gets whether they are launched (``None`` only to begin)."""


class ReferenceWarpDevice(AskingDevice):
    """See :class:`gpusched_env.games.child_launches.device.LaunchDevice`."""

    @one_thread_at_a_time
    def reset(self, problem: LaunchProblem) -> RequestView | None:
        limits = problem.machine.gpu.limits
        self._problem = problem
        self._tables = problem.tables
        self._sms = [
            WarpSm(limits.threads, limits.warps, limits.blocks, limits.registers, limits.shared_bytes)
            for _ in range(problem.machine.gpu.sms)
        ]
        self._queues = Queues()
        self._stalls: list[tuple[int, WarpGroup]] = []
        self._monitor = np.zeros(1, MONITOR).view(np.recarray)[0]
        self._window_ps = problem.machine.ps(WINDOW_CYCLES)
        self._launches: list[dict[str, int]] = []
        self._totals = np.zeros(1, TOTALS).view(np.recarray)[0]
        self._kernel = -1
        self._now = 0
        self._changed = False
        self._finished = True
        self._answer = None
        self._stuck = False
        self._taken: list[bool] = []
        self._run = self._events()
        return self._go(None)

    @property
    def time_ps(self) -> int:
        return self._now

    @property
    def totals(self) -> np.void:
        row: np.void = self._totals
        return row

    @property
    def launches(self) -> NDArray[np.void]:
        return np.array([tuple(row.values()) for row in self._launches], LAUNCH)

    # ---- decisions

    def _run_on(self, answer: bool) -> RequestView | None:
        self._taken.append(answer)
        return self._go(answer)

    def _go(self, answer: bool | None) -> RequestView | None:
        self._asked = False
        try:
            view = self._run.send(answer)
        except StopIteration:
            return None
        except DeadlockError:
            self._stuck = True
            raise
        self._asked = True
        return view

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles take all decisions again, as after :meth:`restore`: there is no copy of a generator.

        Raises:
            GpuschedError: as :meth:`snapshot`.
        """
        return _restored, (self.snapshot() if hasattr(self, "_problem") else None,)

    def _saved(self) -> tuple[bool, ...]:
        return tuple(self._taken)

    def _load(self, problem: LaunchProblem, saved: tuple[bool, ...]) -> RequestView | None:
        """Take all decisions again."""
        view = self.reset(problem)
        for spawns in saved:
            self.apply(SPAWN if spawns else SERIALISE)
            view = self.advance()
        return view

    # ---- time

    def _events(self) -> Asking:
        while self._finished and self._kernel + 1 < len(self._tables.kernels):
            self._launch_kernel()
            while not self._finished:
                yield from self._instant()
                if not self._finished:
                    self._go_on()

    def _instant(self) -> Asking:
        """All that happens now, one thing after another."""
        while not self._finished:
            if self._changed:
                self._changed = False
                self._dispatch()
            due = next((sm for sm in self._sms if sm.due and sm.since_ps == self._now), None)
            stalled = next((entry for entry in self._stalls if entry[0] <= self._now), None)
            head = self._becomes_ready()
            if due is not None:
                yield from self._next_turn(due.running.pop(0))
            elif stalled is not None:
                self._stalls.remove(stalled)
                yield from self._stall_over(stalled[1])
            elif head is not None and head.ready_ps <= self._now:
                head.ready = True
                self._changed = True
            else:
                return

    def _go_on(self) -> None:
        """Go on to the next event."""
        machine = self._problem.machine
        lines = [sum(warps.lines * warps.count for warps in sm.running) for sm in self._sms]
        for sm, own in zip(self._sms, lines, strict=True):
            rate = 0.0
            if sm.running:
                issue = sum(warps.issue * warps.count for warps in sm.running)
                slower = stretch(sum(lines), machine.gpu_lines, own, machine.sm_lines, issue)
                rate = 1.0 / (machine.ps_per_cycle * slower)
            if rate != sm.rate:
                sm.clock, sm.since_ps, sm.rate = clock_now(sm.clock, sm.since_ps, sm.rate, self._now), self._now, rate
            if sm.running:
                sm.next_ps = time_of(sm.running[0].target, sm.clock, sm.since_ps, sm.rate, self._now)
        times = [sm.next_ps for sm in self._sms if sm.running] + [end for end, _ in self._stalls]
        if (head := self._becomes_ready()) is not None:
            times.append(head.ready_ps)
        if not times:
            raise DeadlockError(self._deadlock())
        now = min(times)
        self._totals.warp_ps += (now - self._now) * self._live_warps()
        self._now = now
        for sm in self._sms:
            if sm.running and sm.next_ps == now:
                shown = clock_now(sm.clock, sm.since_ps, sm.rate, now)
                sm.clock, sm.since_ps = max(shown, sm.running[0].target), now

    # ---- launches

    def _launch_kernel(self) -> None:
        self._kernel += 1
        row = self._tables.kernels[self._kernel]
        threads = int(row["threads"])
        self._finished = False
        grid = self._new_grid(int(row["first_thread"]), 0, threads, -(-threads // int(row["block_threads"])), None, -1)
        self._kernel_grid = grid
        self._enqueue(grid)

    def _new_grid(
        self, first_thread: int, iterations: int, threads: int, blocks: int, block: WarpBlock | None, request: int
    ) -> LaunchedGrid:
        parent = block.grid if block is not None else None
        nesting = parent.nesting + 1 if parent is not None else 0
        grid = LaunchedGrid(len(self._launches), first_thread, iterations, threads, blocks, parent, nesting, block)
        grid.unended = blocks
        values = (parent.number if parent is not None else -1, request, blocks, self._now, -1, -1, -1, -1)
        self._launches.append(dict(zip(LAUNCH.names or (), values, strict=True)))
        return grid

    def _enqueue(self, grid: LaunchedGrid) -> None:
        self._queues.waiting.append(grid)
        self._changed = True

    def _enter(self, warps: WarpGroup) -> None:
        """Children whose launch call is over go into their software queues."""
        for grid in warps.spawned[:1] if self._problem.aggregated else warps.spawned:
            before, warps.block.last_child = warps.block.last_child, grid
            if self._problem.queue_of == "block" and before is not None and not before.launch_finished:
                before.next_in_queue = grid
            else:
                self._enqueue(grid)
        warps.spawned = []

    def _dispatch(self) -> None:
        """Hardware queues are filled, then blocks handed out, of the host's kernel first, of children in order."""
        costs, queues = self._problem.machine.launches, self._queues
        while queues.waiting and queues.in_use < costs.hardware_queues:
            grid = queues.waiting.popleft()
            queues.in_use += 1
            ready = self._now + self._problem.machine.ps(costs.dispatch_cycles)
            if grid.nesting:
                ready = max(ready, queues.ready_ps + self._problem.machine.ps(costs.interval_cycles))
                queues.children -= len(grid.launch)
            grid.ready_ps = queues.ready_ps = ready
            grid.ready = ready <= self._now
            for member in grid.launch:
                self._launches[member.number]["queued_ps"] = self._now
            if grid.nesting:
                queues.handing_out.append(grid)
        self._hand_out(self._kernel_grid)
        while queues.handing_out and self._hand_out(queues.handing_out[0]):
            queues.handing_out.popleft()

    def _hand_out(self, leader: LaunchedGrid) -> bool:
        """Hand out blocks of a launch; ``False``: some are left, because it is not ready or no SM has room."""
        for grid in leader.launch if leader.ready else ():
            while grid.handed_out < grid.blocks:
                sm = self._most_room(grid)
                if sm is None:
                    return False
                self._place(grid, sm)
        return leader.ready

    def _becomes_ready(self) -> LaunchedGrid | None:
        """The launch that becomes ready next."""
        queues = self._queues
        head = queues.handing_out[0] if self._kernel_grid.ready and queues.handing_out else self._kernel_grid
        return None if head.ready else head

    def _shape(self, grid: LaunchedGrid) -> tuple[int, int, int, int]:
        """Threads, warps, registers and shared memory of a block."""
        row, whose = self._tables.kernels[self._kernel], "child" if grid.nesting else "block"
        return tuple(int(row[f"{whose}_{what}"]) for what in ("threads", "warps", "registers", "shared"))  # type: ignore[return-value]

    def _most_room(self, grid: LaunchedGrid) -> WarpSm | None:
        shape = self._shape(grid)
        rooms = [fit(sm.threads, sm.warps, sm.blocks, sm.registers, sm.shared, *shape) for sm in self._sms]
        best = max(rooms)
        return self._sms[rooms.index(best)] if best > 0 else None

    # ---- blocks and warps

    def _occupy(self, grid: LaunchedGrid, sm: WarpSm, sign: int) -> None:
        threads, warps, registers, shared = self._shape(grid)
        sm.threads -= sign * threads
        sm.warps -= sign * warps
        sm.blocks -= sign
        sm.registers -= sign * registers
        sm.shared -= sign * shared

    def _place(self, grid: LaunchedGrid, sm: WarpSm) -> None:
        self._occupy(grid, sm, 1)
        if grid.handed_out == 0:
            self._launches[grid.number]["started_ps"] = self._now
        size = self._shape(grid)[0]
        first = grid.handed_out * size
        threads = range(first, min(first + size, grid.threads))
        grid.handed_out += 1
        block = WarpBlock(grid, sm, self._now)
        self._totals.resident_blocks += 1
        self._totals.peak_blocks = max(self._totals.peak_blocks, self._totals.resident_blocks)
        if grid.nesting:
            monitors.block_started(self._monitor, self._now, self._window_ps)
        alike: dict[tuple[int, int], WarpGroup] = {}
        for at in range(0, len(threads), WARP_THREADS):
            row = threads[at : at + WARP_THREADS]
            most, total, requests = self._work_before(grid, row)
            if requests == 0 and (most, total) in alike:
                alike[most, total].count += 1
            else:
                warps = self._begin(block, row, most, total)
                if requests == 0:
                    alike[most, total] = warps
            block.warps += 1
            sm.live_warps += 1

    def _work_before(self, grid: LaunchedGrid, row: range) -> tuple[int, int, int]:
        """Most and total iterations of a warp's lanes before their requests, and the number of these."""
        if grid.first_thread < 0:
            return grid.iterations, grid.iterations * len(row), 0
        first, end = grid.first_thread + row[0], grid.first_thread + row[-1] + 1
        base, requests = self._tables.base[first:end], self._tables.first_request
        return int(base.max()), int(base.sum()), int(requests[end] - requests[first])

    def _begin(self, block: WarpBlock, row: range, most: int, total: int) -> WarpGroup:
        """A warp's prologue, and the iterations that come before its requests."""
        machine, costs, grid = self._problem.machine, self._problem.costs, block.grid
        warps = WarpGroup(block, grid.first_thread + row[0] if grid.first_thread >= 0 else -1, len(row))
        cycles = machine.prologue_cycles + most * costs.iteration_cycles
        lines = machine.prologue_lines + total * (costs.child_lines if grid.nesting else costs.parent_lines)
        self._phase(warps, cycles, lines, machine.prologue_issue_cycles + most * costs.iteration_issue_cycles)
        return warps

    def _phase(self, warps: WarpGroup, cycles: float, lines: float, issue_cycles: float) -> None:
        warps.lines, warps.issue = demand(lines, cycles), demand(issue_cycles, cycles)
        warps.block.sm.begin(warps, cycles, self._now)

    def _next_turn(self, warps: WarpGroup) -> Asking:
        """The lanes of a warp come to their next requests; without any, it ends."""
        tables, threshold = self._tables, self._problem.threshold
        while warps.first_thread >= 0:
            warps.turn += 1
            first = tables.first_request[warps.first_thread : warps.first_thread + warps.lanes + 1].tolist()
            requests = [r + warps.turn for r, end in pairwise(first) if r + warps.turn < end]
            if not requests:
                break
            warps.serial_work = [int(tables.work[r]) for r in requests if tables.work[r] <= threshold]
            yield from self._ask(warps, [r for r in requests if tables.work[r] > threshold])
            if self._stall(warps) or self._serial_loop(warps):
                return
        self._warps_end(warps)

    def _ask(self, warps: WarpGroup, asking: Sequence[int]) -> Asking:
        tables, costs = self._tables, self._problem.machine.launches
        warps.spilled = 0
        for position, request in enumerate(asking):
            self._totals.decisions += 1
            if (yield self._view(warps, asking, position)):
                room = self._room()
                if room > 0 or costs.overflow == "spill":
                    warps.spilled += room <= 0
                    self._spawn(warps, request)
                    continue
                self._totals.refused += 1
            warps.serial_work.append(int(tables.work[request]))

    def _view(self, warps: WarpGroup, asking: Sequence[int], position: int) -> RequestView:
        monitors.advance(self._monitor, self._now, self._window_ps)
        tables, request, grid = self._tables, asking[position], warps.block.grid
        kernel = tables.kernels[self._kernel]
        blocks = -(-int(kernel["threads"]) // int(kernel["block_threads"]))
        host = self._kernel_grid
        values = {
            "now_ps": self._now,
            "request": request,
            "kernel": self._kernel,
            "nesting": grid.nesting,
            "work": tables.work[request],
            "items": tables.items[request],
            "blocks": self._child_blocks(request),
            "calls": len(asking),
            "position": position,
            "spawned": len(warps.spawned),
            "serial_work": max(warps.serial_work, default=0),
            "largest_work": max(tables.work[asking]),
            "waiting": self._queues.children,
            "queues": self._queues.in_use,
            "resident_blocks": self._totals.resident_blocks,
            "resident_warps": self._live_warps(),
            "parent_blocks": blocks - host.handed_out,
            "room": self._room(),
        }
        return request_view(np.array([tuple(values.values())], REQUEST)[0], self._monitor)

    def _child_blocks(self, request: int) -> int:
        return -(-int(self._tables.items[request]) // int(self._tables.kernels[self._kernel]["child_threads"]))

    def _live_warps(self) -> int:
        return sum(sm.live_warps for sm in self._sms)

    def _room(self) -> int:
        pool = self._problem.machine.launches.pool
        return NO_LIMIT if pool is None else max(0, pool - self._queues.children)

    def _spawn(self, warps: WarpGroup, request: int) -> None:
        tables, block, blocks = self._tables, warps.block, self._child_blocks(request)
        first, iterations = int(tables.first_child[request]), int(tables.iterations[request])
        child = self._new_grid(first, iterations, int(tables.items[request]), blocks, block, request)
        if self._problem.aggregated and warps.spawned:
            child.leader = warps.spawned[0]
            child.leader.fellows.append(child)
        warps.spawned.append(child)
        self._monitor.inside += blocks
        self._queues.children += 1
        self._totals.spawned += 1
        block.children += 1
        block.grid.children += 1

    def _stall(self, warps: WarpGroup) -> bool:
        """The launch call; ``False`` if there is none, or it takes no time and is over."""
        if not warps.spawned:
            return False
        costs = self._problem.machine.launches
        calls = 1 if self._problem.aggregated else len(warps.spawned)
        cycles = costs.per_call_cycles + costs.per_child_cycles * calls + costs.spill_cycles * warps.spilled
        self._totals.spilled += warps.spilled
        stall_ps = self._problem.machine.ps(cycles)
        if stall_ps > 0:
            self._stalls.append((self._now + stall_ps, warps))
            return True
        self._enter(warps)
        return False

    def _stall_over(self, warps: WarpGroup) -> Asking:
        self._enter(warps)
        if not self._serial_loop(warps):
            yield from self._next_turn(warps)

    def _serial_loop(self, warps: WarpGroup) -> bool:
        """Lanes that launched nothing do the work of this turn; the warp waits for the longest. Is there any?"""
        work, warps.serial_work = warps.serial_work, []
        if not any(work):
            return False
        costs = self._problem.costs
        self._phase(
            warps,
            max(work) * costs.iteration_cycles,
            sum(work) * costs.parent_lines,
            max(work) * costs.iteration_issue_cycles,
        )
        return True

    # ---- ends

    def _warps_end(self, warps: WarpGroup) -> None:
        block = warps.block
        block.sm.live_warps -= warps.count
        if block.grid.nesting:
            residency_ps = self._now - block.started_ps
            monitors.warps_ended(self._monitor, self._now, self._window_ps, residency_ps, warps.count)
        block.warps -= warps.count
        if block.warps == 0 and (block.children == 0 or self._problem.parents == "leave"):
            self._block_ends(block)

    def _block_ends(self, block: WarpBlock) -> None:
        grid = block.grid
        self._occupy(grid, block.sm, -1)
        self._changed = True
        self._totals.resident_blocks -= 1
        if grid.nesting:
            monitors.block_ended(self._monitor, self._now, self._window_ps, self._now - block.started_ps)
        grid.unended -= 1
        if grid.unended == 0:
            self._launches[grid.number]["ended_ps"] = self._now
            if self._problem.held_until == "blocks":
                self._give_queue_back(grid.leader or grid, ended=True)
            if grid.children == 0:
                self._finish(grid)

    def _give_queue_back(self, leader: LaunchedGrid, *, ended: bool) -> None:
        """Give a hardware queue back if all that was launched together has ended, or has finished."""
        if all(grid.unended == 0 if ended else grid.finished for grid in leader.launch):
            self._queues.in_use -= 1
            self._changed = True

    def _finish(self, grid: LaunchedGrid) -> None:
        """Finish a grid whose blocks have ended and whose children have finished; it may be the last of its parent."""
        grid.finished = True
        self._launches[grid.number]["finished_ps"] = self._now
        leader = grid.leader or grid
        if self._problem.held_until == "children":
            self._give_queue_back(leader, ended=False)
        if leader.next_in_queue is not None and leader.launch_finished:
            self._enqueue(leader.next_in_queue)
        block, parent = grid.block, grid.parent
        if block is None or parent is None:
            self._finished = True
            return
        block.children -= 1
        parent.children -= 1
        if self._problem.parents == "wait" and block.children == 0 and block.warps == 0:
            self._block_ends(block)
        elif parent.children == 0 and parent.unended == 0:
            self._finish(parent)

    def _deadlock(self) -> str:
        queues, host = self._queues, self._kernel_grid
        first = queues.handing_out[0] if queues.handing_out else None
        head = host if host.handed_out < host.blocks else first
        return deadlock_text(
            self._problem,
            self._now,
            waiting=len(queues.waiting),
            in_use=queues.in_use,
            head=head.number if head is not None else -1,
            live_warps=self._live_warps(),
            resident_blocks=int(self._totals.resident_blocks),
        )


def _restored(snapshot: tuple[LaunchProblem, Any] | None) -> ReferenceWarpDevice:
    device = ReferenceWarpDevice()
    if snapshot is not None:
        with contextlib.suppress(DeadlockError):  # Copies of a device that is stuck are, too.
            device.restore(snapshot)
    return device
