"""Environments in other processes and threads."""

from __future__ import annotations

import multiprocessing
import threading
import warnings
from typing import Any

import pytest

from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from tests.robustness.playing import play, started


def in_process(results: Any, env: Any) -> None:
    """Play a new environment and one of the parent's, if it gave one."""
    results.put([play(one)[0] for one in (GpuSchedulingEnv("Toy"), env) if one is not None])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_environments_in_other_processes(method: str) -> None:
    env = started()
    expected = play(env)[0]
    context = multiprocessing.get_context(method)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's of forks beside threads, from 3.12 on.
        results: Any = context.SimpleQueue()
        process: Any = context.Process(target=in_process, args=(results, env if method == "fork" else None))
        process.start()
    process.join()
    assert process.exitcode == 0
    got = results.get()
    assert got == [expected] * len(got) != []


def test_a_vector_environment_goes_on_after_a_fork() -> None:
    envs = GpuSchedulingVectorEnv("Toy", num_envs=8, threads=2)
    envs.reset(seed=0)
    expected = envs.step([0] * 8)[1].tolist()
    context = multiprocessing.get_context("fork")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results: Any = context.SimpleQueue()
        process: Any = context.Process(target=lambda: (envs.reset(seed=0), results.put(envs.step([0] * 8)[1].tolist())))
        process.start()
    process.join()
    assert process.exitcode == 0
    assert results.get() == expected
    envs.reset(seed=0)
    assert envs.step([0] * 8)[1].tolist() == expected
    envs.close()


def test_environments_in_threads() -> None:
    expected = play(started())[0]
    got: list[list[float]] = []
    threads = [threading.Thread(target=lambda: got.extend(play(started())[0] for _ in range(5))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [expected] * 20
