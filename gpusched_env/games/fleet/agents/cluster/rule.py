"""The placement rule: a number for each candidate, linear in what its node would be; the largest is taken.

``10 . PUBLISHED + (place[class, 0] + used . place[class, 1] + tight . place[class, 2]) . columns``, by the class of the
pod (without GPU, a part of one, one, several), with the share of the cluster's GPUs in use, and with how tight CPU is.
With all weights 0 it is FGD as published, since that is the first candidate. The rule knows what FGD leaves out:
memory; CPU that will be short; what is left on the whole node, in place of room for one more pod; which pods are still
to come for what is left of a GPU; the models; and how full the cluster is.

It scores candidates one by one, so that there may be any number of nodes and candidates.
"""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policy_file import GamePolicyInfo
from gpusched_env.agents.shipped import FOLDER
from gpusched_env.agents.training.folder import policy_file
from gpusched_env.compiling import native, procedure
from gpusched_env.games.fleet.environment.cluster.copies import At, Copies, copy_of, with_room
from gpusched_env.games.fleet.environment.cluster.encoding import WIDTH, PlacementFeature
from gpusched_env.games.fleet.environment.cluster.playing import is_over, observe, place_candidate, seek_pod
from gpusched_env.games.fleet.environment.cluster.problems import new_copy

Singles = NDArray[np.float32]

PUBLISHED_WEIGHT: Final = 10.0
HALF: Final = 0.5
LEFT_OUT: Final = ("GPUS", "UNUSED", "PART_USE", "DESCENT", "PUBLISHED")
"""Columns of a candidate without weights: others say nearly the same."""
WEIGHED: Final = [
    feature
    for feature in PlacementFeature
    if PlacementFeature.PRESENT < feature < PlacementFeature.POD_CPU and feature.name not in LEFT_OUT
]
"""Columns that have weights: those of a candidate."""
COLUMNS: Final = tuple(int(feature) for feature in WEIGHED)
TERMS: Final = tuple(feature.name for feature in WEIGHED)


class PodClass(enum.IntEnum):
    """By what a pod asks for of GPUs."""

    NO_GPU = 0
    SHARES = enum.auto()
    ONE = enum.auto()
    SEVERAL = enum.auto()


SHAPES: Final[dict[str, tuple[int, ...]]] = {"place": (len(PodClass), 3, len(TERMS))}
"""Weights by name."""


@procedure
def pod_class(row: Any) -> int:
    """The class of the pod, from a row of the observation."""
    if row[PlacementFeature.NO_GPU] > 0.0:
        return PodClass.NO_GPU
    if row[PlacementFeature.SHARES] > 0.0:
        return PodClass.SHARES
    if row[PlacementFeature.POD_GPUS] <= 1.5 / 16:
        return PodClass.ONE
    return PodClass.SEVERAL


@procedure
def factors_of(row: Any) -> tuple[float, float]:
    """What weights are multiplied by besides one: the share of GPUs in use, and how tight CPU is."""
    return 1.0 - row[PlacementFeature.GPU_LEFT], row[PlacementFeature.CPU_TIGHT] - HALF


@procedure
def number_of(of_class: Any, used: float, tight: float, row: Any) -> float:
    """The number of a candidate.

    Args:
        of_class: (3, terms) weights of the pod's class.
        used: as of :func:`factors_of`.
        tight: as well.
        row: of the observation.
    """
    number = float(PUBLISHED_WEIGHT * row[PlacementFeature.PUBLISHED])
    for term in range(len(COLUMNS)):
        weight = of_class[0, term] + used * of_class[1, term] + tight * of_class[2, term]
        number += weight * row[COLUMNS[term]]
    return number


@procedure
def best_candidate(weights: Any, rows: Any) -> int:
    """The action that the rule takes, the first of equal ones.

    Args:
        weights: as of :data:`SHAPES`.
        rows: of the observation.
    """
    of_class = weights[pod_class(rows[0])]
    used, tight = factors_of(rows[0])
    found, best = 0, -np.inf
    for place in range(len(rows)):
        if rows[place, PlacementFeature.PRESENT] == 0.0:
            break
        number = number_of(of_class, used, tight, rows[place])
        if number > best:
            found, best = place, number
    return found


@native()
def play_to_end(copies: Any, number: int, weights: Any, rows: Any) -> float:
    """Play a copy to its end; gives the per cent of the GPUs that are in use then."""
    one = copy_of(copies, number)
    total = 0.0
    seek_pod(one)
    while not is_over(one):
        observe(one, rows)
        total += place_candidate(one, best_candidate(weights, rows))
        seek_pod(one)
    return total


def play_placements(weights: Singles, copies: Copies, number: int = 0) -> tuple[float, int]:
    """The allocation at the end of an episode, in per cent, and its decisions."""
    rows = np.zeros((copies.shortlist.node.shape[1], WIDTH), np.float32)
    used = play_to_end(copies, number, weights, rows)
    return float(used), int(copies.at[number, At.DECISIONS])


class PlacementPolicyInfo(GamePolicyInfo, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a placement rule is, and where it comes from."""

    RULE = "placement rule"
    TERMS = TERMS
    SHAPES = SHAPES
    COLUMNS = PlacementFeature.__members__

    format: Literal["gpusched-placement-rule"] = "gpusched-placement-rule"
    terms: tuple[str, ...] = TERMS
    reads: tuple[str, ...] = ("PRESENT", "PUBLISHED", *TERMS, "POD_GPUS", "SHARES", "NO_GPU", "GPU_LEFT", "CPU_TIGHT")


NAME: Final = "ClusterPlacement"


class LearnedPlacement:
    """A placement rule whose weights were learned on drawn clusters and workloads."""

    def __init__(self, path: str | Path | None = None) -> None:
        """
        Args:
            path: of a file or of the folder of a training; ``None``: the agent that is shipped.

        Raises:
            InputError: there is none, or it does not fit.
        """
        self.file = FOLDER / f"{NAME}.npz" if path is None else policy_file(Path(path))
        self.info, weights = PlacementPolicyInfo.read(self.file)
        self.weights = weights["place"]

    def choose(self, rows: Singles) -> int:
        """The action for an observation of ``gpusched/ClusterPlacement-v0``."""
        return int(best_candidate(self.weights, rows))

    def allocation(self, problem: str, seed: int) -> float:
        """Per cent of the GPUs that are in use at the end of an episode."""
        return play_placements(self.weights, with_room(None, 0, 1, new_copy(problem, seed)))[0]

    def describe(self) -> str:
        """A line about the agent."""
        return self.info.summary()
