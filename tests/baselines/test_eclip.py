"""Masks of SMs: who has which, who uses them where, on small problems solved by hand."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpusched_env.baselines.eclip import Eclip
from gpusched_env.baselines.mask_pools import Masked, RequestKernels, pool
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.planning.masks import masked_times_us
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scenarios.set_up import problem_for
from gpusched_env.scheduling.commands import Launch, Partition
from gpusched_env.workload.workload import Op
from tests.devices.problems import K, problem
from tests.devices.programs import GRAPH, SYNC, Kernels, build
from tests.refusals import refused

MASKS = [(0, 1), (0, 2), (0, 3), (3, 1), (2, 2), (1, 3)]
"""Of two workers on four SMs, in the order of their streams; then the default stream's: none."""
LITTLE, MUCH = K(1, 10.0), K(8, 10.0)
"""Of one block, and of two waves on all four SMs."""


def two_workers(folder: Path, ops: Sequence[K] = (LITTLE, LITTLE, MUCH), jobs: int = 3) -> Problem:
    """Closed loops of requests of three kernels. A change of a partition takes 7 us."""
    worker = {"ops": ops, "jobs": jobs, "arrivals": {"kind": "closed-loop"}}
    return problem(folder, worker, worker, gpu={"timing": {"partition_change_us": 7.0, "event_latency_us": 1.5}})


def play(scheduler: object, built: Problem, device: str) -> Episode:
    return run_episode(scheduler, built, make_device(device), 0, record="kernels")  # type: ignore[arg-type]


def masks_of(episode: Episode, job: int) -> list[list[tuple[int, int] | None]]:
    """By tenant, the masks of its kernels in a job, in order of issue."""
    kernels, streams = episode.timeline.kernels.dict(), episode.problem.streams
    rows = sorted(zip(kernels["id"], kernels["tenant"], kernels["job"], kernels["stream"], strict=True))
    return [[streams[int(row)].mask for _, t, j, row in rows if (t, j) == (tenant, job)] for tenant in (0, 1)]


def test_masks_are_whole_engines_from_both_ends() -> None:
    assert [pool(worker, 2, 60) for worker in (0, 1)] == [
        {15: (0, 15), 30: (0, 30), 45: (0, 45)},
        {15: (45, 15), 30: (30, 30), 45: (15, 45)},
    ]
    assert [pool(worker, 3, 60) for worker in range(3)] == [
        {30: (0, 30), 45: (0, 45)},
        {30: (30, 30), 45: (15, 45)},
        {30: (15, 30), 45: (15, 45)},
    ]
    # With a default stream, no more queues than the hardware holds; beyond seven workers nobody has a mask.
    assert all(sum(len(pool(w, workers, 60)) for w in range(workers)) < 8 for workers in range(1, 12))
    assert pool(0, 8, 60) == {}


def test_times_on_fewer_sms_are_those_of_waves(tmp_path: Path) -> None:
    built = two_workers(tmp_path)
    little, much = (built.knowledge.kernels[identity] for identity in (0, 2))
    assert masked_times_us(little, built.gpu, (1, 2, 3, 4)).tolist() == pytest.approx([10.0] * 4)
    assert masked_times_us(much, built.gpu, (1, 2, 3, 4)).tolist() == pytest.approx([80.0, 40.0, 30.0, 20.0])


def test_of_what_was_never_measured_no_mask_is_good_enough(tmp_path: Path) -> None:
    """A profile that is far too short is taken for the shortest blocks that there are."""
    built = two_workers(tmp_path)
    known = built.knowledge.kernels[2]
    unknown = dataclasses.replace(known, duration_us=math.nan)
    sizes = (1, 2, 4)
    assert masked_times_us(unknown, built.gpu, sizes).tolist() == [math.inf, math.inf, 0.0]
    short = masked_times_us(dataclasses.replace(known, duration_us=1e-9), built.gpu, sizes)
    assert short[0] == pytest.approx(4.0 * short[2])


@pytest.mark.parametrize("nodes", [1, 3])
def test_of_a_graph_no_mask_is_good_enough(nodes: int) -> None:
    """Nor of one that has a single kernel: it runs as a unit, and has no registers of its own."""
    k = Kernels()
    graph = tuple(k.node(20.0) for _ in range(nodes))
    built = build(k, [Op(GRAPH, index=0), SYNC], graphs=[graph])
    known = built.knowledge.kernels[-1]
    assert (known.graph, known.nodes, known.registers) == (True, nodes, 0)
    assert not any(kernel.graph for kernel in built.knowledge.kernels[:-1])
    us = masked_times_us(known, built.gpu, (1, 2, 4))
    assert us.tolist() == [math.inf, math.inf, known.duration_us]


def test_sms_that_saturate_the_bandwidth_are_enough() -> None:
    """Of a kernel that has all of it; at a tenth of it, three quarters of the SMs take a third longer."""
    known = build_problem(load_scenario("InferenceBesideTraining")).knowledge.kernels
    gpu = load_gpu("h100-sxm")
    wide = next(kernel for kernel in known if kernel.blocks >= 50 * gpu.sms and kernel.nodes == 1)
    longer = {}
    for dram in (0.1, 0.93):
        times = masked_times_us(dataclasses.replace(wide, dram=dram, issue=0.05), gpu, (99, gpu.sms))
        assert times[1] == pytest.approx(wide.duration_us)
        longer[dram] = times[0] / times[1]
    assert 1.25 < longer[0.1] < 1.45
    assert 1.0 <= longer[0.93] < 1.05


@pytest.mark.parametrize("device", ["reference", "compiled"])
def test_the_plan_of_two_equal_workers(tmp_path: Path, device: str) -> None:
    """Two kernels of one block need no more than an SM each; the third stays on all.

    From all SMs for both (40 us stretched by 1 + 8 / 4: 120) the first goes to (1, 1, 4): 40 * (1 + 6 / 4) = 100, where
    a third kernel on three SMs would make it 50 * 2.42 = 121; the second answers alike: 40 * (1 + 4 / 4) = 80.
    """
    scheduler = Eclip()
    built = two_workers(tmp_path)
    episode = play(scheduler, built, device)
    assert scheduler.plan == {0: [1, 1, 4], 1: [1, 1, 4]}
    assert [stream.mask for stream in episode.problem.streams[2:]] == [*MASKS, None]
    assert masks_of(episode, 0) == [[None, None, None]] * 2, "which kernels a request has is known after the first"
    assert masks_of(episode, 2) == [[(0, 1), (0, 1), None], [(3, 1), (3, 1), None]]
    assert episode.done


@pytest.mark.parametrize("device", ["reference", "compiled"])
def test_without_a_change_all_kernels_are_where_the_sum_is_least(tmp_path: Path, device: str) -> None:
    scheduler = Eclip(changes=0)
    play(scheduler, two_workers(tmp_path), device)
    assert scheduler.plan == {0: [4, 4, 4], 1: [4, 4, 4]}


@pytest.mark.parametrize(
    ("name", "masks"),
    [
        ("default-stream", [[None, None, None]] * 2),
        ("kernel-wise", [[(0, 1), (0, 1), None], [(3, 1), (3, 1), None]]),
        ("kernel-wise(slowdown=0.5)", [[(0, 1), (0, 1), (0, 3)], [(3, 1), (3, 1), (1, 3)]]),
        ("model-wise", [[None, None, None]] * 2),
        ("model-wise(slowdown=0.6)", [[(0, 2)] * 3, [(2, 2)] * 3]),
    ],
)
def test_masks_of_the_others(tmp_path: Path, name: str, masks: list[list[tuple[int, int] | None]]) -> None:
    episodes = [play(make_scheduler(name), two_workers(tmp_path), device) for device in ("reference", "compiled")]
    assert [masks_of(episode, 2) for episode in episodes] == [masks, masks]
    logs = [episode.timeline.kernels.array.tolist() for episode in episodes]
    assert logs[0] == logs[1]


def test_the_default_stream_runs_one_kernel_at_a_time(tmp_path: Path) -> None:
    kernels = play(make_scheduler("default-stream"), two_workers(tmp_path), "compiled").timeline.kernels.dict()
    rows = sorted(zip(kernels["started_us"].tolist(), kernels["ended_us"].tolist(), strict=True))
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(rows))


def test_a_call_for_each_mask_keeps_the_host_busy(tmp_path: Path) -> None:
    """The first is set-up, each of the three other little kernels takes 7 us, those that need all SMs none."""
    built = two_workers(tmp_path, jobs=1)
    for device in ("reference", "compiled"):
        kernels = play(make_scheduler("kernel-wise-ioctl"), built, device).timeline.kernels.dict()
        order = kernels["id"].argsort()
        assert kernels["launched_us"][order].tolist() == [0.0, 7.0, 7.0, 14.0, 21.0, 21.0]


def test_requests_are_known_once_a_second_begins() -> None:
    requests = RequestKernels(2)
    assert [requests.place(0, 0, identity) for identity in (5, 5, 7)] == [0, 1, 2]
    assert requests.known == [None, None]
    assert [requests.place(0, 1, identity) for identity in (5, 7, 7, 5)] == [0, -1, 2, -1]
    assert requests.known == [(5, 5, 7), None]


def test_who_finds_no_streams_launches_with_a_partition(tmp_path: Path) -> None:
    """In a problem that was not set up for it."""
    built = two_workers(tmp_path, jobs=2)
    scheduler = make_scheduler("kernel-wise")
    assert isinstance(scheduler, Masked)
    scheduler.reset(built.knowledge, None)  # type: ignore[arg-type]
    command = scheduler.launch(3, (0, 1))
    assert command == Launch(3, partition=Partition(0, 1))
    assert problem_for(scheduler, built).knowledge.own_streams == 7


@pytest.mark.parametrize("spec", ["eclip(changes=-1)", "model-wise(slowdown=-1)"])
def test_options_out_of_range_are_refused(spec: str) -> None:
    with refused(InputError, "least 0"):
        make_scheduler(spec)
