"""Nodes, kinds of pods, and how many of each a workload has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from gpusched_env.errors import InputError, did_you_mean

WHOLE_GPU: Final = 1000
"""Thousandths of a GPU."""
MOST_GPUS: Final = 16
"""GPUs of a node, at most."""
MOST_NODES: Final = 100_000
MOST_PODS: Final = 1_000_000
MOST_SCORES: Final = 50_000_000
"""Nodes times kinds of pods, at most: each pair has a score in memory."""
MOST_CPU_MILLI: Final = 10_000_000
MOST_MEMORY_MIB: Final = 1_000_000_000


class Node(NamedTuple):
    """A machine."""

    cpu_milli: int
    """Thousandths of a CPU core."""
    memory_mib: int
    gpus: int
    model: str
    """Of its GPUs; empty: it has none."""


class PodKind(NamedTuple):
    """What a pod asks for. Pods that ask for the same are of one kind."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    """Thousandths of each of its GPUs: less than 1000 of a shared one, of several each whole; 0: it needs no GPU."""
    models: str
    """The GPU models that it can run on, separated by ``|``; empty: any."""

    @property
    def asked_milli(self) -> int:
        """Thousandths of GPUs that it takes, in all."""
        return self.gpus * self.gpu_milli

    @property
    def allowed(self) -> tuple[str, ...]:
        """The GPU models that it can run on; empty: any."""
        return tuple(model for model in self.models.split("|") if model)


@dataclass(frozen=True)
class Workload:
    """Pods that users submit."""

    name: str
    kinds: tuple[PodKind, ...]
    submitted: tuple[int, ...]
    """The kind of each pod, in the order of the list that it comes from."""

    @classmethod
    def of_pods(cls, name: str, pods: Sequence[PodKind]) -> Workload:
        """A workload of single pods; its kinds are sorted."""
        places = {kind: place for place, kind in enumerate(sorted(set(pods)))}
        return cls(name, tuple(places), tuple(places[pod] for pod in pods))

    @property
    def asked_milli(self) -> int:
        """Thousandths of GPUs that all pods ask for."""
        return sum(self.kinds[kind].asked_milli for kind in self.submitted)


@dataclass(frozen=True)
class ClusterProblem:
    """Nodes, and the workload whose pods are to be placed on them.

    Raises:
        InputError: there is no GPU, no pod that asks for one, a GPU model that no node has, or too much of something.
    """

    nodes: tuple[Node, ...]
    workload: Workload

    def __post_init__(self) -> None:
        name, kinds, pods = self.workload.name, self.workload.kinds, len(self.workload.submitted)
        if not 1 <= len(self.nodes) <= MOST_NODES:
            raise InputError(f"{name}: the cluster has {len(self.nodes)} nodes, must have 1 to {MOST_NODES}")
        if not 1 <= pods <= MOST_PODS:
            raise InputError(f"{name}: the workload has {pods} pods, must have 1 to {MOST_PODS}")
        if len(kinds) * len(self.nodes) > MOST_SCORES:
            raise InputError(
                f"{name}: {len(kinds)} kinds of pods on {len(self.nodes)} nodes are {len(kinds) * len(self.nodes)} "
                f"pairs, must be at most {MOST_SCORES}"
            )
        if not self.capacity_milli:
            raise InputError(f"{name}: no node has a GPU, at least one must")
        if not self.workload.asked_milli:
            raise InputError(f"{name}: no pod asks for a GPU, at least one must")
        for kind in kinds:
            for model in kind.allowed:
                if model not in self.models:
                    raise InputError(f"{name}: a pod asks for GPU model {model!r}; {did_you_mean(model, self.models)}")

    @property
    def models(self) -> tuple[str, ...]:
        """The GPU models of the nodes, sorted."""
        return tuple(sorted({node.model for node in self.nodes if node.gpus}))

    @property
    def capacity_milli(self) -> int:
        """Thousandths of GPUs that the nodes have."""
        return WHOLE_GPU * sum(node.gpus for node in self.nodes)
