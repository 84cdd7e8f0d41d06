"""Pods of a cluster that share a GPU, as jobs of a fleet: the same GPUs by the fleet's rates, or block by block.

The table of pods says which part of a GPU a pod asks for and whether it is latency-sensitive. It does not say which
kernels it runs, how much of its part it uses, or what its SLO is. So there are two readings:

* ``services``: each pod is inference that is on the GPU for the part of the time that it asks for.
* ``by class``: latency-sensitive pods are that; best-effort ones are training, which takes the GPU whenever it can.

Programs are recorded ones, drawn for each pod; a latency may be 1.69 times that alone, as in GPUColo's fleet; each GPU
is an H100, on which they were recorded; a pod claims the part of the memory that it asks for of the GPU.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.lib.recorded import RECORDED_ON
from gpusched_env.games.fleet.cluster.importing import POD_COLUMNS, pod_of, table_of_rows
from gpusched_env.games.fleet.cluster.placing import NOWHERE
from gpusched_env.games.fleet.cluster.problem import WHOLE_GPU, PodKind
from gpusched_env.games.fleet.cluster.run import ClusterRun
from gpusched_env.games.fleet.cluster.shipped import FOLDER
from gpusched_env.games.fleet.co_location import shipped_rates
from gpusched_env.games.fleet.device import WAIT, Command, FleetView, Place
from gpusched_env.games.fleet.experiments.fit import INFERENCE, TRAINING, alone_us, utilisation
from gpusched_env.games.fleet.experiments.levels import S
from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
from gpusched_env.games.fleet.workload.jobs import JOB, SLO_STRETCH

SERVICES, BY_CLASS = "services", "by class"
READINGS: Final = (SERVICES, BY_CLASS)
SECONDS, REPORT_US = 2, S // 2
GB_A_MILLI: Final = 1.0 / 16.0
"""Memory for a thousandth of a GPU: 62.5 GB are whole, less than an H100 has, and sums have no rounding error."""
OUTLAST: Final = 2.0
"""Work of a job over the time for which it is watched: none ends."""
LATENCY_SENSITIVE: Final = "LS"


def shared_gpus(run: ClusterRun) -> list[list[int]]:
    """The pods of each GPU that has any with a part of it, (GPUs,) of places in the order of arrival.

    GPUs are in the order of their first pods.
    """
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    kinds = run.problem.workload.kinds
    for pod, (kind, node, mask) in enumerate(
        zip(run.arrivals.kinds.tolist(), run.after.node.tolist(), run.after.gpus.tolist(), strict=True)
    ):
        if node != NOWHERE and kinds[kind].gpus == 1 and kinds[kind].gpu_milli < WHOLE_GPU:
            found[node, mask].append(pod)
    return list(found.values())


@functools.cache
def sensitive_share() -> dict[PodKind, float]:
    """The part of the recorded pods that are latency-sensitive, by what they ask for."""
    found: dict[PodKind, list[bool]] = defaultdict(list)
    for where, row in table_of_rows(FOLDER / "recording.csv.gz", (*POD_COLUMNS, "qos")):
        found[pod_of(where, row)].append(row["qos"] == LATENCY_SENSITIVE)
    return {kind: sum(of) / len(of) for kind, of in found.items()}


def fleet_of_cut(run: ClusterRun, cut: list[list[int]], reading: str, device: str) -> tuple[FleetProblem, AsPlaced]:
    """The pods of some GPUs as jobs that are there from the start and stay.

    Programs and classes are drawn for each pod, the same for every policy.

    Args:
        run: of the cluster.
        cut: pods of GPUs, some of :func:`shared_gpus`.
        reading: one of :data:`READINGS`.
        device: whose times alone the jobs have.

    Raises:
        InputError: there is no such reading, or no GPU.
    """
    if reading not in READINGS:
        raise InputError(f"no reading of pods is called {reading!r}; {did_you_mean(reading, READINGS)}")
    if not cut:
        raise InputError(f"{run.problem.workload.name}: no pod shares a GPU, at least one must")
    drawn = np.random.default_rng(0).random((len(run.arrivals.kinds), 2))
    rows, programs = [], []
    for pod in (pod for pods in cut for pod in pods):
        kind = run.problem.workload.kinds[run.arrivals.kinds[pod]]
        part, (of_class, of_program) = kind.gpu_milli / WHOLE_GPU, drawn[pod]
        trains = reading == BY_CLASS and of_class >= sensitive_share().get(kind, 0.0)
        choice = TRAINING if trains else INFERENCE
        program = choice[int(of_program * len(choice))]
        step_us = alone_us(program, device)
        busy, slo_us = (utilisation(program, device), 0.0) if trains else (part, step_us * SLO_STRETCH)
        rows.append((0, int(trains), OUTLAST * SECONDS * S, busy, kind.gpu_milli * GB_A_MILLI, step_us, slo_us))
        programs.append(program)
    kinds = (GpuKind("H100", len(cut), WHOLE_GPU * GB_A_MILLI, spec=RECORDED_ON),)
    problem = FleetProblem(
        run.problem.workload.name, np.array(rows, JOB), kinds, shipped_rates(), SECONDS * S, REPORT_US,
        programs=tuple(programs),
    )  # fmt: skip
    gpu_of = np.repeat(np.arange(len(cut)), [len(pods) for pods in cut])
    return problem, AsPlaced(gpu_of)


class AsPlaced:
    """A dispatcher that puts each job where the cluster has it."""

    control = "shared"

    def __init__(self, gpu_of: NDArray[np.int64]) -> None:
        """``gpu_of``: (jobs,) the GPU of each."""
        self._gpu_of = gpu_of

    def reset(self, kinds: tuple[GpuKind, ...]) -> None:
        """Begin a fleet; there is nothing to remember."""

    def decide(self, view: FleetView) -> Command:
        """Place the first job that waits."""
        if len(view.waiting) == 0:
            return WAIT
        job = int(view.waiting[0])
        return Place(job, int(self._gpu_of[job]))
