"""Acting for ever while no time passes, and actions that are not legal."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from gpusched_env.baselines.evict import evict
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.errors import IllegalCommand
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scheduling.commands import WAIT, Launch, Partition, Preempt, SetPartition, Wait
from tests.envs.conftest import build_view
from tests.gaming.policies import honest, idle, play
from tests.refusals import refused

ALL = ("launch", "preempt", "partition")
DEVICES = pytest.mark.parametrize("device", ["compiled", "reference"])


def last_legal(env: GpuSchedulingEnv, rng: np.random.Generator) -> int:
    """Partitions before preemptions before launches; waits only if nothing else is legal."""
    return int(np.flatnonzero(env.action_masks())[-1])


def any_but_wait(env: GpuSchedulingEnv, rng: np.random.Generator) -> int:
    legal = np.flatnonzero(env.action_masks())
    return int(rng.choice(legal[1:])) if legal.size > 1 else 0


def no_partition(env: GpuSchedulingEnv, rng: np.random.Generator) -> int:
    """Preempts what runs, launches it again, preempts it ..."""
    legal = [a for a in np.flatnonzero(env.action_masks()).tolist() if env.layout.split(a)[0] != "partition"]
    return max(legal)


@DEVICES
@pytest.mark.parametrize("stall", [last_legal, any_but_wait, no_partition])
def test_time_passes_whatever_an_agent_does(
    device: str, stall: Callable[[GpuSchedulingEnv, np.random.Generator], int]
) -> None:
    """On a GPU without latencies nothing takes time by itself: neither preemptions, nor launches, nor partitions."""
    env = GpuSchedulingEnv("Toy", device=device, commands=ALL, wait_us=50.0)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        env.reset(seed=seed)
        times, cost, over = [0.0], 0.0, False
        while not over:
            _, reward, terminated, truncated, info = env.step(stall(env, rng))
            cost -= reward
            times.append(info["time_us"])
            over = terminated or truncated
            assert len(times) < 1000
        # At one instant: two partitions, two preemptions, each tenant's kernels launched and launched again.
        assert max(len(list(same)) for _, same in itertools.groupby(times)) <= 10
        assert cost >= 1.031, "preemptive-priority's, which is the best with these commands (docs/toy.md)"


@DEVICES
def test_a_partition_is_set_once_at_one_instant(device: str) -> None:
    env = GpuSchedulingEnv("Toy", device=device, commands=ALL, wait_us=50.0)
    env.reset(seed=0)
    sizes = [a for a in range(env.layout.n) if env.layout.split(a)[:2] == ("partition", 0)]
    assert env.action_masks()[sizes].tolist() == [True, True, True, False], "it has the whole GPU"
    env.step(sizes[0])
    assert not env.action_masks()[sizes].any()
    assert env.view.tenants.partitionable.tolist() == [0.0, 1.0]
    with refused(IllegalCommand, "tenant 0", "instant"):
        env.device.apply(SetPartition(0, Partition(0, 2)))
    _, _, _, _, info = env.step(sizes[1])
    assert (info["illegal_actions"], info["time_us"]) == (1, 50.0), "an illegal action is a wait"
    assert env.action_masks()[sizes].tolist() == [False, True, True, True]


@DEVICES
def test_a_kernel_is_preempted_once_at_one_instant(device: str) -> None:
    env = GpuSchedulingEnv("Toy", device=device, commands=ALL)
    env.reset(seed=0)
    gpu, kernel = env.device, int(env.view.pending.id[0])

    def look() -> list[float]:
        view = gpu.advance()
        assert view is not None
        return [view.time_us, *view.running.preemptible.tolist()]

    gpu.apply(Launch(kernel))
    assert look() == [0.0, 1.0]
    gpu.apply(Preempt(kernel, "reset"))
    assert look() == [0.0], "pending again, all at time 0"
    gpu.apply(Launch(kernel))
    assert look() == [0.0, 0.0]
    with refused(IllegalCommand, kernel, "preempted"):
        gpu.apply(Preempt(kernel, "save"))
    with refused(IllegalCommand, kernel, "preempted"):
        gpu.apply(Preempt(kernel, "save", Partition(3, 1)))
    gpu.apply(WAIT)
    assert look() == [100.0], "it has ended"


@DEVICES
def test_a_save_of_no_block_at_all_is_the_one_preemption_of_its_instant(device: str) -> None:
    env = GpuSchedulingEnv("Toy", device=device, commands=ALL)
    env.reset(seed=0)
    gpu, kernel = env.device, int(env.view.pending.id[0])
    gpu.apply(Launch(kernel))
    view = gpu.advance()
    assert view is not None
    gpu.apply(Preempt(kernel, "save", Partition(3, 1)))
    view = gpu.advance()
    assert view is not None
    assert (view.running.id[0], view.running.blocks_resident[0]) == (kernel, 2.0), "it has SMs 0 and 1"
    assert (view.running.preempting[0], view.running.preemptible[0]) == (0.0, 0.0)
    with refused(IllegalCommand, kernel, "preempted"):
        gpu.apply(Preempt(kernel, "save", Partition(0, 1)))
    gpu.apply(Wait(1.0))
    view = gpu.advance()
    assert view is not None
    assert (view.time_us, view.running.preemptible[0]) == (1.0, 1.0)


def test_a_scheduler_that_has_nothing_left_to_choose_is_not_asked() -> None:
    """Both partitions are set and nothing is pending: the next decision comes with the next event."""
    for device in ("compiled", "reference"):
        env = GpuSchedulingEnv("Toy", device=device, commands=("launch", "partition"))
        env.reset(seed=0)
        env.device.apply(SetPartition(0, Partition(0, 2)))
        for _ in range(2):
            view = env.device.advance()
            assert view is not None
            env.device.apply(Launch(int(view.pending.id[view.pending.tenant == 0][0])))
        for _ in range(2):
            view = env.device.advance()
            assert view is not None
            env.device.apply(Launch(int(view.pending.id[0])))
        view = env.device.advance()
        assert view is not None, "the other tenant's partition is left"
        assert view.time_us == 0.0
        env.device.apply(SetPartition(1, Partition(2, 2)))
        view = env.device.advance()
        assert view is not None
        assert view.time_us == 100.0


def test_schedulers_that_evict_look_again_when_time_has_passed() -> None:
    gpu = load_gpu("toy-4sm")
    running = [{"id": 3, "preemptible": 0}, {"id": 4, "tenant": 1}]
    assert evict(build_view(running=running), [1], "reset", gpu) == Preempt(4, "reset")
    assert evict(build_view(running=running), [0], "reset", gpu) == Wait(500.0 + 0.1)


def test_schedulers_that_evict_let_graphs_end() -> None:
    """They cannot be preempted; looking again before something happens would be in vain."""
    gpu = load_gpu("toy-4sm")
    graph = {"id": 3, "nodes": 40}
    waiting = {"id": 4, "started": 0, "launched_us": 500.0}
    assert evict(build_view(running=[graph]), [0], "save", gpu) is None
    assert evict(build_view(running=[graph, waiting]), [0, 1], "save", gpu) is None, "it is behind the graph"
    other = {**waiting, "stream": 1}
    assert evict(build_view(running=[graph, other]), [0, 1], "save", gpu) == Wait(500.0 + 0.1)


def test_illegal_actions_are_waits_that_cost_their_time() -> None:
    tenants = {"inference": {"jobs": 3}, "training": {"jobs": 1}}
    env = GpuSchedulingEnv("InferenceBesideTraining", tenants=tenants, commands=("launch",))

    def illegal(env: GpuSchedulingEnv) -> int:
        return int(np.argmin(env.action_masks()))

    fair, wrong, lazy = (play(env, policy) for policy in (honest, illegal, idle))
    # Once all launches are legal, its lowest action is a wait.
    assert wrong.cost == pytest.approx(lazy.cost)
    assert wrong.cost > 20 * fair.cost

    steps = itertools.count()

    def now_and_then(env: GpuSchedulingEnv) -> int:
        return illegal(env) if next(steps) % 3 == 0 else honest(env)

    assert play(env, now_and_then).cost > 1.005 * fair.cost, "a launch comes an event later now and then"
