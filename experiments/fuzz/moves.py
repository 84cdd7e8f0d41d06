"""Moves: commands that name kernels by their place in a view, so that they keep a meaning when a case changes.

A recorded list of commands is of no use once a tenant is taken out of a case: all later launch ids differ.
A move says "the second launchable kernel" instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import (
    Command,
    Launch,
    Partition,
    Preempt,
    PreemptionMode,
    Reject,
    SetPartition,
    Wait,
)
from gpusched_env.scheduling.view import JobColumn, View

Sms = tuple[int, int]
"""First SM and number of SMs of a partition."""
Among = Literal["launchable", "pending", "running", "none"]
AmongJobs = Literal["rejectable", "all", "none"]

UNKNOWN = 1_000_000
"""A launch id, a job number and a stream that no episode reaches."""


class LaunchMove(msgspec.Struct, frozen=True, kw_only=True, tag="launch", tag_field="do", omit_defaults=True):
    """Launch a kernel: row ``pick`` (counted round) of those ``among``; legal only for launchable ones."""

    among: Among = "launchable"
    pick: int = 0
    priority: int | None = None
    """``None``: its stream's."""
    partition: Sms | None = None
    stream: int | None = None
    """Of the scheduler's own streams (counted round); -1 and below: row 0 and up of all streams. ``None``: its own."""


class PreemptMove(msgspec.Struct, frozen=True, kw_only=True, tag="preempt", tag_field="do", omit_defaults=True):
    """Preempt a kernel: row ``pick`` (counted round) of those ``among``; ``partition``: where its blocks are saved."""

    among: Among = "running"
    pick: int = 0
    mode: PreemptionMode = "drain"
    partition: Sms | None = None


class PartitionMove(msgspec.Struct, frozen=True, kw_only=True, tag="partition", tag_field="do", omit_defaults=True):
    """Confine a tenant to a partition, ``None``: to none."""

    tenant: int = 0
    partition: Sms | None = None


class RejectMove(msgspec.Struct, frozen=True, kw_only=True, tag="reject", tag_field="do", omit_defaults=True):
    """Reject a job: row ``pick`` (counted round) of those ``among``; legal only for rejectable ones."""

    among: AmongJobs = "rejectable"
    pick: int = 0


class WaitMove(msgspec.Struct, frozen=True, kw_only=True, tag="wait", tag_field="do", omit_defaults=True):
    """Wait until ``until_us``, but not into the past; ``None``: without limit."""

    until_us: float | None = None


class BadWait(msgspec.Struct, frozen=True, kw_only=True, tag="bad-wait", tag_field="do", omit_defaults=True):
    """A wait that no device may accept: until ``past_us`` before the present time; 0: until NaN."""

    past_us: float = 0.0


class Act(msgspec.Struct, frozen=True, kw_only=True, tag="act", tag_field="do", omit_defaults=True):
    """An action of the environment: number ``pick`` (counted round) of the legal ones, or of all."""

    pick: int = 0
    legal: bool = True


Move = LaunchMove | PreemptMove | PartitionMove | RejectMove | WaitMove | BadWait | Act

WAIT_MOVE = WaitMove()
LAUNCH_MOVE = LaunchMove()


def own_streams(problem: Problem) -> list[int]:
    """Rows of the scheduler's own streams."""
    return [row for row, stream in enumerate(problem.streams) if stream.tenant < 0]


def command_of(move: Move, view: View, own: Sequence[int] = ()) -> Command | None:
    """What ``move`` means in ``view``; ``None`` if there is no such kernel or job.

    Args:
        own: rows of the scheduler's own streams.
    """
    match move:
        case LaunchMove():
            kernel = _kernel(move.among, move.pick, view)
            if kernel is None:
                return None
            return Launch(kernel, move.priority, _partition(move.partition), _stream(move.stream, own))
        case PreemptMove():
            kernel = _kernel(move.among, move.pick, view)
            return None if kernel is None else Preempt(kernel, move.mode, _partition(move.partition))
        case PartitionMove():
            return SetPartition(move.tenant, _partition(move.partition))
        case RejectMove():
            return _rejection(move, view)
        case WaitMove():
            return Wait(math.inf if move.until_us is None else max(move.until_us, view.time_us))
        case BadWait():
            return Wait(view.time_us - move.past_us if move.past_us > 0.0 else math.nan)
        case _:
            raise TypeError(f"{move} is no move for a device")


def move_of(command: Command, view: View, own: Sequence[int] = ()) -> Move:
    """The move that means a (legal) ``command`` in ``view``; ``own`` as for :func:`command_of`."""
    match command:
        case Launch():
            ids = view.pending.id[view.pending.launchable == 1.0]
            row = command.stream
            stream = None if row is None else own.index(row) if row in own else -1 - row
            return LaunchMove(
                pick=_row(ids, command.launch),
                priority=command.priority,
                partition=_sms(command.partition),
                stream=stream,
            )
        case Preempt():
            return PreemptMove(
                pick=_row(view.running.id, command.launch), mode=command.mode, partition=_sms(command.partition)
            )
        case SetPartition():
            return PartitionMove(tenant=command.tenant, partition=_sms(command.partition))
        case Reject():
            jobs = view.jobs.array[view.jobs.rejectable == 1.0]
            rows = (jobs[:, JobColumn.TENANT] == command.tenant) & (jobs[:, JobColumn.JOB] == command.job)
            return RejectMove(pick=int(np.flatnonzero(rows)[0]))
        case Wait():
            return WaitMove(until_us=command.until_us if math.isfinite(command.until_us) else None)


def _kernel(among: Among, pick: int, view: View) -> int | None:
    if among == "none":
        return UNKNOWN + pick
    if among == "running":
        ids = view.running.id
    else:
        ids = view.pending.id if among == "pending" else view.pending.id[view.pending.launchable == 1.0]
    return int(ids[pick % len(ids)]) if len(ids) else None


def _stream(stream: int | None, own: Sequence[int]) -> int | None:
    if stream is None:
        return None
    if stream < 0:
        return -1 - stream
    return own[stream % len(own)] if own else UNKNOWN


def _rejection(move: RejectMove, view: View) -> Reject | None:
    if move.among == "none":
        return Reject(move.pick % len(view.tenants), UNKNOWN)
    jobs = view.jobs.array
    if move.among == "rejectable":
        jobs = jobs[view.jobs.rejectable == 1.0]
    if not len(jobs):
        return None
    row = jobs[move.pick % len(jobs)]
    return Reject(int(row[JobColumn.TENANT]), int(row[JobColumn.JOB]))


def _row(ids: np.ndarray[tuple[int, ...], np.dtype[np.float64]], kernel: int) -> int:
    return int(np.flatnonzero(ids == kernel)[0])


def _partition(sms: Sms | None) -> Partition | None:
    return None if sms is None else Partition(*sms)


def _sms(partition: Partition | None) -> Sms | None:
    return None if partition is None else (partition.first, partition.sms)
