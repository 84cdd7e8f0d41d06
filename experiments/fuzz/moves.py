"""Moves: commands that name kernels by their place in a view, so that they keep a meaning when a case changes.

A recorded list of commands is of no use once a tenant is taken out of a case: all later launch ids differ.
A move says "the second launchable kernel" instead.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec
import numpy as np

from gpusched_env.scheduling.commands import (
    Command,
    Launch,
    Partition,
    Preempt,
    PreemptionMode,
    SetPartition,
    Wait,
)
from gpusched_env.scheduling.view import View

Sms = tuple[int, int]
"""First SM and number of SMs of a partition."""
Among = Literal["launchable", "pending", "running", "none"]

UNKNOWN_KERNEL = 1_000_000
"""A launch id that no episode reaches."""


class LaunchMove(msgspec.Struct, frozen=True, kw_only=True, tag="launch", tag_field="do", omit_defaults=True):
    """Launch a kernel: row ``pick`` (counted round) of those ``among``; legal only for launchable ones."""

    among: Among = "launchable"
    pick: int = 0
    priority: int = 0
    partition: Sms | None = None


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


Move = LaunchMove | PreemptMove | PartitionMove | WaitMove | BadWait | Act

WAIT_MOVE = WaitMove()
LAUNCH_MOVE = LaunchMove()


def command_of(move: Move, view: View) -> Command | None:
    """What ``move`` means in ``view``; ``None`` if there is no such kernel."""
    match move:
        case LaunchMove():
            kernel = _kernel(move.among, move.pick, view)
            return None if kernel is None else Launch(kernel, move.priority, _partition(move.partition))
        case PreemptMove():
            kernel = _kernel(move.among, move.pick, view)
            return None if kernel is None else Preempt(kernel, move.mode, _partition(move.partition))
        case PartitionMove():
            return SetPartition(move.tenant, _partition(move.partition))
        case WaitMove():
            return Wait(math.inf if move.until_us is None else max(move.until_us, view.time_us))
        case BadWait():
            return Wait(view.time_us - move.past_us if move.past_us > 0.0 else math.nan)
        case _:
            raise TypeError(f"{move} is no move for a device")


def move_of(command: Command, view: View) -> Move:
    """The move that means a (legal) ``command`` in ``view``."""
    match command:
        case Launch():
            ids = view.pending.id[view.pending.launchable == 1.0]
            return LaunchMove(
                pick=_row(ids, command.kernel), priority=command.priority, partition=_sms(command.partition)
            )
        case Preempt():
            return PreemptMove(
                pick=_row(view.running.id, command.kernel), mode=command.mode, partition=_sms(command.partition)
            )
        case SetPartition():
            return PartitionMove(tenant=command.tenant, partition=_sms(command.partition))
        case Wait():
            return WaitMove(until_us=command.until_us if math.isfinite(command.until_us) else None)


def _kernel(among: Among, pick: int, view: View) -> int | None:
    if among == "none":
        return UNKNOWN_KERNEL + pick
    if among == "running":
        ids = view.running.id
    else:
        ids = view.pending.id if among == "pending" else view.pending.id[view.pending.launchable == 1.0]
    return int(ids[pick % len(ids)]) if len(ids) else None


def _row(ids: np.ndarray[tuple[int, ...], np.dtype[np.float64]], kernel: int) -> int:
    return int(np.flatnonzero(ids == kernel)[0])


def _partition(sms: Sms | None) -> Partition | None:
    return None if sms is None else Partition(*sms)


def _sms(partition: Partition | None) -> Sms | None:
    return None if partition is None else (partition.first, partition.sms)
