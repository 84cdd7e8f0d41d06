"""Stopwatches, and measurements that take turns so that a busy machine disturbs all of them alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Measurement = Callable[[], "Timing"]
"""Does some work and says how long it took."""


@dataclass(frozen=True, slots=True)
class Timing:
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

    def timing(self, count: int) -> Timing:
        """What was measured for ``count`` things."""
        return Timing(count, self._wall, self._cpu, self._process)


def take_turns(
    measurements: Mapping[str, Measurement], rounds: int, on_turn: Callable[[str], None] = lambda name: None
) -> dict[str, list[Timing]]:
    """Each measurement once a round, one after the other; returns their timings by name."""
    timings: dict[str, list[Timing]] = {name: [] for name in measurements}
    for _ in range(rounds):
        for name, measure in measurements.items():
            on_turn(name)
            timings[name].append(measure())
    return timings
