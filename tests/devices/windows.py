"""Problems whose launches pass a window.

On the teaching GPU (4 SMs of one block), with a synchronisation of 1 us, events of 1.5 us and 1 us between two kernels
of a stream. Unless a test says otherwise the window has room for 16 launches of six segments, whose check takes
0.41 us; to launch takes 2 us, and 3 us pass until the end of a kernel is known. The host spends 1 us on each launch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gpusched_env.episodes.session import Episode
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.scheduling.commands import WAIT, Command, Wait
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.timeline import Detail, Timeline
from gpusched_env.scheduling.view import View
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import GraphNode, Op, OpKind, Segment, Variant, Workload
from tests.devices.problems import launch_first, new_device

Memory = tuple[Segment, ...]
GAP_US = 1.0
WINDOW = {"size": 16, "streams": 2, "launch_us": 2.0, "sync_us": 3.0}
TIMING = {"sync_latency_us": 1.0, "event_latency_us": 1.5, "stream_gap_us": GAP_US}
A, B, C, D = (Segment(storage, 0, 64) for storage in range(4))


def kernel(us: float, blocks: int = 1, *, reads: Memory | None = (), writes: Memory | None = (), **fields: Any) -> Op:
    """A launch whose blocks take ``us`` each; segments that no other one touches make six of its own."""
    if reads is not None and writes is not None:
        reads = (*reads, *(Segment(9, 0, 8) for _ in range(6 - len(reads) - len(writes))))
    return Op(OpKind.KERNEL, **{"host_us": 1.0, "duration_us": us * -(-blocks // 4), "bytes": blocks, **fields},
              reads=reads, writes=writes)  # fmt: skip


def workload(name: str, *threads: Sequence[Op], graphs: Sequence[tuple[GraphNode, ...]] = ()) -> Workload:
    """A workload in which each launch is a kernel of its own."""
    kernels: list[Kernel] = []

    def placed(op: Op) -> Op:
        if op.kind is not OpKind.KERNEL:
            return op
        kernels.append(
            Kernel(
                name=f"{name}{len(kernels)}", grid=(op.bytes, 1, 1), block=(1024, 1, 1), registers=32,
                duration_us=op.duration_us, kind="latency", issue_fraction=0.0, dram_bytes=0.0,
            )
        )  # fmt: skip
        return msgspec.structs.replace(op, index=len(kernels) - 1, bytes=0)

    first, *others = [tuple(map(placed, thread)) for thread in threads]
    return Workload(
        name=name, gpu="toy-4sm", source="test", kernels=tuple(kernels), graphs=tuple(graphs), iteration_us=(100.0,),
        variants=(Variant(ops=first, threads=tuple(others)),),
    )  # fmt: skip


def build(
    *workloads: Workload,
    window: dict[str, Any] | None = None,
    jobs: int = 1,
    timing: dict[str, float] = TIMING,
    **fields: Any,
) -> Problem:
    """A problem of a tenant for each workload."""
    toy = load_gpu("toy-4sm")
    tenants = [
        {"name": work.name, "workload": work.name, "arrivals": {"kind": "backlog"}, "jobs": jobs} for work in workloads
    ]
    scenario = make_scenario(
        {
            "name": "test", "summary": "test", "gpu": "toy-4sm", "tenants": tenants, "variation": False,
            "horizon_us": 1e6, "window": WINDOW | (window or {}), **fields,
        }
    )  # fmt: skip
    gpu = msgspec.structs.replace(toy, timing=msgspec.structs.replace(toy.timing, **timing))
    return build_problem(scenario, gpu=gpu, workloads={work.name: work for work in workloads})


def log(timeline: Timeline) -> list[tuple[int, ...]]:
    """(id, stream, entry, start, end) of kernels in order of id, in whole picoseconds."""
    columns = ("id", "stream", "issued_us", "started_us", "ended_us")
    return sorted(zip(*(timeline.kernels.ps(name).tolist() for name in columns), strict=True))


def us(*rows: tuple[int, int, float, float, float]) -> list[tuple[int, ...]]:
    """A log whose times are given in microseconds, none finer than a picosecond."""
    return [(id_, stream, *(round(time * 1e6) for time in times)) for id_, stream, *times in rows]


def entries(episode: Episode) -> list[float]:
    return [row[2] / 1e6 for row in log(episode.timeline)]


def by_time(*steps: tuple[float, Command]) -> Callable[[View], Command]:
    """Give each command when its time has come, else launch the first launchable kernel."""
    left = list(steps)

    def decide(view: View) -> Command:
        if left and view.time_us >= left[0][0]:
            return left.pop(0)[1]
        found = launch_first(view)
        return Wait(left[0][0]) if found is WAIT and left else found

    return decide


def started(built: Problem, until_us: float, record: Detail = "jobs") -> Device:
    """The device at a time, where everything that could be launched was, as soon as it could be.

    Partitions must be on offer: who has no choice is not asked.
    """
    device = new_device()
    view = device.reset(built, 0, record=record)
    while view is not None and view.time_us < until_us:
        command = launch_first(view)
        device.apply(Wait(until_us) if command is WAIT else command)
        view = device.advance()
    assert view is not None
    return device


def waited(device: Device, until_us: float) -> View:
    """The device's view at a time, without a command until then."""
    view = device.view()
    while view.time_us < until_us:
        device.apply(Wait(until_us))
        later = device.advance()
        assert later is not None
        view = later
    return view
