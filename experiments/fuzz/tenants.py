"""Random tenants of given workloads, and how long to watch them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.programs import capturable, kernels_of
from gpusched_env.workload.arrivals import ArrivalProcess, Backlog, Bursts, ClosedLoop, Periodic, Poisson
from gpusched_env.workload.tenant import Tenant
from gpusched_env.workload.workload import COPIES, Workload

MOST_TENANTS = 40


def draw_tenants(dice: Dice, workloads: Mapping[str, Workload], kernels: int) -> tuple[tuple[Tenant, ...], float]:
    """Tenants, and a horizon (us) within which they would run about ``kernels`` kernels alone."""
    count = dice.weighted({1: 1, 2: 3, 3: 3, 4: 2, 5: 0.7, 6: 0.7, 7: 0.7, 8: 0.7, dice.integer(9, MOST_TENANTS): 0.4})
    names = list(workloads)
    chosen = [dice.pick(names) for _ in range(count)]
    rate = sum(1.0 / _kernel_us(workloads[name]) for name in chosen)
    horizon_us = _rounded(dice, max(1.0, kernels / rate))
    finite = dice.pick((0.0, 0.5, 1.0))
    tenants: list[Tenant] = []
    for i, name in enumerate(chosen):
        if tenants and dice.chance(0.3):
            # Its own twin, for ties.
            tenants.append(msgspec.structs.replace(dice.pick(tenants), name=f"t{i}"))
        else:
            tenants.append(_tenant(dice, f"t{i}", name, workloads[name], horizon_us, dice.chance(finite)))
    if finite == 1.0 and dice.chance(0.7):
        horizon_us *= 5.0
    return tuple(tenants), horizon_us


def _job_us(workload: Workload) -> float:
    """About how long a job takes alone."""
    host_us = sum(op.host_us for variant in workload.variants for op in variant.all_ops)
    copies_us = sum(op.duration_us for variant in workload.variants for op in variant.all_ops if op.kind in COPIES)
    kernels_us = sum(duration_us for _, duration_us in kernels_of(workload))
    return (host_us + copies_us + kernels_us) / len(workload.variants)


def _kernel_us(workload: Workload) -> float:
    """Time alone per kernel of a job."""
    count = sum(1 for _ in kernels_of(workload))
    return _job_us(workload) * len(workload.variants) / count


def _tenant(dice: Dice, name: str, workload: str, recorded: Workload, horizon_us: float, finite: bool) -> Tenant:
    job_us = _job_us(recorded)
    arrivals = _arrivals(dice, job_us, horizon_us)
    expected = max(1, round(horizon_us / job_us))
    jobs = dice.log_integer(1, min(200, 2 * expected)) if finite or arrivals.needs_job_count else None
    stretched = any(op.host_us > 0.0 for variant in recorded.variants for op in variant.all_ops)
    tenant = Tenant(
        name=name,
        workload=workload,
        arrivals=arrivals,
        jobs=jobs,
        priority=dice.integer(0, 3),
        weight=dice.pick((0.0, 1.0, 1.0, dice.number(0.1, 10.0))),
        slo_us=None if dice.chance(0.4) else max(0.1, job_us * dice.number(0.1, 10.0)),
        launch="graph" if dice.chance(0.25) and capturable(recorded) else "eager",
        iteration_us=job_us * dice.uniform(0.5, 3.0) if stretched and _every_variant(recorded) else None,
    )
    # A graph has no host times to scale.
    return tenant if tenant.launch == "eager" else msgspec.structs.replace(tenant, iteration_us=None)


def _every_variant(workload: Workload) -> bool:
    """Whether all variants have host time, so that any iteration time can be reached."""
    return all(any(op.host_us > 0.0 for op in variant.all_ops) for variant in workload.variants)


def _arrivals(dice: Dice, job_us: float, horizon_us: float) -> ArrivalProcess:
    start_us = 0.0 if dice.chance(0.6) else dice.number(0.1, max(0.2, 0.3 * horizon_us))
    # At most about 300 jobs arrive within the horizon.
    gap_us = max(horizon_us / 300.0, job_us * dice.number(0.2, 4.0))
    kind = dice.weighted({"closed": 4, "poisson": 2, "periodic": 3, "bursts": 1, "backlog": 2})
    if kind == "closed":
        return ClosedLoop(start_us=start_us, think_us=0.0 if dice.chance(0.5) else dice.number(0.1, max(0.2, job_us)))
    if kind == "poisson":
        return Poisson(start_us=start_us, rate_per_s=1e6 / gap_us)
    if kind == "periodic":
        return Periodic(start_us=start_us, period_us=_rounded(dice, gap_us))
    if kind == "bursts":
        size = dice.pick((1.0, 2.0, 4.5))
        return Bursts(start_us=start_us, rate_per_s=1e6 / gap_us / size, mean_size=size)
    return Backlog(start_us=start_us)


def _rounded(dice: Dice, value: float) -> float:
    """Half of the time a number of one digit (rounded up), so that times coincide."""
    return value if dice.chance(0.5) else max(value, float(f"{value * 1.2:.0e}"))
