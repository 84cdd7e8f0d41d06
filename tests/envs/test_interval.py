"""Decisions that stand for an interval: the same on every device, in vectors, saved states and policies."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from gpusched_env.agents.exported import untrained_policy
from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.agents.rollout import evaluate_costs
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.features import TenantFeature
from gpusched_env.envs.slices import OTHERS
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from tests.envs.same import assert_same

HORIZON_US = 3000.0
BUSY = load_scenario("ServingPoisson", load=3.0, horizon_us=HORIZON_US)
"""A handful of jobs of six tenants, which can be rejected."""
BURSTS = load_scenario("ServingBurst", load=3.0, horizon_us=HORIZON_US)
CLOSED = load_scenario("ThreeTenants", horizon_us=2000.0, decision_us=2.0)
"""Tenants with and without objectives, a host that takes time to decide, and one priority."""
LOADED = load_scenario("ServingPoisson", load=2.0, horizon_us=20000.0)
ON_EVERY_DEVICE = pytest.mark.parametrize("scenario", [BURSTS, CLOSED], ids=lambda scenario: scenario.name)
"""The reference device takes long for those with large kernels."""
FILLED = load_scenario("MultiTenantSaturated", horizon_us=20000.0)
"""Requests of one tenant, and two others that fill what they leave."""
SCENARIOS = pytest.mark.parametrize("scenario", [BUSY, BURSTS, CLOSED, FILLED], ids=lambda scenario: scenario.name)


def make(scenario: Scenario = BUSY, interval_us: float = 100.0, **kwargs: Any) -> GpuSchedulingEnv:
    return GpuSchedulingEnv(scenario, interval_us=interval_us, futures=True, commands=scenario.commands, **kwargs)


def vectors(**kwargs: Any) -> GpuSchedulingVectorEnv:
    return GpuSchedulingVectorEnv(BUSY, num_envs=3, interval_us=100.0, futures=True, commands=BUSY.commands, **kwargs)


def rejecting_seldom(env: GpuSchedulingEnv, rng: np.random.Generator) -> int:
    """A legal action; without restraint, jobs are rejected as soon as they come."""
    legal = np.flatnonzero(env.action_masks())
    serving = legal[legal < 1 + len(OTHERS) * env.layout.slots]
    rejecting = legal[len(serving) :]
    return int(rng.choice(rejecting if len(rejecting) and rng.random() < 0.05 else serving))


def go_on(env: GpuSchedulingEnv, rng: np.random.Generator, steps: int = 10**6) -> list[Any]:
    """Random legal actions, to the end if there are not so many decisions."""
    seen: list[Any] = []
    while len(seen) < steps:
        seen.append(env.step(rejecting_seldom(env, rng)))
        if seen[-1][2] or seen[-1][3]:
            break
    return seen


@pytest.mark.long
@ON_EVERY_DEVICE
@pytest.mark.parametrize("interval_us", [1.0, 100.0])
def test_every_device_gives_the_same(scenario: Scenario, interval_us: float) -> None:
    envs = [make(scenario, interval_us, device=device) for device in ("compiled", "reference")]
    assert_same(envs[0].reset(seed=2), envs[1].reset(seed=2), 1e-6)
    rng = np.random.default_rng(5)
    over, used = False, set()
    for step in range(150):
        np.testing.assert_array_equal(envs[0].action_masks(), envs[1].action_masks())
        action = rejecting_seldom(envs[0], rng)
        used.add(envs[0].layout.split(action)[0])
        got, expected = (env.step(action) for env in envs)
        assert_same(got, expected, 1e-6, f"step {step}")
        over = got[2] or got[3]
        if over:
            break
    assert over or interval_us < 100.0
    assert used >= {"wait", "serve"}


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_vector_is_as_many_single_ones(mode: AutoresetMode, threads: int) -> None:
    vector = vectors(autoreset_mode=mode, threads=threads)
    singles: SyncVectorEnv = SyncVectorEnv([make] * 3, autoreset_mode=mode)
    assert_same(vector.reset(seed=[4, 5, 6]), singles.reset(seed=[4, 5, 6]), 0.0)
    rng = np.random.default_rng(1)
    ended = 0
    for step in range(200):
        masks = vector.action_masks()
        np.testing.assert_array_equal(masks, singles.call("action_masks"))
        # Any action now and then: an illegal one is action 0.
        legal = (rng.random(masks.shape) * masks).argmax(axis=1)
        actions = np.where(rng.random(3) < 0.1, rng.integers(masks.shape[1], size=3), legal)
        got, expected = vector.step(actions), singles.step(actions)
        assert_same(got, expected, 0.0, f"step {step}")
        ended += int((got[2] | got[3]).sum())
    assert ended >= 3


@ON_EVERY_DEVICE
@pytest.mark.parametrize("device", ["compiled", "reference"])
def test_each_decision_stands_for_the_interval_at_least(scenario: Scenario, device: str) -> None:
    env = make(scenario, 50.0, device=device)
    env.reset(seed=1)
    began_us, elapsed_us, over = float(env.view.time_us), [], False
    while not over:
        *_, terminated, truncated, info = env.step(0)
        elapsed_us.append(info["elapsed_us"])
        over = terminated or truncated
    assert min(elapsed_us[1:-1]) >= 50.0 - 1e-6
    assert len(elapsed_us) <= (scenario.horizon_us - began_us) / 50.0 + 1


def test_a_busy_gpu_asks_as_often_as_that() -> None:
    """With three times the work that there is time for, something is to be decided at the end of every interval."""
    env = make(load_scenario("ServingPoisson", load=3.0, horizon_us=20000.0))
    env.reset(seed=0)
    decisions = len(go_on(env, np.random.default_rng(0)))
    assert decisions == pytest.approx(20000.0 / 100.0, rel=0.25)


@pytest.mark.long
def test_by_plan_it_is_about_as_good_as_the_rule_that_the_plan_is_of() -> None:
    """Not the same: the rule makes its plan anew only when jobs come or go, here it is also when a decision ends."""
    problem, device, env = build_problem(LOADED), make_device("compiled"), make(LOADED)
    costs = []
    for seed in range(6):
        env.reset(seed=seed)
        cost, over = 0.0, False
        while not over:
            _, reward, terminated, truncated, _ = env.step(0)
            cost, over = cost - reward, terminated or truncated
        rules = ("moore(price=1.2)", "pass-through")
        episodes = [run_episode(make_scheduler(rule), problem, device, seed) for rule in rules]
        costs.append([cost, *(episode_metrics(episode).cost for episode in episodes)])
    by_plan, moore, pass_through = np.mean(costs, axis=0)
    assert by_plan == pytest.approx(moore, rel=0.15)
    assert by_plan < 0.75 * pass_through


@pytest.mark.parametrize("device", ["compiled", "reference"])
def test_after_a_rejection_it_is_asked_again_at_once(device: str) -> None:
    env = make(device=device)
    env.reset(seed=2)
    while env.view.tenants.jobs_waiting.sum() < 2.0:
        env.step(0)
    first = env.layout.first("reject")
    action = first + int(env.action_masks()[first:].argmax())
    tenant = env.layout.split(action)[1]
    waiting, time_us = env.view.tenants.jobs_waiting.copy(), env.view.time_us
    *_, info = env.step(action)
    assert info["elapsed_us"] == 0.0
    assert env.view.time_us == time_us
    assert (waiting - env.view.tenants.jobs_waiting).tolist() == np.eye(env.layout.slots)[tenant].tolist()


@pytest.mark.long
@pytest.mark.parametrize("device", ["compiled", "reference"])
@ON_EVERY_DEVICE
def test_restoring_a_state_repeats_the_episode_exactly(scenario: Scenario, device: str) -> None:
    env = make(scenario, 30.0, device=device)
    env.reset(seed=3)
    go_on(env, np.random.default_rng(0), 12)
    state = pickle.loads(pickle.dumps(env.save_state()))
    expected = go_on(env, np.random.default_rng(8), 60)
    assert len(expected) > 10
    other = make(scenario, 30.0, device=device)
    for again in (env, other):
        again.restore_state(state)
        assert_same(tuple(go_on(again, np.random.default_rng(8), 60)), tuple(expected), 0.0)


def test_a_state_of_another_interval_is_refused() -> None:
    env = make()
    env.reset(seed=0)
    with pytest.raises(InputError):
        make(interval_us=50.0).restore_state(env.save_state())


def test_restoring_a_vector_repeats_its_episodes_exactly() -> None:
    def go_on(env: GpuSchedulingVectorEnv, steps: int) -> list[Any]:
        rng = np.random.default_rng(7)
        seen = []
        for _ in range(steps):
            masks = env.action_masks()
            *step, _ = env.step((rng.random(masks.shape) * masks).argmax(axis=1))
            seen.append(tuple(step))
        return seen

    env, other = (vectors() for _ in range(2))
    env.reset(seed=4)
    go_on(env, 20)
    state = pickle.loads(pickle.dumps(env.save_state()))
    expected = go_on(env, 100)
    other.reset(seed=9)
    other.restore_state(state)
    assert_same(tuple(go_on(other, 100)), tuple(expected), 0.0)


@SCENARIOS
def test_a_policy_costs_the_same_in_batches_as_a_scheduler_and_in_the_environment(scenario: Scenario) -> None:
    policy = untrained_policy(scenario, interval_us=100.0, seed=3)
    problem, scheduler = build_problem(scenario), LearnedScheduler(policy)
    env = make(scenario)
    seeds = (0, 1, 5, 2)
    found = evaluate_costs(policy, scenario, seeds, copies=2)
    for seed, cost in zip(seeds, found.costs, strict=True):
        episode = run_episode(scheduler, problem, make_device("compiled"), seed)
        assert episode_metrics(episode).cost == cost
        observation, _ = env.reset(seed=seed)
        played, over = 0.0, False
        while not over:
            batch = {name: table[None] for name, table in observation.items()}
            action = policy.act(batch, env.action_masks()[None])[0]
            observation, reward, terminated, truncated, _ = env.step(action)
            played, over = played - reward, terminated or truncated
        assert played == pytest.approx(cost, rel=1e-9)


class AskedForEachLaunch:
    """A scheduler whose dispatcher nobody takes the place of."""

    def __init__(self, scheduler: LearnedScheduler) -> None:
        self.reset, self.decide = scheduler.reset, scheduler.decide
        self.reads, self.set_up = scheduler.reads, scheduler.set_up


@pytest.mark.parametrize("decision_us", [0.0, 30.0])
@SCENARIOS
def test_compiled_code_launches_between_two_decisions_as_the_dispatcher_does(
    scenario: Scenario, decision_us: float
) -> None:
    """Also while a decision is not made yet; the policy rejects besides, where it can."""
    problem, policy = build_problem(scenario), untrained_policy(scenario, interval_us=100.0, seed=3)
    scheduler = LearnedScheduler(policy, decision_us=decision_us)
    driven, asked = (
        run_episode(each, problem, make_device("compiled"), 4, record="kernels")
        for each in (scheduler, AskedForEachLaunch(scheduler))
    )
    np.testing.assert_array_equal(driven.timeline.kernels.array, asked.timeline.kernels.array)
    assert episode_metrics(driven).cost == episode_metrics(asked).cost
    assert (driven.end_us, driven.decisions) == (asked.end_us, asked.decisions)
    assert asked.decisions > 3


def test_observations_show_the_plan_only_where_decisions_stand() -> None:
    """Of the columns from ``EARNS`` on, a busy GPU fills each at some time."""
    env, usual = make(LOADED), GpuSchedulingEnv(BUSY, interval_us=0.0)
    env.reset(seed=2)
    tables = np.stack([step[0]["tenants"] for step in go_on(env, np.random.default_rng(0))])
    assert tables[..., TenantFeature.EARNS :].any(axis=(0, 1)).all()
    assert not usual.reset(seed=2)[0]["tenants"][:, TenantFeature.EARNS :].any()


@pytest.mark.parametrize(
    ("scenario", "kwargs", "message"),
    [
        ("KernelGraph", {"interval_us": 100.0}, "interval_us is 100, but scenario KernelGraph has a look-ahead"),
        ("ServingPoisson", {"interval_us": 100.0, "lookahead": 2}, "interval_us is 100, but scenario ServingPoisson"),
        ("ServingPoisson", {"interval_us": 0.5}, "interval_us is 0.5, must be 0 or at least 1 us"),
        ("ServingPoisson", {"interval_us": -1}, "interval_us is -1, must be"),
        ("ServingPoisson", {"interval_us": float("nan")}, "interval_us is nan"),
        ("ServingPoisson", {"interval_us": float("inf")}, "interval_us is inf"),
        ("ServingPoisson", {"interval_us": "100"}, "interval_us is '100'"),
    ],
)
def test_bad_intervals_are_named(scenario: str, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GpuSchedulingEnv(scenario, **kwargs)
    with pytest.raises(InputError, match=message):
        GpuSchedulingVectorEnv(scenario, num_envs=2, **kwargs)


class TestCheckers:
    def test_gymnasium_finds_nothing(self) -> None:
        check_env(make(), skip_render_check=True)

    # MultiInputPolicy flattens the tables, which is all that the checker suggests.
    @pytest.mark.filterwarnings("ignore:Your observation .* has an unconventional shape:UserWarning")
    def test_stable_baselines_finds_nothing(self) -> None:
        from stable_baselines3.common.env_checker import check_env as check_env_sb3

        check_env_sb3(make())
