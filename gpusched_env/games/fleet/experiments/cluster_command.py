"""``gpusched lab cluster``: policies place pods on a cluster of nodes with CPU, memory and GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpusched_env.experiments.lib.options import FirstSeed, Json, Overwrite

if TYPE_CHECKING:
    from gpusched_env.games.fleet.cluster.problem import ClusterProblem


@dataclass(frozen=True, kw_only=True)
class ClusterOptions:
    """Options of what is placed where."""

    workload: Annotated[str, typer.Option(help="A published one: default, cpu050, ..., multigpu50.")] = "default"
    nodes: Annotated[
        Path | None, typer.Option(metavar="CSV", help="Nodes of your own: cpu_milli,memory_mib,gpu,model[,count].")
    ] = None
    pods: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV", help="Pods of your own: cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec][,count]."
        ),
    ] = None
    policies: Annotated[
        str, typer.Option(metavar="A,B,...", help="Of random, dot-product, clustering, packing, best-fit, fgd.")
    ] = "random,dot-product,clustering,packing,best-fit,fgd"
    ratio: Annotated[float, typer.Option(help="What pods ask for in the end, over the GPUs.")] = 1.3
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Runs of each policy.")] = 10
    seed: FirstSeed = 0
    offline: Annotated[
        bool, typer.Option(help="Also the most that there can be for the first seed's pods, and a packing of these.")
    ] = False
    json: Json = None
    overwrite: Overwrite = False


def cluster(options: ClusterOptions) -> None:
    """Place pods on a cluster by several policies: GPUs in use, GPUs that are fragmented, pods that fitted nowhere.

    Without tables of your own: the cluster and the workloads of Weng et al. (USENIX ATC 2023).
    """
    from gpusched_env.baselines.registered import split_specs
    from gpusched_env.display.table import Table
    from gpusched_env.errors import InputError
    from gpusched_env.experiments.lib.files import writing
    from gpusched_env.experiments.lib.terminal import output_console
    from gpusched_env.games.fleet.cluster.policies.registry import POLICIES, policy_named

    policies = {name: policy_named(name) for name in split_specs(options.policies)}
    if not policies:
        raise InputError(f"--policies {options.policies!r}: names none; known: {', '.join(POLICIES)}")
    problem = _problem(options)
    with writing(("--json", options.json), overwrite=options.overwrite) as write:
        found = {name: _figures(problem, policy, options) for name, policy in policies.items()}
        rows = [(name, *(f"{of[column]:.2f}" for column in COLUMNS)) for name, of in found.items()]
        offline = _offline(problem, options) if options.offline else {}
        rows += [(OFFLINE[name], f"{in_use:.2f}", "", "") for name, in_use in offline.items()]
        gpus = problem.capacity_milli // 1000
        title = (
            f"{problem.workload.name}: {len(problem.nodes):,} nodes, {gpus:,} GPUs, {options.ratio:g} times asked for"
        )
        output_console().print(Table(title, ("policy", *COLUMNS.values()), rows))
        head = {"schema": "gpusched-cluster/1", "workload": problem.workload.name, "ratio": options.ratio}
        write("--json", lambda: {**head, "seed": options.seed, "seeds": options.seeds, "policies": found, **offline})


COLUMNS = {
    "in_use_pct": "% of GPUs in use",
    "fragmented_pct": "% of GPUs fragmented",
    "dropped_pct": "% of pods dropped",
}

OFFLINE = {"packed_pct": "packed with all pods known", "bound_pct": "no more than"}


def _offline(problem: ClusterProblem, options: ClusterOptions) -> dict[str, float]:
    """Per cent of the GPUs for the pods of the first seed."""
    from gpusched_env.games.fleet.cluster.arrivals import draw_arrivals
    from gpusched_env.games.fleet.cluster.offline import bound_milli, packed_milli

    arrived = draw_arrivals(problem, options.seed, options.ratio).kinds.tolist()
    milli = packed_milli(problem, arrived), bound_milli(problem, arrived)
    return {name: 100.0 * used / problem.capacity_milli for name, used in zip(OFFLINE, milli, strict=True)}


def _problem(options: ClusterOptions) -> ClusterProblem:
    from gpusched_env.errors import InputError
    from gpusched_env.games.fleet.cluster.importing import read_nodes, read_pods
    from gpusched_env.games.fleet.cluster.problem import ClusterProblem
    from gpusched_env.games.fleet.cluster.shipped import shipped_problem

    if options.nodes is None and options.pods is None:
        return shipped_problem(options.workload)
    if options.nodes is None or options.pods is None:
        raise InputError("--nodes and --pods: a cluster of your own needs both")
    return ClusterProblem(read_nodes(options.nodes), read_pods(options.pods))


def _figures(problem: ClusterProblem, policy: Any, options: ClusterOptions) -> dict[str, float]:
    """Means over the seeds."""
    from gpusched_env.games.fleet.cluster.run import run_cluster

    runs = [
        run_cluster(problem, policy, seed, options.ratio) for seed in range(options.seed, options.seed + options.seeds)
    ]
    percent = 100.0 / options.seeds
    return {
        "in_use_pct": percent * sum(float(run.after.used_milli[-1]) for run in runs) / problem.capacity_milli,
        "fragmented_pct": percent * sum(float(run.after.fragmented_milli[-1]) for run in runs) / problem.capacity_milli,
        "dropped_pct": percent * sum(run.dropped / len(run.arrivals.kinds) for run in runs),
    }
