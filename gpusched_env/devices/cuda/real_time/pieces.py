"""What compiled code launches (:mod:`gpusched_env.devices.cuda.real_time.loop`), made with CuPy before time runs.

A kernel of ``synthetic.cu`` is launched as it is. Whatever else there is, a program's graph, a copy or a library's
kernel, is captured into a CUDA graph for each queue that it may go into.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final, Protocol

import numpy as np

from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.devices.cuda.launching import Call
from gpusched_env.devices.cuda.real_time.driver import functions
from gpusched_env.devices.cuda.real_time.tables import Count, Ints, Owner, Piece, Place, Queue, Tables, Words
from gpusched_env.scenarios.program import HostOp

ROWS: Final = 1024
"""Reports that are heard at once."""
LAUNCHES: Final = 1 << 14
"""Unfinished launches at most, of all tenants."""
COMMANDS: Final = 1 << 20
DECISIONS: Final = 1 << 16
"""Whose times are kept."""


class Maker(Protocol):
    """What CuPy makes of operations."""

    def kernel(self, op: HostOp) -> Call | None:
        """A stand-in that reports itself; ``None``: it is something else."""

    def graph(self, op: HostOp, priority: int) -> int:
        """The handle of a graph of what is no such stand-in, for the operation's stream at a priority."""


def piece_of(call: Call) -> list[int]:
    """A row of the table of pieces."""
    words = int(call.words.ctypes.data)
    return [call.function, call.blocks, call.threads, call.shared_bytes, call.at, words, NONE]


def pieces_of(
    operations: Sequence[HostOp | None], offered: Sequence[Collection[int]], priorities: int, maker: Maker
) -> tuple[Ints, Ints]:
    """The tables of pieces and of graphs.

    Args:
        operations: rows of the arena's table; ``None``: none that a host launches.
        offered: by stream the priorities that something in it can have.
        priorities: of the GPU, 0 and so many less one below.
        maker: makes what each launches.
    """
    pieces = np.full((len(operations), len(Piece)), NONE, np.int64)
    graphs: list[list[int]] = []
    known: dict[tuple[Any, ...], int] = {}
    for row, op in enumerate(operations):
        if op is None or op.launches == 0:
            continue
        call = maker.kernel(op)
        if call is not None:
            pieces[row] = piece_of(call)
            continue
        # Kernels of a library occur many times, each occurrence an operation of its own.
        key = (id(op),) if op.nodes else (op.stream, op.kind, op.identity, op.scale, op.bytes)
        if key not in known:
            known[key] = len(graphs)
            offers = offered[op.stream]
            graphs.append([maker.graph(op, -level) if -level in offers else NONE for level in range(priorities)])
        pieces[row, Piece.GRAPH] = known[key]
    return pieces, np.array(graphs, np.int64).reshape(-1, priorities)


def tables(
    pieces: Ints, graphs: Ints, mark: Call, queues: Sequence[int], events: Sequence[int], places: dict[Place, int],
    reports: Words,
) -> Tables:  # fmt: skip
    """All that is needed at the start of an episode: nothing is on the GPU.

    Args:
        pieces, graphs: of :func:`pieces_of`.
        mark: the kernel that notes the time.
        queues: handles.
        events: handles, one a report.
        places: those of memory.
        reports: memory that the GPU writes.
    """
    timespec = np.zeros(2, np.int64)
    rows = np.full((len(queues), len(Queue)), NONE, np.int64)
    rows[:, Queue.HANDLE], rows[:, Queue.STARTED] = queues, 0
    known = {Place.TIMESPEC: int(timespec.ctypes.data), Place.ZERO_NS: 0, Place.AHEAD_NS: 0, **places}
    return Tables(
        functions=functions(),
        places=np.array([known[place] for place in Place], np.int64),
        timespec=timespec,
        pieces=pieces,
        graphs=graphs,
        mark=np.array(piece_of(mark), np.int64),
        queues=rows,
        reports=reports,
        events=np.array(events, np.int64),
        owners=np.full((len(events), len(Owner)), NONE, np.int64),
        given=np.zeros(LAUNCHES, np.int64),
        told=np.zeros((ROWS, 4), np.int64),
        decided_ps=np.zeros(DECISIONS, np.int64),
        took=np.zeros((COMMANDS, 2), np.int64),
        counts=np.zeros(len(Count), np.int64),
    )
