"""Moves: commands that name kernels by their place in a view, so that they keep a meaning when a case changes.

A recorded list of commands is of no use once a tenant is taken out of a case: all later launch ids differ.
A move says "the second launchable kernel" instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import CommandName
from gpusched_env.scheduling.commands import (
    Command,
    Launch,
    Partition,
    PolicyKind,
    Preempt,
    PreemptionMode,
    Reject,
    Reshape,
    SetBudget,
    SetPartition,
    Synchronise,
    Throttle,
    TileOrder,
    TilePolicy,
    Wait,
)
from gpusched_env.scheduling.view import View, ViewTable

Sms = tuple[int, int]
"""First SM and number of SMs of a partition."""
Among = Literal["launchable", "synchronisable", "reshapable", "pending", "running", "none"]
AmongJobs = Literal["rejectable", "all", "none"]

TABLES: Final = {
    "launchable": "pending",
    "synchronisable": "pending",
    "reshapable": "pending",
    "rejectable": "jobs",
    "all": "jobs",
}
"""Of a view, where rows are; otherwise the table has the name of what is among it."""
LEGAL: Final = ("launchable", "synchronisable", "rejectable")
"""Columns that say for what a command is legal."""
UNKNOWN = 1_000_000
"""A launch id, a job number and a stream that no episode reaches."""


class _Move(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", omit_defaults=True):
    pass


class CommandMove(_Move, frozen=True, kw_only=True):
    """A command that a scenario may offer."""

    NAME: ClassVar[CommandName]
    WEIGHT: ClassVar[float] = 0.1
    """How often random players give it."""
    DRAWN_WEIGHTS: ClassVar[tuple[float, ...]] = (0.0, 0.05, 0.3)
    """A drawn case has one of these in its place."""


class LaunchMove(CommandMove, frozen=True, kw_only=True, tag="launch"):
    """Launch a kernel: row ``pick`` (counted round) of those ``among``; legal only for launchable ones."""

    NAME = "launch"
    WEIGHT = 4.0

    among: Among = "launchable"
    pick: int = 0
    priority: int | None = None
    """``None``: its stream's."""
    partition: Sms | None = None
    stream: int | None = None
    """Of the scheduler's own streams (counted round); -1 and below: row 0 and up of all streams. ``None``: its own."""


class PreemptMove(CommandMove, frozen=True, kw_only=True, tag="preempt"):
    """Preempt a kernel: row ``pick`` (counted round) of those ``among``; ``partition``: where its blocks are saved."""

    NAME = "preempt"
    WEIGHT = 0.5
    DRAWN_WEIGHTS = (0.0, 0.3, 1.0)

    among: Among = "running"
    pick: int = 0
    mode: PreemptionMode = "drain"
    partition: Sms | None = None


class PartitionMove(CommandMove, frozen=True, kw_only=True, tag="partition"):
    """Confine a tenant to a partition, ``None``: to none."""

    NAME = "partition"
    WEIGHT = 0.2

    tenant: int = 0
    partition: Sms | None = None


class RejectMove(CommandMove, frozen=True, kw_only=True, tag="reject"):
    """Reject a job: row ``pick`` (counted round) of those ``among``; legal only for rejectable ones."""

    NAME = "reject"

    among: AmongJobs = "rejectable"
    pick: int = 0


class ThrottleMove(CommandMove, frozen=True, kw_only=True, tag="throttle"):
    """Let a tenant's host sleep before each job; ``None``: for NaN."""

    NAME = "throttle"

    tenant: int = 0
    pause_us: float | None = 0.0


class BudgetMove(CommandMove, frozen=True, kw_only=True, tag="budget"):
    """Give a core of the CPU a budget."""

    NAME = "budget"
    WEIGHT = 0.5

    core: int = 0
    events: int = 1
    always: bool = False


class SynchroniseMove(CommandMove, frozen=True, kw_only=True, tag="synchronise"):
    """Synchronise the tiles of a kernel: row ``pick`` (counted round) of those ``among``."""

    NAME = "synchronise"
    WEIGHT = 2.0
    DRAWN_WEIGHTS = (0.5, 3.0, 10.0)

    among: Among = "synchronisable"
    pick: int = 0
    kind: PolicyKind = "row"
    stride: int = 1
    steps: int = 1
    reorder: bool = False
    order: TileOrder = "native"
    wait_kernel: bool = False


class ReshapeMove(CommandMove, frozen=True, kw_only=True, tag="reshape"):
    """Give a kernel another form: row ``pick`` (counted round) of those ``among``."""

    NAME = "reshape"
    WEIGHT = 1.0
    DRAWN_WEIGHTS = (0.5, 3.0, 10.0)

    among: Among = "reshapable"
    pick: int = 0
    form: int = 0


class WaitMove(_Move, frozen=True, kw_only=True, tag="wait"):
    """Wait until ``until_us``, but not into the past; ``None``: without limit."""

    until_us: float | None = None


class BadWait(_Move, frozen=True, kw_only=True, tag="bad-wait"):
    """A wait that no device may accept: until ``past_us`` before the present time; 0: until NaN."""

    past_us: float = 0.0


class Act(_Move, frozen=True, kw_only=True, tag="act"):
    """An action of the environment: number ``pick`` (counted round) of the legal ones, or of all."""

    pick: int = 0
    legal: bool = True


OPTIONAL_MOVES: Final[tuple[type[CommandMove], ...]] = (PreemptMove, PartitionMove, RejectMove)
"""Commands that a scenario need not offer; of all problems."""
TILE_MOVES: Final[tuple[type[CommandMove], ...]] = (SynchroniseMove,)
"""Those of problems whose kernels need the tiles of others."""
FORM_MOVES: Final[tuple[type[CommandMove], ...]] = (ReshapeMove,)
"""Those of problems whose kernels have other forms."""

HOST_MOVES: Final[tuple[type[CommandMove], ...]] = (ThrottleMove,)
"""Those that act on hosts."""

CORE_MOVES: Final[tuple[type[CommandMove], ...]] = (BudgetMove,)
"""Those of problems with cores of the CPU."""

Move = (
    LaunchMove
    | PreemptMove
    | PartitionMove
    | RejectMove
    | SynchroniseMove
    | ReshapeMove
    | ThrottleMove
    | BudgetMove
    | WaitMove
    | BadWait
    | Act
)


def own_streams(problem: Problem) -> list[int]:
    """Rows of the scheduler's own streams."""
    return [row for row, stream in enumerate(problem.streams) if stream.tenant < 0]


def command_of(move: Move, view: View, own: Sequence[int] = ()) -> Command | None:
    """What ``move`` means in ``view``; ``None`` if there is no such kernel or job.

    Args:
        own: rows of the scheduler's own streams.
    """
    match move:
        case LaunchMove() | PreemptMove() | SynchroniseMove() | ReshapeMove():
            ids = _among(move.among, view)
            if not len(ids) and move.among != "none":
                return None
            kernel = UNKNOWN + move.pick if move.among == "none" else int(ids[move.pick % len(ids), 0])
            if isinstance(move, SynchroniseMove):
                policy = TilePolicy(move.kind, move.stride, move.steps, move.reorder)
                return Synchronise(kernel, policy, move.order, move.wait_kernel)
            if isinstance(move, ReshapeMove):
                return Reshape(kernel, move.form)
            partition = None if move.partition is None else Partition(*move.partition)
            if isinstance(move, PreemptMove):
                return Preempt(kernel, move.mode, partition)
            stream = move.stream
            if stream is not None:
                stream = -1 - stream if stream < 0 else own[stream % len(own)] if own else UNKNOWN
            return Launch(kernel, move.priority, partition, stream)
        case RejectMove(among="none"):
            return Reject(move.pick % len(view.tenants), UNKNOWN)
        case RejectMove():
            jobs = _among(move.among, view)
            return Reject(*(int(n) for n in jobs[move.pick % len(jobs), :2])) if len(jobs) else None
        case PartitionMove():
            return SetPartition(move.tenant, None if move.partition is None else Partition(*move.partition))
        case ThrottleMove():
            return Throttle(move.tenant, math.nan if move.pause_us is None else move.pause_us)
        case BudgetMove():
            return SetBudget(move.core, move.events, move.always)
        case WaitMove():
            return Wait(math.inf if move.until_us is None else max(move.until_us, view.time_us))
        case BadWait():
            return Wait(view.time_us - move.past_us if move.past_us > 0.0 else math.nan)
        case _:
            raise TypeError(f"{move} is no move for a device")


def move_of(command: Command, view: View, own: Sequence[int] = ()) -> Move:
    """The move that means a (legal) ``command`` in ``view``; ``own`` as for :func:`command_of`."""
    match command:
        case Launch(launch, priority, partition, row):
            stream = None if row is None else own.index(row) if row in own else -1 - row
            pick = _row("launchable", view, launch)
            return LaunchMove(pick=pick, priority=priority, partition=_sms(partition), stream=stream)
        case Preempt(launch, mode, partition):
            return PreemptMove(pick=_row("running", view, launch), mode=mode, partition=_sms(partition))
        case SetPartition(tenant, partition):
            return PartitionMove(tenant=tenant, partition=_sms(partition))
        case Reject(tenant, job):
            return RejectMove(pick=_row("rejectable", view, tenant, job))
        case Synchronise(consumer, policy, order, wait_kernel):
            return SynchroniseMove(
                pick=_row("synchronisable", view, consumer),
                kind=policy.kind,
                stride=policy.stride,
                steps=policy.steps,
                reorder=policy.reorder,
                order=order,
                wait_kernel=wait_kernel,
            )
        case Reshape(launch, form):
            return ReshapeMove(pick=_row("reshapable", view, launch), form=form)
        case Throttle(tenant, pause_us):
            return ThrottleMove(tenant=tenant, pause_us=pause_us)
        case SetBudget(core, events, always):
            return BudgetMove(core=core, events=events, always=always)
        case Wait(until_us):
            return WaitMove(until_us=until_us if math.isfinite(until_us) else None)


def _among(among: Among | AmongJobs, view: View) -> NDArray[np.float64]:
    """Rows of kernels, which begin with a launch id, or of jobs, which begin with tenant and number."""
    if among == "none":
        return np.zeros((0, 0))
    table: ViewTable = getattr(view, TABLES.get(among, among))
    if among == "reshapable":
        return np.asarray(table.array[table.forms > 0.0])
    rows = getattr(table, among) == 1.0 if among in LEGAL else slice(None)
    return np.asarray(table.array[rows])


def _row(among: Among | AmongJobs, view: View, *first: int) -> int:
    """The place of the row that begins with these numbers."""
    return int(np.flatnonzero((_among(among, view)[:, : len(first)] == first).all(axis=1))[0])


def _sms(partition: Partition | None) -> Sms | None:
    return None if partition is None else (partition.first, partition.sms)
