"""Programs with streams, events, threads, graphs, children and tiles on the teaching GPU (4 SMs of one block)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import msgspec

from gpusched_env.hardware.specs import TileCosts, load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Child, GraphNode, Op, OpKind, TileNeeds, Variant, Workload

TIMING = {
    "launch_latency_us": 2.0, "stream_gap_us": 1.0, "graph_gap_us": 0.5, "event_latency_us": 1.5,
    "sync_latency_us": 3.0, "child_launch_us": 6.0,
}  # fmt: skip
SYNC = Op(OpKind.SYNC)
KERNEL, GRAPH, RECORD, WAIT_EVENT = OpKind.KERNEL, OpKind.GRAPH, OpKind.RECORD, OpKind.WAIT


Grid = tuple[int, int, int]
"""Columns, rows, slices of tiles."""
ITS_ROW = TileNeeds()


class Kernels:
    """The kernel table of a workload, filled while operations are written down."""

    def __init__(self) -> None:
        self.table: list[Kernel] = []

    def add(self, us: float, blocks: int = 1) -> tuple[int, float]:
        """Index and duration alone of a new kernel whose blocks take ``us`` each."""
        alone = -(-blocks // 4) * us
        self.table.append(
            Kernel(
                name=f"k{len(self.table)}",
                grid=(blocks, 1, 1),
                block=(1024, 1, 1),
                registers=32,
                duration_us=alone,
                kind="latency",
                issue_fraction=0.0,
                dram_bytes=0.0,
            )
        )
        return len(self.table) - 1, alone

    def op(self, us: float, blocks: int = 1, *, host_us: float = 0.0, **fields: Any) -> Op:
        """A launch of a new kernel."""
        index, alone = self.add(us, blocks)
        return Op(KERNEL, host_us, index, alone, **fields)

    def node(self, us: float, *after: int) -> GraphNode:
        """A graph node of a new kernel."""
        return GraphNode(KERNEL, *self.add(us), after=after)

    def child(self, us: float) -> Child:
        """A child that is a new kernel."""
        return Child(*self.add(us))


def build(
    kernels: Kernels,
    *threads: Sequence[Op],
    graphs: Sequence[tuple[GraphNode, ...]] = (),
    program_streams: int = 1,
    tenant: dict[str, Any] | None = None,
    timing: dict[str, float] = TIMING,
    **fields: Any,
) -> Problem:
    """A problem of one tenant with a job of the operations of some host threads."""
    workload = Workload(
        name="w", gpu="toy-4sm", source="test", kernels=tuple(kernels.table), graphs=tuple(graphs),
        stream_priorities=(0,) * program_streams, iteration_us=(100.0,),
        variants=(Variant(ops=tuple(threads[0]), threads=tuple(tuple(thread) for thread in threads[1:])),),
    )  # fmt: skip
    toy = load_gpu("toy-4sm")
    gpu = msgspec.structs.replace(toy, timing=msgspec.structs.replace(toy.timing, **timing))
    row = {"name": "t", "workload": "w", "arrivals": {"kind": "backlog"}, "jobs": 1, **(tenant or {})}
    scenario = make_scenario(
        {
            "name": "test", "summary": "test", "gpu": "toy-4sm", "tenants": [row], "variation": False,
            "stream_priorities": [0], "lookahead": 6, **{"horizon_us": 1e6, **fields},
        }
    )  # fmt: skip
    return build_problem(scenario, gpu=gpu, workloads={"w": workload})


def chain(*grids: Grid, us: tuple[float, ...] = (), needs: TileNeeds = ITS_ROW, **fields: Any) -> Problem:
    """Kernels in a stream each, of blocks of 10 us, that each need the tiles of the one before."""
    k, ops = Kernels(), []
    for number, (columns, rows, slices) in enumerate(grids):
        index, alone_us = k.add(us[number] if us else 10.0, columns * rows * slices)
        k.table[index] = msgspec.structs.replace(k.table[index], grid=(columns, rows, slices))
        ops += [
            Op(KERNEL, 0.0, index, alone_us, stream=number, tiles=number - 1, needs=needs),
            Op(RECORD, index=number, stream=number),
        ]
    costs = fields.pop("costs", TileCosts())
    offered = {"commands": ["launch", "preempt", "synchronise"], "timing": {}, **fields}
    built = build(k, [*ops, SYNC], program_streams=len(grids), **offered)
    return dataclasses.replace(built, gpu=msgspec.structs.replace(built.gpu, tiles=costs))
