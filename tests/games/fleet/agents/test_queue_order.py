"""Who goes next in a queue: without weights it is first come first served; orders by hand; drawing; trainings."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app
from gpusched_env.games.fleet.agents.cluster.order import (
    LARGEST,
    SHORTEST,
    TERMS,
    Desk,
    Ordered,
    Term,
    learned_order,
    no_draws,
    play_order,
)
from gpusched_env.games.fleet.agents.cluster.order_gradient import advantages, gradient_of
from gpusched_env.games.fleet.cluster.lifetimes.queue import IN_ORDER, OVERTAKING
from gpusched_env.games.fleet.cluster.lifetimes.run import run_queue
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.problem import ClusterProblem, Node, PodKind, Workload
from gpusched_env.games.fleet.environment.cluster.streams import drawn_stream
from gpusched_env.games.fleet.queue_training import HOURS, OrderSettings, named, new_run, train_order
from tests.games.fleet.cluster.test_lifetimes import stream_of
from tests.games.fleet.cluster.toys import ONE, TWO
from tests.refusals import refused

BUSY = 1_500_000_012
"""Seed of a drawn stream in which pods wait."""
WEIGHTS = dict.fromkeys(Term.__members__, 0.7) | {"RUNS": -3.0}
LIGHT = ONE._replace(cpu_milli=1000)
TWO_GPUS = (Node(64_000, 1000, 2, "T4"),)


def begins_s(weights: dict[str, float], pods: list[tuple[PodKind, int, int]], rule: int = OVERTAKING) -> list[float]:
    problem = ClusterProblem(TWO_GPUS, Workload.of_pods("toy", [kind for kind, _, _ in pods]))
    run = run_queue(problem, stream_of(problem, pods), Ordered(weights), 1.0, rule)
    return list(run.queue.begins_ms / 1000)


SEEN = [(LIGHT, 0, 5), (ONE, 0, 50), (TWO, 60, 20)]
"""A light pod that runs for 5 s, another for 50 s; then both GPUs are taken from 60 to 80 s."""


@pytest.mark.parametrize(
    ("weights", "begins"),
    [
        ({}, [0, 0, 60, 80, 80, 110, 116]),
        (SHORTEST, [0, 0, 60, 80, 86, 80, 116]),
        (LARGEST, [0, 0, 60, 100, 100, 130, 80]),
    ],
    ids=["first come", "shortest", "largest"],
)
def test_whose_kind_has_run_shortest_or_who_is_largest_goes_first(weights: dict[str, float], begins: list[int]) -> None:
    """At 80 s two pods that run 30 s, one light pod that runs 6 s, and one with both GPUs for 20 s wait."""
    waiting = [(ONE, 61, 30), (ONE, 62, 30), (LIGHT, 63, 6), (TWO, 64, 20)]
    assert begins_s(weights, SEEN + waiting) == begins


def test_where_nobody_may_overtake_no_weight_counts() -> None:
    pods = [*SEEN, (ONE, 61, 30), (LIGHT, 62, 6), (TWO, 63, 20)]
    assert begins_s(WEIGHTS, pods, IN_ORDER) == begins_s({}, pods, IN_ORDER)


@pytest.mark.parametrize("policy", [Policy.FGD, Policy.PACKING])
def test_without_weights_it_is_the_policy_and_with_them_it_is_not(policy: Policy) -> None:
    problem, stream = drawn_stream(BUSY, HOURS)
    published, same, other = (
        run_queue(problem, stream, player, HOURS) for player in (policy, Ordered({}, policy), Ordered(WEIGHTS, policy))
    )
    assert published.waiting.max() > 1
    np.testing.assert_array_equal(published.queue.begins_ms, same.queue.begins_ms)
    assert (published.queue.begins_ms != other.queue.begins_ms).any()


def test_the_plain_text_plays_and_draws_alike() -> None:
    problem, stream = drawn_stream(BUSY, HOURS)
    compiled = new_run(problem, stream)
    plain, dice = copy.deepcopy(compiled), np.random.default_rng(0).random(50)
    agent, lines = Ordered(WEIGHTS), len(plain.queue.first)
    drawn = agent.play_drawing(compiled, 0.5, dice)
    found, desk = no_draws(50), Desk(np.zeros(lines, np.int64), np.zeros((lines, TERMS)), np.zeros(lines))
    plain_text: Any = play_order
    plain_text.py_func(int(Policy.FGD), plain, agent.weights, 0.5, dice, desk, found)
    np.testing.assert_array_equal(compiled.queue.begins_ms, plain.queue.begins_ms)
    assert drawn.count[0] == found.count[0] == 50
    np.testing.assert_allclose(drawn.slope, found.slope, atol=1e-12)


def test_slopes_of_a_first_choice_are_0_in_the_mean() -> None:
    """By the probabilities with which it is drawn: so is every gradient of a logarithm of a probability."""
    problem, stream = drawn_stream(BUSY, HOURS)
    begun, agent, draws = new_run(problem, stream), Ordered(WEIGHTS), 400
    slopes = [
        agent.play_drawing(copy.deepcopy(begun), 2.0, np.array([draw])).slope[0]
        for draw in (np.arange(draws) + 0.5) / draws
    ]
    assert len(np.unique(slopes, axis=0)) > 1
    assert np.abs(np.mean(slopes, axis=0)).max() < 0.02


def test_what_waits_alike_has_no_advantage_and_less_has_one() -> None:
    alike = advantages(np.ones((3, 4)), 0.9)
    assert np.abs(alike).max() < 1e-6
    waited = np.zeros((2, 3))
    waited[1, 1] = 1.0
    found = advantages(waited, 0.5)
    assert (found[0, :2] > 0.0).all()
    assert (found[1, :2] < 0.0).all()
    one = no_draws(2)
    one.count[0], one.at_ms[:], one.slope[0, Term.RUNS] = 1, (150, 250), 2.0
    assert gradient_of([one, no_draws(0)], found, 100)[Term.RUNS] == pytest.approx(found[0, 1])


def test_a_training_is_the_same_every_time() -> None:
    settings, told = OrderSettings(steps=3, runs=2), []
    rules = [train_order(settings, lambda step, *_: told.append(step)) for _ in range(2)]
    assert rules[0][1] == rules[1][1] > 0
    np.testing.assert_array_equal(rules[0][0].weights, rules[1][0].weights)
    assert rules[0][0].weights.any()
    assert told == sorted(told[: len(told) // 2]) * 2


def test_the_shipped_rule_knows_who_runs_short() -> None:
    weights = learned_order().weights
    assert named(weights).keys() == Term.__members__.keys()
    assert weights[Term.RUNS] < 0.0 < weights[Term.GPUS]


def test_a_rule_of_ones_own_is_trained_and_plays(tmp_path: Path) -> None:
    made, played = tmp_path / "order.json", tmp_path / "played.json"
    run = CliRunner()
    assert run.invoke(app, ["lab", "train-cluster-queue", "--steps", "1", "--out", str(made)]).exit_code == 0
    arguments = ["--policies", "fgd,learned", "--order", str(made), "--loads", "0.5", "--hours", "1"]
    assert run.invoke(app, ["lab", "cluster-queue", *arguments, "--json", str(played)]).exit_code == 0
    assert [of["policy"] for of in json.loads(played.read_text())["runs"]] == ["fgd", "learned"]
    made.write_text(made.read_text().replace("RUNS_SEVERAL", "RUNS_MANY"))
    with refused(InputError, str(made), "RUNS_MANY", "did you mean"):
        learned_order(made)


def test_a_weight_is_a_number() -> None:
    with refused(InputError, "GPUS", "nan"):
        Ordered({"GPUS": float("nan")})
