"""Problems of dynamic parallelism: an application whose threads may launch kernels, on a GPU; and how its program is
compiled: thresholding, coarsening and aggregation (Olabi et al., CGO 2022).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.child_launches.hardware.warp_machine import (
    SPAWN_KEPLER,
    LaunchCosts,
    LoopBody,
    LoopCosts,
    WarpMachine,
)
from gpusched_env.games.child_launches.workload.launches import Benchmark, BlockShape, Threads, body_of
from gpusched_env.hardware.occupancy import BlockFootprint, footprint

Ints = NDArray[np.int64]

KERNEL: Final = np.dtype(
    [
        (name, np.int64)
        for name in (
            *("first_thread", "threads"),
            *("block_threads", "block_warps", "block_registers", "block_shared"),
            *("child_threads", "child_warps", "child_registers", "child_shared"),
        )
    ]
)
"""A parent kernel: its threads, and what a block of it, and one of its children, occupies."""


class LaunchTables(NamedTuple):
    """All threads and requests of an application, of all kernels and levels of nesting, one after another."""

    kernels: NDArray[np.void]
    """(kernels,) rows of :data:`KERNEL`."""
    base: Ints
    """(threads,) iterations whatever the thread launches."""
    first_request: Ints
    """(threads + 1,) where each thread's requests start."""
    items: Ints
    """(requests,) threads of the child."""
    work: Ints
    """(requests,) serial iterations of the request."""
    iterations: Ints
    """(requests,) of each child thread, where these are equal and request nothing."""
    first_child: Ints
    """(requests,) the child's first thread, -1 where they are equal."""


@dataclass(frozen=True, eq=False)
class LaunchProblem:
    """An application on a GPU, and how that treats parents and children."""

    benchmark: Benchmark
    machine: WarpMachine
    body: LoopBody
    threshold: int
    """The work above which requests reach the launch call; the program does the others itself."""
    queue_of: Literal["child", "block"] = "child"
    """Children of one software queue (stream) run one after another: each has its own, or those of a parent's block
    share one, as in CUDA without streams."""
    parents: Literal["leave", "wait"] = "leave"
    """A block whose children are not finished leaves its SM when its warps have ended, or waits there for them."""
    held_until: Literal["blocks", "children"] = "blocks"
    """A kernel gives its hardware queue back when its blocks have ended, or when its children have finished, too."""
    aggregated: bool = False
    """Children that a warp's lanes launch together are one launch."""
    measured: LoopCosts | None = None
    """Measured costs of the loop on this GPU, if they need not be worked out from ``body``."""

    @property
    def name(self) -> str:
        return self.benchmark.name

    @cached_property
    def costs(self) -> LoopCosts:
        return self.measured or self.machine.costs(self.body)

    @cached_property
    def tables(self) -> LaunchTables:
        """The application in flat arrays."""
        return _flat(self)

    @cached_property
    def asking(self) -> int:
        """Requests above the threshold, nested ones included: the most that can be launched."""
        return int((self.tables.work > self.threshold).sum())

    def with_threshold(self, threshold: int) -> LaunchProblem:
        """The problem with another threshold of the program."""
        return self if threshold == self.threshold else self.changed(threshold=threshold)

    def on(self, machine: WarpMachine) -> LaunchProblem:
        """The problem on another machine."""
        return self.changed(machine=machine)

    def flat(self) -> LaunchProblem:
        """The program that launches nothing, and does not ask."""
        return self.with_threshold(max(self.threshold, int(self.tables.work.max(initial=0))))

    def with_launches(self, launches: LaunchCosts) -> LaunchProblem:
        """The problem with other costs of launches."""
        return self.on(replace(self.machine, launches=launches))

    def with_coarsening(self, factor: int) -> LaunchProblem:
        """The problem with children of ``1 / factor`` as many blocks, rounded up, whose threads take as many more
        iterations.

        Where a child's threads have requests of their own it stays as it is.
        """
        if factor == 1:
            return self
        tables = self.tables
        coarse = [
            _coarsened(tables, row["child_threads"], factor, first, end)
            for row, first, end in self._requests_by_kernel()
        ]
        changed = self.changed()
        items, iterations = (np.concatenate(parts) for parts in zip(*coarse, strict=True))
        changed.__dict__["tables"] = tables._replace(items=items, iterations=iterations)
        return changed

    def _requests_by_kernel(self) -> list[tuple[np.void, int, int]]:
        first_thread = [*self.tables.kernels["first_thread"], len(self.tables.base)]
        bounds = self.tables.first_request[first_thread].tolist()
        return list(zip(self.tables.kernels, bounds, bounds[1:], strict=False))

    def changed(self, **fields: object) -> LaunchProblem:
        """The problem with other fields."""
        changed = replace(self, **fields)  # type: ignore[arg-type]
        if changed.machine.gpu is self.machine.gpu and changed.benchmark is self.benchmark:
            changed.__dict__["tables"] = self.tables
        return changed


def _coarsened(tables: LaunchTables, child_threads: int, factor: int, first: int, end: int) -> tuple[Ints, Ints]:
    """Items and iterations of the requests of a kernel."""
    items, iterations = tables.items[first:end], tables.iterations[first:end]
    blocks = -(-items // child_threads)
    fewer = np.minimum(items, -(-blocks // factor) * child_threads)
    equal = tables.first_child[first:end] < 0
    return np.where(equal, fewer, items), np.where(equal, iterations * -(-items // fewer), iterations)


def launch_problem(benchmark: Benchmark, machine: WarpMachine = SPAWN_KEPLER) -> LaunchProblem:
    """``benchmark`` on ``machine``, with its own threshold.

    Raises:
        InputError: its blocks do not fit on an SM, it has no kernels, or a grid of it no threads.
    """
    if not benchmark.kernels:
        raise InputError(f"{benchmark.name}: has no kernels")
    problem = LaunchProblem(benchmark, machine, body_of(benchmark.name), benchmark.threshold)
    _ = problem.tables
    return problem


def _room(machine: WarpMachine, shape: BlockShape, what: str) -> BlockFootprint:
    return footprint(machine.gpu, shape.threads, shape.registers, shape.shared_bytes, what)


def _check(threads: Threads, where: str) -> None:
    """Every grid has threads, and no thread less than no work."""
    if len(threads.base) == 0:
        raise InputError(f"{where}: a grid without threads; it needs at least 1")
    level: Threads | None = threads
    while level is not None:
        made = level.requests
        if made is not None and (made.items < 1).any():
            raise InputError(f"{where}: a request of a child without threads; it needs at least 1")
        if (level.base < 0).any() or (made is not None and made.iterations is not None and (made.iterations < 0).any()):
            raise InputError(f"{where}: a negative number of iterations; must be at least 0")
        level = made.children if made is not None else None


def _flat(problem: LaunchProblem) -> LaunchTables:
    """Level by level: the children of a level's requests are the next level's threads."""
    kernels = np.zeros(len(problem.benchmark.kernels), KERNEL)
    parts: dict[str, list[Ints]] = {name: [] for name in LaunchTables._fields[1:]}
    threads = requests = 0
    for row, kernel in zip(kernels, problem.benchmark.kernels, strict=True):
        where = f"{problem.name}: kernel {kernel.name}"
        own, child = _room(problem.machine, kernel.block, where), _room(problem.machine, kernel.child_block, where)
        _check(kernel.threads, where)
        row["first_thread"], row["threads"] = threads, len(kernel.threads.base)
        for prefix, room in (("block", own), ("child", child)):
            for field, value in (
                ("threads", room.threads),
                ("warps", room.warps),
                ("registers", room.registers),
                ("shared", room.shared_bytes),
            ):
                row[f"{prefix}_{field}"] = value
        level: Threads | None = kernel.threads
        while level is not None:
            made = level.requests
            parts["base"].append(level.base)
            parts["first_request"].append(level.first_request[:-1] + requests)
            threads_after = threads + len(level.base)
            if made is not None:
                parts["items"].append(made.items)
                parts["work"].append(made.work)
                equal = made.iterations is not None
                parts["iterations"].append(made.iterations if made.iterations is not None else np.zeros_like(made.work))
                parts["first_child"].append(np.full(len(made), -1) if equal else made.first_child[:-1] + threads_after)
                requests += len(made)
            threads = threads_after
            level = made.children if made is not None else None
    parts["first_request"].append(np.array([requests]))
    empty = np.zeros(0, np.int64)
    return LaunchTables(kernels, **{name: np.concatenate([empty, *arrays]) for name, arrays in parts.items()})


FLAT: Final = 1 << 40
"""A threshold that no work is above: the program launches nothing, and does not ask."""


class Transformations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a compiler makes of a program before it runs; by default nothing."""

    threshold: Annotated[int, Meta(ge=0)] | None = None
    """The threshold in place of the program's own, serial iterations."""
    coarsening: Annotated[int, Meta(ge=1)] = 1
    """Blocks of a child whose work one block does, where the child's threads launch nothing."""
    aggregated: bool = False
    """Whether what a warp launches together is one launch."""

    def applied(self, problem: LaunchProblem) -> LaunchProblem:
        """The program, compiled so."""
        if self.threshold is not None:
            problem = problem.with_threshold(self.threshold)
        problem = problem.with_coarsening(self.coarsening)
        return problem.changed(aggregated=True) if self.aggregated else problem


def check_program(given: Transformations | Mapping[str, Any]) -> Transformations:
    """``given``, or what its fields say.

    Raises:
        InputError: names the field that there is none of, or whose value is none; it has no fields.
    """
    if isinstance(given, Transformations):
        return given
    if not isinstance(given, Mapping):
        raise InputError(f'program is {given!r}, must be a mapping such as {{"coarsening": 16, "aggregated": True}}')
    known = Transformations.__struct_fields__
    for name in given:
        if name not in known:
            raise InputError(f"program: {name!r} is no transformation; {did_you_mean(str(name), known)}")
    try:
        return msgspec.convert(dict(given), Transformations)
    except msgspec.ValidationError as error:
        raise InputError(f"program: {error}") from error
