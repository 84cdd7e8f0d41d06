"""The published policies as schedulers of the game ``ClusterPlacement``: each plays whole episodes."""

from __future__ import annotations

from typing import ClassVar, Final, Protocol

from gpusched_env.baselines.registered import Registered
from gpusched_env.games.fleet.baselines.cluster.weighted import WeightedDescent
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.environment.cluster.problems import allocation_of


class PlacementScheduler(Protocol):
    """What plays an episode."""

    def allocation(self, problem: str, seed: int) -> float:
        """Per cent of the GPUs that are in use at the end."""
        ...


class Published:
    """A policy of Weng et al. (USENIX ATC 2023), over all nodes."""

    policy: ClassVar[Policy]

    def allocation(self, problem: str, seed: int) -> float:
        """Per cent of the GPUs that are in use at the end."""
        return allocation_of(self.policy, problem, seed)


class RandomPlacement(Published):
    """Random: any node that a pod fits on (Weng et al., USENIX ATC 2023)."""

    policy = Policy.RANDOM


class DotProduct(Published):
    """DotProd: the node whose free resources are least aligned with what is asked for (after Tetris, SIGCOMM 2014)."""

    policy = Policy.DOT_PRODUCT


class Clustering(Published):
    """Clustering: pods that ask for as many GPUs go together (after Gandiva, OSDI 2018)."""

    policy = Policy.CLUSTERING


class GpuPacking(Published):
    """Packing: GPUs in use first, then nodes in use (after MLaaS, NSDI 2022)."""

    policy = Policy.PACKING


class BestFit(Published):
    """BestFit: the node where least is left (Weng et al., USENIX ATC 2023)."""

    policy = Policy.BEST_FIT


class FragmentationGradientDescent(Published):
    """FGD: the node whose fragmentation grows least (Weng et al., USENIX ATC 2023)."""

    policy = Policy.FGD


PLACEMENT_SCHEDULERS: Final = Registered[PlacementScheduler](
    "scheduler of clusters",
    {
        "random-node": RandomPlacement,
        "dot-product": DotProduct,
        "gpu-clustering": Clustering,
        "gpu-packing": GpuPacking,
        "best-fit": BestFit,
        "fgd": FragmentationGradientDescent,
        "weighted-fgd": WeightedDescent,
    },
)
