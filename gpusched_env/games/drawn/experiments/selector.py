"""A selector: the scheduler that was best on the most similar scenarios of the training split.

Nearest neighbours over what every scheduler may know beforehand, rates of arrivals among it, which agents are not told.
It is what can be had without learning from an episode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.drawn.experiments.costs import SplitCosts
from gpusched_env.games.drawn.problems.splits import drawn
from gpusched_env.scenarios.knowledge import Knowledge

Floats = NDArray[np.float64]
NEIGHBOURS: Final = (3, 5, 10, 20, 40, 80)
"""Of these numbers the one is taken with which training scenarios are best served by their neighbours."""


def features(known: Knowledge) -> list[float]:
    """What is known of a scenario, as numbers that mean the same in each."""
    services = [tenant for tenant in known.tenants if math.isfinite(tenant.slo_us)]
    others = [tenant for tenant in known.tenants if not math.isfinite(tenant.slo_us)]
    earns = [math.log(tenant.weight / tenant.alone_us) for tenant in services]
    slack = [math.log(tenant.slo_us / tenant.alone_us) for tenant in services]
    alone = [math.log(tenant.alone_us) for tenant in services]
    durations = [kernel.duration_us for kernel in known.kernels if math.isfinite(kernel.duration_us)]
    longest = max((tenant.alone_us for tenant in others), default=1.0)
    return [
        math.log(len(known.tenants)),
        math.log(1 + len(others)),
        float(len({tenant.priority for tenant in services})),
        sum(tenant.jobs_a_us * tenant.alone_us for tenant in services),
        sum(tenant.jobs_a_us == 0.0 for tenant in services) / len(services),
        *(figure for values in (earns, slack, alone) for figure in (float(np.mean(values)), float(np.std(values)))),
        math.log(longest),
        max((math.log(tenant.weight / tenant.alone_us) for tenant in others), default=-20.0) - float(np.mean(earns)),
        float(any(tenant.max_batch > 1 for tenant in known.tenants)),
        float("reject" in known.commands),
        math.log(known.gpu.sms),
        math.log(known.gpu.dram_bytes_per_us),
        float(bool(durations)),
        math.log(max(durations, default=1.0)),
        float(np.mean([kernel.graph for kernel in known.kernels])),
    ]


def features_of(scenarios: list[str]) -> Floats:
    """Of drawn scenarios by name, shape ``(scenarios, features)``."""
    return np.array([features(drawn(name).problem().knowledge) for name in scenarios])


@dataclass(frozen=True, slots=True)
class Selector:
    """Fitted on a split."""

    centre: Floats
    scale: Floats
    known: Floats
    """Features of its scenarios, scaled."""
    logs: Floats
    """Mean logarithms of costs on them, shape ``(scenarios, schedulers)``."""
    neighbours: int

    def choose(self, of: Floats) -> NDArray[np.int64]:
        """Which scheduler each scenario gets; ``of``: features, shape ``(scenarios, features)``."""
        scaled = (of - self.centre) / self.scale
        return _choices(_distances(scaled, self.known), self.logs, self.neighbours)


def fitted(train: SplitCosts) -> Selector:
    """The selector of a training split."""
    of = features_of(train.scenarios)
    centre, scale = of.mean(0), of.std(0) + 1e-9
    known, logs = (of - centre) / scale, train.means
    apart = _distances(known, known)
    np.fill_diagonal(apart, np.inf)
    numbers = [number for number in NEIGHBOURS if number < len(known)]
    costs = [logs[np.arange(len(logs)), _choices(apart, logs, number)].mean() for number in numbers]
    return Selector(centre, scale, known, logs, numbers[int(np.argmin(costs))])


def _distances(of: Floats, known: Floats) -> Floats:
    return np.asarray(((of[:, None] - known[None]) ** 2).sum(-1))


def _choices(distances: Floats, logs: Floats, neighbours: int) -> NDArray[np.int64]:
    nearest = distances.argsort(-1)[:, :neighbours]
    return np.asarray(logs[nearest].mean(1).argmin(-1))
