"""Tasks a second of the compiled device: decisions are made beforehand, so what is measured is the device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gpusched_env.experiments.benchmarks.suite import BenchmarkRow, BenchmarkSizes, GameBenchmarks
from gpusched_env.experiments.benchmarks.timing import Elapsed, Measurement, Stopwatch
from gpusched_env.games.task_queues.devices.compiled.device import CompiledTaskDevice
from gpusched_env.games.task_queues.problem import Form
from gpusched_env.games.task_queues.session import TaskSession
from gpusched_env.games.task_queues.suite import task_problem

TASKS: Final = "bfs-road"


def tasks() -> Measurement:
    """Tasks of a persistent search of a road-like graph, one device."""
    problem, device = task_problem(TASKS), CompiledTaskDevice()
    session = TaskSession(problem, device)

    def measure() -> Elapsed:
        with Stopwatch() as watch:
            session.begin(Form())
            session.finish()
        return watch.timing(int(device.totals["tasks"]))

    return measure


def _measurements(sizes: BenchmarkSizes) -> dict[str, Measurement]:
    return {"tasks": tasks()}


def _rows(rate: Callable[[str], float], speed: Callable[[str, str], float]) -> list[BenchmarkRow]:
    return [BenchmarkRow("tasks of a persistent search", rate("tasks"), "tasks/s", 2e6)]


BENCHMARKS: Final = GameBenchmarks(_measurements, _rows)
