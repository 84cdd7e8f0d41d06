"""What a world has, by access functions; compiled code reads its own memory instead (devices.compiled.hosting)."""

from __future__ import annotations

from typing import Any


def rules(w: Any) -> Any:
    """``launch_depth``, ``sync_latency_ps``, ``throttle_ps``, ``horizon_us``, ``arrivals_until_ps``,
    ``host_contention``, ``waiting_contention``, ``cores`` (of the CPU, 0: none are simulated) and ``peak_w`` (power at
    full load) of the problem."""
    return w.rules


def program(w: Any, tenant: int) -> Any:
    """A tenant's arrivals (``arrivals`` and their numbers), ``jobs`` (-1: no end), ``slo_us``, ``alone_us``, and of a
    serving engine ``max_batch`` (0: it is none), ``cache_tokens``, ``longest_prefill``, ``longest_request`` (tokens
    of a request that it can hold), and how many ``prompts`` and ``answers`` there are to draw from, or to take one
    after another (``recorded_prompts``, ``recorded_answers``: 1)."""
    return w.programs[tenant]


def client(w: Any, tenant: int) -> Any:
    """A tenant at run time."""
    return w.clients[tenant]


def job(w: Any, tenant: int, number: int) -> Any:
    """A job that is not gone, or was not when the oldest one that is not gone arrived."""
    return w.jobs[tenant][number]


def thread(w: Any, k: int) -> Any:
    """A host thread."""
    return w.threads[k]


def stream(w: Any, row: int) -> Any:
    """A stream: ``outstanding`` operations and ``last_end_ps``."""
    return w.streams[row]


def mark(w: Any, tenant: int, m: int) -> Any:
    """A mark of the job in service: id of its ``launch``, whether it has ``finished``, and when."""
    return w.marks[tenant][m]


def op(w: Any, place: int) -> Any:
    """An operation: ``kind``, ``host_us``, ``stream``, ``mark``."""
    return w.ops[place]


def awaits(w: Any, place: int) -> int:
    """How many marks an operation waits for."""
    return len(w.ops[place].after)


def awaited(w: Any, place: int, i: int) -> int:
    """One of the marks that an operation waits for."""
    return int(w.ops[place].after[i])


def draw_variant(w: Any, tenant: int, u: float) -> Any:
    """The variant that the draw ``u`` (0 <= u < 1) picks: ``first_op``, ``device_ops``, ``marks``."""
    variants = w.variants[tenant]
    return variants[int(u * len(variants))]


def length(w: Any, tenant: int, which: int, place: int) -> int:
    """One of the lengths in tokens that a serving engine's requests have; ``which``: of the prompt or the answer."""
    return int(w.lengths[tenant][which][place])


def recorded_ps(w: Any, tenant: int, place: int) -> int:
    """When a request of a tenant's trace comes, from the beginning of the trace."""
    return int(w.recorded[tenant][place])


def covering(w: Any, tenant: int, batch: int, tokens: int) -> Any:
    """The first, which is the smallest, of an engine's recorded steps that covers so many requests with so many tokens
    each; ``batch`` 0: a prefill of so many tokens."""
    return next(
        step
        for step in w.variants[tenant]
        if (step.batch == 0) == (batch == 0) and step.batch >= batch and step.tokens >= tokens
    )


def draw_factor(w: Any, tenant: int, u: float) -> float:
    """The factor on host times that the draw ``u`` picks."""
    factors = w.factors[tenant]
    return float(factors[int(u * len(factors))])


def thread_ops(w: Any, tenant: int, number: int, i: int) -> int:
    """Operations of the ``i``-th host thread in the variant of a job."""
    return int(w.jobs[tenant][number].variant.threads[i])


def uniform(w: Any, tenant: int, which: int) -> float:
    """The next draw of a tenant's generator, 0 <= u < 1; ``which``: 0 for arrivals, 1 for variation."""
    return float(w.generators[tenant][which].random())


def new_job(w: Any, tenant: int, number: int, variant: Any) -> Any:
    """Make room for a job of a variant, ``unfinished`` device operations and ``first_op`` filled in."""
    return w.new_job(tenant, number, variant)


def repeat(w: Any, tenant: int, number: int, variant: Any) -> None:
    """A job is to repeat a variant, all of it: ``unfinished``, ``marks`` and ``first_op`` filled in."""
    w.repeat(tenant, number, variant)


def set_timer(w: Any, kind: int, number: int, at_ps: int) -> None:
    """Set the timer of a tenant or a thread, which may be set already; :data:`NEVER`: stop it."""
    w.set_timer(kind, number, at_ps)


def issue(w: Any, k: int) -> None:
    """Thread ``k`` issues the operation that it stands at (``thread(w, k).op``)."""
    w.issue(k)


def host_changed(w: Any, tenant: int) -> None:
    """A tenant's host may have begun or stopped to run; called where the problem has cores."""
    w.host_changed(tenant)


def log_job(w: Any, tenant: int, number: int) -> None:
    """A job has completed."""
    w.log_job(tenant, number)


def log_rejection(w: Any, tenant: int, number: int) -> None:
    """A job was rejected."""
    w.log_rejection(tenant, number)


def log_request(w: Any, tenant: int, number: int) -> None:
    """A request of a serving engine has completed."""
    w.log_request(tenant, number)
