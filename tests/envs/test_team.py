"""Threads that step a batch together: the same results with any number of them, and they always end."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from numpy.typing import NDArray

from gpusched_env.devices.compiled import sections
from gpusched_env.devices.compiled.arena import Arena
from gpusched_env.envs import batch as batch_module
from gpusched_env.envs import vector_arguments
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import load_scenario
from tests.refusals import refused

COUNT = 7
SHORT: dict[str, Any] = {"num_envs": COUNT, "horizon_us": 1500.0, "autoreset_mode": "SAME_STEP"}
MINUTE_S = 60.0
"""Far longer than a thread takes to end."""


def make(scenario: str = "InferenceBesideTraining", **kwargs: Any) -> GpuSchedulingVectorEnv:
    commands = load_scenario(scenario).commands
    return GpuSchedulingVectorEnv(scenario, **{"commands": commands, **SHORT, **kwargs})


def team(env: GpuSchedulingVectorEnv) -> Any:
    return env._batch._team


def threads_of(env: GpuSchedulingVectorEnv) -> list[threading.Thread]:
    found = team(env)
    return [] if found is None else found.threads


def random_legal(masks: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    return (rng.random(masks.shape) * masks).argmax(axis=1)


def play(env: GpuSchedulingVectorEnv, steps: int) -> list[Any]:
    """All that random actions lead to; what may be overwritten is copied."""
    rng = np.random.default_rng(0)
    first, infos = env.reset(seed=3)
    seen: list[Any] = [({name: table.copy() for name, table in first.items()}, infos)]
    for _ in range(steps):
        observations, *rest = env.step(random_legal(env.action_masks(), rng))
        infos = dict(rest.pop())
        if "final_obs" in infos:
            infos["final_obs"] = infos["final_obs"].tolist()
        seen.append(({name: table.copy() for name, table in observations.items()}, *rest, infos))
    return seen


@pytest.mark.parametrize("scenario", ["InferenceBesideTraining", "MultiTenantBurst"])
def test_results_do_not_depend_on_the_number_of_threads(scenario: str) -> None:
    expected = play(make(scenario, threads=1), 400)
    assert sum(int((step[2] | step[3]).sum()) for step in expected[1:]) >= COUNT
    # More than cores, as many as environments, more than these; observations copied and in place.
    for threads, copy in ((2, True), (3, False), (COUNT, True), (COUNT + 5, True)):
        env = make(scenario, threads=threads, copy=copy)
        np.testing.assert_equal(play(env, 400), expected, err_msg=f"{threads} threads")
        assert len(threads_of(env)) == min(threads, COUNT) - 1
        assert all(thread.is_alive() for thread in threads_of(env))
        env.close()


def test_copies_stay_as_they_are_while_episodes_begin_and_end() -> None:
    env, rng = make(threads=2), np.random.default_rng(0)
    kept = [env.reset(seed=3)[0]]
    kept += [env.step(random_legal(env.action_masks(), rng))[0] for _ in range(300)]
    expected = [step[0] for step in play(make(threads=1), 300)]
    np.testing.assert_equal(kept, expected)


def test_memory_grows_while_threads_step(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = play(make("MultiTenantBurst", threads=1), 300)
    served: list[int] = []
    serve = Arena.serve

    def counting(self: Arena, reason: int) -> None:
        served.append(reason)
        serve(self, reason)

    monkeypatch.setattr(Arena, "serve", counting)
    for first in ("JOBS", "LAUNCHES", "AHEAD"):
        monkeypatch.setattr(sections, first, 1)
    monkeypatch.setattr(sections, "LOG_ROWS", 1)
    monkeypatch.setattr(batch_module, "WORTH_A_TEAM", 1)
    got = play(make("MultiTenantBurst", threads=3), 300)
    np.testing.assert_equal(got, expected)
    assert set(served) == set(batch_module.NEEDS_MEMORY)
    assert len(served) > 10 * COUNT, "environments stop in the middle of steps too"


def test_one_thread_makes_no_other() -> None:
    before = threading.active_count()
    for arguments in ({"threads": 1}, {"threads": 4, "num_envs": 1}, {"num_envs": 2}):
        env = make(**arguments)
        env.reset(seed=0)
        env.step(np.zeros(env.num_envs, np.int64))
        assert threads_of(env) == []
    assert threading.active_count() == before


@pytest.mark.parametrize(("cores", "count", "threads"), [(1, 1000, 1), (16, 15, 1), (16, 100, 6), (16, 1000, 16)])
def test_by_default_there_is_a_thread_for_some_environments(
    monkeypatch: pytest.MonkeyPatch, cores: int, count: int, threads: int
) -> None:
    monkeypatch.setattr(vector_arguments, "cores", lambda: cores)
    assert vector_arguments.thread_count(None, count) == threads
    assert vector_arguments.thread_count(3, count) == 3


def test_threads_are_there_from_the_first_step_until_the_environment_is_closed() -> None:
    env, other = make(threads=3), make(threads=2)
    assert threads_of(env) == []
    play(env, 3)
    play(other, 3)
    threads = threads_of(env)
    assert len(threads) == 2
    env.close()
    env.close()
    for thread in threads:
        thread.join(MINUTE_S)
        assert not thread.is_alive()
    for use in (env.reset, env.action_masks, lambda: env.step([0] * COUNT)):
        with refused(ClosedEnvironmentError, "closed"):
            use()
    assert threads_of(other)[0].is_alive()
    np.testing.assert_equal(play(other, 50), play(make(threads=1), 50))


def test_threads_end_when_nobody_uses_the_environment_any_more() -> None:
    env = make(threads=3)
    play(env, 3)
    threads, gone = threads_of(env), weakref.ref(env)
    del env
    gc.collect()
    assert gone() is None
    for thread in threads:
        thread.join(MINUTE_S)
        assert not thread.is_alive()


def test_a_refused_step_changes_nothing() -> None:
    env, rng = make(threads=2), np.random.default_rng(0)
    env.reset(seed=3)
    with refused(InputError, "action 99", "environment 4", "in 0"):
        env.step([0, 1, 2, 0, 99, 0, -3])
    with refused(InputError, "action 18446744073709551615", "environment 2"):
        env.step(np.array([0, 0, 2**64 - 1, 0, 0, 0, 0], np.uint64))
    got = [env.step(random_legal(env.action_masks(), rng)) for _ in range(20)]
    for step, expected in zip(got, play(make(threads=1), 20)[1:], strict=True):
        np.testing.assert_equal(step, expected)


# ---- processes ------------------------------------------------------------------------------------

BEGIN = """
    import os, sys, threading, time
    import numpy as np
    from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv

    env = GpuSchedulingVectorEnv("Toy", num_envs=6, threads=3)
    env.reset(seed=0)
    actions = np.ones(6, np.int64)
    env.step(actions)
    team = env._batch._team
    assert [thread.is_alive() for thread in team.threads] == [True, True]
"""


def run_script(script: str) -> str:
    """What a fresh process prints; it must come to its end."""
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BEGIN) + textwrap.dedent(script)],
        capture_output=True, text=True, timeout=10 * MINUTE_S, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "script",
    [
        "print('end')",
        "time.sleep(0.3); print('end')",
        "env.close(); print('end')",
        "print('end'); sys.exit(0)",
        # A cycle that only the interpreter's end takes apart.
        "import gc; gc.disable(); env.me = env; del env; print('end')",
        # Another thread steps last.
        "threading.Thread(target=lambda: [env.step(0 * actions) for _ in range(300)]).start(); print('end')",
    ],
    ids=["waiting", "asleep", "closed", "exit", "cycle", "thread"],
)
def test_the_interpreter_ends(script: str) -> None:
    assert run_script(script) == "end\n"


def test_threads_find_everything_compiled() -> None:
    """A process that forks while one of them holds Numba's lock has a child that waits for ever."""
    script = """
        import threading
        from gpusched_env.envs import team
        from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv

        start, loaded = threading.Thread.start, []
        def watched(thread):
            loaded.append(len(team.take_part.signatures))
            start(thread)
        threading.Thread.start = watched
        env = GpuSchedulingVectorEnv("Toy", num_envs=6, threads=3)
        env.reset(seed=0)
        env.step([1] * 6)
        print(loaded, len(team.take_part.signatures))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[-2] == "[1, 1] 1"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_both_processes_go_on_after_a_fork() -> None:
    script = """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork() beside threads
        state = env.save_state()
        old = team.threads
        child = os.fork()
        rewards = [env.step(actions * (k % 2))[1].sum() for k in range(30)]
        new = [thread.is_alive() for thread in team.threads]
        if child:
            assert team.threads == old and new == [True, True]
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            env.restore_state(state)
            assert rewards == [env.step(actions * (k % 2))[1].sum() for k in range(30)]
        else:
            assert team.threads != old and new == [True, True]
        print(sum(rewards), flush=True)
    """
    child, parent = run_script(script).split()
    assert child == parent
