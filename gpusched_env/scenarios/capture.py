"""CUDA graphs of what a program launches between two synchronisations, by the memory that the launches touch."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.program import HostOp, JobProgram, NodeOp, critical_path_us, on_branches
from gpusched_env.workload.segments import dependencies
from gpusched_env.workload.workload import DEVICE_OPS, OpKind


@dataclass(frozen=True, slots=True)
class Capture:
    """What it costs to make a graph before it can be launched, in host time of the application besides its own.

    Measured on the host of an H200 with the driver's own calls: adding a node, its share of instantiating and
    uploading, of graphs of 50 to 800 nodes with 1 to 8 edges a node.
    """

    node_us: float = 2.3
    edge_us: float = 0.9
    per_input: bool = True
    """Whether each job makes its graphs anew, as it must where they depend on the input."""


def captured(job: JobProgram, capture: Capture, gpu: GpuSpec, first_identity: int) -> JobProgram:
    """The program with what is launched between two synchronisations as one graph.

    Graphs are counted from ``first_identity``. What is no kernel, and has none beside it, stays as it is.
    """
    found: list[HostOp] = []
    stretch: list[HostOp] = []

    def flush() -> None:
        nonlocal first_identity
        if not any(op.kind is OpKind.KERNEL for op in stretch):
            found.extend(replace(op, after=(), mark=-1) for op in stretch)
        else:
            waits = dependencies(stretch)
            nodes = on_branches(
                [
                    NodeOp(op.kind, op.identity, op.scale, op.device_us, op.bytes, after, 0, op.cold)
                    for op, after in zip(stretch, waits, strict=True)
                ]
            )
            # Who does not know the graph beforehand finds it by going through the program.
            build_us = sum(op.host_us for op in stretch)
            build_us += len(nodes) * capture.node_us + sum(map(len, waits)) * capture.edge_us
            found.append(
                replace(
                    stretch[0],
                    kind=OpKind.GRAPH,
                    host_us=gpu.timing.graph_launch_us + (build_us if capture.per_input else 0.0),
                    identity=first_identity,
                    scale=1.0,
                    device_us=critical_path_us(nodes, gpu.timing.graph_gap_us),
                    bytes=0,
                    after=(),
                    mark=-1,
                    nodes=nodes,
                    reads=None,
                    writes=None,
                )
            )
            first_identity += 1
        stretch.clear()

    for op in job.ops:
        if op.kind in DEVICE_OPS:
            stretch.append(op)
        else:
            flush()
            # Whatever a host waits for, it waits for all before it: graphs keep nothing of the events inside them.
            waits_on = op.kind if op.kind is OpKind.HOST else OpKind.SYNC
            found.append(replace(op, kind=waits_on, after=(), mark=-1))
    flush()
    return JobProgram(tuple(found), (len(found),), 0)
