"""Reaching the records of an environment from its ``ENV`` record ``w``, or of a context from its record ``x``."""

from __future__ import annotations

from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.jit import inlined
from gpusched_env.devices.compiled.memory import columns, records

env_at = records(layout.ENV)
_problem = records(layout.PROBLEM)
_program = records(layout.PROGRAM)
_kernel = records(layout.KERNEL)
_op = records(layout.OP)
_variant = records(layout.VARIANT)
_number = records(layout.NUMBER)
_real = records(layout.REAL)
_client = records(layout.CLIENT)
_random = records(layout.RANDOM)
_job = records(layout.JOB)
_launch = records(layout.LAUNCH)
_event = records(layout.EVENT)
_context = records(layout.CONTEXT)
_channel = records(layout.CHANNEL)
_grid = records(layout.GRID)
_class = records(layout.SM_CLASS)
_kind = records(layout.KIND)
kind_demands = columns(layout.KIND, "demand")
kind_loadings = columns(layout.KIND, "loading")
kind_sms = columns(layout.KIND, "sms")
"""Fields of the kinds of SMs, by a context's ``kinds_at``."""
_row = records(layout.ROW)
_log = records(layout.LOG)
word = records(layout.WORD)
"""Word of a set of SMs, by the set's address."""


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
def variants(w, number):
    return _variant(problem(w).variants_at, number)


@inlined
def factors(w, number):
    return _real(problem(w).factors_at, number).value


@inlined
def sm_ids(w, rank):
    return _number(problem(w).sm_ids_at, rank).value


@inlined
def clients(w, tenant):
    return _client(w.clients_at, tenant)


@inlined
def randoms(w, tenant, stream):
    """A tenant's generator: stream 0 for arrivals, 1 for variation."""
    return _random(w.randoms_at, 2 * tenant + stream)


@inlined
def jobs(w, tenant, number):
    """A job in the system."""
    return _job(w.jobs_at, tenant * (w.job_mask + 1) + (number & w.job_mask))


@inlined
def launches(w, tenant, number):
    """An issued, unfinished operation."""
    return _launch(w.launches_at, tenant * (w.launch_mask + 1) + (number & w.launch_mask))


@inlined
def timers(w, number):
    """Timers in the order of events at equal times; ``value`` is ``inf`` where none is set."""
    return _real(w.due_at, number)


@inlined
def due(w, phase, tenant):
    """The timer of a phase and a tenant (a context)."""
    return _real(w.due_at, phase * w.tenants + tenant)


@inlined
def chain(w, place):
    return _event(w.chain_at, place)


@inlined
def engine_queue(w, engine, place):
    """Tenants that wait for a copy engine."""
    return _number(w.engine_queue_at, engine * (w.tenants + 1) + place)


@inlined
def contexts(w, number):
    return _context(w.contexts_at, number)


@inlined
def scratch(w, number):
    """The address of a set of SMs used as scratch."""
    return w.sets_at + 8 * number * w.words


@inlined
def log(w, row):
    return _log(w.log_at, row)


@inlined
def channels(x, number):
    return _channel(x.channels_at, number)


@inlined
def heads(x, place):
    """Heads of hardware queues that wait for a slot, first come, first served."""
    return _number(x.heads_at, place)


@inlined
def queue(x, position):
    """Tenants whose grids hand out blocks, in that order."""
    return _number(x.queue_at, position)


@inlined
def grids(x, tenant):
    return _grid(x.grids_at, tenant)


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
    return x.members_at + 8 * c * x.words


@inlined
def rows(x, c, r):
    """A row of residents of a class."""
    return _row(x.rows_at, c * x.depth + r)
