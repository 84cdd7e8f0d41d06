"""Other ways of launching: kernel windows, captured CUDA graphs, and persistent threads.

Windows and graphs follow the memory that launches touch instead of their stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpusched_env.errors import InputError
from gpusched_env.hardware.occupancy import BlockFootprint, block_record, gpu_record
from gpusched_env.hardware.solo import solo_duration_us
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.program import HostOp, JobProgram, NodeOp, critical_path_us, on_branches
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.workload.memory import check_us, dependencies
from gpusched_env.workload.profile import KernelProfile
from gpusched_env.workload.workload import DEVICE_OPS, OpKind


def check_plain(job: JobProgram, what: str) -> None:
    """Whether a program is kernels, copies and synchronisations of one host thread.

    Raises:
        InputError: it has more; ``what`` takes no other.
    """
    if len(job.threads) > 1 or any(op.nodes or op.children or op.tiles >= 0 for op in job.ops):
        raise InputError(f"{what} takes kernels and copies of one host thread: no graphs, children or tiles")


def windowed(job: JobProgram, window: KernelWindow) -> JobProgram:
    """The program of an application that hands its launches to a window.

    Its first thread is the application's, which begins when nothing of an earlier job is left: that used the same
    memory. The second one lets launches into the window, in order: it waits until the application has handed one over
    and there is room, both in the window and in the list of what has entered it, and then checks it. A synchronisation
    waits for everything before it; one right behind a copy to the host whose memory is known waits for that, since what
    the application is after is the value.
    """
    waits = dependencies([op for op in job.ops if op.kind in DEVICE_OPS])
    application = [_host(OpKind.SYNC, 0.0)]
    entries: list[HostOp] = []
    number = 0
    ends: set[int] = set()
    """Launches that no other one waits for so far."""
    is_answer = False
    transfer_us = window.transfer_us
    for op in job.ops:
        if op.kind not in DEVICE_OPS:
            waited = () if op.kind is OpKind.HOST else (number - 1,) if is_answer else tuple(sorted(ends))
            kind = OpKind.SYNC_EVENT if waited else OpKind.HOST
            application.append(replace(op, kind=kind, after=waited, mark=-1))
            transfer_us = window.transfer_us if waited else transfer_us
            continue
        handed = len(waits) + number
        ends = (ends - {*waits[number]}) | {number}
        cost_us = 0.0 if window.checked_by == "nobody" else check_us(window.size, _segments(op))
        mine = cost_us if window.checked_by == "application" else 0.0
        application.append(_host(OpKind.HOST, op.host_us + mine, mark=handed))
        entry_us, transfer_us = transfer_us + window.insert_us + cost_us - mine, 0.0
        entries += [
            _host(OpKind.HOST, 0.0, after=(handed,)),
            *_listed(number, window),
            replace(op, host_us=entry_us, after=waits[number], mark=number),
        ]
        number += 1
        is_answer = op.kind is OpKind.COPY_TO_HOST and op.reads is not None and number < len(waits)
    return JobProgram((*application, *entries), (len(application), len(entries)), 2 * len(waits))


def _listed(number: int, window: KernelWindow) -> tuple[HostOp, ...]:
    """What a launch waits for until the list has room for it: the end of one that is too old."""
    if window.newer is None or number <= window.newer:
        return ()
    return (_host(OpKind.SYNC_EVENT, 0.0, after=(number - window.newer - 1,)),)


def _segments(op: HostOp) -> int:
    """Segments of memory that a launch reads and writes; memory that is not known is one."""
    return sum(1 if known is None else len(known) for known in (op.reads, op.writes))


def _host(kind: OpKind, host_us: float, *, after: tuple[int, ...] = (), mark: int = -1) -> HostOp:
    """An operation that never reaches the device."""
    return HostOp(kind, host_us, -1, 1.0, 0.0, 0, 0.0, after=after, mark=mark)


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


def as_tasks(kernels: Sequence[KernelProfile], gpu: GpuSpec, task_us: float) -> tuple[KernelProfile, ...]:
    """Kernels whose blocks run in those of one kernel that stays.

    That one reserves what the greediest of them needs, for each of its blocks (Durvasula et al., arXiv 2401.12377, of
    heterogeneous kernels), so that fewer fit on an SM; and each block is taken from a queue first.

    Args:
        kernels: of the problem.
        gpu: that they run on.
        task_us: time to take a block from the queue.
    """
    prints = [kernel.footprint for kernel in kernels]
    threads, warps, registers, shared, carveout = (
        max(getattr(print_, name) for print_ in prints)
        for name in ("threads", "warps", "registers", "shared_bytes", "carveout_bytes")
    )
    limits = gpu.limits
    fitting = min(limits.threads // threads, limits.warps // warps, limits.blocks, limits.registers // registers)
    if shared:
        fitting = min(fitting, limits.shared_bytes // shared)
    # Each fits alone, but what is greediest in everything may be too much: one block an SM then.
    registers, shared = min(registers, limits.registers), min(shared, limits.shared_bytes)
    print_ = BlockFootprint(threads, warps, registers, shared, carveout, max(1, fitting))
    found = []
    for kernel in kernels:
        own = kernel.block[0]
        # Warps that a task has no use for issue nothing.
        rho = own["rho"] * own["warps"] / warps
        block = block_record(print_, own["latency_us"] + task_us, rho, own["wait"], own["dram_bytes"], own["spread"])
        duration_us = float(solo_duration_us(gpu_record(gpu)[0], block[0], kernel.kernel.blocks, print_.blocks_per_sm))
        found.append(replace(kernel, footprint=print_, block=block, duration_us=duration_us))
    return tuple(found)
