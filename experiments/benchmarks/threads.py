"""Decisions a second of the vector environment, by the number of its threads."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from gpusched_env.compiling import cached
from gpusched_env.envs.team import cores
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.experiments.benchmarks.suite import processor
from gpusched_env.versions import versions

SCHEMA = "gpusched-bench-threads/1"
SCENARIOS = ("InferenceBesideTraining", "PriorityFill", "MultiTenantBurst")
GOLDEN = 0x9E3779B97F4A7C15
"""Spreads the first states of the generators over 64 bits."""


@dataclass(frozen=True, slots=True)
class Speed:
    """Of one scenario with one number of threads, medians over rounds."""

    scenario: str
    copies: int
    threads: int
    decisions_per_s: float
    speed_up: float
    """Over the first number of threads that was measured, in the same round."""


class RandomLoop:
    """An environment that takes random legal actions, the same with any number of threads."""

    def __init__(self, scenario: str, copies: int, threads: int) -> None:
        self._env = GpuSchedulingVectorEnv(scenario, num_envs=copies, threads=threads, autoreset_mode="SAME_STEP")
        self._states = (np.arange(copies, dtype=np.uint64) + np.uint64(1)) * np.uint64(GOLDEN)
        self._actions = np.zeros(copies, np.int64)
        self._env.reset(seed=0)

    def play(self, steps: int) -> float:
        """Wall seconds that so many steps took; actions are drawn between them and do not count."""
        draw: Any = _draw
        taken = 0.0
        for _ in range(steps):
            draw(self._env.action_masks(), self._states, self._actions)
            began = time.perf_counter()
            self._env.step(self._actions)
            taken += time.perf_counter() - began
        return taken

    def close(self) -> None:
        self._env.close()


def thread_speeds(
    threads: Sequence[int],
    copies: int,
    rounds: int,
    *,
    scenarios: Sequence[str] = SCENARIOS,
    steps: int = 2000,
    warm_up: int = 2000,
    on_progress: Callable[[int], None] = lambda done: None,
) -> list[Speed]:
    """Measure each number of threads once a round, in turns, on each scenario.

    Args:
        copies: environments.
        steps: of a turn; with 256 copies on one thread they take one to two seconds.
        warm_up: steps before, in which episodes drift apart and memory grows to what they need.
        on_progress: told how many turns have been taken: one a scenario, round and number of threads.
    """
    found: list[Speed] = []
    for number, scenario in enumerate(scenarios):
        loops = [RandomLoop(scenario, copies, count) for count in threads]
        for loop in loops:
            loop.play(warm_up)
        seconds: list[list[float]] = [[] for _ in threads]
        for turn in range(rounds):
            for k, loop in enumerate(loops):
                on_progress((number * rounds + turn) * len(threads) + k)
                seconds[k].append(loop.play(steps))
        for loop in loops:
            loop.close()
        for count, taken in zip(threads, seconds, strict=True):
            ratio = statistics.median(first / this for first, this in zip(seconds[0], taken, strict=True))
            found.append(Speed(scenario, copies, count, steps * copies / statistics.median(taken), ratio))
    return found


def table(speeds: Sequence[Speed]) -> Table:
    """For the terminal."""
    first = speeds[0].threads
    found = Table(
        "scenario", "threads", "decisions/s", f"over {first}", title=f"{speeds[0].copies} environments, by threads"
    )
    for column in found.columns[1:]:
        column.justify = "right"
    for speed in speeds:
        found.add_row(
            speed.scenario, str(speed.threads), f"{speed.decisions_per_s:,.0f}", f"{speed.speed_up:.2f} x",
            end_section=speed.threads == speeds[-1].threads,
        )  # fmt: skip
    return found


def results_dict(speeds: Sequence[Speed], rounds: int) -> dict[str, Any]:
    """Everything as plain values: what was measured on what, and the figures."""
    return {
        "schema": SCHEMA,
        "versions": versions(),
        "machine": {"processor": processor(), "cores": cores()},
        "rounds": rounds,
        "speeds": [asdict(speed) for speed in speeds],
    }


PAGE = """\
# Threads

Written by `gpusched bench --threads {threads} --copies {copies} --docs`. Decisions a second of \
[vector environments](vector-environments.md) of {copies}, and how many times those of {first} thread{s}, on \
{processor}, {cores} cores, by wall time; medians over {rounds} rounds in which the numbers of threads took turns. \
Actions are random legal ones, the same with any number of threads, and drawn outside the stopwatch; observations are \
copied (`copy=True`).

{table}
"""


def page(speeds: Sequence[Speed], rounds: int) -> str:
    """The figures as Markdown, a line a number of threads."""
    counts = list(dict.fromkeys(speed.threads for speed in speeds))
    scenarios = list(dict.fromkeys(speed.scenario for speed in speeds))
    lines = ["| threads | " + " | ".join(scenarios) + " |", "| ---: |" + " ---: |" * len(scenarios)]
    for count in counts:
        found = [f"{s.decisions_per_s:,.0f} ({s.speed_up:.2f} x)" for s in speeds if s.threads == count]
        lines.append(f"| {count} | " + " | ".join(found) + " |")
    return PAGE.format(
        threads=",".join(map(str, counts)),
        copies=speeds[0].copies,
        first=counts[0],
        s="" if counts[0] == 1 else "s",
        processor=processor(),
        cores=cores(),
        rounds=rounds,
        table="\n".join(lines),
    )


@cached()
def _draw(masks: NDArray[np.bool_], states: NDArray[np.uint64], actions: NDArray[np.int64]) -> None:
    """A legal action for each environment, from its own generator (xorshift64)."""
    for e in range(masks.shape[0]):
        x = states[e]
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
        states[e] = x
        legal = 0
        for action in range(masks.shape[1]):
            legal += masks[e, action]
        left = np.int64(x % np.uint64(legal))
        for action in range(masks.shape[1]):
            if masks[e, action]:
                if left == 0:
                    actions[e] = action
                    break
                left -= 1
