"""Jobs from their arrival to their completion, and their deadlines.

Tenants that are closed loops come and go from outside.
"""

from __future__ import annotations

import math

from gpusched_env.compiling import procedure
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.workload.host.states import (
    ANSWER,
    ARRIVAL,
    BURSTS,
    CLOSED_LOOP,
    DEADLINE,
    HAS_LEFT,
    HOST,
    NO_JOB,
    NO_LIMIT,
    NO_LIMIT_UNSTARTED,
    PERIODIC,
    POISSON,
    PROMPT,
    REGIMES,
    TRACE,
    WAITING,
)
from gpusched_env.workload.host.world import (
    client,
    draw_factor,
    draw_variant,
    job,
    length,
    log_job,
    log_rejection,
    log_request,
    new_job,
    program,
    recorded_ps,
    rules,
    set_timer,
    uniform,
)


@procedure
def exponential_us(u, rate_per_s):
    """A random gap of mean ``1e6 / rate_per_s``: the quantile function at the draw ``u``."""
    return -math.log1p(-u) * 1e6 / rate_per_s


@procedure
def regimes_gap_us(w, tenant):
    """Time to the next job where the rate switches: gaps to whatever is next, a job or a switch, until it is a job."""
    p = program(w, tenant)
    c = client(w, tenant)
    gap_us = 0.0
    while True:
        rate_per_s = p.busy_rate_per_s if c.regime == 1 else p.rate_per_s
        switches_per_s = 1e6 / p.busy_us if c.regime == 1 else 1e6 / p.calm_us
        gap_us += exponential_us(uniform(w, tenant, 0), rate_per_s + switches_per_s)
        if uniform(w, tenant, 0) * (rate_per_s + switches_per_s) < rate_per_s:
            return gap_us
        c.regime = 1 - c.regime


@procedure
def begin_arrivals(w, tenant):
    """Set the first timer of a tenant's arrivals."""
    p = program(w, tenant)
    first_ps = to_ps(p.start_us)
    if p.arrivals == REGIMES:
        c = client(w, tenant)
        c.regime = 1 if uniform(w, tenant, 0) * (p.calm_us + p.busy_us) < p.busy_us else 0
        first_ps += to_ps(regimes_gap_us(w, tenant))
    if p.arrivals == POISSON or p.arrivals == BURSTS:
        # Times are added as whole numbers: a late start does not round the gap.
        first_ps += to_ps(exponential_us(uniform(w, tenant, 0), p.rate_per_s))
    if p.arrivals == TRACE:
        open_trace(w, tenant)
        first_ps = next_recorded_ps(w, tenant)
    send_at(w, tenant, first_ps)


@procedure
def open_trace(w, tenant):
    """Where in its trace a tenant begins: at its beginning, or at a time that is drawn. A trace that repeats goes on
    from there over its end; of one that ends there is enough left for the episode, if it is long enough."""
    p = program(w, tenant)
    c = client(w, tenant)
    from_ps = 0
    if p.drawn == 1:
        room_ps = p.span_ps
        if p.repeats == 0:
            room_ps = max(0, room_ps - min(rules(w).arrivals_until_ps, to_ps(rules(w).horizon_us)))
        from_ps = int(uniform(w, tenant, 0) * room_ps)
    c.trace_from_ps = from_ps - to_ps(p.start_us)
    low = 0
    high = p.times
    while low < high:
        middle = (low + high) // 2
        if recorded_ps(w, tenant, middle) < from_ps:
            low = middle + 1
        else:
            high = middle
    c.trace_first = low


@procedure
def next_recorded_ps(w, tenant):
    """When a tenant's next job comes by its trace; behind its end after the horizon, which ends the episode."""
    p = program(w, tenant)
    c = client(w, tenant)
    place = c.trace_first + c.arrived
    if place >= p.times and p.repeats == 0:
        return to_ps(rules(w).horizon_us) + 1
    return recorded_ps(w, tenant, place % p.times) + place // p.times * p.span_ps - c.trace_from_ps


@procedure
def send_at(w, tenant, at_ps):
    """A job of a tenant arrives then, or where nobody sends one any more after the horizon, which ends the episode."""
    if program(w, tenant).arrivals != CLOSED_LOOP and at_ps > rules(w).arrivals_until_ps:
        at_ps = max(at_ps, to_ps(rules(w).horizon_us) + 1)
    set_timer(w, ARRIVAL, tenant, at_ps)


@procedure
def send_next(w, tenant):
    """The job behind one that has arrived now (in a closed loop: that is done with) arrives when it is due."""
    if program(w, tenant).arrivals == TRACE:
        send_at(w, tenant, next_recorded_ps(w, tenant))
    else:
        send_at(w, tenant, w.now_ps + to_ps(gap_us(w, tenant)))


@procedure
def gap_us(w, tenant):
    """Time from the arrival of a job to the next one (in a closed loop: from its completion)."""
    p = program(w, tenant)
    if p.arrivals == CLOSED_LOOP:
        return p.think_us
    if p.arrivals == POISSON:
        return exponential_us(uniform(w, tenant, 0), p.rate_per_s)
    if p.arrivals == PERIODIC:
        return p.period_us
    if p.arrivals == REGIMES:
        return regimes_gap_us(w, tenant)
    # A burst goes on with probability 1 - 1/mean: a geometric size without a counter to keep.
    if p.arrivals == BURSTS and uniform(w, tenant, 0) >= p.burst_go:
        return exponential_us(uniform(w, tenant, 0), p.rate_per_s)
    return 0.0


@procedure
def arrival_due(w, tenant):
    """A job arrives; what it is is drawn: the recorded iteration, or a request's lengths, and how fast the host is.

    A request that is longer than its engine can ever hold is rejected at once, as vLLM does. Its last token is never
    fed back, and needs no place.
    """
    p = program(w, tenant)
    c = client(w, tenant)
    number = c.arrived
    u = uniform(w, tenant, 1)
    # A request's first step says which variant it repeats.
    j = new_job(w, tenant, number, draw_variant(w, tenant, 0.0 if p.max_batch > 0 else u))
    j.factor = draw_factor(w, tenant, uniform(w, tenant, 1))
    if p.max_batch > 0:
        recorded = c.trace_first + number
        j.prompt = length(w, tenant, PROMPT, recorded % p.prompts if p.recorded_prompts == 1 else int(u * p.prompts))
        u = uniform(w, tenant, 1)
        j.answer = length(w, tenant, ANSWER, recorded % p.answers if p.recorded_answers == 1 else int(u * p.answers))
        j.tokens = 0
        j.preemptions = 0
    j.first_token_ps = NEVER
    j.state = WAITING
    j.overdue = 0
    j.arrived_ps = w.now_ps
    j.started_ps = NEVER
    j.deadline_ps = w.now_ps + to_ps(p.slo_us) if p.slo_us < math.inf else NEVER
    j.due_ps = j.deadline_ps
    accrue_jobs(w, tenant)
    c.arrived += 1
    if p.max_batch > 0 and j.prompt + j.answer - 1 > p.longest_request:
        charge_rejection(w, tenant, number)
    else:
        arm_deadline(w, tenant)
        w.awake = 1
        if c.host_job == NO_JOB:
            set_timer(w, HOST, c.first_thread, max(w.now_ps, c.asleep_until_ps))
    if p.arrivals != CLOSED_LOOP and (p.jobs < 0 or c.arrived < p.jobs):
        send_next(w, tenant)


@procedure
def accrue_jobs(w, tenant):
    """Count the time that the jobs in the system have spent up to now."""
    c = client(w, tenant)
    c.jobs_us += (c.arrived - c.completed - c.rejected) * ((w.now_ps - c.jobs_since_ps) / 1e6)
    c.jobs_since_ps = w.now_ps


@procedure
def complete_job(w, tenant, number):
    """All operations of a job have finished, or all of a request's tokens are there."""
    c = client(w, tenant)
    accrue_jobs(w, tenant)
    c.completed += 1
    log_job(w, tenant, number)
    if program(w, tenant).max_batch == 0:
        answered(w, tenant, number)
    else:
        log_request(w, tenant, number)
    job_leaves(w, tenant, number)


@procedure
def answered(w, tenant, number):
    """What a job's objective is about has happened: it has completed, or a request's first token is there."""
    c = client(w, tenant)
    c.answered += 1
    latency_us = (w.now_ps - job(w, tenant, number).arrived_ps) / 1e6
    c.last_turnaround_us = latency_us
    mean_us = c.mean_turnaround_us
    c.mean_turnaround_us = latency_us if c.answered == 1 else mean_us + (latency_us - mean_us) / 8.0


@procedure
def oldest_unanswered(w, tenant):
    """Number of a tenant's oldest job whose objective is open: unfinished, of an engine's requests without a first
    token; :data:`.states.NO_JOB`: there is none."""
    c = client(w, tenant)
    for number in range(c.first, c.arrived):
        j = job(w, tenant, number)
        if j.state != HAS_LEFT and j.first_token_ps == NEVER:
            return number
    return NO_JOB


@procedure
def charge_rejection(w, tenant, number):
    """A job is rejected: charged as if it stayed until the horizon, if there is one, and were then done alone."""
    p = program(w, tenant)
    c = client(w, tenant)
    accrue_jobs(w, tenant)
    c.rejected += 1
    left_us = rules(w).horizon_us - w.now_ps / 1e6 if rules(w).horizon_us < math.inf else 0.0
    c.jobs_us += max(0.0, left_us) + p.alone_us
    if p.slo_us < math.inf and job(w, tenant, number).overdue == 0:
        c.slo_misses += 1
    w.charged_energy_j += p.alone_us * rules(w).peak_w * 1e-6
    if p.jobs >= 0:
        w.charged_makespan_us += p.alone_us
    log_rejection(w, tenant, number)
    job_leaves(w, tenant, number)


@procedure
def job_leaves(w, tenant, number):
    """A job has completed or was rejected."""
    p = program(w, tenant)
    c = client(w, tenant)
    job(w, tenant, number).state = HAS_LEFT
    while c.first < c.arrived and job(w, tenant, c.first).state == HAS_LEFT:
        c.first += 1
    arm_deadline(w, tenant)
    if p.jobs >= 0:
        w.to_complete -= 1
        if w.to_complete == 0:
            w.done = 1
            w.done_ps = w.now_ps
    w.awake = 1
    more = (p.jobs < 0 or c.arrived < p.jobs) and (c.until < 0 or c.arrived < c.until)
    if p.arrivals == CLOSED_LOOP and more:
        send_next(w, tenant)


@procedure
def arm_deadline(w, tenant):
    """Set the timer to the earliest deadline that is neither past nor met (they come in order of arrival)."""
    c = client(w, tenant)
    c.due_job = max(c.due_job, c.first)
    while c.due_job < c.arrived:
        j = job(w, tenant, c.due_job)
        if j.state != HAS_LEFT and j.overdue == 0 and j.first_token_ps == NEVER:
            set_timer(w, DEADLINE, tenant, j.deadline_ps)
            return
        c.due_job += 1
    set_timer(w, DEADLINE, tenant, NEVER)


@procedure
def deadline_due(w, tenant):
    """A job in the system has exceeded its SLO."""
    c = client(w, tenant)
    c.slo_misses += 1
    job(w, tenant, c.due_job).overdue = 1
    arm_deadline(w, tenant)


@procedure
def has_started(w, tenant):
    """Whether a closed loop has begun, and sends jobs after those that came."""
    c = client(w, tenant)
    if c.until == NO_LIMIT_UNSTARTED:
        return c.arrived > 0
    return c.until == NO_LIMIT or c.arrived < c.until


@procedure
def start_closed_loop(w, tenant, jobs):
    """A closed loop sends a job at the present time, and then so many in all (:data:`.states.NO_LIMIT` ...).

    If a job from before it went is still in the system, the first one comes after that.

    Returns:
        whether it came; it cannot where it is there.
    """
    if has_started(w, tenant):
        return False
    c = client(w, tenant)
    c.until = c.arrived + jobs if jobs != NO_LIMIT else NO_LIMIT
    if c.arrived == c.completed + c.rejected:
        # It is a new process: what the last one owed for changes of its knobs was that one's.
        c.owed_ps = 0
        send_at(w, tenant, w.now_ps)
    return True


@procedure
def stop_closed_loop(w, tenant):
    """A closed loop sends nothing any more; what is in the system goes on.

    Returns:
        whether it went; it cannot where it is not there.
    """
    if not has_started(w, tenant):
        return False
    c = client(w, tenant)
    c.until = c.arrived
    set_timer(w, ARRIVAL, tenant, NEVER)
    return True
