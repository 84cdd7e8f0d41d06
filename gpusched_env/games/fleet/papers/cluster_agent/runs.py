"""The runs of the page: who places the pods of a workload, how long a placement takes, what the shortlist loses."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpusched_env.games.fleet.agents.cluster.rule import LearnedPlacement, play_placements
from gpusched_env.games.fleet.cluster.arrivals import draw_arrivals
from gpusched_env.games.fleet.cluster.importing import read_nodes
from gpusched_env.games.fleet.cluster.offline import bound_milli, packed_milli
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.problem import ClusterProblem
from gpusched_env.games.fleet.cluster.run import run_cluster
from gpusched_env.games.fleet.cluster.shipped import FOLDER, shipped_problem
from gpusched_env.games.fleet.environment.cluster.copies import single_copy, with_room
from gpusched_env.games.fleet.environment.cluster.problems import RANDOM, cluster_problem
from gpusched_env.games.fleet.environment.cluster.shortlist import CANDIDATES, DEPTH, no_shortlist
from gpusched_env.games.fleet.experiments.cluster_game import NAMED

SEEDS: Final = tuple(range(42, 52))
"""The published seeds."""
DRAWN_SEEDS: Final = tuple(range(2000, 2064))
"""Drawn problems that neither training nor validation nor search has seen."""
LONGER: Final = 8
"""Times as many candidates, of which each score proposes as many times as many."""
REPEATS: Final = 3


@dataclass(frozen=True)
class Allocations:
    """Per cent of the GPUs in use at the end, by seed."""

    allocation: tuple[float, ...]


@dataclass(frozen=True)
class Placed:
    """A scheduler on a workload, or on drawn ones."""

    scheduler: str
    problem: str

    def run(self, device: str) -> Allocations:
        scheduler = NAMED.new(self.scheduler)
        seeds = DRAWN_SEEDS if self.problem == RANDOM else SEEDS
        return Allocations(tuple(scheduler.allocation(self.problem, seed) for seed in seeds))


@dataclass(frozen=True)
class LongerList:
    """The agent with more candidates, on drawn problems."""

    times: int

    def run(self, device: str) -> Allocations:
        agent, found = LearnedPlacement(), []
        for seed in DRAWN_SEEDS:
            problem = cluster_problem(RANDOM, seed)
            shortlist = no_shortlist(CANDIDATES * self.times, DEPTH * self.times)
            copy = single_copy(problem, draw_arrivals(problem, seed), shortlist)
            found.append(play_placements(agent.weights, with_room(None, 0, 1, copy))[0])
        return Allocations(tuple(found))


@dataclass(frozen=True)
class KnownBeforehand:
    """Per cent of the GPUs in use by a scheduler that knows all pods and may refuse some."""

    packed: float
    bound: float
    """Of what any policy can have in use."""


@dataclass(frozen=True)
class Offline:
    """A packing of the pods of a workload that come with the first seed."""

    workload: str

    def run(self, device: str) -> KnownBeforehand:
        problem = shipped_problem(self.workload)
        arrived = draw_arrivals(problem, SEEDS[0]).kinds.tolist()
        milli = packed_milli(problem, arrived), bound_milli(problem, arrived)
        return KnownBeforehand(*(100.0 * used / problem.capacity_milli for used in milli))


@dataclass(frozen=True)
class PlacementTime:
    """Wall time of a placement on all nodes of the published cluster, also those without GPUs."""

    nodes: int
    agent_us: float
    fgd_us: float


@dataclass(frozen=True)
class Timed:
    """The least of several runs of a workload, compiled before."""

    workload: str

    def run(self, device: str) -> PlacementTime:
        problem = ClusterProblem(read_nodes(FOLDER / "nodes.csv.gz"), shipped_problem(self.workload).workload)
        arrivals, agent = draw_arrivals(problem, SEEDS[0]), LearnedPlacement()
        agent_s, fgd_s = [], []
        for _ in range(REPEATS):
            copy = with_room(None, 0, 1, single_copy(problem, arrivals))
            begun = time.perf_counter()
            _, decisions = play_placements(agent.weights, copy)
            agent_s.append((time.perf_counter() - begun) / decisions)
            begun = time.perf_counter()
            draw_arrivals(problem, SEEDS[0])
            drawing = time.perf_counter() - begun
            begun = time.perf_counter()
            run = run_cluster(problem, Policy.FGD, SEEDS[0])
            placed = len(arrivals.kinds) - run.dropped
            fgd_s.append((time.perf_counter() - begun - drawing) / placed)
        return PlacementTime(len(problem.nodes), 1e6 * float(np.min(agent_s)), 1e6 * float(np.min(fgd_s)))
