"""``gpusched lab cluster-queue``: pods come to a cluster, wait, run and go."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from gpusched_env.experiments.lib.options import FirstSeed, Json, Overwrite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpusched_env.games.fleet.cluster.lifetimes.recording import LifetimeRecording
    from gpusched_env.games.fleet.cluster.problem import ClusterProblem

SHIPPED_DAYS: Final = (116.0, 148.0)
"""Of the shipped recording; before, hardly a pod comes."""
LEARNED: Final = "learned"
COUNTED: Final = 1.0 / 3.0
"""The part of a run after which figures count."""
MOST_COPIES: Final = 100
TOLD_EVERY: Final = 100
"""Steps of a training."""
MIB: Final = 2**20


@dataclass(frozen=True, kw_only=True)
class QueueOptions:
    """Options of who comes, and of who places them."""

    loads: Annotated[str, typer.Option(metavar="A,B,...", help="What pods ask for at a time, over the cluster.")] = (
        "0.9,0.95"
    )
    policies: Annotated[
        str,
        typer.Option(
            metavar="A,B,...",
            help="Of random, dot-product, clustering, packing, best-fit, fgd; learned: FGD, and who goes next.",
        ),
    ] = "best-fit,fgd"
    order: Annotated[
        Path | None, typer.Option(metavar="JSON", help="Learned: a rule of your own, by train-cluster-queue.")
    ] = None
    hours: Annotated[float, typer.Option(help="For which pods come; figures are of the last two thirds.")] = 12.0
    recording: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV", help="Pods of your own, with creation_time, scheduled_time and deletion_time in seconds."
        ),
    ] = None
    nodes: Annotated[
        Path | None, typer.Option(metavar="CSV", help="Nodes of your own: cpu_milli,memory_mib,gpu,model[,count].")
    ] = None
    days: Annotated[tuple[float, float] | None, typer.Option(metavar="A B", help="Of the recording, from and to.")] = (
        None
    )
    copies: Annotated[int, typer.Option(min=1, max=MOST_COPIES, help="So many times the nodes.")] = 1
    in_order: Annotated[bool, typer.Option("--in-order", help="Nobody overtakes the first one that waits.")] = False
    json: Json = None
    overwrite: Overwrite = False


COLUMNS: Final = {
    "used_pct": "in use, %",
    "fragmented_pct": "fragmented, %",
    "waited_for_pct": "waited for, %",
    "mean_wait_s": "mean wait, s",
    "p95_wait_s": "95th percentile, s",
}


def cluster_queue(options: QueueOptions) -> None:
    """Let pods come to a cluster as recorded, but faster: GPUs in use, fragmented, and waited for; how long pods wait.

    Without tables of your own: the cluster and the pods of Weng et al. (USENIX ATC 2023).
    """
    from gpusched_env.baselines.registered import split_specs
    from gpusched_env.display.table import Table
    from gpusched_env.errors import InputError
    from gpusched_env.experiments.lib.files import writing
    from gpusched_env.experiments.lib.terminal import output_console
    from gpusched_env.games.fleet.agents.cluster.order import learned_order
    from gpusched_env.games.fleet.cluster.policies.registry import POLICIES, policy_named

    policies = {
        name: learned_order(options.order) if name == LEARNED else policy_named(name)
        for name in split_specs(options.policies)
    }
    if not policies:
        raise InputError(f"--policies {options.policies!r}: names none; known: {', '.join((*POLICIES, LEARNED))}")
    loads = [_load(text) for text in options.loads.split(",")]
    problem, recording = _problem(options)
    with writing(("--json", options.json), overwrite=options.overwrite) as write:
        found = [
            {"load": load, "policy": name, **_figures(problem, recording, policy, load, options)}
            for load in loads
            for name, policy in policies.items()
        ]
        rows = [
            (
                *(f"{of['load']:g}", of["policy"], f"{of['pods']:,}", *(f"{of[column]:.2f}" for column in COLUMNS)),
                *(f"{of['seconds']:.1f}", f"{of['peak_mib']:,.0f}"),
            )
            for of in found
        ]
        title = f"{problem.workload.name}: {len(problem.nodes):,} nodes, {problem.capacity_milli // 1000:,} GPUs"
        heads = ("load", "policy", "pods", *COLUMNS.values(), "processor, s", "memory, MiB")
        output_console().print(Table(title, heads, rows))
        head = {"schema": "gpusched-cluster-queue/1", "workload": problem.workload.name, "hours": options.hours}
        write("--json", lambda: {**head, "in_order": options.in_order, "runs": found})


def _load(text: str) -> float:
    from gpusched_env.errors import InputError

    try:
        return float(text)
    except ValueError:
        raise InputError(f"--loads: {text!r} is no number, must be loads separated by commas") from None


def _problem(options: QueueOptions) -> tuple[ClusterProblem, LifetimeRecording]:
    from gpusched_env.games.fleet.cluster.importing import read_nodes
    from gpusched_env.games.fleet.cluster.lifetimes.recording import DAY_S, read_recording
    from gpusched_env.games.fleet.cluster.problem import ClusterProblem
    from gpusched_env.games.fleet.cluster.shipped import shipped_problem, shipped_recording

    recording = shipped_recording() if options.recording is None else read_recording(options.recording)
    days = SHIPPED_DAYS if options.recording is None and options.days is None else options.days
    if days is not None:
        recording = recording.block(*(round(day * DAY_S) for day in days))
    nodes = shipped_problem("default").nodes if options.nodes is None else read_nodes(options.nodes)
    return ClusterProblem(nodes * options.copies, recording.workload), recording


def _figures(
    problem: ClusterProblem, recording: LifetimeRecording, policy: Any, load: float, options: QueueOptions
) -> dict[str, Any]:
    import resource

    import numpy as np

    from gpusched_env.games.fleet.cluster.lifetimes.queue import IN_ORDER, OVERTAKING
    from gpusched_env.games.fleet.cluster.lifetimes.run import run_queue
    from gpusched_env.games.fleet.cluster.lifetimes.stream import compressed

    began_s = time.process_time()
    stream = compressed(problem, recording, load, options.hours)
    run = run_queue(problem, stream, policy, options.hours, IN_ORDER if options.in_order else OVERTAKING)
    first = int(len(run.used) * COUNTED)
    waits_s = run.waits_s(first)
    return {
        "pods": len(stream.kinds),
        "used_pct": float(run.used[first:].mean()),
        "fragmented_pct": float(run.fragmented[first:].mean()),
        "waited_for_pct": float(run.waited_for[first:].mean()),
        "mean_wait_s": float(waits_s.mean()) if len(waits_s) else 0.0,
        "p95_wait_s": float(np.percentile(waits_s, 95.0, method="inverted_cdf")) if len(waits_s) else 0.0,
        "seconds": time.process_time() - began_s,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MIB,
    }


@dataclass(frozen=True, kw_only=True)
class OrderOptions:
    """Options of a training."""

    out: Annotated[Path, typer.Option(metavar="JSON", help="The rule.")]
    steps: Annotated[int, typer.Option(min=1, max=1_000_000, help="Each plays a drawn stream eight times.")] = 1000
    seed: FirstSeed = 0
    overwrite: Overwrite = False


def train_cluster_queue(options: OrderOptions) -> None:
    """Train the rule of who goes next in a cluster's queue, by policy gradients on drawn streams: four minutes."""
    import msgspec

    from gpusched_env.experiments.lib.files import writing
    from gpusched_env.experiments.lib.terminal import output_console
    from gpusched_env.games.fleet.agents.cluster.order import OrderFile
    from gpusched_env.games.fleet.queue_training import OrderSettings, named, train_order
    from gpusched_env.versions import versions

    console = output_console()

    def tell(step: int, weights: NDArray[np.float64], waited_pct: float) -> None:
        if step % TOLD_EVERY == 0 or step == options.steps:
            console.print(f"step {step} of {options.steps}: {waited_pct:.1f} % of the GPUs are waited for")

    with writing(("--out", options.out), overwrite=options.overwrite) as write:
        rule, choices = train_order(OrderSettings(steps=options.steps, seed=options.seed), tell)
        file = OrderFile(
            weights={term: round(weight, 4) for term, weight in named(rule.weights).items()},
            algorithm="reinforce",
            command=f"gpusched lab train-cluster-queue --steps {options.steps} --seed {options.seed}",
            seed=options.seed,
            choices=choices,
            versions=versions(),
        )
        write("--out", lambda: msgspec.to_builtins(file))
