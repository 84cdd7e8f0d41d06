"""Kernel windows: launches are released out of order, by the memory that they touch instead of their stream.

A window is how a runtime (ACS-SW) or a GPU (ACS-HW; Durvasula et al., arXiv 2401.12377) finds concurrency in one
program: launches enter it in order, each is checked against those in it, and whatever waits for none of them may be
launched into any idle stream of the scheduler's. What nobody may have for free is charged here: the application's time
for each launch, the check, the launch itself, and the synchronisation without which nobody knows that one has ended.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError
from gpusched_env.scenarios.program import HostOp, JobProgram
from gpusched_env.workload.segments import check_us, dependencies
from gpusched_env.workload.workload import DEVICE_OPS, OpKind


class KernelWindow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a window works and what it costs."""

    size: Annotated[int, Meta(ge=1, le=1024)] = 32
    """Launches that have entered it and not left: N. Schedulers see those that wait."""
    streams: Annotated[int, Meta(ge=1, le=1024)] = 8
    """Streams of the scheduler's, each with a thread that launches a kernel and waits for its end: one kernel each."""
    launch_us: Annotated[float, Meta(ge=0)] = 4.0
    """From a thread's decision to launch until the kernel starts on an idle GPU."""
    sync_us: Annotated[float, Meta(ge=0)] = 5.0
    """From a kernel's end until its thread knows: then it leaves the window, its stream is idle, and what waited for it
    may be launched. Launch and synchronisation together took 5 to 20 us where the paper profiled them, and 9.3 us (with
    an empty kernel between them, median of 2,000) on the host of an H200."""
    insert_us: Annotated[float, Meta(ge=0)] = 0.0
    """Time of an entry besides the check."""
    transfer_us: Annotated[float, Meta(ge=0)] = 0.0
    """From a hand-over by the application to the window, one behind another: only the first launch behind a
    synchronisation is held up by it."""
    checked_by: Literal["window", "application", "nobody"] = "window"
    """Whose thread does the check: one of the window's own, or the application's between two launches; ``nobody``: what
    waits for what is known beforehand."""


def check_plain(job: JobProgram, what: str) -> None:
    """Whether a program is kernels, copies and synchronisations of one host thread.

    Raises:
        InputError: it has more; ``what`` takes no other.
    """
    if len(job.threads) > 1 or any(op.nodes or op.children or op.tiles >= 0 for op in job.ops):
        raise InputError(f"{what} takes kernels and copies of one host thread: no graphs, children or tiles")


def windowed(job: JobProgram, window: KernelWindow) -> JobProgram:
    """The program of an application that hands its launches to a window.

    Its first thread is the application's, which begins when nothing of an earlier job is left: that used the same
    memory. The second one lets launches into the window, in order: it waits until the application has handed one over
    and there is room, and then checks it. A synchronisation waits for everything before it.
    """
    waits = dependencies([op for op in job.ops if op.kind in DEVICE_OPS])
    application = [_host(OpKind.SYNC, 0.0)]
    entries: list[HostOp] = []
    number = 0
    ends: set[int] = set()
    """Launches that no other one waits for so far."""
    transfer_us = window.transfer_us
    for op in job.ops:
        if op.kind not in DEVICE_OPS:
            waited = () if op.kind is OpKind.HOST else tuple(sorted(ends))
            kind = OpKind.SYNC_EVENT if waited else OpKind.HOST
            application.append(replace(op, kind=kind, after=waited, mark=-1))
            transfer_us = window.transfer_us if waited else transfer_us
            continue
        handed = len(waits) + number
        ends = (ends - {*waits[number]}) | {number}
        cost_us = 0.0 if window.checked_by == "nobody" else check_us(window.size, _segments(op))
        mine = cost_us if window.checked_by == "application" else 0.0
        application.append(_host(OpKind.HOST, op.host_us + mine, mark=handed))
        entry_us, transfer_us = transfer_us + window.insert_us + cost_us - mine, 0.0
        entries += [
            _host(OpKind.HOST, 0.0, after=(handed,)),
            replace(op, host_us=entry_us, after=waits[number], mark=number, gap_us=0.0),
        ]
        number += 1
    return JobProgram((*application, *entries), (len(application), len(entries)), 2 * len(waits))


def _segments(op: HostOp) -> int:
    """That a launch reads and writes; memory that is not known is one."""
    return sum(1 if known is None else len(known) for known in (op.reads, op.writes))


def _host(kind: OpKind, host_us: float, *, after: tuple[int, ...] = (), mark: int = -1) -> HostOp:
    """An operation that never reaches the device."""
    return HostOp(kind, host_us, -1, 1.0, 0.0, 0, 0.0, after=after, mark=mark)
