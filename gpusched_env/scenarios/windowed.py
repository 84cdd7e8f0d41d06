"""The program of an application whose launches pass a window (:mod:`gpusched_env.scenarios.window`)."""

from __future__ import annotations

from dataclasses import replace

from gpusched_env.errors import InputError
from gpusched_env.scenarios.program import HostOp, JobProgram
from gpusched_env.scenarios.window import KernelWindow
from gpusched_env.workload.segments import check_us, dependencies
from gpusched_env.workload.workload import DEVICE_OPS, OpKind


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
    and there is room, both in the window and in the list of what has entered it, and then checks it. A synchronisation
    waits for everything before it; one right behind a copy to the host whose memory is known waits for that, since what
    the application is after is the value.
    """
    waits = dependencies([op for op in job.ops if op.kind in DEVICE_OPS])
    application = [_host(OpKind.SYNC, 0.0)]
    entries: list[HostOp] = []
    number = 0
    ends: set[int] = set()
    """Launches that no other one waits for so far."""
    is_answer = False
    transfer_us = window.transfer_us
    for op in job.ops:
        if op.kind not in DEVICE_OPS:
            waited = () if op.kind is OpKind.HOST else (number - 1,) if is_answer else tuple(sorted(ends))
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
            *_listed(number, window),
            replace(op, host_us=entry_us, after=waits[number], mark=number),
        ]
        number += 1
        is_answer = op.kind is OpKind.COPY_TO_HOST and op.reads is not None and number < len(waits)
    return JobProgram((*application, *entries), (len(application), len(entries)), 2 * len(waits))


def _listed(number: int, window: KernelWindow) -> tuple[HostOp, ...]:
    """What a launch waits for until the list has room for it: the end of one that is too old."""
    if window.newer is None or number <= window.newer:
        return ()
    return (_host(OpKind.SYNC_EVENT, 0.0, after=(number - window.newer - 1,)),)


def _segments(op: HostOp) -> int:
    """That a launch reads and writes; memory that is not known is one."""
    return sum(1 if known is None else len(known) for known in (op.reads, op.writes))


def _host(kind: OpKind, host_us: float, *, after: tuple[int, ...] = (), mark: int = -1) -> HostOp:
    """An operation that never reaches the device."""
    return HostOp(kind, host_us, -1, 1.0, 0.0, 0, 0.0, after=after, mark=mark)
