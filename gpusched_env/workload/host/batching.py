"""A serving engine: requests of a language model that are served together, step by step, with a cache that grows.

A step is a *prefill*, which processes one request's prompt and yields its first token, or a *decode* step, which yields
a token for each request that runs. Who runs is decided anew before each step (iteration-level scheduling: Yu et al.,
Orca, OSDI 2022), as vLLM does it (Kwon et al., SOSP 2023):

* The oldest request that waits is prefilled if fewer than ``max_batch`` run, and the *cache* (of the keys and values
  of all tokens so far) has room for it; otherwise all that run get a token.
* Each token that is fed to a decode step takes a place in the cache. If there are too few, the newest request that runs
  is preempted: it gives its places back, and waits in front of the others, which are younger. Its next prefill
  processes its prompt and its tokens so far, in several steps if it is longer than any recorded one.
* A request leaves the batch and the cache at the end of the step that yields its last token.

Which recorded variant a step repeats, and so how long it takes: the smallest that covers it, as engines pad to the
CUDA graphs that they captured; of a decode step, the number of requests and their mean context.

A step's launches are those of the request that is prefilled, or of the oldest that runs. Where that has its first
token, they are due when the next request is that waits for one, as it waits for them. A tenant's host serves one step
at a time, to the end of its last operation. Requests that run are all older than those that wait: they are the jobs in
service below ``taken``.

Not here: prefills in the same step as decodes, caches that are shared between prompts, or swapped to the host.
"""

from __future__ import annotations

from gpusched_env.compiling import procedure
from gpusched_env.hardware.clock import NEVER
from gpusched_env.workload.host.jobs import answered, arm_deadline, complete_job
from gpusched_env.workload.host.states import SERVED, WAITING
from gpusched_env.workload.host.world import client, covering, job, program, repeat


@procedure
def has_step(w, tenant):
    """Whether there is a request to serve; finds the oldest one that waits."""
    c = client(w, tenant)
    # Those that were rejected before their turn may be forgotten.
    c.taken = max(c.taken, c.first)
    while c.taken < c.arrived and job(w, tenant, c.taken).state != WAITING:
        c.taken += 1
    return c.running > 0 or c.taken < c.arrived


@procedure
def begin_step(w, tenant):
    """Choose the next step, where :func:`has_step`; returns the request that its launches belong to."""
    c = client(w, tenant)
    p = program(w, tenant)
    if c.prefill_left == 0 and may_run(w, tenant):
        admit_request(w, tenant)
    if c.prefill_left > 0:
        number = newest_request(w, tenant)
        tokens = min(c.prefill_left, p.longest_prefill)
        c.prefill_left -= tokens
        c.prefills = 1
        repeat(w, tenant, number, covering(w, tenant, 0, tokens))
        set_due(w, tenant, number)
        return number
    while c.cached + c.running > p.cache_tokens:
        preempt_newest(w, tenant)
    number = c.first
    while job(w, tenant, number).state != SERVED:
        number += 1
    # Each request's context is what it has in the cache, and the token that it is fed.
    context = -(-(c.cached + c.running) // c.running)
    repeat(w, tenant, number, covering(w, tenant, c.running, context))
    set_due(w, tenant, number)
    return number


@procedure
def set_due(w, tenant, number):
    """Say when the launches of a request's next step are due."""
    c = client(w, tenant)
    j = job(w, tenant, number)
    if j.tokens > 0:
        j.due_ps = job(w, tenant, c.due_job).deadline_ps if c.due_job < c.arrived else NEVER


@procedure
def may_run(w, tenant):
    """Whether the oldest request that waits may join those that run."""
    c = client(w, tenant)
    p = program(w, tenant)
    if c.taken == c.arrived or c.running == p.max_batch:
        return False
    j = job(w, tenant, c.taken)
    return c.cached + j.prompt + j.tokens <= p.cache_tokens


@procedure
def admit_request(w, tenant):
    """The oldest request that waits gets its places in the cache, and is to be prefilled."""
    c = client(w, tenant)
    j = job(w, tenant, c.taken)
    j.state = SERVED
    j.cached = j.prompt + j.tokens
    c.cached += j.cached
    c.running += 1
    c.taken += 1
    c.prefill_left = j.cached


@procedure
def newest_request(w, tenant):
    """The newest request that runs."""
    number = client(w, tenant).taken - 1
    while job(w, tenant, number).state != SERVED:
        number -= 1
    return number


@procedure
def preempt_newest(w, tenant):
    """The newest request that runs gives its places in the cache back, and waits again."""
    c = client(w, tenant)
    c.taken = newest_request(w, tenant)
    j = job(w, tenant, c.taken)
    j.state = WAITING
    j.preemptions += 1
    c.cached -= j.cached
    c.running -= 1
    # It may be rejected now.
    w.awake = 1


@procedure
def end_step(w, tenant):
    """All operations of a step have finished: its tokens are there."""
    c = client(w, tenant)
    # What is left of the request's step is all of the next one.
    j = job(w, tenant, c.host_job)
    j.unfinished = j.operations
    if c.prefills == 1:
        c.prefills = 0
        if c.prefill_left == 0:
            add_token(w, tenant, c.host_job)
        return
    for number in range(c.first, c.taken):
        j = job(w, tenant, number)
        if j.state == SERVED:
            j.cached += 1
            c.cached += 1
            add_token(w, tenant, number)


@procedure
def add_token(w, tenant, number):
    """A request's next token is there; with its last one it leaves."""
    c = client(w, tenant)
    j = job(w, tenant, number)
    j.tokens += 1
    if j.tokens == 1:
        # It has met its objective, or has missed it before.
        j.first_token_ps = w.now_ps
        j.deadline_ps = NEVER
        answered(w, tenant, number)
        arm_deadline(w, tenant)
    if j.tokens == j.answer:
        c.cached -= j.cached
        c.running -= 1
        complete_job(w, tenant, number)
