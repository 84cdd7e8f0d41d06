"""Policy gradients for the placement rule: candidates are drawn by a softmax of its numbers while it learns.

Several episodes of the same arrivals are played at a time (REINFORCE; Williams, Machine Learning 1992). What an episode
puts to use from a pod on, beyond the mean of all of them from that pod on, is the advantage of what was drawn for it:
the same pods come in all, so the mean is a baseline that knows the arrivals. What pods take is credited with a discount
by the pod, and the growth of what is unfillable counts as a cost at once (a potential, which cancels out over an
episode without a discount: Ng, Harada and Russell, ICML 1999).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from gpusched_env.compiling import native
from gpusched_env.games.fleet.agents.cluster.rule import COLUMNS, SHAPES, TERMS, factors_of, number_of, pod_class
from gpusched_env.games.fleet.environment.cluster.copies import At, Copies, Total, copy_of, with_room
from gpusched_env.games.fleet.environment.cluster.encoding import WIDTH, PlacementFeature
from gpusched_env.games.fleet.environment.cluster.playing import is_over, observe, place_candidate, seek_pod

Floats = NDArray[np.float64]
NO_DECISION: Final = -1


class DrawnPlacements(NamedTuple):
    """What was drawn in an episode, by pod."""

    reward: Floats
    """(pods,) per cent of the cluster's GPUs that it took."""
    potential: Floats
    """(pods,) per cent that is unfillable before it."""
    of_class: NDArray[np.int64]
    """(pods,) class of the pod; -1: it was dropped."""
    factors: Floats
    """(pods, 3) one, the share of GPUs in use, how tight CPU is: what weights are multiplied by."""
    slope: Floats
    """(pods, terms) gradient of the logarithm of what was drawn's probability, over the factors."""

    @property
    def decisions(self) -> int:
        """Pods that were placed."""
        return int((self.of_class != NO_DECISION).sum())


@native()
def play_drawing(
    copies: Any, number: int, weights: Any, temperature: float, dice: Any, rows: Any, chance: Any, found: Any
) -> None:
    """Play a copy to its end, drawing candidates.

    Args:
        copies: the game.
        number: of the copy.
        weights: of the rule.
        temperature: of the softmax, in units of the rule's numbers (> 0).
        dice: (pods,) uniform numbers from 0 to 1.
        rows: (candidates, WIDTH) for observations.
        chance: (candidates,) for probabilities.
        found: a :class:`DrawnPlacements`, filled in.
    """
    one = copy_of(copies, number)
    seek_pod(one)
    while not is_over(one):
        pod = one.at[At.POD]
        observe(one, rows)
        kind = pod_class(rows[0])
        used, tight = factors_of(rows[0])
        most, count = -np.inf, 0
        for place in range(len(rows)):
            if rows[place, PlacementFeature.PRESENT] == 0.0:
                break
            chance[place] = number_of(weights[kind], used, tight, rows[place]) / temperature
            most, count = max(most, chance[place]), place + 1
        total = 0.0
        for place in range(count):
            chance[place] = np.exp(chance[place] - most)
            total += chance[place]
        left, drawn = dice[pod] * total, 0
        for place in range(count):
            left -= chance[place]
            drawn = place
            if left < 0.0:
                break
        found.of_class[pod], found.factors[pod, 0] = kind, 1.0
        found.factors[pod, 1], found.factors[pod, 2] = used, tight
        for term in range(len(COLUMNS)):
            mean = 0.0
            for place in range(count):
                mean += chance[place] * rows[place, COLUMNS[term]]
            found.slope[pod, term] = (rows[drawn, COLUMNS[term]] - mean / total) / temperature
        unfillable = 0.0
        for node in range(len(one.demand.unfillable)):
            unfillable += one.demand.unfillable[node]
        found.potential[pod] = 100.0 * unfillable / one.totals[Total.GPU]
        found.reward[pod] = place_candidate(one, drawn)
        seek_pod(one)


def drawn_episode(
    copy: Copies, weights: NDArray[np.float32], temperature: float, dice: np.random.Generator
) -> DrawnPlacements:
    """Play an episode.

    Args:
        copy: at its beginning, where it stays.
        weights: of the rule.
        temperature: of the softmax.
        dice: to draw with.
    """
    pods = len(copy.arrivals)
    found = DrawnPlacements(
        np.zeros(pods), np.zeros(pods), np.full(pods, NO_DECISION), np.zeros((pods, 3)), np.zeros((pods, len(TERMS)))
    )
    rows = np.zeros((len(copy.shortlist.node), WIDTH), np.float32)
    one = with_room(None, 0, 1, copy)
    play_drawing(one, 0, weights, temperature, dice.random(pods), rows, np.zeros(len(rows)), found)
    return found


def gradient_of(episodes: list[DrawnPlacements], discount: float, shaping: float) -> NDArray[np.float64]:
    """The gradient of what is in use, as of :data:`SHAPES`, per episode and unit of advantage.

    Args:
        episodes: of the same arrivals.
        discount: by the pod.
        shaping: times the potential.
    """
    to_come = np.array([_to_come(one, discount, shaping) for one in episodes])
    advantage = to_come - to_come.mean(axis=0)
    advantage /= advantage.std() + 1e-9
    found = np.zeros(SHAPES["place"])
    for one, worth in zip(episodes, advantage, strict=True):
        for kind in range(len(found)):
            of = one.of_class == kind
            found[kind] += np.einsum("p,pf,pt->ft", worth[of], one.factors[of], one.slope[of])
    return found / len(episodes)


def _to_come(one: DrawnPlacements, discount: float, shaping: float) -> Floats:
    """What comes from each pod on, with a discount, (pods,)."""
    pods = len(one.reward)
    # A dropped pod changes nothing: before it is as before the next one that is placed.
    placed = np.flatnonzero(one.of_class != NO_DECISION)
    following = np.searchsorted(placed, np.arange(pods))
    potential = np.append(one.potential[placed], one.potential[placed[-1]])[following]
    growth = np.diff(potential, append=potential[-1])
    worth = one.reward - shaping * growth
    return np.asarray(lfilter([1.0], [1.0, -discount], worth[::-1])[::-1])
