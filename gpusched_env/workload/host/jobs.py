"""Jobs from their arrival to their completion, and their deadlines."""

from __future__ import annotations

import math

from gpusched_env.compiling import procedure
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.workload.host.arrivals import send_next
from gpusched_env.workload.host.states import ANSWER, CLOSED_LOOP, DEADLINE, GONE, HOST, NOBODY, PROMPT, WAITING
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
    rules,
    set_timer,
    uniform,
)


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
        give_up(w, tenant, number)
    else:
        arm_deadline(w, tenant)
        w.awake = 1
        if c.host_job == NOBODY:
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
    token; :data:`.states.NOBODY`: there is none."""
    c = client(w, tenant)
    for number in range(c.first, c.arrived):
        j = job(w, tenant, number)
        if j.state != GONE and j.first_token_ps == NEVER:
            return number
    return NOBODY


@procedure
def give_up(w, tenant, number):
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
    job(w, tenant, number).state = GONE
    while c.first < c.arrived and job(w, tenant, c.first).state == GONE:
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
        if j.state != GONE and j.overdue == 0 and j.first_token_ps == NEVER:
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
