"""A distribution of scenarios, and a scenario's rough drawing: everything but rates and times, which follow from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from gpusched_env.games.drawn.problems import gpus, networks
from gpusched_env.games.drawn.problems.arrivals import Kind
from gpusched_env.games.drawn.problems.networks import ENGINE, Networks
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.scenario import CommandName

Host = Literal["graph", "driver", "runtime", "python"]
HOSTS: Final[tuple[Host, ...]] = ("graph", "driver", "runtime", "python")
HOST_SHARES: Final = (0.35, 0.3, 0.2, 0.15)
"""How many tenants launch an iteration as one graph, kernel by kernel as fast as the driver can, at a runtime's speed,
or at the speed that was recorded of Python."""
OFFERED: Final[dict[CommandName, float]] = {"reject": 0.7, "preempt": 0.5, "partition": 0.5}
"""How often a scenario offers a command."""
BY_PRICE: Final = 0.5
"""How often services have two priorities; without best effort they always have."""
KNOWLEDGE: Final = ("right", "scattered", "forgotten")
FEW: Final = 8
"""Tenants at most, but for unseen combinations."""
FULL: Final = 1.0
"""The load above which somebody has to wait for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """What scenarios are drawn from."""

    tenants: tuple[int, int] = (2, 12)
    """Least and most of them."""
    gpus: tuple[str, ...] = gpus.SEEN
    varied: bool = True
    """Whether half of the GPUs are others around those that ship."""
    networks: Networks = networks.SEEN
    engines: bool = True
    """Whether a fifth of the scenarios have an engine of a language model."""
    loads: tuple[tuple[float, float], ...] = ((0.4, 1.4),)
    """Time that all requests take alone, a unit of time: ranges from and to, each as likely."""
    arrivals: tuple[Kind, ...] = ("poisson", "bursts", "regimes", "closed-loop")
    knowledge: tuple[str, ...] = KNOWLEDGE
    """What profiles may be: each as likely."""
    unusual: bool | None = False
    """Whether all scenarios are combinations that no training sees (:func:`is_unusual`), or none is."""


@dataclass(frozen=True, slots=True)
class Rough:
    """A tenant, roughly."""

    workload: str
    best_effort: bool
    host: Host
    launch_us: float
    """Host time of each launch, where the host is a runtime."""
    kind: Kind
    load: float
    """Share of the GPU's time that its requests would take alone; of best effort: all."""
    slack: float
    """Objective over the time alone."""
    price: float
    """Weight a millisecond of its time alone."""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """A scenario, roughly."""

    gpu: GpuSpec
    tenants: tuple[Rough, ...]
    knowledge: str
    offered: tuple[CommandName, ...]
    """Commands besides launching that schedulers may give."""
    slowdown: float
    """Weight of a unit of slowdown beside that of a missed objective."""

    @property
    def load(self) -> float:
        """Time that all requests take alone, a unit of time."""
        return sum(tenant.load for tenant in self.tenants if not tenant.best_effort)


def is_unusual(draft: Draft) -> bool:
    """Whether a scenario combines what no training sees together: more than eight tenants; an engine beside best
    effort; or forgotten profiles and more than the GPU can do."""
    engine = any(tenant.workload == ENGINE for tenant in draft.tenants)
    return (
        len(draft.tenants) > FEW
        or (engine and any(tenant.best_effort for tenant in draft.tenants))
        or (draft.knowledge == "forgotten" and draft.load > FULL)
    )


def draw_draft(rng: np.random.Generator, of: Distribution) -> Draft:
    """A scenario's draft: drawn until it is, or is not, as unusual as ``of`` says."""
    while True:
        draft = _draw_any(rng, of)
        if of.unusual is None or is_unusual(draft) == of.unusual:
            return draft


def _draw_any(rng: np.random.Generator, of: Distribution) -> Draft:
    least, most = of.tenants
    count = min(most, math.floor(math.exp(rng.uniform(math.log(least), math.log(most + 1)))))
    best_effort = int(rng.binomial(1, 2.0 / 3.0) if count == 2 else rng.binomial(count - 1, 0.3))
    services = count - best_effort
    load = math.exp(rng.uniform(*np.log(of.loads[rng.integers(len(of.loads))])))
    loads = load * rng.dirichlet(np.full(services, 2.0))
    engine = of.engines and rng.random() < 0.2
    tenants = [_draw_service(rng, of, float(own), engine and not row) for row, own in enumerate(loads)]
    tenants += [_draw_best_effort(rng, of) for _ in range(best_effort)]
    by_price = rng.random() < BY_PRICE or not best_effort
    offered = tuple(command for command, share in OFFERED.items() if rng.random() < share)
    return Draft(
        gpu=gpus.draw_gpu(rng, of.gpus, of.varied),
        tenants=tuple(replace(tenant, priority=_priority(tenant, by_price)) for tenant in tenants),
        knowledge=of.knowledge[rng.integers(len(of.knowledge))],
        offered=offered,
        slowdown=float(rng.choice((0.0, 0.01, 0.05))),
    )


def _priority(tenant: Rough, by_price: bool) -> int:
    """0 is the most urgent: of services all, or those that pay for it; what has no objective comes last."""
    if tenant.best_effort:
        return 2 if by_price else 1
    return int(by_price and tenant.price < 1.0)


def _draw_service(rng: np.random.Generator, of: Distribution, load: float, engine: bool) -> Rough:
    kinds = [kind for kind in of.arrivals if not (engine and kind == "closed-loop")]
    services = of.networks.services
    return Rough(
        workload=ENGINE if engine else services[rng.integers(len(services))],
        best_effort=False,
        host="graph" if engine else HOSTS[rng.choice(len(HOSTS), p=HOST_SHARES)],
        launch_us=rng.uniform(2.0, 8.0),
        kind=kinds[rng.integers(len(kinds))],
        load=load,
        slack=math.exp(rng.uniform(math.log(1.8), math.log(9.0))),
        price=math.exp(rng.normal(0.0, 0.8)),
    )


def _draw_best_effort(rng: np.random.Generator, of: Distribution) -> Rough:
    names = of.networks.best_effort
    return Rough(
        workload=names[rng.integers(len(names))],
        best_effort=True,
        host=HOSTS[rng.choice(3, p=(0.4, 0.4, 0.2))],
        launch_us=rng.uniform(2.0, 8.0),
        kind="closed-loop",
        load=1.0,
        slack=math.inf,
        price=math.exp(rng.normal(-0.8, 1.0)),
    )
