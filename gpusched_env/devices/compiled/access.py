"""Reaching the records of an environment from its ``ENV`` record ``w``, or of a context from its record.

Texts that both devices share call access functions of their own; :func:`on_records` says what these are in compiled
code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpusched_env.compiling import inlined
from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.memory import columns, places, records
from gpusched_env.numba_internals import compile_as
from gpusched_env.scheduling.legality import COMMAND_RECORD

env_at = records(layout.ENV, "env")
word = records(layout.WORD)
"""Word of a set of SMs, by the set's address."""
kind_demands = columns(layout.KIND, "demand", "kind")
kind_loadings = columns(layout.KIND, "loading", "kind")
kind_sms = columns(layout.KIND, "sms", "kind")
"""Fields of the kinds of SMs, by a context's ``kinds_at``."""
_problem = records(layout.PROBLEM, "problem")
_engine = records(layout.COPY_ENGINE)
_job = records(layout.JOB, "job")
_mark = records(layout.MARK, "mark")
_number = records(layout.NUMBER, "number")
_queue = records(layout.QUEUE, "queue")
_random = records(layout.RANDOM, "random")
_row = records(layout.ROW, "row")
_saved_block = records(layout.SAVED_BLOCK, "saved_block")
_log = places(layout.LOG, "log")
_set = places(layout.WORD, "word")


def _table(at: str, dtype: np.dtype[Any], name: str) -> Any:
    """The access function ``(w, number)`` of a table; field ``at`` of ``w``, or of a context, has its address."""
    record = records(dtype, name)

    @inlined
    def access(w, number):
        return record(w[at], number)

    return access


def _static(at: str, dtype: np.dtype[Any], name: str) -> Any:
    """The same of a table of the problem."""
    record = _table(at, dtype, name)

    @inlined
    def access(w, number):
        return record(problem(w), number)

    return access


def _values(at: str, dtype: np.dtype[Any] = layout.NUMBER, name: str = "number") -> Any:
    """The access function ``(w, number)`` of a table of the problem that holds plain numbers."""
    record = _static(at, dtype, name)

    @inlined
    def access(w, number):
        return record(w, number).value

    return access


# ---- the problem -----------------------------------------------------------------------------------------------------


@inlined
def problem(w):
    """The problem."""
    return _problem(w.problem_at, 0)


programs = _static("programs_at", layout.PROGRAM, "program")
kernels = _static("kernels_at", layout.KERNEL, "kernel")
ops = _static("ops_at", layout.OP, "op")
copies = _static("copies_at", layout.COPY, "copy")
variants = _static("variants_at", layout.VARIANT, "variant")
stream_rows = _static("stream_rows_at", layout.STREAM_ROW, "stream_row")
"""What the problem says of a stream."""
thread_ops = _values("thread_ops_at")
afters = _values("afters_at")
forms = _values("forms_at")
"""Identities of the kernels that do the same work as others."""
factors = _values("factors_at", layout.REAL, "real")
lengths = _values("lengths_at")
"""Lengths that a serving engine's requests draw from."""
recorded = _values("recorded_at")
"""Times of requests in traces."""
sm_ids = _values("sm_ids_at")

# ---- an environment --------------------------------------------------------------------------------------------------

clients = _table("clients_at", layout.CLIENT, "client")
threads = _table("threads_at", layout.THREAD, "thread")
streams = _table("streams_at", layout.STREAM, "stream")
cores = _table("cores_at", layout.CORE, "core")
processes = _table("processes_at", layout.PROCESS, "process")
launches = _table("launches_at", layout.LAUNCH, "launch")
"""An unfinished launch."""
flight_at = _table("flights_at", layout.FLIGHT, "flight")
edges = _table("edges_at", layout.EDGE, "edge")
tilings = _table("tilings_at", layout.TILING, "tiling")
"""What the launch in a slot has to do with tiles."""
aheads = _table("aheads_at", layout.AHEAD, "ahead")
"""What was issued behind the scheduler's window."""
timers = _table("timers_at", layout.TIMER, "timer")
heap = _table("heap_at", layout.NUMBER, "number")
"""Owners of timers that are set."""
outbox = _table("outbox_at", layout.NUMBER, "number")
"""Slots of launches that are to go to a GPU outside."""
contexts = _table("contexts_at", layout.CONTEXT, "context")
_given = _table("given_at", COMMAND_RECORD, "given")


@inlined
def given(w):
    """The command that is to be carried out (:data:`~gpusched_env.scheduling.legality.COMMAND_RECORD`)."""
    return _given(w, 0)


@inlined
def engines(w, number):
    """A copy engine."""
    return _engine(w.address + layout.ENGINES_AT, number)


@inlined
def marks(w, tenant, m):
    return _mark(w.marks_at, programs(w, tenant).first_mark + m)


@inlined
def queues(w, row, priority):
    """A stream at a priority (0 or below)."""
    return _queue(w.queues_at, row * problem(w).priorities - priority)


@inlined
def randoms(w, tenant, stream):
    """A tenant's generator: stream 0 for arrivals, 1 for variation."""
    return _random(w.randoms_at, 2 * tenant + stream)


@inlined
def jobs(w, tenant, number):
    """A job that is not gone."""
    return _job(w.jobs_at, tenant * (w.job_mask + 1) + (number & w.job_mask))


@inlined
def flight_of(w, launch):
    """The flight of a launch that has one."""
    return flight_at(w, launch.flight)


@inlined
def flights(w, slot):
    """The flight of the launch in a slot, which has one."""
    return flight_of(w, launches(w, slot))


@inlined
def semaphores(w, slot, number):
    """How often a semaphore was posted that the launch in a slot waits for."""
    return _number(w.semaphores_at, slot * w.semaphore_room + number)


@inlined
def ended_slices(w, slot, tile):
    """How many slices of a tile of the launch in a slot have ended."""
    return _number(w.ended_slices_at, slot * w.slice_room + tile)


@inlined
def saved_blocks(w, slot, place):
    """Saved blocks of the launch in a slot."""
    return _saved_block(w.saved_blocks_at, slot * w.saved_room + place)


@inlined
def scratch(w, number):
    """The address of a set of SMs used as scratch."""
    return _set(w.sets_at, number * w.words, w.words)


@inlined
def log_row(w, row):
    """The address of a row of the log."""
    return _log(w.log_at, row, 1)


# ---- a context -------------------------------------------------------------------------------------------------------

channels = _table("channels_at", layout.CHANNEL, "channel")
heads = _table("heads_at", layout.NUMBER, "number")
"""Launches at the heads of hardware queues that wait for a slot, first come, first served."""
queue = _table("queue_at", layout.NUMBER, "number")
"""Slots of grids that hand out blocks, in that order."""
grids = _table("grids_at", layout.GRID, "grid")
used = _table("used_at", layout.NUMBER, "number")
"""Slots of resident grids, then free ones."""
class_ends = _table("class_ends_at", layout.NUMBER, "number")
"""When a row of a class ends next, or comes to its limit; of a changed class not known until classes are merged."""
classes = _table("classes_at", layout.SM_CLASS, "sm_class")
"""A class of equal SMs; class 0 holds the idle ones."""
kinds = _table("kinds_at", layout.KIND, "kind")
"""SMs of equal traffic, in order of demand and weight."""


@inlined
def resident(context, place):
    """A resident grid, by its place in the list of them."""
    return grids(context, used(context, place).value)


@inlined
def members(context, sm_class):
    """The address of the set of SMs of a class."""
    return _set(context.members_at, sm_class * context.words, context.words)


@inlined
def rows(context, sm_class, r):
    """A row of residents of a class. First rows of all classes lie together: most classes have few."""
    return _row(context.rows_at, r * context.class_room + sm_class)


# ---- texts that both devices share -----------------------------------------------------------------------------------


def on_records(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile calls of an access function of an interpreter that both devices share as calls of the decorated one."""

    def decorate(implementation: Callable[..., Any]) -> Callable[..., Any]:
        read_by(function, inlined(implementation))
        return implementation

    return decorate


def read_by(function: Callable[..., Any], access: Any) -> None:
    """Compile calls of an access function of an interpreter as calls of a compiled one with the same arguments."""
    compile_as(function, access)
