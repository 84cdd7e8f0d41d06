"""Policy gradients of the placement rule: literal advantages, slopes of logarithms of probabilities, learning."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.games.fleet.agents.cluster.gradient import (
    NO_DECISION,
    DrawnPlacements,
    _to_come,
    drawn_episode,
    gradient_of,
)
from gpusched_env.games.fleet.agents.cluster.rule import SHAPES, TERMS, PodClass
from gpusched_env.games.fleet.environment.cluster.problems import RANDOM, new_copy


def episode(reward: list[float], potential: list[float], dropped: tuple[int, ...] = ()) -> DrawnPlacements:
    pods = len(reward)
    of_class = np.full(pods, int(PodClass.ONE))
    of_class[list(dropped)] = NO_DECISION
    factors = np.column_stack([np.ones(pods), np.full(pods, 0.5), np.zeros(pods)])
    slope = np.zeros((pods, len(TERMS)))
    slope[:, 0] = 1.0
    return DrawnPlacements(np.array(reward), np.array(potential), of_class, factors, slope)


def test_what_comes_counts_less_the_later_it_comes() -> None:
    assert _to_come(episode([1.0, 2.0, 4.0], [0.0] * 3), 0.5, 1.0).tolist() == [3.0, 4.0, 4.0]


def test_growth_of_what_is_unfillable_counts_at_once() -> None:
    """What the last pod does is not seen."""
    assert _to_come(episode([1.0, 1.0, 1.0], [0.0, 3.0, 1.0]), 1.0, 0.5).tolist() == [2.5, 3.0, 1.0]


def test_a_dropped_pod_changes_nothing() -> None:
    found = _to_come(episode([1.0, 0.0, 1.0], [2.0, 99.0, 5.0], dropped=(1,)), 1.0, 1.0)
    assert found.tolist() == [-1.0, 1.0, 1.0]


def test_the_gradient_goes_to_what_did_better_with_the_same_arrivals() -> None:
    """To come are 4 and 2 more than the mean, and as much less: over their deviation 1.26 and 0.63."""
    better, worse = episode([2.0, 4.0], [0.0, 0.0]), episode([2.0, 0.0], [0.0, 0.0])
    better.slope[0, 0] = 0.0
    worse.slope[:, 0] = 0.0
    found = gradient_of([better, worse], 1.0, 0.0)
    assert found[PodClass.ONE, :, 0] == pytest.approx([0.5, 0.25, 0.0])
    found[PodClass.ONE, :, 0] = 0.0
    assert not found.any()


def test_slopes_of_logarithms_are_0_in_the_mean() -> None:
    """Of what is drawn, whatever the weights: of the first pods of an episode, which come in the same state."""
    copy, dice = new_copy(RANDOM, 3), np.random.default_rng(0)
    weights = dice.normal(0.0, 0.3, SHAPES["place"]).astype(np.float32)
    slopes = np.array([drawn_episode(copy, weights, 1.0, dice).slope[0] for _ in range(60)])
    error = slopes.std(axis=0) / np.sqrt(len(slopes))
    assert slopes.any()
    assert (np.abs(slopes.mean(axis=0)) <= 4.5 * error + 1e-9).all()


def test_all_that_is_taken_is_rewarded_and_dice_decide() -> None:
    copy = new_copy(RANDOM, 5)
    weights = np.zeros(SHAPES["place"], np.float32)
    one, same, other = (drawn_episode(copy, weights, 0.1, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.slope, same.slope)
    assert not np.array_equal(one.slope, other.slope)
    assert 50.0 < one.reward.sum() <= 100.0
    assert (one.reward[one.of_class == NO_DECISION] == 0.0).all()
