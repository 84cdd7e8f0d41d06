"""One thread at a time: a second one is told so, and finds everything as it was."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from gpusched_env.devices import make_device
from gpusched_env.devices.compiled import tables
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.errors import ThreadError
from gpusched_env.games.child_launches.devices import make_launch_device
from gpusched_env.games.child_launches.environment.env import DynamicParallelismEnv
from gpusched_env.games.fleet.device import Fleet
from gpusched_env.games.fleet.environment.env import FleetEnv
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.environment.env import TaskQueueEnv
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.commands import Wait
from gpusched_env.scheduling.guards import OneThread, one_thread_at_a_time
from tests.refusals import refused

ENVIRONMENTS: dict[str, Callable[[], Any]] = {
    "compiled": lambda: GpuSchedulingEnv("Toy"),
    "reference": lambda: GpuSchedulingEnv("Toy", device="reference"),
    "vector": lambda: GpuSchedulingVectorEnv("Toy", num_envs=2),
    "fleet": lambda: FleetEnv("small"),
    "tasks": lambda: TaskQueueEnv("bfs-citation"),
    "launches": lambda: DynamicParallelismEnv("random"),
}


@contextmanager
def inside(of: Any) -> Iterator[None]:
    """Another thread is in ``of``."""
    there, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with of.entry:
            there.set()
            leave.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    there.wait()
    try:
        yield
    finally:
        leave.set()
        thread.join()


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_is_used_by_one_thread(name: str) -> None:
    env, alike = ENVIRONMENTS[name](), ENVIRONMENTS[name]()
    for each in (env, alike):
        each.reset(seed=0)
    wait = np.zeros(2, np.int64) if name == "vector" else 0
    calls: dict[str, Callable[[], object]] = {
        "step": lambda: env.step(wait), "reset": lambda: env.reset(seed=1), "render": env.render,
        "action_masks": env.action_masks,
    }  # fmt: skip
    if name != "vector":
        calls["summary"] = env.summary
    if hasattr(env, "save_state"):
        state = env.save_state()
        calls |= {"save_state": env.save_state, "restore_state": lambda: env.restore_state(state)}
    with inside(env):
        for method, call in calls.items():
            with pytest.raises(ThreadError, match=f"{type(env).__name__}.{method}: another thread uses this object"):
                call()
    np.testing.assert_equal(env.step(wait), alike.step(wait))


def test_the_device_behind_an_environment_is_one_with_it() -> None:
    env = GpuSchedulingEnv("Toy")
    env.reset(seed=0)
    with inside(env), refused(ThreadError, "GpuSchedulingEnv.view"):
        _ = env.view
    with inside(env), refused(ThreadError, "CompiledDevice.apply"):
        env.device.apply(Wait())
    assert len(env.view.pending) == 2


def test_a_view_is_read_while_nobody_plays_on() -> None:
    device = make_device("compiled")
    view = device.reset(build_problem(load_scenario("Toy")), 0)
    assert view is not None
    with inside(device), pytest.raises(ThreadError):
        _ = view.pending
    assert len(view.pending) == 2


@pytest.mark.parametrize("name", ["compiled", "reference"])
def test_so_are_devices(name: str) -> None:
    device, problem = make_device(name), build_problem(load_scenario("Toy"))
    device.reset(problem, 0, snapshots=True)
    snapshot = device.snapshot()
    calls = (
        lambda: device.reset(problem, 0),
        lambda: device.apply(Wait()),
        device.advance,
        lambda: device.restore(snapshot),
    )
    with inside(device):
        for call in calls:
            with pytest.raises(ThreadError):
                call()
    device.apply(Wait(5.0))
    assert device.advance() is not None


@pytest.mark.parametrize(
    "device",
    [*map(make_launch_device, ("compiled", "reference")), *map(make_task_device, ("compiled", "reference"))],
    ids=lambda device: type(device).__name__,
)
def test_and_those_of_other_games(device: Any) -> None:
    with inside(device), refused(ThreadError, "thread"):
        device.advance()


def test_and_fleets() -> None:
    env = FleetEnv("small")
    env.reset(seed=0)
    run: Any = env._run
    fleet: Fleet = run.fleet
    with inside(fleet), pytest.raises(ThreadError):
        fleet.advance()


def test_a_method_may_call_another_and_leaves_after_an_error() -> None:
    class Nested(OneThread):
        @one_thread_at_a_time
        def outer(self, fails: bool) -> int:
            return self.inner(fails) + 1

        @one_thread_at_a_time
        def inner(self, fails: bool) -> int:
            if fails:
                raise KeyError
            return 1

    nested = Nested()
    with pytest.raises(KeyError):
        nested.outer(True)
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(nested.outer(False)))
    thread.start()
    thread.join()
    assert found == [2]


def test_threads_share_what_a_device_makes_of_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory of environments has addresses of it, so that there must not be a second one."""
    made = tables._Tabulation.tables
    at_once = threading.Barrier(2)

    def slowly(making: Any) -> Any:
        # Whoever is alone in here goes on, too.
        with suppress(threading.BrokenBarrierError):
            at_once.wait(0.2)
        return made(making)

    monkeypatch.setattr(tables._Tabulation, "tables", slowly)
    problem, layout = build_problem(load_scenario("Toy")), GpuSchedulingVectorEnv("Toy", num_envs=1).layout
    batches = [EnvBatch(1, layout, wait_us=100.0) for _ in range(2)]
    threads = [threading.Thread(target=batch.begin, args=(0, problem, 0)) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert batches[0].arena(0)._tables is batches[1].arena(0)._tables


def test_what_is_made_once_of_a_problem_is_one_in_all_threads() -> None:
    at_once, found = threading.Barrier(2), list[object]()

    def make(problem: object) -> object:
        with suppress(threading.BrokenBarrierError):
            at_once.wait(5.0)
        return object()

    problem = build_problem(load_scenario("Toy"))
    threads = [threading.Thread(target=lambda: found.append(problem.once(make))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1]
