"""Decisions a second of the vector environment, by the number of its threads."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from gpusched_env.display.table import Table
from gpusched_env.display.words import counted
from gpusched_env.experiments.benchmarks.environments import RandomLoop
from gpusched_env.experiments.benchmarks.timing import machine, take_turns
from gpusched_env.experiments.lib.pages import page
from gpusched_env.versions import versions

SCHEMA = "gpusched-bench-threads/1"
SCENARIOS = ("InferenceBesideTraining", "PriorityFill", "MultiTenantBurst")


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed of one scenario with one number of threads, medians over rounds."""

    scenario: str
    copies: int
    threads: int
    decisions_per_s: float
    speed_up: float
    """How many times as fast it is as the first number of threads that was measured, in the same round."""


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
    turn = itertools.count(1)
    for scenario in scenarios:
        loops = {n: RandomLoop(copies, n, scenario=scenario, autoreset_mode="SAME_STEP") for n in threads}
        for loop in loops.values():
            loop.play(warm_up)
        plays = {str(n): partial(loop.play, steps) for n, loop in loops.items()}
        timings = take_turns(plays, rounds, lambda: on_progress(next(turn)))
        for loop in loops.values():
            loop.env.close()
        seconds = {n: [timing.wall_s for timing in timings[str(n)]] for n in threads}
        for n, taken in seconds.items():
            ratio = statistics.median(first / this for first, this in zip(seconds[threads[0]], taken, strict=True))
            found.append(Speed(scenario, copies, n, steps * copies / statistics.median(taken), ratio))
    return found


def results_dict(speeds: Sequence[Speed], rounds: int) -> dict[str, Any]:
    """Everything as plain values: what was measured on what, and the figures."""
    return {
        "schema": SCHEMA,
        "versions": versions(),
        "machine": machine(),
        "rounds": rounds,
        "speeds": [asdict(speed) for speed in speeds],
    }


def table(data: dict[str, Any]) -> Table:
    """The figures of :func:`results_dict`, a row a number of threads."""
    cells: dict[int, dict[str, str]] = {}
    for s in data["speeds"]:
        shown = f"{s['decisions_per_s']:,.0f} ({s['speed_up']:.2f} x)"
        cells.setdefault(s["threads"], {})[s["scenario"]] = shown
    heads = ("threads", *next(iter(cells.values())))
    rows = [(str(threads), *row.values()) for threads, row in cells.items()]
    return Table(
        f"Decisions a second of {counted(data['speeds'][0]['copies'], 'environment')}, by threads", heads, rows
    )


def markdown(data: dict[str, Any]) -> str:
    """The figures as a page of the documentation."""
    counts = list(dict.fromkeys(speed["threads"] for speed in data["speeds"]))
    return page("threads.md.j2", data=data, counts=counts, copies=data["speeds"][0]["copies"], table=table(data))
