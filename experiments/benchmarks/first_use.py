"""What the first use of the compiled device takes: compilation, once an installation, then loading."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from gpusched_env.experiments.benchmarks.timing import Timing

SCRIPT = """
import json, time
wall, cpu, process = time.perf_counter(), time.thread_time(), time.process_time()
import gymnasium, gpusched_env
single = gymnasium.make("gpusched/InferenceBesideTraining-v0")
single.reset(seed=0)
single.step(0)
envs = gymnasium.make_vec("gpusched/InferenceBesideTraining-v0", num_envs=2)
envs.reset(seed=0)
envs.step([0, 0])
print(json.dumps((1, time.perf_counter() - wall, time.thread_time() - cpu, time.process_time() - process)))
"""
"""Imports, makes a single and a vector environment, resets and steps them."""


def first_uses() -> tuple[Timing, Timing]:
    """Time from the start of a fresh process to its first steps, with an empty cache and again with the filled one."""
    with tempfile.TemporaryDirectory(prefix="gpusched-bench-") as cache:
        cold, cached = (_run(cache) for _ in range(2))
    return cold, cached


def _run(cache: str) -> Timing:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Timing(*json.loads(done.stdout.splitlines()[-1]))
