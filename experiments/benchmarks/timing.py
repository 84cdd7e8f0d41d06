"""Stopwatches, and measurements that take turns so that a busy machine disturbs all of them alike."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Measurement = Callable[[], "Elapsed"]
"""Does some work and says how long it took."""


@dataclass(frozen=True, slots=True)
class Elapsed:
    """What one measurement took, seconds."""

    count: int
    """How many things were done."""
    wall_s: float
    cpu_s: float
    """Processor time of the calling thread: the wall time on an otherwise idle machine, where threads that it starts
    have no more to do than itself."""
    process_s: float
    """Processor time of all threads."""


class Stopwatch:
    """Runs within its context, which may be entered again."""

    def __init__(self) -> None:
        self._wall = self._cpu = self._process = 0.0

    def __enter__(self) -> Stopwatch:
        self._wall -= time.perf_counter()
        self._process -= time.process_time()
        self._cpu -= time.thread_time()
        return self

    def __exit__(self, *error: object) -> None:
        self._cpu += time.thread_time()
        self._process += time.process_time()
        self._wall += time.perf_counter()

    def timing(self, count: int) -> Elapsed:
        """What was measured for ``count`` things."""
        return Elapsed(count, self._wall, self._cpu, self._process)


def timed(work: Callable[[], object], count: int, before: Callable[[], object] = lambda: None) -> Measurement:
    """Measures ``work``, which does ``count`` things; what is done ``before`` does not count."""

    def measure() -> Elapsed:
        before()
        with Stopwatch() as watch:
            work()
        return watch.timing(count)

    return measure


def each(function: Callable[[Any], object], arguments: Iterable[Any]) -> Callable[[], None]:
    """Calls ``function`` with one of ``arguments`` after the other."""

    def work() -> None:
        for argument in arguments:
            function(argument)

    return work


def take_turns(
    measurements: Mapping[str, Measurement], rounds: int, on_turn: Callable[[], object] = lambda: None
) -> dict[str, list[Elapsed]]:
    """Each measurement once a round, one after the other; returns their timings by name."""
    timings: dict[str, list[Elapsed]] = {name: [] for name in measurements}
    for _ in range(rounds):
        for name, measure in measurements.items():
            timings[name].append(measure())
            on_turn()
    return timings


FIRST_USE = """
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


def first_uses() -> tuple[Elapsed, Elapsed]:
    """Time from the start of a fresh process to its first steps: with an empty cache, and with the filled one."""
    with tempfile.TemporaryDirectory(prefix="gpusched-bench-") as cache:
        runs = [
            subprocess.run(
                [sys.executable, "-c", FIRST_USE],
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            for _ in range(2)
        ]
    cold, cached = (Elapsed(*json.loads(run.stdout.splitlines()[-1])) for run in runs)
    return cold, cached


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "platform": platform.platform(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
    }
