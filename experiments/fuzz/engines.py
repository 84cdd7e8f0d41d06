"""Random serving engines: tenants whose requests run together, in caches that are often too small."""

from __future__ import annotations

from msgspec.structs import replace

from gpusched_env.experiments.fuzz.case import Baseline, Case
from gpusched_env.experiments.fuzz.dice import Dice, random_trace
from gpusched_env.workload.serving import (
    Batching,
    Decode,
    Drawn,
    Geometric,
    Lengths,
    ListedLengths,
    Lognormal,
    Prefill,
    RecordedLengths,
    Step,
    lengths,
)
from gpusched_env.workload.tenant import Backlog, Poisson, Tenant
from gpusched_env.workload.workload import Op, OpKind, TileNeeds, Variant, Workload

ENGINES = 0.2
"""Share of cases in which tenants are serving engines, of those with workloads of their own."""
LONGEST = 12
"""Tokens of a prompt, and of an answer."""
MOST_REQUESTS = 60
"""Requests of an engine within the horizon, about, at most."""
LONGER = (1.0, 4.0, 15.0)
"""Horizon of some of these cases in place of others': a request is many steps."""
SHORT = 0.6
"""Share of workloads whose steps are a kernel and a synchronisation: so many of them that requests meet."""
TOLD_BEFOREHAND = ("critical-path",)
"""Schedulers that ask which iteration each job repeats: an engine's steps come of who is there."""


def with_engines(dice: Dice, case: Case) -> Case:
    """A case in which some tenants are engines, whose workloads have recorded their steps."""
    if isinstance(case.player, Baseline) and case.player.name in TOLD_BEFOREHAND:
        return case
    batchings: dict[str, Batching] = {}
    workloads = dict(case.workloads)
    for name in case.workloads:
        if not batchings or dice.chance(0.5):
            batchings[name] = _batching(dice)
            workloads[name] = _recorded(dice, workloads[name], batchings[name])
    # Recorded steps need not have host times that could be scaled.
    tenants = tuple(
        replace(tenant, iteration_us=None) if tenant.workload in batchings else tenant
        for tenant in case.scenario.tenants
    )
    tenants = tuple(
        _engine(dice, tenant, batchings[tenant.workload], case.scenario.horizon_us)
        if tenant.workload in batchings and dice.chance(0.8)
        else tenant
        for tenant in tenants
    )
    longer = case.scenario.horizon_us * dice.pick(LONGER)
    return replace(case, workloads=workloads, scenario=replace(case.scenario, tenants=tenants, horizon_us=longer))


def _batching(dice: Dice) -> Batching:
    prompt, answer = _lengths(dice), _lengths(dice)
    least = _most(prompt) + _most(answer) - 1
    return Batching(
        max_batch=1 if dice.chance(0.1) else dice.integer(2, 8),
        # Mostly so small that requests are preempted.
        cache_tokens=least + (0 if dice.chance(0.3) else dice.log_integer(1, 100)),
        prompt=prompt,
        answer=answer,
    )


def _lengths(dice: Dice) -> Drawn:
    most = dice.integer(1, LONGEST)
    match dice.weighted({"values": 3, "lognormal": 1, "geometric": 1}):
        case "values":
            return ListedLengths(values=tuple(dice.log_integer(1, most) for _ in range(dice.integer(1, 4))))
        case "lognormal":
            return Lognormal(median=dice.number(1.0, most), sigma=dice.number(0.1, 2.0), most=most)
        case _:
            return Geometric(mean=dice.number(1.0, most), most=most)


def _most(drawn: Lengths) -> int:
    if isinstance(drawn, RecordedLengths):
        return drawn.most or LONGEST
    return max(drawn.values) if isinstance(drawn, ListedLengths) else drawn.most


def _least(drawn: Lengths) -> int:
    return 1 if isinstance(drawn, RecordedLengths) else min(lengths(drawn))


def _recorded(dice: Dice, workload: Workload, batching: Batching) -> Workload:
    """A workload with steps that cover all that may run; each does what one of its iterations does."""
    prompt, answer = _most(batching.prompt), _most(batching.answer)
    steps: list[Step] = [Prefill(tokens=prompt + dice.integer(0, answer))]
    steps += [Prefill(tokens=dice.integer(1, prompt)) for _ in range(dice.integer(0, 2))]
    steps.append(Decode(batch=batching.max_batch, context=prompt + answer - 1))
    for _ in range(dice.integer(0, 4)):
        steps.append(Decode(batch=dice.integer(1, batching.max_batch), context=dice.integer(1, prompt + answer)))
    does = [_short(dice, variant) for variant in workload.variants] if dice.chance(SHORT) else workload.variants
    variants = [replace(dice.pick(does), step=step) for step in dict.fromkeys(dice.shuffled(steps))]
    # An iteration that is no step: an engine does not use it.
    return replace(workload, variants=(*workload.variants[: dice.integer(0, 1)], *variants))


def _short(dice: Dice, variant: Variant) -> Variant:
    """A kernel of an iteration, if its main thread has one, and most of the time a synchronisation."""
    kernels = [op for op in variant.ops if op.kind in (OpKind.KERNEL, OpKind.GRAPH)]
    if not kernels:
        return variant
    kernel = replace(dice.pick(kernels), tiles=-1, needs=TileNeeds())
    return Variant(ops=(kernel, Op(OpKind.SYNC)) if dice.chance(0.8) else (kernel,))


def _engine(dice: Dice, tenant: Tenant, batching: Batching, horizon_us: float) -> Tenant:
    # A tenant of its own among those that share the recorded steps.
    fewer = dice.integer(1, batching.max_batch) if dice.chance(0.3) else batching.max_batch
    own = replace(batching, max_batch=fewer)
    if dice.chance(0.2):
        # What it cannot hold it rejects.
        shortest = _least(own.prompt) + _least(own.answer) - 1
        own = replace(own, cache_tokens=dice.integer(shortest, own.cache_tokens))
    tenant = replace(tenant, batching=own)
    if dice.chance(0.3):
        return tenant
    # Requests that meet each other.
    requests = dice.log_integer(2, MOST_REQUESTS)
    match dice.pick(("backlog", "trace", "poisson")):
        case "backlog":
            return replace(tenant, arrivals=Backlog(), jobs=requests)
        case "trace":
            return engine_of_a_trace(dice, tenant, own, horizon_us / requests)
    return replace(tenant, arrivals=Poisson(rate_per_s=1e6 * requests / horizon_us), jobs=None)


def engine_of_a_trace(dice: Dice, tenant: Tenant, batching: Batching, gap_us: float) -> Tenant:
    """An engine whose requests have recorded lengths, of prompts, answers or both."""
    trace = random_trace(dice, gap_us)
    # One fits, whatever the cache: the first that is not cut off.
    first = next(number for number, time_us in enumerate(trace.times_us) if time_us >= trace.from_us)
    drawn = ([dice.integer(1, _most(each)) for _ in trace.times_us[1:]] for each in (batching.prompt, batching.answer))
    prompts, answers = ((*each[:first], 1, *each[first:]) for each in drawn)
    both = replace(batching, prompt=RecordedLengths(), answer=RecordedLengths())
    asked = dice.pick(
        (both, replace(batching, prompt=RecordedLengths()), replace(batching, answer=RecordedLengths(most=1)))
    )
    return replace(tenant, arrivals=replace(trace, prompts=prompts, answers=answers), batching=asked, jobs=None)
