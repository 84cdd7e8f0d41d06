"""A case: everything that a fuzzed run of tasks depends on, as plain data."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np
from msgspec import Meta

from gpusched_env.errors import InputError
from gpusched_env.experiments.fuzz.stored import Counterexample, Stored
from gpusched_env.games.task_queues.form import Form
from gpusched_env.games.task_queues.hardware.links import NVLINK, TaskLink
from gpusched_env.games.task_queues.hardware.machine import TaskMachine
from gpusched_env.games.task_queues.partition import Partition
from gpusched_env.games.task_queues.problem import Application, TaskProblem
from gpusched_env.workload.graphs import simple_graph

FORMAT: Final = "gpusched-fuzz-tasks/1"
Vertices = Annotated[int, Meta(ge=1, le=4096)]


class TaskCase(Stored, frozen=True, kw_only=True):
    """One run of an application."""

    machine: TaskMachine
    gpus: int = 1
    link: TaskLink = NVLINK
    partition: Partition = "vertices"
    vertices: Vertices
    edges: tuple[tuple[int, int], ...] = ()
    """Undirected."""
    application: Application = "bfs"
    source: int = 0
    epsilon: float = 0.01
    capacity: int | None = None
    polls: int = 10
    relaunch: bool = False
    forms: Annotated[tuple[Form, ...], Meta(min_length=1)]
    """One after another."""
    stay_ps: tuple[int, ...] = ()
    """How long after the start, or after the change before it, each further one is asked for."""
    pause_ps: Annotated[int, Meta(ge=1)] = 1 << 40
    """Between looks at the devices."""

    def problem(self) -> TaskProblem:
        """The case's problem.

        Raises:
            InputError: it is not a valid one.
        """
        for end in (end for edge in self.edges for end in edge):
            if not 0 <= end < self.vertices:
                raise InputError(f"edges: {end} is no vertex, these are 0 to {self.vertices - 1}")
        ends, others = np.array(self.edges, np.int64).reshape(-1, 2).T
        return TaskProblem(
            graph=simple_graph(self.vertices, ends, others),
            application=self.application,
            machine=self.machine,
            gpus=self.gpus,
            link=self.link,
            partition=self.partition,
            source=self.source,
            epsilon=self.epsilon,
            capacity=self.capacity,
            polls=self.polls,
            relaunch=self.relaunch,
            log=1 << 14,
            name="fuzz",
        )

    def self_contained(self) -> TaskCase:
        """The same: it names nothing that has to be looked up."""
        return self


class TaskCounterexample(Counterexample, frozen=True, kw_only=True):
    """A stored case."""

    format: Literal["gpusched-fuzz-tasks/1"] = FORMAT
    case: TaskCase
