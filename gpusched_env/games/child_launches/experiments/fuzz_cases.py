"""Cases: everything that a fuzzed run of an application with child launches depends on, as plain data.

Random ones have small GPUs, nesting, full queues, and constants that let events coincide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal

import numpy as np
from msgspec import Meta
from msgspec.structs import replace

from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.stored import Counterexample, GameCase, Share, Stored
from gpusched_env.games.child_launches.hardware.warp_machine import LaunchCosts, LoopBody, Overflow, WarpMachine
from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.games.child_launches.workload.launches import (
    Benchmark,
    BlockShape,
    LaunchRequests,
    ParentKernel,
    Threads,
)
from gpusched_env.hardware.specs import GpuSpec, load_gpu

FORMAT: Final = "gpusched-fuzz-launches/1"

MOST = 2**16
"""Most of what one thread has or asks for: a file must not ask for more than there is memory for."""
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


class LaunchCase(GameCase, frozen=True, kw_only=True):
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
    """The first decisions, in order."""
    spawned: Share = 1.0
    """Share of launches among the decisions after ``spawns``."""
    misused: Share = 0.0
    """Share of requests before which the devices are told something that they have to refuse."""
    seed: int = 0
    """Seed of both the random decisions and misuses."""
    before: Count = 0
    """Decisions in a run that is left unfinished first."""
    snapshot: Count | None = None
    """Decisions before a snapshot; after the end the rest is played again from there."""
    fresh: bool = False
    """Whether the rest is played on a new device, from the snapshot as it comes out of a file."""

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
        return Threads(
            base, LaunchRequests(rows, items, np.array([request.iterations for request in requests], np.int64))
        )
    children = [request.threads or (ThreadWork(base=request.iterations),) * request.items for request in requests]
    items = np.array([len(child) for child in children], np.int64)
    return Threads(
        base, LaunchRequests(rows, items, children=_level([thread for child in children for thread in child]))
    )


class LaunchCounterexample(Counterexample, frozen=True, kw_only=True):
    """A stored case."""

    format: Literal["gpusched-fuzz-launches/1"] = FORMAT
    case: LaunchCase


MOST_THREADS = 2500
"""Threads of a case, those of children and of theirs included, at most."""
SMS = {1: 4, 2: 3, 3: 2, 4: 2, 13: 1}
BLOCKS = {1: 2, 2: 2, 3: 1, 8: 1, 16: 2}
"""Most blocks of an SM."""
SM_THREADS = (64, 128, 512, 1024, 2048)
BLOCK_THREADS = {32: 5, 64: 3, 96: 2, 128: 2, 256: 2, 512: 1, 1024: 1}
QUEUES = {2: 4, 3: 2, 4: 1, 8: 1, 32: 3, 1 << 30: 1}
POOLS = {None: 6, 1: 1, 2: 1, 3: 1, 10: 1, 100: 1}
KERNELS = {1: 5, 2: 3, 3: 1, 5: 1}
LEVELS = {0: 0.3, 1: 5, 2: 3, 3: 2}
"""Levels of requests below the host's kernels. All dicts: numbers and their weights."""
UNLIMITED = 1e12
"""Lines or instructions a cycle that nothing is slowed by."""


def draw_launches(seed: int, episode: int) -> LaunchCase:
    """The case of an episode: the same for the same two numbers."""
    dice = Dice(seed, episode, 1)
    dice.tidy = dice.chance(0.5)
    gpu = _gpu(dice)
    return LaunchCase(
        machine=_machine(dice, gpu),
        body=_body(dice),
        kernels=_Application(dice, gpu).kernels(),
        threshold=dice.pick((0, 0, 0, -1, 1, 5, 30)),
        queue_of="block" if dice.chance(0.3) else "child",
        parents="wait" if dice.chance(0.3) else "leave",
        held_until="children" if dice.chance(0.25) else "blocks",
        aggregated=dice.chance(0.3),
        spawned=dice.pick((0.0, 0.1, 0.5, 0.9, 1.0, 1.0, 1.0)),
        misused=0.1 if dice.chance(0.2) else 0.0,
        seed=dice.seed(),
        before=dice.log_integer(1, 100) if dice.chance(0.1) else 0,
        snapshot=dice.log_integer(1, 300) - 1 if dice.chance(0.3) else None,
        fresh=dice.chance(0.5),
    )


def _gpu(dice: Dice) -> GpuSpec:
    gpu = load_gpu("k20m")
    threads = dice.pick(SM_THREADS)
    limits = replace(
        gpu.limits,
        threads=threads,
        warps=threads // 32 if dice.chance(0.7) else max(2, threads // 64),
        blocks=dice.weighted(BLOCKS),
        registers=dice.pick((16384, 65536)),
    )
    return replace(gpu, name="fuzz-gpu", sms=dice.weighted(SMS), limits=limits)


def _machine(dice: Dice, gpu: GpuSpec) -> WarpMachine:
    free = dice.chance(0.3)
    unlimited = free or dice.chance(0.3)
    return WarpMachine(
        gpu=gpu,
        clock_mhz=dice.pick((1000.0, 1000.0, 1400.0, 706.0)),
        gpu_lines=UNLIMITED if unlimited else dice.number(0.02, 4.0),
        sm_lines=UNLIMITED if free or dice.chance(0.3) else dice.number(0.02, 1.0),
        dram_lines=UNLIMITED if unlimited else dice.number(0.02, 4.0),
        l2_cycles=dice.number(1.0, 300.0),
        dram_cycles=_or_zero(dice, 1.0, 300.0),
        step_cycles=dice.number(1.0, 20.0),
        issue_width=UNLIMITED if free or dice.chance(0.3) else dice.number(0.1, 4.0),
        prologue_cycles=dice.number(1.0, 4000.0),
        prologue_lines=_or_zero(dice, 1.0, 100.0),
        launches=_costs(dice),
    )


def _costs(dice: Dice) -> LaunchCosts:
    overflow: Overflow = dice.pick(("spill", "fail"))
    return LaunchCosts(
        per_child_cycles=_or_zero(dice, 1.0, 3000.0),
        per_call_cycles=_or_zero(dice, 1.0, 30_000.0),
        dispatch_cycles=_or_zero(dice, 1.0, 3000.0),
        interval_cycles=_or_zero(dice, 1.0, 3000.0) if dice.chance(0.4) else 0.0,
        hardware_queues=dice.weighted(QUEUES),
        pool=dice.weighted(POOLS),
        overflow=overflow,
        spill_cycles=_or_zero(dice, 1.0, 30_000.0),
    )


def _or_zero(dice: Dice, low: float, high: float) -> float:
    return 0.0 if dice.chance(0.35) else dice.number(low, high)


def _body(dice: Dice) -> LoopBody:
    return LoopBody(
        chain=dice.pick((0.0, 1.0, 2.0)),
        dependent=dice.number(1.0, 20.0),
        instructions=_or_zero(dice, 1.0, 60.0),
        parent_lines=_or_zero(dice, 0.05, 2.0),
        child_lines=_or_zero(dice, 0.05, 2.0),
        miss=dice.pick((0.0, 0.2, 1.0)),
    )


class _Application:
    """Draws kernels until a limit of threads is reached."""

    def __init__(self, dice: Dice, gpu: GpuSpec) -> None:
        self._dice, self._gpu = dice, gpu
        self._left = MOST_THREADS
        self._sizes = [dice.log_integer(1, 300) for _ in range(dice.integer(1, 4))]
        """Sizes of children: a few that come again and again."""
        self._iterations = [dice.log_integer(1, 60) - 1 for _ in range(dice.integer(1, 3))]

    def kernels(self) -> tuple[HostKernel, ...]:
        return tuple(self._kernel() for _ in range(self._dice.weighted(KERNELS)))

    def _kernel(self) -> HostKernel:
        dice = self._dice
        levels = dice.weighted(LEVELS)
        asking = dice.pick((0.05, 0.3, 0.7, 1.0))
        count = dice.log_integer(1, 300) if levels < 2 else dice.log_integer(1, 60)
        return HostKernel(
            block=self._block(),
            child_block=self._block(small=dice.chance(0.6)),
            threads=tuple(self._thread(levels, asking) for _ in range(count)),
        )

    def _block(self, *, small: bool = False) -> BlockShape:
        """A shape of blocks that fits on an SM."""
        dice, limits = self._dice, self._gpu.limits
        most = min(limits.threads, 32 * limits.warps, 1024)
        threads = 32 if small else min(most, dice.weighted(BLOCK_THREADS))
        registers = min(dice.pick((8, 16, 32, 64, 255)), limits.registers // threads // 8 * 8)
        shared = dice.log_integer(1, limits.shared_bytes_per_block) if dice.chance(0.2) else 0
        return BlockShape(threads, registers, shared)

    def _thread(self, levels: int, asking: float) -> ThreadWork:
        dice = self._dice
        self._left -= 1
        requests = 0
        if levels > 0 and self._left > 0 and dice.chance(asking):
            requests = dice.weighted({1: 6, 2: 2, 4: 1})
        return ThreadWork(
            base=dice.pick(self._iterations) if dice.chance(0.5) else 0,
            requests=tuple(self._request(levels, asking) for _ in range(requests)),
        )

    def _request(self, levels: int, asking: float) -> Request:
        dice = self._dice
        if levels > 1 and dice.chance(0.6):
            most = max(1, min(40, self._left))
            return Request(threads=tuple(self._thread(levels - 1, asking) for _ in range(dice.log_integer(1, most))))
        items = min(dice.pick(self._sizes), max(1, self._left))
        self._left -= items
        return Request(items=items, iterations=dice.pick(self._iterations))
