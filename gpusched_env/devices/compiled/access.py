"""Reaching the records of an environment from its ``ENV`` record ``w``, or of a context from its record ``x``.

Texts that both devices share call access functions of their own; :func:`on_records` says what these are in compiled
code.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba.extending import overload

from gpusched_env.compiling import inlined
from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.memory import columns, places, records
from gpusched_env.scheduling.legality import COMMAND_RECORD

env_at = records(layout.ENV, "env")
_problem = records(layout.PROBLEM, "problem")
_program = records(layout.PROGRAM, "program")
_kernel = records(layout.KERNEL, "kernel")
_op = records(layout.OP, "op")
_copy = records(layout.COPY, "copy")
_variant = records(layout.VARIANT, "variant")
_number = records(layout.NUMBER, "number")
_real = records(layout.REAL, "real")
_stream_row = records(layout.STREAM_ROW, "stream_row")
_engine = records(layout.COPY_ENGINE)
_client = records(layout.CLIENT, "client")
_thread = records(layout.THREAD, "thread")
_mark = records(layout.MARK, "mark")
_stream = records(layout.STREAM, "stream")
_queue = records(layout.QUEUE, "queue")
_random = records(layout.RANDOM, "random")
_job = records(layout.JOB, "job")
_launch = records(layout.LAUNCH, "launch")
_flight = records(layout.FLIGHT, "flight")
_edge = records(layout.EDGE, "edge")
_ahead = records(layout.AHEAD, "ahead")
_tiling = records(layout.TILING, "tiling")
_saved_block = records(layout.SAVED_BLOCK, "saved_block")
_timer = records(layout.TIMER, "timer")
_context = records(layout.CONTEXT, "context")
_channel = records(layout.CHANNEL, "channel")
_grid = records(layout.GRID, "grid")
_class = records(layout.SM_CLASS, "sm_class")
_kind = records(layout.KIND, "kind")
kind_demands = columns(layout.KIND, "demand", "kind")
kind_loadings = columns(layout.KIND, "loading", "kind")
kind_sms = columns(layout.KIND, "sms", "kind")
"""Fields of the kinds of SMs, by a context's ``kinds_at``."""
_row = records(layout.ROW, "row")
_log = places(layout.LOG, "log")
_core = records(layout.CORE, "core")
_process = records(layout.PROCESS, "process")
_given = records(COMMAND_RECORD, "given")
word = records(layout.WORD)
"""Word of a set of SMs, by the set's address."""
_set = places(layout.WORD, "word")


@inlined
def problem(w):
    """The problem."""
    return _problem(w.problem_at, 0)


@inlined
def programs(w, tenant):
    return _program(problem(w).programs_at, tenant)


@inlined
def kernels(w, identity):
    return _kernel(problem(w).kernels_at, identity)


@inlined
def ops(w, number):
    return _op(problem(w).ops_at, number)


@inlined
def copies(w, number):
    return _copy(problem(w).copies_at, number)


@inlined
def variants(w, number):
    return _variant(problem(w).variants_at, number)


@inlined
def thread_ops(w, number):
    return _number(problem(w).thread_ops_at, number).value


@inlined
def afters(w, number):
    return _number(problem(w).afters_at, number).value


@inlined
def forms(w, number):
    """Identities of the kernels that do the same work as others."""
    return _number(problem(w).forms_at, number).value


@inlined
def factors(w, number):
    return _real(problem(w).factors_at, number).value


@inlined
def lengths(w, number):
    """Lengths that a serving engine's requests draw from."""
    return _number(problem(w).lengths_at, number).value


@inlined
def recorded(w, number):
    """Times of requests in traces."""
    return _number(problem(w).recorded_at, number).value


@inlined
def sm_ids(w, rank):
    return _number(problem(w).sm_ids_at, rank).value


@inlined
def stream_rows(w, row):
    """What the problem says of a stream."""
    return _stream_row(problem(w).stream_rows_at, row)


@inlined
def outbox(w, i):
    """Slots of launches that are to go to a GPU outside."""
    return _number(w.outbox_at, i)


@inlined
def engines(w, number):
    """A copy engine."""
    return _engine(w.address + layout.ENGINES_AT, number)


@inlined
def clients(w, tenant):
    return _client(w.clients_at, tenant)


@inlined
def threads(w, k):
    return _thread(w.threads_at, k)


@inlined
def marks(w, tenant, m):
    return _mark(w.marks_at, programs(w, tenant).first_mark + m)


@inlined
def streams(w, row):
    return _stream(w.streams_at, row)


@inlined
def queues(w, row, priority):
    """A stream at a priority (0 or below)."""
    return _queue(w.queues_at, row * problem(w).priorities - priority)


@inlined
def cores(w, c):
    return _core(w.cores_at, c)


@inlined
def processes(w, p):
    return _process(w.processes_at, p)


@inlined
def given(w):
    """The command that is to be carried out (:data:`~gpusched_env.scheduling.legality.COMMAND_RECORD`)."""
    return _given(w.given_at, 0)


@inlined
def randoms(w, tenant, stream):
    """A tenant's generator: stream 0 for arrivals, 1 for variation."""
    return _random(w.randoms_at, 2 * tenant + stream)


@inlined
def jobs(w, tenant, number):
    """A job that is not gone."""
    return _job(w.jobs_at, tenant * (w.job_mask + 1) + (number & w.job_mask))


@inlined
def launches(w, slot):
    """An unfinished launch."""
    return _launch(w.launches_at, slot)


@inlined
def flight_at(w, number):
    return _flight(w.flights_at, number)


@inlined
def flight_of(w, launch):
    """The flight of a launch that has one."""
    return _flight(w.flights_at, launch.flight)


@inlined
def flights(w, slot):
    """The flight of the launch in a slot, which has one."""
    return _flight(w.flights_at, launches(w, slot).flight)


@inlined
def edges(w, slot):
    return _edge(w.edges_at, slot)


@inlined
def tilings(w, slot):
    """What the launch in a slot has to do with tiles."""
    return _tiling(w.tilings_at, slot)


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
def aheads(w, slot):
    """What was issued behind the scheduler's window."""
    return _ahead(w.aheads_at, slot)


@inlined
def timers(w, owner):
    return _timer(w.timers_at, owner)


@inlined
def heap(w, place):
    """Owners of timers that are set."""
    return _number(w.heap_at, place)


@inlined
def contexts(w, number):
    return _context(w.contexts_at, number)


@inlined
def scratch(w, number):
    """The address of a set of SMs used as scratch."""
    return _set(w.sets_at, number * w.words, w.words)


@inlined
def log_row(w, row):
    """The address of a row of the log."""
    return _log(w.log_at, row, 1)


@inlined
def channels(x, number):
    return _channel(x.channels_at, number)


@inlined
def heads(x, place):
    """Launches at the heads of hardware queues that wait for a slot, first come, first served."""
    return _number(x.heads_at, place)


@inlined
def queue(x, position):
    """Slots of the grids that hand out blocks, in the order in which they do so."""
    return _number(x.queue_at, position)


@inlined
def grids(x, slot):
    return _grid(x.grids_at, slot)


@inlined
def used(x, place):
    """Slots of resident grids, then free ones."""
    return _number(x.used_at, place)


@inlined
def resident(x, place):
    """A resident grid, by its place in the list of them."""
    return grids(x, used(x, place).value)


@inlined
def classes(x, c):
    """A class of equal SMs; class 0 holds the idle ones."""
    return _class(x.classes_at, c)


@inlined
def kinds(x, number):
    """Scratch of the bandwidth sharing."""
    return _kind(x.kinds_at, number)


@inlined
def members(x, c):
    """The address of the set of SMs of a class."""
    return _set(x.members_at, c * x.words, x.words)


@inlined
def rows(x, c, r):
    """A row of residents of a class."""
    return _row(x.rows_at, c * x.depth + r)


def on_records(function: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile calls of an access function of an interpreter that both devices share as calls of the decorated one."""

    def decorate(implementation: Callable[..., Any]) -> Callable[..., Any]:
        def chosen(*types: Any) -> Any:
            return implementation

        # Numba compares the names of arguments.
        chosen.__signature__ = inspect.signature(implementation)  # type: ignore[attr-defined]
        options: Any = {"_nrt": False, "forceinline": True}
        overload(function, jit_options=options)(chosen)
        return implementation

    return decorate
