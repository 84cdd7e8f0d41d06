"""Vector environments give their memory back."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv


def resident_mib() -> float:
    """Memory of this process that is in RAM."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("needs /proc/self/statm")
    gc.collect()
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def growth_mib(scenario: str, count: int, **kwargs: Any) -> float:
    """What resident memory grows by when ``count`` environments are made, used and closed."""

    def use() -> None:
        env = GpuSchedulingVectorEnv(scenario, threads=2, **kwargs)
        env.reset(seed=0)
        for _ in range(3):
            env.step(env.action_masks()[:, 1].astype(int))
        env.close()

    for _ in range(10):
        use()
    before = resident_mib()
    for _ in range(count):
        use()
    return resident_mib() - before


def test_a_hundred_environments_leave_no_memory_behind() -> None:
    assert growth_mib("Toy", 100, num_envs=8) < 3.0


@pytest.mark.slow
def test_a_thousand_environments_leave_no_memory_behind() -> None:
    assert growth_mib("InferenceBesideTraining", 1000, num_envs=8) < 10.0
