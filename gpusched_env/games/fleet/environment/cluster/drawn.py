"""Clusters and workloads that are drawn, to train on; none is made from a published list.

Distributions, chosen to hold the range of the clusters that Weng et al. (USENIX ATC 2023) publish, and more:

* Nodes: 40 to 400 (log-uniform), of 1 to 7 GPU models with uneven shares (Dirichlet), each of 1 or 2 shapes: 1, 2, 4 or
  8 GPUs, 8 to 48 cores a GPU (log-uniform), 3 to 9 GiB a core (log-uniform).
* Pods: 40 to 200 kinds of uneven frequency (log-normal). 3 to 28 % of the pods need no GPU. Pods that share one (100 to
  950 thousandths) are 15 to 50 % of the demand for GPUs in 7 of 10 workloads, 50 to 95 % in 2, and all in 1. Those with
  2, 4 or 8 GPUs are up to 55 %, and the rest want one.
* CPU and memory of kinds are log-normal around a part of what their GPUs stand for, and scaled: all pods together ask
  for 0.4 to 1.05 times the CPU, and 0.3 to 0.75 times the memory, that they ask for of the GPUs.
* In half of the workloads up to 40 % of the kinds with GPUs can run on some models only, 1 to 3 of them.
"""

from __future__ import annotations

import functools
import math
from typing import Final, NamedTuple

import numpy as np

from gpusched_env.games.fleet.cluster.problem import WHOLE_GPU, ClusterProblem, Node, PodKind, Workload

NODES: Final = (40, 400)
MODELS: Final = (1, 7)
KINDS: Final = (40, 200)
GPUS: Final = (1, 2, 4, 8)
GPUS_CHANCES: Final = (0.1, 0.3, 0.2, 0.4)
CORES_A_GPU: Final = (8.0, 48.0)
MIB_A_CORE: Final = (3 * 1024.0, 9 * 1024.0)
SEVERAL: Final = (2, 4, 8)
SEVERAL_CHANCES: Final = (0.4, 0.25, 0.35)
SHARED_CHANCES: Final = (0.7, 0.2, 0.1)
MOST_SEVERAL: Final = 0.55
LEAST_CPU_MILLI: Final = 100
LEAST_MEMORY_MIB: Final = 64
KEPT: Final = 64
"""Problems that a process keeps."""


class Wanted(NamedTuple):
    """What a kind asks for of GPUs, and how often it comes."""

    gpus: int
    gpu_milli: int
    share: float


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _nodes(rng: np.random.Generator) -> tuple[Node, ...]:
    models = int(rng.integers(MODELS[0], MODELS[1] + 1))
    count = round(_log_uniform(rng, *NODES))
    shapes: list[Node] = []
    shares: list[float] = []
    for model, share in enumerate(rng.dirichlet(np.full(models, 0.7))):
        split = rng.dirichlet(np.ones(int(rng.integers(1, 3))))
        for part in split:
            gpus = int(rng.choice(GPUS, p=GPUS_CHANCES))
            cores = max(2, round(gpus * _log_uniform(rng, *CORES_A_GPU)))
            memory = round(cores * _log_uniform(rng, *MIB_A_CORE))
            shapes.append(Node(cores * 1000, memory, gpus, f"M{model}"))
            shares.append(share * part)
    # Each shape is there once at least, so that every model is.
    counts = np.maximum(1, np.round(count * np.array(shares))).astype(int)
    return tuple(node for node, many in zip(shapes, counts, strict=True) for _ in range(many))


def _wanted(rng: np.random.Generator, most_gpus: int) -> list[Wanted]:
    kinds = int(rng.integers(KINDS[0], KINDS[1] + 1))
    frequencies = np.exp(rng.normal(0.0, 1.5, kinds))
    without = rng.uniform(0.03, 0.28)
    shared = float(rng.choice([rng.uniform(0.15, 0.5), rng.uniform(0.5, 0.95), 1.0], p=SHARED_CHANCES))
    several = rng.uniform(0.0, min(MOST_SEVERAL, 1.0 - shared))
    demand = np.array([shared, 1.0 - shared - several, several])
    sizes = [size for size in SEVERAL if size <= most_gpus]
    classes = rng.choice(4, kinds, p=[0.2, *(0.8 * (0.1 + demand) / (0.1 + demand).sum())])
    classes[:2] = 0, 1
    found: list[tuple[int, int]] = []
    for each in classes:
        if each == 0:
            found.append((0, 0))
        elif each == 1:
            found.append((1, 10 * int(rng.integers(10, 96))))
        elif each == 2 or not sizes:
            found.append((1, WHOLE_GPU))
        else:
            chances = np.array(SEVERAL_CHANCES[: len(sizes)])
            found.append((int(rng.choice(sizes, p=chances / chances.sum())), WHOLE_GPU))
    asked = np.array([gpus * milli for gpus, milli in found], float) / WHOLE_GPU
    shares = np.zeros(kinds)
    for number, part in enumerate(demand, 1):
        members = classes == number
        if members.any():
            weights = frequencies[members] * asked[members]
            shares[members] = part * weights / weights.sum() / asked[members]
    shares /= shares.sum()
    members = classes == 0
    shares *= 1.0 - without
    shares[members] = without * frequencies[members] / frequencies[members].sum()
    return [Wanted(*each, float(share)) for each, share in zip(found, shares, strict=True)]


def _kinds(rng: np.random.Generator, nodes: tuple[Node, ...], wanted: list[Wanted]) -> list[PodKind]:
    gpus = sum(node.gpus for node in nodes)
    cpu_a_gpu = sum(node.cpu_milli for node in nodes) / gpus * rng.uniform(0.4, 1.05)
    memory_a_gpu = sum(node.memory_mib for node in nodes) / gpus * rng.uniform(0.3, 0.75)
    parts = np.array([each.gpus * each.gpu_milli / WHOLE_GPU for each in wanted])
    shares = np.array([each.share for each in wanted])
    # A part of a GPU comes with more than that part of CPU; a pod without stands for about one.
    sizes = np.where(parts == 0.0, np.exp(rng.normal(0.0, 0.8, len(parts))), np.where(parts < 1.0, parts**0.5, parts))
    cpu = sizes * np.exp(rng.normal(0.0, 0.45, len(parts)))
    memory = cpu * np.exp(rng.normal(0.0, 0.45, len(parts)))
    mean = float(shares @ parts)
    cpu *= cpu_a_gpu * mean / float(shares @ cpu)
    memory *= memory_a_gpu * mean / float(shares @ memory)
    models = sorted({node.model for node in nodes})
    pinned = rng.uniform(0.0, 0.4) if rng.random() < 0.5 else 0.0
    kinds: list[PodKind] = []
    for number, each in enumerate(wanted):
        able = [node for node in nodes if node.gpus >= each.gpus]
        names = ""
        if each.gpus and rng.random() < pinned:
            possible = sorted({node.model for node in able})
            count = int(rng.integers(1, min(3, len(possible)) + 1))
            if count < len(models):
                names = "|".join(sorted(rng.choice(possible, count, replace=False).tolist()))
                able = [node for node in able if node.model in names.split("|")]
        most = max(able, key=lambda node: (node.cpu_milli, node.memory_mib))
        cpu_milli = min(most.cpu_milli, max(LEAST_CPU_MILLI, int(cpu[number])))
        memory_mib = min(most.memory_mib, max(LEAST_MEMORY_MIB, int(memory[number])))
        kinds.append(PodKind(cpu_milli, memory_mib, each.gpus, each.gpu_milli, names))
    return kinds


@functools.lru_cache(KEPT)
def drawn_problem(seed: int) -> ClusterProblem:
    """The cluster and the workload of a seed; its pods ask for about as many GPUs as there are."""
    rng = np.random.default_rng((seed, 70))
    nodes = _nodes(rng)
    wanted = _wanted(rng, max(node.gpus for node in nodes))
    kinds = _kinds(rng, nodes, wanted)
    shares = np.array([each.share for each in wanted])
    asked = np.array([kind.asked_milli for kind in kinds])
    count = max(20, round(WHOLE_GPU * sum(node.gpus for node in nodes) / float(shares @ asked)))
    drawn = rng.choice(len(kinds), count, p=shares / shares.sum())
    drawn[0] = next(place for place, kind in enumerate(kinds) if kind.gpus)
    return ClusterProblem(nodes, Workload.of_pods(f"drawn-{seed}", [kinds[kind] for kind in drawn]))
