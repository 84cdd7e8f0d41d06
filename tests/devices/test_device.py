"""The reference device on instances worked out by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import DeadlockError, IllegalCommand
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import override
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Partition, Preempt, SetPartition, Wait
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import OpKind
from tests.devices.problems import Copy, K, Script, kernel_ends, launch_first, new_device, problem, run
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("each_device")


def test_the_literal_log_of_two_tenants_that_start_together(tmp_path: Path) -> None:
    episode = run(problem(tmp_path, {"ops": [K(4, 100.0), K(1, 30.0)]}, {"ops": [K(2, 50.0)]}))
    rows = [tuple(row) for row in episode.timeline.blocks.array.round(3).tolist()]
    assert rows == [
        # SM, kernel, blocks, start, end: the first kernel fills the GPU, tenant 1 follows, then kernel 2 beside it.
        (0, 0, 1, 0.0, 100.0),
        (1, 0, 1, 0.0, 100.0),
        (2, 0, 1, 0.0, 100.0),
        (3, 0, 1, 0.0, 100.0),
        (2, 1, 1, 100.0, 130.0),
        (0, 2, 1, 100.0, 150.0),
        (1, 2, 1, 100.0, 150.0),
    ]
    assert episode.done
    assert episode.end_us == 150.0


def test_a_host_runs_ahead_and_waits_at_its_synchronisation(tmp_path: Path) -> None:
    ops = [K(4, 100.0, host_us=10.0), "sync", K(4, 5.0, host_us=10.0), K(4, 5.0)]
    timing = {"launch_latency_us": 2.0, "stream_gap_us": 1.0, "sync_latency_us": 3.0}
    built = problem(tmp_path, {"ops": ops}, gpu={"timing": timing})
    assert kernel_ends(run(built)) == [(0, 12.0, 112.0), (0, 127.0, 132.0), (0, 133.0, 138.0)]


def test_the_launch_queue_of_a_host_is_bounded(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 100.0)] * 4}, launch_depth=2)
    episode = run(built)
    assert episode.timeline.kernels.column("issued_us").tolist() == [0.0, 0.0, 100.0, 200.0]


def preempting(mode: str, at_us: float) -> object:
    """Launch everything; preempt the first kernel once, at ``at_us``."""
    fired = []

    def decide(view: View) -> Command:
        if view.time_us >= at_us and not fired:
            fired.append(True)
            return Preempt(0, mode)  # type: ignore[arg-type]
        if view.time_us < at_us and len(view.pending) == 0:
            return Wait(at_us)
        return launch_first(view)

    return decide


@pytest.mark.parametrize(
    ("mode", "expected_end"),
    [
        # Four blocks of 100 us on four SMs, twice. Drained at 50: the first four end at 100, the others follow.
        ("drain", 200.0),
        # Saved at 50: 4 x 131,072 bytes at 10^6 bytes/us are 0.524288 us, paid twice; 50 and 100 us are left.
        ("save", 50.0 + 2 * 0.524288 + 150.0),
        # Reset at 50: everything again.
        ("reset", 250.0),
    ],
)
def test_preempted_kernels_continue_or_restart(tmp_path: Path, mode: str, expected_end: float) -> None:
    built = problem(tmp_path, {"ops": [K(8, 100.0)]}, commands=["launch", "preempt"])
    episode = run(built, preempting(mode, 50.0))
    assert episode.end_us == pytest.approx(expected_end, abs=1e-6)
    assert episode.timeline.kernels.column("preemptions").tolist() == [1.0]
    work = 8 * 100.0 if mode != "reset" else 8 * 100.0 + 4 * 50.0
    held = {"save": 4 * 0.524288}.get(mode, 0.0)
    assert episode.costs.busy_sm_us == pytest.approx(work + held, abs=1e-6), "no work is lost or made"


def test_a_preempted_gpu_is_free_for_others(tmp_path: Path) -> None:
    """While the long kernel is off the GPU an urgent one runs; the long one resumes on command."""

    def decide(view: View) -> Command:
        urgent = [int(i) for i, t in zip(view.pending.id, view.pending.tenant, strict=True) if t == 1]
        if urgent and len(view.running) and view.running.tenant[0] == 0 and not view.running.preempting[0]:
            return Preempt(int(view.running.id[0]), "save")
        if urgent and not len(view.running):
            return Launch(urgent[0])
        if len(view.pending) and not urgent and not len(view.running):
            return launch_first(view)
        return WAIT

    built = problem(
        tmp_path,
        {"ops": [K(4, 1000.0)]},
        {"ops": [K(4, 10.0)], "arrivals": {"kind": "backlog", "start_us": 500.0}},
        commands=["launch", "preempt"],
    )
    cost = 4 * 131072 / 1e6
    urgent, long = kernel_ends(run(built, decide))
    assert urgent == (1, pytest.approx(500.0 + cost, abs=1e-3), pytest.approx(510.0 + cost, abs=1e-3))
    assert long[2] == pytest.approx(510.0 + 2 * cost + 500.0, abs=2e-3)


def test_a_kernel_that_is_not_idempotent_cannot_be_reset(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 100.0, idempotent=False)]}, commands=["launch", "preempt"])
    device = new_device()
    device.reset(built, 0)
    device.apply(Launch(0))
    device.advance()
    with refused(IllegalCommand, "idempotent"):
        device.apply(Preempt(0, "reset"))


def test_refused_commands_name_the_fault_and_change_nothing(tmp_path: Path) -> None:
    built = problem(
        tmp_path,
        {"ops": [K(4, 100.0), K(4, 100.0)]},
        {"ops": [K(1, 10.0)]},
        commands=["launch", "preempt", "partition"],
    )
    device = new_device()
    device.reset(built, 0)
    device.apply(Launch(0))
    device.advance()

    def state() -> list[object]:
        view = device.view()
        return [view.time_us, view.pending.array.tolist(), view.running.array.tolist(), view.tenants.array.tolist()]

    before = state()
    for command, message in [
        (Launch(0), "launch 0 is not launchable"),
        (Launch(99), "launch 99 is not launchable"),
        (Launch(2, priority=-7), r"stream priority must be in -1\.\.0"),
        (Launch(2, priority=1), "stream priority"),
        (Launch(2, partition=Partition(4, 1)), "partition"),
        (Launch(2, partition=Partition(0, 0)), "partition"),
        (Preempt(2, "save"), "launch 2 is not running"),
        (Preempt(0, "pause"), "mode must be"),  # type: ignore[arg-type]
        (SetPartition(5, None), r"tenants are 0\.\.1"),
        (SetPartition(0, None), "has this partition already"),
        (Wait(-1.0), "until_us lies before"),
        ("launch", "is not a command"),
    ]:
        with pytest.raises(IllegalCommand, match=message):
            device.apply(command)  # type: ignore[arg-type]
        assert state() == before, command


def test_decisions_cost_host_time_and_queue_up(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(1, 100.0)]}, {"ops": [K(1, 100.0)]}, {"ops": [K(1, 100.0)]}, decision_us=10.0)
    assert kernel_ends(run(built)) == [(0, 10.0, 110.0), (1, 20.0, 120.0), (2, 30.0, 130.0)]


def test_partitions_confine_and_do_not_block_each_other(tmp_path: Path) -> None:
    parts = {0: Partition(0, 1), 1: Partition(1, 3)}
    done = set()

    def decide(view: View) -> Command:
        for tenant, partition in parts.items():
            if tenant not in done:
                done.add(tenant)
                return SetPartition(tenant, partition)
        return launch_first(view)

    two = [{"ops": [K(3, 100.0)]}, {"ops": [K(3, 50.0)]}]
    episode = run(problem(tmp_path, *two, commands=["launch", "partition"]), decide)
    assert kernel_ends(episode) == [(1, 0.0, 50.0), (0, 0.0, 300.0)]


def test_streams_beyond_the_channels_alias(tmp_path: Path) -> None:
    """With one channel the second tenant waits until the first kernel is fully dispatched."""

    def decide(view: View) -> Command:
        for id_, tenant in zip(view.pending.id, view.pending.tenant, strict=True):
            return Launch(int(id_), partition=Partition(0, 1) if tenant == 0 else Partition(1, 3))
        return WAIT

    def starts(channels: int) -> list[tuple[int, float, float]]:
        built = problem(tmp_path, {"ops": [K(3, 100.0)]}, {"ops": [K(3, 50.0)]}, gpu={"channels": channels})
        return kernel_ends(run(built, decide))

    assert starts(8) == [(1, 0.0, 50.0), (0, 0.0, 300.0)]
    assert starts(1) == [(1, 200.0, 250.0), (0, 0.0, 300.0)]


@pytest.mark.parametrize(
    ("engines", "kinds", "ends"),
    [
        (2, (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_DEVICE), [110.0, 210.0]),
        (2, (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST), [110.0, 110.0]),
        (1, (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST), [110.0, 210.0]),
        (1, (OpKind.MEMSET, OpKind.COPY_ON_DEVICE), [110.0, 110.0]),
    ],
)
def test_copies_queue_for_their_engine(
    tmp_path: Path, engines: int, kinds: tuple[OpKind, OpKind], ends: list[float]
) -> None:
    from gpusched_env.hardware.specs import Copies

    built = problem(
        tmp_path,
        *({"ops": [Copy(kind, 100.0), K(1, 10.0)]} for kind in kinds),
        gpu={"copies": Copies(engines=engines, bytes_per_us=1.0)},
    )
    assert sorted(end for _, _, end in kernel_ends(run(built))) == ends


def test_copies_recorded_on_another_gpu_take_the_time_of_this_ones_engine(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [Copy(OpKind.COPY_TO_DEVICE, 100.0), K(1, 10.0)]})
    on_h100 = override(built.scenario, gpu="h100-sxm")
    ops = build_problem(on_h100).programs[0].variants[0]
    assert ops[0].device_us == pytest.approx(1.0 + 1000 / 50_000)
    assert built.programs[0].variants[0][0].device_us == 100.0


def test_contexts_take_turns_of_a_slice(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 5000.0)]}, {"ops": [K(4, 5000.0)]}, contexts="per-tenant",
                    gpu={"timing": {"slice_us": 2000.0, "switch_us": 100.0}})  # fmt: skip
    # Turns: t0 0-2000, t1 2100-4100, t0 4200-6200, t1 6300-8300, t0 8400-9400 (done), t1 9500-10500.
    assert kernel_ends(run(built)) == [(0, 0.0, 9400.0), (1, 2100.0, 10500.0)]


def test_an_idle_context_yields_at_once(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 300.0), "sync", K(4, 300.0, host_us=50.0)]}, {"ops": [K(4, 1000.0)]},
                    contexts="per-tenant", gpu={"timing": {"slice_us": 2000.0, "switch_us": 100.0}})  # fmt: skip
    assert kernel_ends(run(built)) == [(0, 0.0, 300.0), (1, 400.0, 1400.0), (0, 1500.0, 1800.0)]


def test_priorities_act_at_block_boundaries(tmp_path: Path) -> None:
    def decide(view: View) -> Command:
        for id_, tenant in zip(view.pending.id, view.pending.tenant, strict=True):
            return Launch(int(id_), priority=-int(tenant))
        return WAIT

    built = problem(
        tmp_path, {"ops": [K(12, 100.0)]}, {"ops": [K(4, 10.0)], "arrivals": {"kind": "backlog", "start_us": 50.0}}
    )
    assert kernel_ends(run(built, decide)) == [(1, 100.0, 110.0), (0, 0.0, 310.0)]


def test_costs_are_the_integrals_they_claim_to_be(tmp_path: Path) -> None:
    built = problem(
        tmp_path,
        {"ops": [K(4, 100.0)], "jobs": 2, "slo_us": 150.0},
        {"ops": [K(2, 50.0)], "arrivals": {"kind": "backlog", "start_us": 20.0}},
    )
    episode = run(built)
    jobs = episode.timeline.jobs.dict()
    took = jobs["completed_us"] - jobs["arrived_us"]
    # Tenant 0: [0, 100] and, behind tenant 1's kernel (100 to 150 on two SMs), [.., 200]... as recorded.
    for tenant in (0, 1):
        assert episode.costs.jobs_us[tenant] == pytest.approx(took[jobs["tenant"] == tenant].sum())
    late = (took[jobs["tenant"] == 0] > 150.0).sum()
    assert episode.costs.slo_misses.tolist() == [late, 0.0]
    assert late == 1
    assert episode.costs.busy_sm_us == pytest.approx(2 * 400.0 + 100.0)
    assert episode.costs.energy_j == pytest.approx((10.0 * episode.end_us + 10.0 * 900.0) * 1e-6)
    assert episode.costs.makespan_us == episode.end_us


def test_an_episode_ends_at_the_horizon(tmp_path: Path) -> None:
    built = problem(
        tmp_path, {"ops": [K(4, 100.0)], "arrivals": {"kind": "closed-loop"}, "jobs": None}, horizon_us=1050.0
    )
    episode = run(built)
    assert episode.end_us == 1050.0
    assert not episode.done
    assert len(episode.timeline.jobs) == 10
    assert episode.costs.jobs_us[0] == pytest.approx(1050.0)


def test_a_scheduler_that_never_launches_is_a_deadlock(tmp_path: Path) -> None:
    built = problem(tmp_path, {"name": "stuck", "ops": [K(4, 100.0)]})
    with refused(DeadlockError, "1 operations", "[0]"):
        run(built, lambda view: WAIT)


def test_waiting_with_a_time_limit_is_not_a_deadlock(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 100.0)]})
    episode = run(built, lambda view: Wait(40.0) if view.time_us < 40.0 else launch_first(view))
    assert kernel_ends(episode) == [(0, 40.0, 140.0)]


def noisy(folder: Path) -> Problem:
    often = {"kind": "poisson", "rate_per_s": 3000.0}
    bursts = {"kind": "bursts", "rate_per_s": 900.0, "mean_size": 3.0}
    return problem(
        folder,
        {"ops": [K(3, 100.0, host_us=3.0), K(7, 20.0)], "arrivals": often, "jobs": 30},
        {"ops": [K(6, 40.0), K(1, 200.0, host_us=7.0)], "arrivals": bursts, "jobs": 30},
        commands=["launch", "preempt"],
    )


def test_one_seed_one_episode_another_seed_another(tmp_path: Path) -> None:
    built = noisy(tmp_path)
    first, again, other = (run(built, seed=seed).timeline.kernels.array for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_restored_snapshot_continues_identically(tmp_path: Path) -> None:
    device = new_device()
    view = device.reset(noisy(tmp_path), 5, record="kernels", snapshots=True)
    for _ in range(60):
        assert view is not None
        device.apply(launch_first(view))
        view = device.advance()
    snapshot = device.snapshot()

    def finish() -> list[object]:
        view = device.view()
        while view is not None:
            device.apply(launch_first(view))
            view = device.advance()
        return device.timeline.kernels.array.tolist()

    straight = finish()
    device.restore(snapshot)
    assert finish() == straight
    assert len(straight) == 120


def test_without_a_timeline_only_jobs_are_kept(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(40, 1.0)] * 20, "arrivals": {"kind": "closed-loop"}, "jobs": 50})
    episode = run_episode(Script(), built, new_device(), 0)
    timeline = episode.timeline
    assert len(timeline.jobs) == 50
    assert [len(t) for t in (timeline.kernels, timeline.blocks, timeline.sms, timeline.decisions, timeline.copies)] == [
        0
    ] * 5


def test_views_show_no_future(tmp_path: Path) -> None:
    """Kernels that the host has not issued, and actual durations, are not in the view."""
    built = problem(
        tmp_path,
        {"ops": [K(4, 100.0), "sync", K(4, 100.0)]},
        {"ops": [K(4, 10.0)], "arrivals": {"kind": "backlog", "start_us": 50.0}},
    )
    device = new_device()
    view = device.reset(built, 0)
    assert view is not None
    assert view.pending.id.tolist() == [0.0]
    assert view.tenants.jobs_waiting.tolist() == [1.0, 0.0]
    assert view.tenants.oldest_arrived_us.tolist() == [0.0, math.inf]
