"""A case: everything that a fuzzed run of an application with child launches depends on, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import numpy as np
from msgspec import Meta

from gpusched_env.experiments.fuzz.stored import Counterexample, Share, Stored
from gpusched_env.games.child_launches.hardware.warp_machine import LoopBody, WarpMachine
from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.games.child_launches.workload.launches import Benchmark, BlockShape, ParentKernel, Requests, Threads

FORMAT: Final = "gpusched-fuzz-launches/1"

MOST = 2**16
"""Of what one thread has or asks for: a file must not ask for more than there is memory for."""
Count = Annotated[int, Meta(ge=0, le=MOST)]
Positive = Annotated[int, Meta(ge=1, le=MOST)]


class Request(Stored, frozen=True, kw_only=True):
    """A loop that a thread can hand over."""

    items: Positive = 1
    """Threads of the child, of ``iterations`` each."""
    iterations: Count = 1
    threads: tuple[ThreadWork, ...] | None = None
    """Threads of the child, in place of equal ones."""


class ThreadWork(Stored, frozen=True, kw_only=True):
    """What a thread has to do."""

    base: Count = 0
    requests: tuple[Request, ...] = ()


class HostKernel(Stored, frozen=True, kw_only=True):
    """What the host launches."""

    block: BlockShape
    child_block: BlockShape
    threads: Annotated[tuple[ThreadWork, ...], Meta(min_length=1)]


class LaunchCase(Stored, frozen=True, kw_only=True):
    """One run of an application."""

    machine: WarpMachine
    body: LoopBody
    kernels: Annotated[tuple[HostKernel, ...], Meta(min_length=1)]
    threshold: int = 0
    queue_of: Literal["child", "block"] = "child"
    parents: Literal["leave", "wait"] = "leave"
    held_until: Literal["blocks", "children"] = "blocks"
    aggregated: bool = False
    spawns: tuple[bool, ...] = ()
    """The first decisions."""
    spawned: Share = 1.0
    """Share of launches among those after them."""
    misused: Share = 0.0
    """Share of requests before which the devices are told something that they have to refuse."""
    seed: int = 0
    """Of both."""
    before: Count = 0
    """Decisions in a run that is left unfinished first."""
    snapshot: Count | None = None
    """Decisions before a snapshot; after the end the rest is played again from there."""
    fresh: bool = False
    """Again on a new device, from the snapshot as it comes out of a file."""

    def problem(self) -> LaunchProblem:
        """The case's problem.

        Raises:
            InputError: it is not a valid one.
        """
        kernels = tuple(
            ParentKernel(f"kernel {row}", kernel.block, kernel.child_block, _level(kernel.threads))
            for row, kernel in enumerate(self.kernels)
        )
        problem = LaunchProblem(
            *(Benchmark("fuzz", kernels, self.threshold), self.machine, self.body, self.threshold),
            *(self.queue_of, self.parents, self.held_until, self.aggregated),
        )
        _ = problem.tables, problem.costs
        return problem

    def self_contained(self) -> LaunchCase:
        """The same: it names nothing that has to be looked up."""
        return self


def _level(threads: Sequence[ThreadWork]) -> Threads:
    """Threads of one level of nesting; where one request has threads of its own, those of all are written out."""
    base = np.array([thread.base for thread in threads], np.int64)
    made = [(row, request) for row, thread in enumerate(threads) for request in thread.requests]
    if not made:
        return Threads(base)
    rows = np.array([row for row, _ in made], np.int64)
    requests = [request for _, request in made]
    if all(request.threads is None for request in requests):
        items = np.array([request.items for request in requests], np.int64)
        return Threads(base, Requests(rows, items, np.array([request.iterations for request in requests], np.int64)))
    children = [request.threads or (ThreadWork(base=request.iterations),) * request.items for request in requests]
    items = np.array([len(child) for child in children], np.int64)
    return Threads(base, Requests(rows, items, children=_level([thread for child in children for thread in child])))


class LaunchCounterexample(Counterexample, frozen=True, kw_only=True):
    """A stored case."""

    format: Literal["gpusched-fuzz-launches/1"] = FORMAT
    case: LaunchCase
