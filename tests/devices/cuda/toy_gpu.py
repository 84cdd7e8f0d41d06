"""A GPU that plays the part of a real one: the teaching GPU's four SMs of one block each, in a time of its own.

What it shares with the simulated devices is the rule alone: blocks go to the most urgent kernel, then to the one that
was ready first, which keeps what is behind it waiting until all its blocks are handed out. A kernel that is recalled
before it has begun ends when it is its turn.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.cuda.gpu import GpuWork, Report
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import NodeOp
from gpusched_env.workload.workload import OpKind

SMS = 4
ENGINES = {OpKind.COPY_TO_DEVICE: "in", OpKind.COPY_TO_HOST: "out"}


@dataclass
class Grid:
    """A kernel, or a node of a graph, that is ready."""

    work: GpuWork
    waiting: int
    block_ps: int
    serial: int
    ends: list[tuple[int, int]] = field(default_factory=list)
    """When each of its blocks ends, and its SM."""
    node: int = -1


@dataclass
class Graph:
    """Nodes of a graph that have not ended, by number."""

    left: dict[int, NodeOp]
    begun: set[int] = field(default_factory=set)


class ToyGpu:
    """See :class:`gpusched_env.devices.cuda.gpu.Gpu`."""

    def __init__(self) -> None:
        self.closed = False
        self.submitted: list[GpuWork] = []
        """In all episodes."""

    def prepare(self, problem: Problem, *, blocks: bool = False) -> None:
        self._problem = problem
        self._recording = blocks

    def start(self) -> None:
        self._now = self._serial = 0
        self._queues: dict[tuple[int, int, tuple[int, int] | None], deque[GpuWork]] = {}
        self._grids: list[Grid] = []
        self._graphs: dict[int, Graph] = {}
        self._copies: dict[int, int] = {}
        self._engines: dict[str, deque[GpuWork]] = {"in": deque(), "out": deque()}
        self._at_engine: set[int] = set()
        self._known: set[int] = set()
        self._ended: set[int] = set()
        self._recalled: set[int] = set()
        self._whole: set[int] = set()
        """Ended with all their blocks."""
        self._started: set[int] = set()
        self._reports: list[Report] = []
        self._blocks: list[tuple[int, int, int, int]] = []

    def now_ps(self) -> int:
        return self._now

    def submit(self, work: GpuWork) -> None:
        self.submitted.append(work)
        for seen in (self._known, self._ended, self._started):
            seen.discard(work.launch)
        self._queues.setdefault((work.stream, work.priority, work.sms), deque()).append(work)
        self._settle()

    def recall(self, launches: list[int]) -> None:
        assert self._ended.isdisjoint(launches)
        self._recalled |= set(launches)
        self._settle()

    def poll(self) -> list[Report]:
        self._settle()
        found, self._reports = self._reports, []
        return found

    def pause(self, until_ps: int) -> None:
        self._settle()
        ends = [*(end for grid in self._grids for end, _ in grid.ends), *self._copies.values()]
        self._now = min([until_ps, *ends])
        assert self._now < NEVER, "the device waits for ever"

    def blocks(self) -> NDArray[np.int64]:
        ended = [row for row in self._blocks if row[1] in self._whole]
        return np.array(sorted(ended, key=lambda row: row[3]), np.int64).reshape(-1, 4)

    def stop(self) -> None:
        self._queues = {}
        self._grids = []

    def close(self) -> None:
        self.closed = True

    # ---- what happens at the present time ---------------------------------------------------------------------------

    def _settle(self) -> None:
        while self._end() | self._dispatch() | self._begin():
            pass

    def _end(self) -> bool:
        """What is over."""
        over = False
        for grid in sorted(self._grids, key=lambda grid: grid.work.launch):
            before = len(grid.ends)
            grid.ends = [block for block in grid.ends if block[0] > self._now]
            over |= len(grid.ends) < before
            if not grid.ends and (not grid.waiting or grid.work.launch in self._recalled):
                over = True
                self._grids.remove(grid)
                self._grid_ended(grid)
        for launch, end in sorted(self._copies.items()):
            if end <= self._now:
                del self._copies[launch]
                for engine in self._engines.values():
                    if engine and engine[0].launch == launch:
                        engine.popleft()
                self._finish(launch)
                over = True
        return over

    def _grid_ended(self, grid: Grid) -> None:
        if grid.node < 0:
            self._finish(grid.work.launch, grid.waiting)
            return
        graph = self._graphs[grid.work.launch]
        del graph.left[grid.node]
        if not graph.left:
            self._finish(grid.work.launch)

    def _finish(self, launch: int, left: int = 0) -> None:
        self._ended.add(launch)
        self._recalled.discard(launch)
        if not left:
            self._whole.add(launch)
        self._reports.append(Report(self._now, launch, True, left))
        for queue in self._queues.values():
            if queue and queue[0].launch == launch:
                queue.popleft()

    def _begin(self) -> bool:
        """Heads of queues whose wait is over, in order of launch, and nodes of graphs."""
        heads = [queue[0] for queue in self._queues.values() if queue]
        ready = [work for work in heads if work.launch not in self._known and self._ended.issuperset(work.after)]
        for work in sorted(ready, key=lambda work: work.launch):
            self._known.add(work.launch)
            if work.op.nodes:
                self._graphs[work.launch] = Graph(dict(enumerate(work.op.nodes)))
            elif work.op.kind is OpKind.KERNEL:
                self._add(work, work.op.identity, work.op.scale)
            else:
                engine = ENGINES.get(work.op.kind)
                if engine is None:
                    self._start_copy(work)
                else:
                    self._engines[engine].append(work)
        for engine in self._engines.values():
            if engine and engine[0].launch not in self._at_engine:
                self._at_engine.add(engine[0].launch)
                self._start_copy(engine[0])
                ready.append(engine[0])
        return bool(ready) | self._begin_nodes()

    def _begin_nodes(self) -> bool:
        began = False
        for work in [queue[0] for queue in self._queues.values() if queue and queue[0].launch in self._graphs]:
            graph = self._graphs[work.launch]
            for number, node in graph.left.items():
                if number not in graph.begun and not set(node.after) & graph.left.keys():
                    graph.begun.add(number)
                    self._add(work, node.identity, node.scale, number)
                    began = True
        return began

    def _add(self, work: GpuWork, identity: int, scale: float, node: int = -1) -> None:
        profile = self._problem.kernels[identity]
        block_ps = to_ps(float(profile.block["latency_us"][0]) * scale)
        blocks = profile.kernel.blocks if work.blocks < 0 else work.blocks
        self._grids.append(Grid(work, blocks, block_ps, self._serial, node=node))
        self._serial += 1
        # What is ready first at one instant gets blocks first.
        self._dispatch()

    def _start_copy(self, work: GpuWork) -> None:
        self._start(work.launch)
        self._copies[work.launch] = self._now + to_ps(work.op.device_us)

    def _start(self, launch: int) -> None:
        if launch not in self._started:
            self._started.add(launch)
            self._reports.append(Report(self._now, launch, False))

    def _dispatch(self) -> bool:
        """Hand out blocks to the first kernel in line, as far as SMs are free."""
        handed = False
        free = set(range(SMS)) - {sm for grid in self._grids for _, sm in grid.ends}
        closed: set[int] = set()
        waiting = [grid for grid in self._grids if grid.work.launch not in self._recalled]
        for grid in sorted(waiting, key=lambda grid: (grid.work.priority, grid.serial)):
            first, sms = grid.work.sms or (0, SMS)
            own = set(range(first, first + sms))
            while grid.waiting and free & own - closed:
                self._start(grid.work.launch)
                grid.waiting -= 1
                sm = min(free & own - closed)
                grid.ends.append((self._now + grid.block_ps, sm))
                if self._recording and grid.node < 0:
                    self._blocks.append((sm, grid.work.launch, self._now, self._now + grid.block_ps))
                free.remove(sm)
                handed = True
            if grid.waiting:
                closed |= own
        return handed
