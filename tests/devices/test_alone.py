"""The time alone is what a device plays when nobody else is there: programs that are drawn, on both devices."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from gpusched_env.experiments.lib.play import play
from gpusched_env.hardware.clock import to_ps
from gpusched_env.hardware.specs import Copies, GpuSpec, load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.idle_gpu import IdleGpu
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Child, GraphNode, Op, OpKind, Variant, Workload

TOY = load_gpu("toy-4sm")
WIDE = replace(TOY, limits=replace(TOY.limits, blocks=32), channels=32, resident_grids=128)
"""32 blocks of an eighth of an SM run side by side, without contention."""
COPY_KINDS = (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST, OpKind.COPY_ON_DEVICE, OpKind.MEMSET)
PARENT, CHILD = 0, 1
"""Rows of the kernel table."""


def kernel(name: str) -> Kernel:
    return Kernel(
        name=name, grid=(1, 1, 1), block=(128, 1, 1), registers=32, duration_us=1.0, issue_fraction=0.0, dram_bytes=0.0
    )  # fmt: skip


class Dice:
    """A program and a GPU, drawn. Times are on a coarse grid, so that much happens at one instant."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.streams = self.random.randint(1, 5)
        self.graphs = [self.graph() for _ in range(2)]

    def us(self, *, zero: bool = False) -> float:
        return self.random.choice([0.0] if zero and self.random.random() < 0.3 else [0.25, 0.5, 1.0, 3.0, 10.0, 7.111])

    def graph(self) -> tuple[GraphNode, ...]:
        nodes: list[GraphNode] = [GraphNode(OpKind.KERNEL, PARENT, self.us())]
        for number in range(1, self.random.randint(1, 6)):
            after = tuple(sorted(self.random.sample(range(number), self.random.randint(0, min(2, number)))))
            if self.random.random() < 0.7:
                nodes.append(GraphNode(OpKind.KERNEL, PARENT, self.us(), after=after))
            else:
                nodes.append(GraphNode(self.random.choice(COPY_KINDS), -1, self.us(), 64, after))
        return tuple(nodes)

    def operation(self, events: list[int]) -> Op:
        """One more; ``events`` are those recorded so far."""
        dice, host_us, stream = self.random, self.us(zero=True), self.random.randrange(self.streams)
        kind = dice.choices(
            ["kernel", "copy", "graph", "record", "wait", "sync", "sync stream", "sync event", "host"],
            [8, 4, 1, 3, 3, 0.5, 1, 1, 1],
        )[0]
        match kind:
            case "kernel":
                children = (Child(CHILD, self.us()),) * dice.choice([0, 0, 0, 1, 2])
                return Op(OpKind.KERNEL, host_us, PARENT, self.us(), stream=stream, children=children)
            case "copy":
                return Op(dice.choice(COPY_KINDS), host_us, -1, self.us(), 64, stream)
            case "graph":
                return Op(OpKind.GRAPH, host_us, dice.randrange(2), stream=stream)
            case "record":
                events.append(len(events))
                return Op(OpKind.RECORD, host_us, events[-1], stream=stream)
            case "wait" if events:
                return Op(OpKind.WAIT, host_us, dice.choice(events), stream=stream)
            case "sync event" if events:
                return Op(OpKind.SYNC_EVENT, host_us, dice.choice(events))
            case "sync":
                return Op(OpKind.SYNC, host_us)
            case "sync stream":
                return Op(OpKind.SYNC_STREAM, host_us, stream=stream)
            case _:
                return Op(OpKind.HOST, host_us)

    def problem(self) -> Problem:
        """One job of the program."""
        dice = self.random
        threads: list[list[Op]] = [[Op(OpKind.KERNEL, 1.0, PARENT, 2.0)], *[[] for _ in range(dice.randint(0, 3))]]
        events: list[int] = []
        # Events are recorded before they are waited for, in some order of all threads: none waits without end.
        for _ in range(dice.randint(1, 60)):
            dice.choice(threads).append(self.operation(events))
        workload = Workload(
            name="w", gpu="toy-4sm", source="drawn", kernels=(kernel("parent"), kernel("child")),
            graphs=tuple(self.graphs), stream_priorities=(0,) * self.streams, iteration_us=(1.0,),
            variants=(Variant(ops=tuple(threads[0]), threads=tuple(tuple(ops) for ops in threads[1:] if ops)),),
        )  # fmt: skip
        timing = replace(
            TOY.timing, launch_latency_us=dice.choice([0.5, 2.0, 2.125]), stream_gap_us=dice.choice([0.0, 1.0, 3.0]),
            graph_gap_us=dice.choice([0.5, 1.0]), graph_gap_beside_us=dice.choice([0.0, 0.75]),
            event_latency_us=dice.choice([0.0, 1.5, 4.0]), sync_latency_us=dice.choice([0.0, 1.0, 3.0]),
        )  # fmt: skip
        gpu = replace(WIDE, timing=timing, copies=Copies(engines=dice.choice([1, 2]), bytes_per_us=1e4))
        return one_job(workload, gpu, launch_depth=dice.choice([1, 2, 3, 8, 1024]))


def one_job(workload: Workload, gpu: GpuSpec, **fields: Any) -> Problem:
    tenant = {"name": "t", "workload": "w", "arrivals": {"kind": "backlog"}, "jobs": 1}
    row = {"name": "alone", "gpu": "toy-4sm", "tenants": [tenant], "horizon_us": 1e5, "variation": False, **fields}
    return build_problem(make_scenario(row), gpu=gpu, workloads={"w": workload})


def check(problem: Problem, device: str, which: str) -> None:
    """Whether a device and the time alone agree on all that a job does."""
    (program,), depth = problem.programs, problem.scenario.launch_depth
    timeline = play("pass-through", problem, seed=0, device=device, record="kernels").timeline
    (job,) = timeline.jobs.exact
    job_ps = dict(zip(timeline.jobs.names, job.tolist(), strict=True))
    assert to_ps(program.alone_us) == job_ps["completed_us"] - job_ps["arrived_us"], which
    played = IdleGpu(problem.gpu, depth).play(program.variants[0].by_thread())
    starts = [to_ps(start) for thread in played.spans for parts in thread for start, _ in parts]
    kernels = timeline.kernels
    own = kernels.ps("started_us")[kernels.ps("identity") == PARENT]
    assert sorted(starts) == sorted([*own, *timeline.copies.ps("started_us")]), which


def test_drawn_programs_take_as_long_as_on_the_device() -> None:
    for seed in range(200):
        check(Dice(seed).problem(), "reference", f"program {seed}")


@pytest.mark.long
@pytest.mark.parametrize("device", ["reference", "compiled"])
def test_many_drawn_programs_take_as_long_as_on_each_device(device: str) -> None:
    for seed in range(400):
        check(Dice(seed).problem(), device, f"program {seed}")
