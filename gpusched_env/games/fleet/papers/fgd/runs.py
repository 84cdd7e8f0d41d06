"""The runs of the page: a policy places a workload's pods on the published cluster; and what the runs come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.fleet.cluster.policies.registry import POLICIES
from gpusched_env.games.fleet.cluster.run import run_cluster
from gpusched_env.games.fleet.cluster.shipped import PublishedCurves, published_curves, shipped_problem

NAMES: Final = {
    "random": "Random",
    "dot-product": "DotProd",
    "clustering": "Clustering",
    "packing": "Packing",
    "best-fit": "BestFit",
    "fgd": "FGD",
}
"""Policies as the paper calls them."""
WORKLOADS: Final = (
    "default", "cpu050", "cpu200", "gpushare40", "gpushare80", "gpuspec10", "gpuspec25", "multigpu20", "multigpu40",
)  # fmt: skip
SEEDS: Final = tuple(range(42, 52))
"""The published seeds, in the order of the published curves."""
OTHER_SEEDS: Final = tuple(range(142, 152))
"""Seeds of our own: other pods in another order."""
DIGITS: Final = 2
"""Of published figures."""
TIE: Final = 1e-6
"""Per cent by which a figure may lie beside the middle between two published ones."""


@dataclass(frozen=True)
class ClusterCurves:
    """Per cent of the cluster's GPUs, by per cent of them that was asked for, 0 to 130."""

    allocation: tuple[float, ...]
    """In use."""
    fragmentation: tuple[float, ...]
    """Fragmented."""


@dataclass(frozen=True)
class PlacedWorkload:
    """A workload whose pods arrive until they have asked for 1.3 times the GPUs."""

    workload: str
    policy: str
    seed: int

    def run(self, device: str) -> ClusterCurves:
        run = run_cluster(shipped_problem(self.workload), POLICIES[self.policy], self.seed)
        # The simulator logs what is in use after each pod with two digits, and publishes means of these.
        percent = run.problem.capacity_milli / 100.0
        allocation = run.by_percent(percent * np.round(run.after.used_milli / percent, DIGITS))
        return ClusterCurves(tuple(allocation.tolist()), tuple(run.fragmentation.tolist()))


class AllocationCurves(NamedTuple):
    """Curves of a policy on a workload by seed, (seeds, per cents) each."""

    allocation: NDArray[np.float64]
    fragmentation: NDArray[np.float64]

    @property
    def used(self) -> float:
        """Per cent of the GPUs that are in use in the end, mean over seeds."""
        return float(self.allocation[:, -1].mean())

    @property
    def standard_error(self) -> float:
        """Of :attr:`used`."""
        return float(self.allocation[:, -1].std(ddof=1) / np.sqrt(len(self.allocation)))


def curves_of(runs: Mapping[Any, Any], workload: str, policy: str, seeds: Sequence[int]) -> AllocationCurves:
    """The curves of a policy on a workload."""
    found = [runs[PlacedWorkload(workload, policy, seed)] for seed in seeds]
    return AllocationCurves(np.array([of.allocation for of in found]), np.array([of.fragmentation for of in found]))


def published(workload: str, policy: str) -> AllocationCurves:
    """The published ones of the published seeds."""
    found: PublishedCurves = published_curves()[workload, POLICIES[policy]]
    return AllocationCurves(found.allocation, found.fragmentation)


def equal_runs(ours: AllocationCurves, theirs: AllocationCurves) -> NDArray[np.bool_]:
    """(seeds,) whether a run's curves, rounded, are the published ones; a tie may be rounded either way."""
    half = 0.5 * 10.0**-DIGITS + TIE
    equal: NDArray[np.bool_] = np.ones(len(ours.allocation), np.bool_)
    for mine, other in zip(ours, theirs, strict=True):
        equal &= np.abs(mine - other).max(axis=1) <= half
    return equal
