"""Episodes by the name of a problem and a seed: published workloads, drawn ones, and tables of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.fleet.cluster.arrivals import draw_arrivals
from gpusched_env.games.fleet.cluster.importing import read_nodes, read_pods
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.problem import ClusterProblem
from gpusched_env.games.fleet.cluster.run import run_cluster
from gpusched_env.games.fleet.cluster.shipped import shipped_problem, shipped_workloads
from gpusched_env.games.fleet.cluster.state import USED_MILLI
from gpusched_env.games.fleet.environment.cluster.copies import Copies, single_copy
from gpusched_env.games.fleet.environment.cluster.drawn import drawn_problem

RANDOM: Final = "random"
SEPARATOR: Final = ":"
"""Between the tables of nodes and of pods."""
JUDGED: Final = (
    "default", "cpu050", "cpu200", "gpushare40", "gpushare80", "gpuspec10", "gpuspec25", "multigpu20", "multigpu40",
)  # fmt: skip
"""Published workloads whose results are in the package."""
HUNDRED: Final = 100.0


def check_name(name: str) -> None:
    """Find out whether there is such a problem.

    Raises:
        InputError: there is none.
    """
    known = [RANDOM, *shipped_workloads()]
    if name not in known and SEPARATOR not in name:
        raise InputError(
            f"no problem of a cluster is {name!r}; {did_you_mean(name, known)} (tables of your own: "
            f"NODES.csv{SEPARATOR}PODS.csv)"
        )


def cluster_problem(name: str, seed: int) -> ClusterProblem:
    """Nodes and workload of a problem; the seed draws those of :data:`RANDOM`.

    Raises:
        InputError: there is none, or a table cannot be read.
    """
    check_name(name)
    if name == RANDOM:
        return drawn_problem(seed)
    if SEPARATOR in name:
        nodes, _, pods = name.partition(SEPARATOR)
        return ClusterProblem(read_nodes(Path(nodes)), read_pods(Path(pods)))
    return shipped_problem(name)


def new_copy(name: str, seed: int) -> Copies:
    """An episode at its beginning: the seed draws the order of arrivals and of nodes.

    Raises:
        InputError: there is none, or it is too large.
    """
    problem = cluster_problem(name, seed)
    return single_copy(problem, draw_arrivals(problem, seed))


def allocation_of(policy: Policy, name: str, seed: int) -> float:
    """Per cent of the GPUs that are in use at the end of an episode of a published policy."""
    problem = cluster_problem(name, seed)
    run = run_cluster(problem, policy, seed)
    return float(HUNDRED * run.state.totals[USED_MILLI] / problem.capacity_milli)
