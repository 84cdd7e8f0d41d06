"""Every registered environment can be explored: at random, with the mask, a good part of the work gets done."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.registration import env_id, env_ids
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.environment.env import DynamicParallelismEnv
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario, scenario_names
from tests.refusals import refused

SEEDS = 2
BRIEF_US = 60_000.0
"""Of the horizon; the whole of it takes minutes, but for Toy's, which is shorter."""


def jobs_at_random(scenario: str, horizon_us: float) -> list[float]:
    """How many jobs each episode of random legal actions completes."""
    envs = gymnasium.make_vec(env_id(scenario), num_envs=SEEDS, autoreset_mode="SAME_STEP", horizon_us=horizon_us)
    assert isinstance(envs, GpuSchedulingVectorEnv)
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    done: dict[int, float] = {}
    while len(done) < SEEDS:
        masks = envs.action_masks()
        *_, terminated, truncated, infos = envs.step((rng.random(masks.shape) * masks).argmax(axis=1))
        for e in np.flatnonzero(terminated | truncated).tolist():
            figures = infos["final_info"]["episode_metrics"]
            completed = sum(float(figures[f"{tenant.name}/completed"][e]) for tenant in envs.scenario.tenants)
            done.setdefault(e, completed)
    envs.close()
    return [done[e] for e in range(SEEDS)]


def jobs_of_pass_through(scenario: str, horizon_us: float) -> list[int]:
    """The same of launching everything at once."""
    problem, device = build_problem(load_scenario(scenario, horizon_us=horizon_us)), make_device("compiled")
    episodes = [run_episode(make_scheduler("pass-through"), problem, device, seed) for seed in range(SEEDS)]
    return [sum(tenant.completed for tenant in episode_metrics(episode).tenants) for episode in episodes]


def play(scenario: str, horizon_us: float) -> None:
    at_random, at_once = jobs_at_random(scenario, horizon_us), jobs_of_pass_through(scenario, horizon_us)
    assert min(at_once) > 0
    assert sum(at_random) >= 0.5 * sum(at_once), f"{at_random} jobs at random, {at_once} if all is launched"


@pytest.mark.long
@pytest.mark.parametrize("scenario", scenario_names())
def test_random_actions_do_half_of_the_work(scenario: str) -> None:
    play(scenario, min(BRIEF_US, load_scenario(scenario).horizon_us))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [name for name in scenario_names() if name != "Toy"])
def test_random_actions_do_half_of_the_work_to_the_horizon(scenario: str) -> None:
    play(scenario, load_scenario(scenario).horizon_us)


def test_random_launches_take_at_most_twice_as_long_as_none() -> None:
    env = gymnasium.make(env_id("DynamicParallelism")).unwrapped
    assert isinstance(env, DynamicParallelismEnv)
    rng = np.random.default_rng(0)
    for seed in range(SEEDS):
        env.reset(seed=seed)
        over = False
        while not over:
            _, _, over, _, info = env.step(int(rng.choice(np.flatnonzero(env.action_masks()))))
        assert info["speedup"] >= 0.5


@pytest.mark.parametrize("name", env_ids())
def test_an_agent_launches_unless_more_is_asked_for(name: str) -> None:
    env = gymnasium.make(name).unwrapped
    assert isinstance(env, GpuSchedulingEnv)
    scenario = load_scenario(name.removeprefix("gpusched/").rpartition("-")[0])
    grain = ["serve"] if env.layout.interval_us > 0.0 else ["launch"]
    # Or knobs, or budgets of cores, where there are any.
    grain = ["partition", "throttle"] if "throttle" in scenario.commands else grain
    grain = ["budget"] if "budget" in scenario.commands else grain
    # To choose forms and synchronise tiles does no harm, and is what those scenarios are about.
    grain += ["reshape"] * ("reshape" in scenario.commands)
    grain += ["synchronise"] * ("synchronise" in scenario.commands)
    assert [command for command, _ in env.layout.parts()] == grain
    assert env.layout.interval_us == scenario.interval_us
    everything = gymnasium.make(name, commands=scenario.commands, interval_us=0.0).unwrapped
    assert isinstance(everything, GpuSchedulingEnv)
    assert tuple(command for command, _ in everything.layout.parts()) == scenario.commands


def test_who_rejects_is_said_by_the_commands() -> None:
    """At the grain of an interval the dispatcher rejects unless told otherwise, the agent if it is asked for."""

    def made(**given: object) -> tuple[bool, bool]:
        env = GpuSchedulingEnv("ServingPoisson", **given)
        return "reject" in env.scenario.commands, env.layout.rejects

    assert made() == (True, False)
    assert made(commands=["launch"]) == (False, False)
    assert made(commands=["launch", "reject"]) == (True, True)
    assert made(interval_us=0) == (False, False)


def test_an_episode_offers_rejections_or_not_as_its_environment_does() -> None:
    env = GpuSchedulingEnv("ServingPoisson")
    with refused(InputError, "commands"):
        env.reset(seed=0, options={"scenario": {"commands": ["launch"]}})
