"""The runs of the page: a policy on a block of the recording, at a load."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpusched_env.games.fleet.cluster.fragmentation import POPULARITY, TypicalPods, typical_pods
from gpusched_env.games.fleet.cluster.lifetimes.queue import IN_ORDER, OVERTAKING
from gpusched_env.games.fleet.cluster.lifetimes.recording import DAY_S, LifetimeRecording
from gpusched_env.games.fleet.cluster.lifetimes.run import QueuePlayer, run_queue
from gpusched_env.games.fleet.cluster.lifetimes.stream import compressed, demand
from gpusched_env.games.fleet.cluster.policies.registry import POLICIES, Policy
from gpusched_env.games.fleet.cluster.problem import ClusterProblem
from gpusched_env.games.fleet.cluster.shipped import shipped_problem, shipped_recording

FIRST_DAY, BLOCK_DAYS = 116, 2
"""Of the blocks. Before that day hardly a pod comes: the recording shows those only that were there later."""
BLOCKS: Final = tuple(range(16))
LOOKED_AT, HELD_OUT = BLOCKS[::2], BLOCKS[1::2]
LOADS: Final = (0.7, 0.8, 0.9, 0.95, 1.0, 1.1)
RULES: Final = {"overtaking": OVERTAKING, "in order": IN_ORDER}
HOURS, FROM_BIN = 12.0, 16
"""Length of a run, and the first quarter of an hour that counts: four hours pass before."""


@functools.lru_cache(2)
def block_of(number: int) -> tuple[ClusterProblem, LifetimeRecording]:
    """A block of the recording, on the published cluster."""
    first_s = (FIRST_DAY + BLOCK_DAYS * number) * DAY_S
    recording = shipped_recording().block(first_s, first_s + BLOCK_DAYS * DAY_S)
    return ClusterProblem(shipped_problem("default").nodes, recording.workload), recording


def typical_of(number: int) -> TypicalPods:
    """The typical pods of a block."""
    problem, _ = block_of(number)
    return typical_pods(problem.workload, problem.models)


@dataclass(frozen=True)
class QueueFigures:
    """What comes out of a run, over the time that counts."""

    pods: int
    """That came."""
    compressed: float
    """How many times as fast as recorded they came."""
    used_pct: float
    """GPUs in use, per cent of the cluster's, mean over time."""
    fragmented_pct: float
    waited_for_pct: float
    """GPUs that pods wait for, the same."""
    mean_wait_s: float
    p95_wait_s: float
    large_part: float
    """Of the GPU time that pods waited for, the part of those with several GPUs; 0 where nobody waited."""
    fragmented_by_hour: tuple[float, ...]
    """Per cent of the GPUs, of each hour of the whole run."""


@dataclass(frozen=True)
class QueuedBlock:
    """A block of the recording, compressed to a load."""

    block: int
    policy: str
    load: float
    rule: str
    """Of the queue, one of :data:`RULES`."""
    popularity: float = POPULARITY
    """Share of the pods that typical ones are."""

    def run(self, device: str) -> QueueFigures:
        return play_block(self.block, self.load, POLICIES[self.policy], RULES[self.rule], self.popularity)


def play_block(
    block: int, load: float, player: Policy | QueuePlayer, rule: int = OVERTAKING, popularity: float = POPULARITY
) -> QueueFigures:
    """What comes out of a run of a block."""
    problem, recording = block_of(block)
    stream = compressed(problem, recording, load, HOURS)
    run = run_queue(problem, stream, player, HOURS, rule, popularity=popularity)
    waits_s, pods = run.waits_s(FROM_BIN), run.came(FROM_BIN)
    kinds = problem.workload.kinds
    waited = waits_s * np.array([kind.asked_milli for kind in kinds])[stream.kinds[pods]]
    large = np.array([kind.gpus > 1 for kind in kinds])[stream.kinds[pods]]
    return QueueFigures(
        pods=len(waits_s),
        compressed=load / demand(problem, recording),
        used_pct=float(run.used[FROM_BIN:].mean()),
        fragmented_pct=float(run.fragmented[FROM_BIN:].mean()),
        waited_for_pct=float(run.waited_for[FROM_BIN:].mean()),
        mean_wait_s=float(waits_s.mean()),
        p95_wait_s=float(np.percentile(waits_s, 95.0, method="inverted_cdf")),
        large_part=float(waited[large].sum() / waited.sum()) if waited.any() else 0.0,
        fragmented_by_hour=tuple(run.fragmented.reshape(int(HOURS), -1).mean(axis=1).round(4).tolist()),
    )
