"""The environment: what an agent does all the time is what a rule does alone."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from gpusched_env.envs.features import TenantFeature
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.play import play
from gpusched_env.games.drawn.environment.env import SLOTS, DrawnEnv, RuleFeature
from gpusched_env.games.drawn.environment.rules import RULES
from gpusched_env.games.drawn.problems.splits import drawn
from tests.refusals import refused

NAME = "tier-1-6"


@pytest.fixture(scope="module")
def env() -> DrawnEnv:
    made = gymnasium.make("gpusched/Drawn-v0").unwrapped
    assert isinstance(made, DrawnEnv)
    return made


@pytest.mark.parametrize("rule", ["edf", "clockwork", "gpreempt", "gpucolo"])
def test_one_action_all_the_time_is_that_rule(env: DrawnEnv, rule: str) -> None:
    _, info = env.reset(seed=3, options={"scenario": NAME})
    total, over = -info["cost"] / drawn(NAME).at_stake, False
    while not over:
        _, reward, terminated, truncated, info = env.step(RULES.index(rule))
        total, over = total + reward, terminated or truncated
    cost = play(rule, drawn(NAME).problem(), 3).metrics.cost
    assert info["cost"] == pytest.approx(cost, rel=1e-9)
    assert info["episode_metrics"]["cost"] == info["cost"]
    assert total == pytest.approx(-cost / drawn(NAME).at_stake)


def test_rules_may_change_at_every_decision(env: DrawnEnv) -> None:
    for number in range(3):
        rng = np.random.default_rng(number)
        observation, _ = env.reset(seed=number, options={"scenario": f"tier-1-{(2, 4, 6)[number]}"})
        over, used = False, np.zeros(len(RULES))
        while not over:
            assert env.observation_space.contains(observation)
            action = int(rng.integers(len(RULES)))
            observation, _, terminated, truncated, _ = env.step(action)
            used[action] += 1
            over = terminated or truncated
            assert observation["rules"][action, RuleFeature.LAST] == 1.0
            assert np.allclose(observation["rules"][:, RuleFeature.USED], used / (used + 4.0))


def test_who_was_confined_is_free_under_the_next_rule_and_confined_again_later(env: DrawnEnv) -> None:
    env.reset(seed=0, options={"scenario": NAME})
    confined, free = RULES.index("gpucolo"), RULES.index("edf")
    for action, share in ((confined, 0.8), (free, 1.0), (confined, 0.8)):
        observation, *_ = env.step(action)
        shares = observation["tenants"][:, TenantFeature.PARTITION_SMS]
        assert shares.max() == 1.0
        assert shares[shares > 0.0].min() == pytest.approx(share, abs=0.03)


def test_the_seed_decides_all(env: DrawnEnv) -> None:
    first, info = env.reset(seed=11)
    again, same = env.reset(seed=11)
    assert (info["scenario"], info["cost"]) == (same["scenario"], same["cost"])
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert env.reset(seed=12)[1]["scenario"] != info["scenario"]


def test_a_scenario_may_be_played_several_times_in_a_row() -> None:
    env = DrawnEnv("tier-1", repeats=2)
    infos = [env.reset(seed=seed)[1] for seed in (5, None, None, 5)]
    names, seeds = [info["scenario"] for info in infos], [info["seed"] for info in infos]
    assert names[0] == names[1] == names[3]
    assert names[1] != names[2], "the third is drawn anew"
    assert seeds[0] == seeds[3] != seeds[1]


def test_rows_are_tenants_and_the_rest_is_zero(env: DrawnEnv) -> None:
    observation, _ = env.reset(seed=0, options={"scenario": NAME})
    tenants = len(drawn(NAME).scenario.tenants)
    assert observation["tenants"].shape[0] == SLOTS
    assert observation["tenants"][:, 0].tolist() == [1.0] * tenants + [0.0] * (SLOTS - tenants)
    assert not observation["tenants"][tenants:].any()


def test_learners_can_use_it() -> None:
    check_env(gymnasium.make("gpusched/Drawn-v0", split="tier-1-4", interval_us=5_000.0).unwrapped)
    several = gymnasium.make_vec("gpusched/Drawn-v0", num_envs=2, split="tier-1-4")
    observations, _ = several.reset(seed=4)
    assert observations["tenants"].shape[:2] == (2, SLOTS)
    _, rewards, *_ = several.step(np.array([0, 1]))
    assert (rewards < 0.0).any()


@pytest.mark.parametrize("mode", ["rgb_array", "ansi"])
def test_pictures_and_words(mode: str) -> None:
    made = gymnasium.make("gpusched/Drawn-v0", split=NAME, render_mode=mode)
    made.reset(seed=0)
    made.step(RULES.index("edf"))
    shown = made.render()
    assert "edf" in shown if mode == "ansi" else np.asarray(shown).shape == (240, 480, 3)


def test_what_cannot_be_is_refused(env: DrawnEnv) -> None:
    with refused(InputError, "nowhere"):
        DrawnEnv("nowhere")
    with refused(InputError, "interval_us", "0"):
        DrawnEnv(interval_us=0.0)
    with refused(InputError, "count"):
        DrawnEnv(count=0)
    with refused(InputError, "repeats"):
        DrawnEnv(repeats=0)
    with refused(InputError, "variant"):
        env.reset(options={"variant": NAME})
    env.reset(seed=0, options={"scenario": NAME})
    with refused(InputError, str(len(RULES))):
        env.step(len(RULES))
