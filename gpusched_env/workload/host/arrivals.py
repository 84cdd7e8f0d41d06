"""When a tenant's next job comes."""

from __future__ import annotations

import math

from gpusched_env.compiling import procedure
from gpusched_env.hardware.clock import to_ps
from gpusched_env.workload.host.states import ARRIVAL, BURSTS, CLOSED_LOOP, PERIODIC, POISSON, REGIMES, TRACE
from gpusched_env.workload.host.world import client, program, recorded_ps, rules, set_timer, uniform


@procedure
def exponential_us(u, rate_per_s):
    """A random gap of mean ``1e6 / rate_per_s``: the quantile function at the draw ``u``."""
    return -math.log1p(-u) * 1e6 / rate_per_s


@procedure
def regimes_gap_us(w, tenant):
    """To the next job where the rate switches: of whatever happens next, with the chance that it is the switch."""
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
def begin(w, tenant):
    """The first timer of a tenant."""
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
    """From the arrival of a job to the next one (in a closed loop: from its completion)."""
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
