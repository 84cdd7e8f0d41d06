"""What happened, written to the log until Python moves it to the timeline's tables."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import grids, log_row, members, rows, sm_ids, word
from gpusched_env.devices.compiled.intrinsics import lowest, store
from gpusched_env.devices.compiled.layout import LOG_WHOLE
from gpusched_env.devices.compiled.members import BITS, NONE, ONE
from gpusched_env.devices.compiled.overloading import on_records
from gpusched_env.devices.rules import logs


@on_records(logs.add_row)
def _add_row(w, table, values):
    add_row(w, table, values)


@inlined
def add_row(w, table, values):
    """:func:`gpusched_env.devices.rules.logs.add_row`, a :data:`.layout.LOG`."""
    store(log_row(w, w.log_rows), table, values, LOG_WHOLE)
    w.log_rows += 1


@called
def log_residency(w, x, c, r, now_ps):
    """The blocks of a row have ended, on all SMs of its class."""
    ended = rows(x, c, r)
    for k in range(x.words):
        bits = word(members(x, c), k).bits
        while bits != NONE:
            rank = k * BITS + lowest(bits)
            add_row(
                w, logs.RESIDENCY, (sm_ids(w, rank), grids(x, ended.grid).launch, ended.blocks, ended.since_ps, now_ps)
            )
            bits &= bits - ONE
