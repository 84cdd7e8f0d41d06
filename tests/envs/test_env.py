"""The environment: checkers, episodes, rewards, seeding, options, saved states."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.devices import make_device
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.features import PendingFeature
from gpusched_env.envs.registration import env_ids
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.scenario import load_scenario, make_scenario
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.view import View
from tests.refusals import refused

TOY_OPTIMUM = [1, 2, 2, 0, 0, 1]
"""Launch all but batch_long, wait until 100 and 110 us, launch it (docs/toy.md)."""

Step = tuple[dict[str, NDArray[np.float32]], float, bool, bool, dict[str, Any]]


def short(env_id: str, **kwargs: Any) -> GpuSchedulingEnv:
    """An environment whose tenants have one job each."""
    scenario = load_scenario(env_id.removeprefix("gpusched/").rpartition("-")[0])
    tenants = {tenant.name: {"jobs": 1} for tenant in scenario.tenants}
    env = gymnasium.make(env_id, tenants=tenants, **kwargs).unwrapped
    assert isinstance(env, GpuSchedulingEnv)
    return env


def play(env: GpuSchedulingEnv, seed: int, limit: int = 10**6) -> list[Step]:
    """Random legal actions until the end, drawn from a generator of their own."""
    rng = np.random.default_rng(seed)
    steps: list[Step] = []
    while len(steps) < limit:
        steps.append(env.step(rng.choice(np.flatnonzero(env.action_masks()))))
        if steps[-1][2] or steps[-1][3]:
            break
    return steps


class LaunchFirst:
    """A scheduler that launches whatever is pending."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing to forget."""

    def decide(self, view: View) -> Command:
        launchable = np.flatnonzero(view.pending.launchable)
        return Launch(int(view.pending.id[launchable[0]])) if launchable.size else WAIT


def assert_same_steps(one: list[Step], other: list[Step]) -> None:
    assert len(one) == len(other)
    for (obs, *rest), (obs_other, *rest_other) in zip(one, other, strict=True):
        assert obs.keys() == obs_other.keys()
        for name, table in obs.items():
            np.testing.assert_array_equal(table, obs_other[name])
        np.testing.assert_equal(rest, rest_other)


def brief_us(env_id: str) -> float:
    """A horizon of at least three decisions."""
    return max(3000.0, 3.0 * load_scenario(env_id.removeprefix("gpusched/").rpartition("-")[0]).interval_us)


@pytest.mark.parametrize("env_id", env_ids())
class TestEveryId:
    def test_gymnasium_checker_finds_nothing(self, env_id: str) -> None:
        check_env(gymnasium.make(env_id, horizon_us=brief_us(env_id)).unwrapped)

    # MultiInputPolicy flattens the tables, which is all that the checker suggests.
    @pytest.mark.filterwarnings("ignore:Your observation .* has an unconventional shape:UserWarning")
    def test_stable_baselines_checker_finds_nothing(self, env_id: str) -> None:
        from stable_baselines3.common.env_checker import check_env as check_env_sb3

        check_env_sb3(gymnasium.make(env_id, horizon_us=brief_us(env_id)))

    def test_random_play_to_the_end(self, env_id: str) -> None:
        env = short(env_id)
        first, info = env.reset(seed=3)
        assert env.observation_space.contains(first)
        steps = play(env, seed=3)
        times = [info["time_us"], *(step[4]["time_us"] for step in steps)]
        assert times == sorted(times)
        elapsed = [info["elapsed_us"], *(step[4]["elapsed_us"] for step in steps)]
        assert sum(elapsed) == pytest.approx(times[-1])
        for observation, reward, terminated, truncated, info in steps:
            assert env.observation_space.contains(observation)
            assert type(reward) is float
            assert type(terminated) is type(truncated) is bool
            # Progress counts as lost until a job of a best-effort tenant completes.
            assert reward <= 0.0 or env.scenario.reward.lost_progress > 0.0
            assert info["action_mask"].dtype == np.int8
            assert info["action_mask"][0] == 1
        assert [step[2] for step in steps] == [False] * (len(steps) - 1) + [True]
        assert not any(step[3] for step in steps)
        assert set(steps[0][4]) == {"action_mask", "time_us", "elapsed_us", "illegal_actions"}
        final = steps[-1][4]
        total = sum(step[1] for step in steps)
        assert sum(final["reward_terms"].values()) == pytest.approx(total)
        assert final["episode_metrics"]["cost"] == pytest.approx(-total)
        assert all(type(value) is float and np.isfinite(value) for value in final["episode_metrics"].values())

    def test_same_seed_same_episode(self, env_id: str) -> None:
        runs = []
        for _ in range(2):
            env = short(env_id)
            env.reset(seed=11)
            runs.append(play(env, seed=5, limit=300))
        assert_same_steps(*runs)

    def test_spec_survives_json(self, env_id: str) -> None:
        spec = gymnasium.spec(env_id)
        assert spec.max_episode_steps is None
        assert type(spec).from_json(spec.to_json()).make(horizon_us=100.0).unwrapped.scenario.horizon_us == 100.0


def test_the_worked_example_of_the_class() -> None:
    env = gymnasium.make("gpusched/Toy-v0")
    env.reset(seed=0)
    steps = [env.step(action) for action in TOY_OPTIMUM]
    assert [step[1] for step in steps] == pytest.approx([0, 0, 0, -0.40, -0.04, -0.60])
    assert [step[4]["time_us"] for step in steps] == [0, 0, 0, 100, 110, 410]
    assert [step[2] for step in steps] == [False] * 5 + [True]
    assert steps[-1][4]["reward_terms"]["turnaround"] == pytest.approx(-1.04)


def test_return_is_the_weighted_sum_over_the_jobs_of_the_timeline() -> None:
    """Turnaround, slowdown and SLO terms against the list of completed jobs, by hand."""
    reward = {"turnaround": 0.5, "slowdown": 2.0, "slo_miss": 3.0, "makespan": 0.25}
    env = short("gpusched/ThreeTenants-v0", reward=reward)
    env.reset(seed=1)
    steps = play(env, seed=1)
    programs = env.problem.programs
    expected = 0.25 * env.device.timeline.jobs.column("completed_us").max() / 1e3
    jobs = env.device.timeline.jobs.array
    assert len(jobs) == 3
    for tenant, _, arrived, _, completed in jobs:
        program = programs[int(tenant)]
        turnaround = completed - arrived
        missed = program.tenant.slo_us is not None and turnaround > program.tenant.slo_us
        expected += program.tenant.weight * (
            0.5 * turnaround / 1e3 + 2.0 * turnaround / program.alone_us + 3.0 * float(missed)
        )
    assert sum(step[1] for step in steps) == pytest.approx(-expected, rel=1e-9)


def test_unfinished_jobs_cost_until_the_horizon_and_then_what_they_take_alone() -> None:
    env = gymnasium.make("gpusched/Toy-v0", horizon_us=500.0)
    env.reset(seed=0)
    steps = [env.step(0) for _ in range(5)]
    assert [step[4]["time_us"] for step in steps] == [100, 200, 300, 400, 500], "waits are at most 100 us long"
    assert [step[3] for step in steps] == [False] * 4 + [True]
    assert not any(step[2] for step in steps)
    assert sum(step[1] for step in steps[:-1]) == pytest.approx(-4 * 0.4)
    assert steps[-1][1] == pytest.approx(-4 * 0.1 - (0.300 + 3 * 0.210))


def test_an_episode_that_ends_before_the_first_decision() -> None:
    env = gymnasium.make(
        "gpusched/InferenceBesideTraining-v0", horizon_us=10.0, reward={"makespan": 1.0}, commands=("launch",)
    )
    alone_us = sum(program.alone_us for program in env.unwrapped.problem.programs)  # type: ignore[attr-defined]
    observation, info = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    assert list(np.flatnonzero(info["action_mask"])) == [0]
    _, reward, terminated, truncated, info = env.step(1)
    assert (terminated, truncated) == (False, True)
    assert reward == pytest.approx(-0.010 - alone_us / 1e3), "a job of each tenant is left"
    assert info["time_us"] == 10.0


def test_an_illegal_action_is_a_counted_wait() -> None:
    steps = {}
    for action in (0, 1):
        env = gymnasium.make("gpusched/Toy-v0").unwrapped
        env.reset(seed=0)
        for launch in (1, 1, 2):
            env.step(launch)
        assert list(env.action_masks()) == [True, False, True]
        steps[action] = env.step(action)
    assert steps[0][4].pop("illegal_actions") == 0
    assert steps[1][4].pop("illegal_actions") == 1
    assert_same_steps([steps[0]], [steps[1]])


@pytest.mark.parametrize("action", [-1, 3])
def test_an_action_outside_the_space_is_an_error(action: int) -> None:
    env = GpuSchedulingEnv("Toy")
    env.reset(seed=0)
    with refused(InputError, action, "in 0..2", "action"):
        env.step(action)


@pytest.mark.parametrize("device", ["compiled", "reference"])
def test_a_wait_without_a_limit_ends_at_the_horizon(device: str) -> None:
    env = GpuSchedulingEnv("Toy", wait_us=math.inf, device=device)
    env.reset(seed=0)
    *_, terminated, truncated, info = env.step(0)
    assert (terminated, truncated, info["time_us"]) == (False, True, 2000.0)


def test_step_needs_a_reset() -> None:
    env = GpuSchedulingEnv("Toy")
    for call in (lambda: env.step(0), env.action_masks, env.save_state):
        with pytest.raises(ResetNeeded):
            call()
    env.reset(seed=0)
    for action in TOY_OPTIMUM:
        env.step(action)
    with refused(ResetNeeded, "over"):
        env.step(0)


def test_seed_is_the_episodes_seed_of_every_scheduler() -> None:
    """The environment's seed gives the arrivals that ``run_episode`` gets with it."""
    changes: dict[str, Any] = {"horizon_us": 60_000.0, "tenants": {"training": {"jobs": 1}}, "commands": ("launch",)}
    env = GpuSchedulingEnv("InferenceBesideTrainingPoisson", **changes)
    env.reset(seed=7)
    play(env, seed=0)
    episode = run_episode(LaunchFirst(), env.problem, make_device("compiled"), seed=7)
    arrivals = [jobs[jobs[:, 0] == 0, 2] for jobs in (env.device.timeline.jobs.array, episode.timeline.jobs.array)]
    both = min(len(jobs) for jobs in arrivals)
    assert both >= 3
    np.testing.assert_array_equal(arrivals[0][:both], arrivals[1][:both])


def test_without_a_seed_episodes_are_drawn_from_np_random() -> None:
    def seeds(env: GpuSchedulingEnv) -> list[int]:
        env.reset(seed=5)
        return [env.reset()[1]["seed"] for _ in range(3)]

    first, again = seeds(GpuSchedulingEnv("Toy")), seeds(GpuSchedulingEnv("Toy"))
    assert first == again
    assert len(set(first)) == 3


SCRIPT = """
import hashlib, sys, gymnasium, numpy as np
env = gymnasium.make("gpusched_env:gpusched/InferenceBesideTraining-v0", horizon_us=4000.0).unwrapped
env.reset(seed=9)
rng, digest, ended = np.random.default_rng(4), hashlib.sha256(), False
while not ended:
    obs, reward, terminated, truncated, info = env.step(rng.choice(np.flatnonzero(env.action_masks())))
    for name in sorted(obs):
        digest.update(obs[name].tobytes())
    digest.update(repr((reward, info["time_us"])).encode())
    ended = terminated or truncated
print(digest.hexdigest())
"""


def test_a_fresh_worker_makes_the_same_episode() -> None:
    """The ``module:id`` form resolves in a process that has imported nothing of the package."""
    outputs = [
        subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].strip()) == 64


class TestSavedStates:
    @pytest.mark.parametrize("env_id", ["gpusched/Toy-v0", "gpusched/ThreeTenants-v0"])
    def test_restoring_repeats_the_episode_exactly(self, env_id: str) -> None:
        env = short(env_id, commands=["launch", "preempt", "partition"])
        env.reset(seed=2)
        play(env, seed=1, limit=5 if "Toy" in env_id else 200)
        state = env.save_state()
        ahead = play(env, seed=8, limit=150)
        drawn = env.np_random.integers(10**9)
        observation, info = env.restore_state(state)
        assert info["time_us"] == state.run.time_us == env.view.time_us
        np.testing.assert_equal(observation, env.encoder.encode(env.view))
        assert_same_steps(ahead, play(env, seed=8, limit=150))
        assert env.np_random.integers(10**9) == drawn

    def test_another_environment_can_go_on_from_a_pickled_state(self) -> None:
        env = short("gpusched/InferenceBesideTraining-v0")
        env.reset(seed=2)
        play(env, seed=1, limit=50)
        state = pickle.loads(pickle.dumps(env.save_state()))
        other = short("gpusched/InferenceBesideTraining-v0")
        other.restore_state(state)
        assert_same_steps(play(env, seed=3, limit=50), play(other, seed=3, limit=50))

    def test_the_end_can_be_saved_too(self) -> None:
        env = GpuSchedulingEnv("Toy")
        env.reset(seed=0)
        for action in TOY_OPTIMUM:
            env.step(action)
        state = env.save_state()
        env.reset(seed=0)
        env.restore_state(state)
        with refused(ResetNeeded, "over"):
            env.step(0)

    def test_states_of_other_action_spaces_are_refused(self) -> None:
        env = GpuSchedulingEnv("Toy")
        env.reset(seed=0)
        other = GpuSchedulingEnv("ThreeTenants")
        with refused(InputError, "3 actions", "environment 10"):
            other.restore_state(env.save_state())


class TestArguments:
    def test_overrides_reach_the_scenario(self) -> None:
        env = GpuSchedulingEnv("Toy", horizon_us=123.0, tenants={"urgent": {"weight": 7.0}})
        assert env.scenario.horizon_us == 123.0
        assert env.scenario.tenants[1].weight == 7.0

    def test_a_scenario_object_does_too(self) -> None:
        scenario = load_scenario("Toy", horizon_us=321.0)
        assert GpuSchedulingEnv(scenario, decision_us=2.0).scenario.decision_us == 2.0
        assert GpuSchedulingEnv(scenario).scenario == scenario

    @pytest.mark.parametrize(
        ("kwargs", "message"),
        [
            ({"slots": 1}, "slots is 1, but scenario Toy has 2 tenants"),
            ({"running_slots": 0}, "running_slots is 0"),
            ({"running_slots": True}, "running_slots is True, must be an integer"),
            ({"render_mode": 5}, "render_mode is 5; known: ansi, human, rgb_array"),
            ({"wait_us": 0.0}, "wait_us is 0.0"),
            ({"render_mode": "rgb"}, "render_mode is 'rgb'"),
            ({"device": "referense"}, "did you mean 'reference'"),
            ({"horizon": 10.0}, "horizon"),
            ({"commands": ["preempt"]}, "lack 'launch'"),
            ({"stream_priorities": []}, "stream_priorities is empty"),
        ],
    )
    def test_bad_ones_are_named(self, kwargs: dict[str, Any], message: str) -> None:
        with pytest.raises(InputError, match=message):
            GpuSchedulingEnv("Toy", **kwargs)

    def test_slots_leave_room_for_more_tenants(self) -> None:
        env = GpuSchedulingEnv("Toy", slots=5)
        env.reset(seed=0)
        assert env.action_space.n == 6
        total = 0.0
        for action in TOY_OPTIMUM:
            observation, reward, *_ = env.step(action)
            total += reward
            assert not observation["tenants"][2:].any()
        assert total == pytest.approx(-1.04)


class TestResetOptions:
    def test_the_scenario_of_one_episode_can_differ(self) -> None:
        env = GpuSchedulingEnv("Toy")
        env.reset(seed=0, options={"scenario": {"tenants": {"urgent": {"weight": 10.0}}}})
        heavier = sum(env.step(action)[1] for action in TOY_OPTIMUM)
        env.reset(seed=0)
        usual = sum(env.step(action)[1] for action in TOY_OPTIMUM)
        assert heavier == pytest.approx(-(0.410 + 10 * 0.210))
        assert usual == pytest.approx(-1.04)

    def test_more_tenants_fit_if_there_are_slots(self) -> None:
        env = GpuSchedulingEnv("Toy", slots=3)
        toy = load_scenario("Toy")
        third = {"name": "third", "workload": "toy_batch", "arrivals": {"kind": "backlog"}, "jobs": 1}
        _, info = env.reset(seed=0, options={"scenario": {"tenants": [*toy.tenants, third]}})
        assert list(info["action_mask"]) == [1, 1, 1, 1]
        with refused(InputError, "4 tenants", "3 slots"):
            env.reset(options={"scenario": {"tenants": [*toy.tenants, third, {**third, "name": "fourth"}]}})

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"scenario": {1: 2}}, "must be a mapping of scenario fields, by their names"),
            ({"scenario": {"tenants": {"urgent": 5}}}, r"tenants\.urgent must be a mapping of its fields, got 5"),
            ({"scenario": {"tenants": {1: {}}}}, r"tenants\.1: no such tenant"),
            ({"scenaro": {}}, "did you mean 'scenario'"),
            ({"scenario": {"stream_priorities": [0, -1]}}, "shape the action space"),
            ({"scenario": {"horizon_us": -1}}, "horizon_us"),
        ],
    )
    def test_bad_ones_change_nothing(self, options: dict[str, Any], message: str) -> None:
        env = GpuSchedulingEnv("Toy")
        env.reset(seed=0)
        env.step(1)
        before, before_view = env.save_state(), env.view
        with pytest.raises(InputError, match=message):
            env.reset(options=options)
        after = env.save_state()
        assert (after.run, after.rng) == (before.run, before.rng)
        np.testing.assert_equal(env.view.pending.array, before_view.pending.array)
        env.step(2)


def test_vector_environments_of_gymnasium_work() -> None:
    envs = gymnasium.make_vec("gpusched/Toy-v0", num_envs=3, vectorization_mode="sync")
    observation, info = envs.reset(seed=[0, 1, 2])
    assert observation["pending"].shape == (3, 2, len(PendingFeature))
    assert info["action_mask"].shape == (3, 3)
    for action in TOY_OPTIMUM:
        _, reward, terminated, *_ = envs.step(np.full(3, action))
    assert terminated.all()
    assert reward == pytest.approx([-0.6] * 3)
    envs.close()


class TestWindow:
    """Launches that pass a window: all that are in it have slots."""

    SCENARIO = make_scenario(
        {
            "name": "Graph",
            "gpu": "h100-sxm",
            "horizon_us": 1e5,
            "variation": False,
            "reward": {"makespan": 1.0},
            "window": {"size": 8, "streams": 3, "launch_us": 2.0, "sync_us": 3.0},
            "tenants": [
                {
                    "name": "app",
                    "workload": "bodies6_step_b2048",
                    "arrivals": {"kind": "closed-loop"},
                    "jobs": 1,
                    "host_us": 1.0,
                }
            ],
        }
    )

    def test_the_checker_finds_nothing(self) -> None:
        check_env(GpuSchedulingEnv(self.SCENARIO), skip_render_check=True)

    def test_legal_actions_at_random_do_all_the_work(self) -> None:
        env = GpuSchedulingEnv(self.SCENARIO)
        assert env.layout.pending_slots == 8
        assert env.action_space.n == 1 + 8 * 2, "any that is ready, at two priorities"
        env.reset(seed=0)
        steps = play(env, 0)
        assert steps[-1][2]
        assert env.episode().done

    def test_the_oldest_ready_one_first_is_what_the_window_does_by_itself(self) -> None:
        env = GpuSchedulingEnv(self.SCENARIO)
        env.reset(seed=0)
        over = False
        while not over:
            legal = np.flatnonzero(env.action_masks())
            *_, over, _, _ = env.step(legal[1] if len(legal) > 1 else 0)
        alone = run_episode(PassThrough(), build_problem(self.SCENARIO), make_device("compiled"), 0)
        assert env.episode().end_us == alone.end_us
