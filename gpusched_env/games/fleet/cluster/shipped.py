"""The cluster and the workloads that Weng et al. (USENIX ATC 2023) published, and their results."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.fleet.cluster.importing import read_nodes, read_pods
from gpusched_env.games.fleet.cluster.lifetimes.recording import LifetimeRecording, read_recording
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.problem import ClusterProblem
from gpusched_env.games.fleet.cluster.run import LAST_PERCENT
from gpusched_env.reading import read_bytes, table_rows, unzipped

FOLDER: Final = Path(__file__).parents[1] / "data" / "fgd"
PODS: Final = "pods-"
PUBLISHED_POLICIES: Final = {
    "01-Random": Policy.RANDOM,
    "02-DotProd": Policy.DOT_PRODUCT,
    "03-GpuClustering": Policy.CLUSTERING,
    "04-GpuPacking": Policy.PACKING,
    "05-BestFit": Policy.BEST_FIT,
    "06-FGD": Policy.FGD,
}
PUBLISHED_WORKLOAD: Final = "openb_pod_list_"
"""What names of workloads begin with in the published results."""


def shipped_workloads() -> list[str]:
    """Names of the workloads, sorted."""
    return sorted(path.name.partition(".")[0].removeprefix(PODS) for path in FOLDER.glob(f"{PODS}*.csv.gz"))


@functools.cache
def shipped_problem(workload: str) -> ClusterProblem:
    """A workload on the published cluster; nodes without GPUs do not take part (``prepare_input.sh``).

    Raises:
        InputError: there is no such workload.
    """
    if workload not in (known := shipped_workloads()):
        raise InputError(f"no workload is called {workload!r}; {did_you_mean(workload, known)}")
    nodes = tuple(node for node in read_nodes(FOLDER / "nodes.csv.gz") if node.gpus)
    return ClusterProblem(nodes, read_pods(FOLDER / f"{PODS}{workload}.csv.gz", workload))


@functools.cache
def shipped_recording() -> LifetimeRecording:
    """The published pods with the times at which they came and went, five months."""
    return read_recording(FOLDER / "recording.csv.gz")


class PublishedCurves(NamedTuple):
    """Published curves of a policy on a workload, (seeds, per cent) each, per cent of the GPUs."""

    allocation: NDArray[np.float64]
    fragmentation: NDArray[np.float64]


@functools.cache
def published_curves() -> dict[tuple[str, Policy], PublishedCurves]:
    """The published curves by workload and policy."""
    allocation, fragmentation = (_curves(FOLDER / f"published-{what}.csv.gz") for what in PublishedCurves._fields)
    return {key: PublishedCurves(allocation[key], fragmentation[key]) for key in allocation}


def _curves(path: Path) -> dict[tuple[str, Policy], NDArray[np.float64]]:
    """The curves of a file by workload and policy; its last columns are the per cents."""
    found: dict[tuple[str, Policy], list[list[float]]] = {}
    for line, cells in table_rows(unzipped(read_bytes(path), str(path)), str(path)):
        if line > 1:
            key = cells[0].removeprefix(PUBLISHED_WORKLOAD), PUBLISHED_POLICIES[cells[1]]
            found.setdefault(key, []).append([float(cell) for cell in cells[-LAST_PERCENT - 1 :]])
    return {key: np.array(rows) for key, rows in found.items()}
