"""Pods that share a GPU of a cluster become jobs of a fleet, and stay where they were placed."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.problem import ClusterProblem, Node, PodKind, Workload
from gpusched_env.games.fleet.cluster.run import ClusterRun, run_cluster
from gpusched_env.games.fleet.cluster.shipped import shipped_problem
from gpusched_env.games.fleet.device import run_fleet
from gpusched_env.games.fleet.experiments.levels import BlockLevel
from gpusched_env.games.fleet.experiments.shared_gpus import (
    BY_CLASS,
    SERVICES,
    fleet_of_cut,
    sensitive_share,
    shared_gpus,
)
from gpusched_env.games.fleet.papers.fgd_co_location import Paper, SharedCut, SharingFigures
from tests.games.fleet.cluster.toys import HALF, NO_GPU, ONE
from tests.refusals import refused


def placed(pods: list[PodKind], gpus: int = 4) -> ClusterRun:
    problem = ClusterProblem((Node(64_000, 1000, gpus, "T4"),), Workload.of_pods("toy", pods))
    return run_cluster(problem, Policy.FGD, 0, sum(pod.asked_milli for pod in pods) / (1000 * gpus))


def test_pods_with_a_part_of_a_gpu_are_by_gpu() -> None:
    """Two halves go together; 700 and 300 thousandths do; whole GPUs and pods without any share none."""
    small, large = HALF._replace(gpu_milli=300), HALF._replace(gpu_milli=700)
    run = placed([HALF, HALF, ONE, NO_GPU, small, large])
    kinds = run.problem.workload.kinds
    asked = [sorted(kinds[run.arrivals.kinds[pod]].gpu_milli for pod in pods) for pods in shared_gpus(run)]
    assert sorted(asked) == [[300, 700], [500, 500]]


def test_jobs_stay_where_the_cluster_has_them() -> None:
    run = placed([HALF, HALF, HALF], 2)
    cut = shared_gpus(run)
    problem, dispatcher = fleet_of_cut(run, cut, SERVICES, "compiled")
    done = run_fleet(dispatcher, problem)
    assert done.state.gpu_of.tolist() == np.repeat([0, 1], [len(pods) for pods in cut]).tolist()
    assert problem.jobs["utilisation"].tolist() == [0.5] * 3
    found = SharingFigures.of(done, cut)
    assert (found.gpus, found.pods, found.training) == (2, 3, 1.0)
    assert found.with_others == pytest.approx(2 / 3)
    assert found.latency > 1.0
    alone = placed([HALF])
    problem, dispatcher = fleet_of_cut(alone, shared_gpus(alone), SERVICES, "compiled")
    assert SharingFigures.of(run_fleet(dispatcher, problem), [[0]]).latency == pytest.approx(1.0)


def test_best_effort_pods_train_if_read_by_class() -> None:
    """Recorded: pods with 460 thousandths are all latency-sensitive, with 810 all best-effort."""
    shares = sensitive_share()
    kinds = [
        max((kind for kind in shares if kind.gpu_milli == milli), key=lambda kind: kind[:2]) for milli in (460, 810)
    ]
    assert [shares[kind] for kind in kinds] == [1.0, 0.0]
    node = shipped_problem("default").nodes[0]._replace(cpu_milli=500_000, memory_mib=4_000_000, gpus=4, model="T4")
    problem = ClusterProblem((node,), Workload.of_pods("two", kinds))
    run = run_cluster(problem, Policy.FGD, 0, 1.27 / 4)
    fleet, _ = fleet_of_cut(run, shared_gpus(run), BY_CLASS, "compiled")
    asked = [problem.workload.kinds[kind].gpu_milli for kind in run.arrivals.kinds]
    assert fleet.jobs["training"].tolist() == [int(milli == 810) for milli in asked]
    assert all(
        ("train" in program) == bool(row["training"]) for program, row in zip(fleet.programs, fleet.jobs, strict=True)
    )


def test_a_gpu_that_is_full_to_the_last_thousandth_has_room() -> None:
    run = placed([HALF._replace(gpu_milli=milli) for milli in (810, 50, 110, 30)], 1)
    problem, dispatcher = fleet_of_cut(run, shared_gpus(run), SERVICES, "compiled")
    assert run_fleet(dispatcher, problem).state.gpu_of.tolist() == [0] * 4


def test_what_cannot_be_read_is_refused() -> None:
    run = placed([ONE])
    with refused(InputError, "toy", "no pod shares a GPU"):
        fleet_of_cut(run, shared_gpus(run), SERVICES, "compiled")
    with refused(InputError, "'service'", "did you mean 'services'"):
        fleet_of_cut(run, [[0]], "service", "compiled")


def test_both_levels_have_the_same_pods() -> None:
    """One GPU with two pods, block by block and by rates: they slow each other at either level."""
    run = placed([HALF, HALF])
    cut = shared_gpus(run)
    problem, dispatcher = fleet_of_cut(run, cut, SERVICES, "compiled")
    rates = SharingFigures.of(run_fleet(dispatcher, problem), cut)
    blocks = SharingFigures.of(run_fleet(dispatcher, problem, blocks=BlockLevel()(problem)), cut)
    assert rates.pods == blocks.pods == 2
    assert rates.latency > 1.1
    assert blocks.latency > 1.1


def test_the_page_judges_rates_by_blocks() -> None:
    same = SharingFigures(10, 20, 0.5, 1.5, 0.1, 1.2)
    paper = Paper(dict.fromkeys(Paper.cells(), same))
    assert paper.holds
    assert len(paper.checks()) == 15
    assert "| 80% | by class | FGD | 10 | 20 | 50% |" in paper.markdown()
    worse = {
        cell: SharingFigures(10, 20, 0.5, 1.9, 0.3, 1.5)
        if isinstance(cell, SharedCut) and cell.level == "blocks"
        else same
        for cell in paper.runs
    }
    assert not any(check.holds for check in Paper(worse).checks())
