"""The vector environment is as many single ones, step by step; Gymnasium's SyncVectorEnv is the specification."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium
import msgspec
import numpy as np
import pytest
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers
from numpy.typing import NDArray

from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_arguments import SampleScenario
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from tests.envs.same import assert_same

SAME_STEP, NEXT_STEP, DISABLED = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED
SHORT = {"horizon_us": 600.0}
"""An episode of about two hundred steps."""
THREE_TENANTS = msgspec.to_builtins(load_scenario("ThreeTenants").tenants)
DIFFERENT: list[dict[str, Any]] = [
    {},
    {"gpu": "h200-sxm", "horizon_us": 600.0},
    {"tenants": THREE_TENANTS, "decision_us": 5.0, "reward": {"slo_miss": 1.0, "energy": 0.5}},
    {"tenants": {"inference": {"arrivals": {"kind": "poisson", "rate_per_s": 4000.0}}}},
    {
        "gpu": "v100-sxm",
        "contexts": "per-tenant",
        "tenants": [
            {"name": name, "workload": name, "arrivals": {"kind": "closed-loop"}, "jobs": 2}
            for name in ("dlrm_infer_b256", "physics_step_b4096")
        ],
    },
]
"""Other GPUs, tenants, rates and costs, one mapping an environment."""
BUILD = functools.cache(build_problem)


@pytest.fixture(autouse=True)
def _quickly_built_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Single environments build the problem of an episode anew each time, which takes most of their time here."""
    for module in ("env", "vector_env"):
        monkeypatch.setattr(f"gpusched_env.envs.{module}.build_problem", BUILD)


class Member(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A single environment that takes its own part of options for all, and draws scenarios as the vector does."""

    def __init__(self, number: int, sample: SampleScenario | None, **kwargs: Any) -> None:
        super().__init__(GpuSchedulingEnv(**kwargs))
        self.number = number
        self.sample = sample

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        options = options or {}
        fields = {**options.get("scenario", {}), **options.get("scenarios", {self.number: {}})[self.number]}
        generator = None
        if self.sample is not None and not options:
            generator = seeding.np_random(seed)[0] if seed is not None else self.unwrapped.np_random
            fields = dict(self.sample(self.number, generator) or {})
        result = self.env.reset(seed=seed, options={"scenario": fields})
        if generator is not None and seed is not None:
            self.unwrapped.np_random = generator
        return result


def both(
    count: int,
    mode: AutoresetMode,
    *,
    device: str = "compiled",
    scenarios: list[dict[str, Any]] | None = None,
    sample_scenario: SampleScenario | None = None,
    threads: int = 2,
    **kwargs: Any,
) -> tuple[GpuSchedulingVectorEnv, SyncVectorEnv]:
    """The vector environment and its specification."""
    vector = GpuSchedulingVectorEnv(
        num_envs=count,
        autoreset_mode=mode,
        scenarios=scenarios,
        sample_scenario=sample_scenario,
        threads=threads,
        **kwargs,
    )
    rows = scenarios or [{}] * count
    singles = SyncVectorEnv(
        [
            lambda e=e, row=row: Member(e, sample_scenario, device=device, **{**kwargs, **row})
            for e, row in enumerate(rows)
        ],
        autoreset_mode=mode,
    )
    return vector, singles


def random_actions(masks: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """Legal actions; one in twenty is any action."""
    legal = (rng.random(masks.shape) * masks).argmax(axis=1)
    return np.where(rng.random(len(masks)) < 0.05, rng.integers(masks.shape[1], size=len(masks)), legal)


def compare(
    vector: GpuSchedulingVectorEnv, singles: SyncVectorEnv, steps: int, *, seed: int = 0, tolerance: float = 0.0
) -> int:
    """Give both the same random actions and compare all that they return; returns how many episodes ended."""
    rng = np.random.default_rng(seed)
    ended = 0
    over = np.zeros(vector.num_envs, np.bool_)
    for step in range(steps):
        masks = vector.action_masks()
        np.testing.assert_array_equal(masks, [env.unwrapped.action_masks() for env in singles.envs])
        if over.any() and vector.autoreset_mode is DISABLED:
            resets = [env.reset(options={"reset_mask": over.copy()}) for env in (vector, singles)]
            assert_same(*resets, tolerance, f"reset before step {step}")
            masks = vector.action_masks()
        actions = random_actions(masks, rng)
        got, expected = vector.step(actions), singles.step(actions)
        assert_same(got, expected, tolerance, f"step {step}")
        assert vector.observation_space.contains(got[0])
        over = got[2] | got[3]
        ended += int(over.sum())
    return ended


@pytest.mark.parametrize("mode", [SAME_STEP, NEXT_STEP, DISABLED])
class TestEqualsSingleEnvironments:
    def test_through_several_episodes(self, mode: AutoresetMode) -> None:
        pair = both(4, mode, scenario="InferenceBesideTraining", **SHORT)
        assert_same(*(env.reset(seed=3) for env in pair), 0.0)
        assert compare(*pair, steps=600) >= 8

    def test_with_a_scenario_of_its_own_in_each_environment(self, mode: AutoresetMode) -> None:
        pair = both(5, mode, scenarios=DIFFERENT, scenario="InferenceBesideTraining", slots=3, **SHORT)
        assert_same(*(env.reset(seed=[7, 1, 7, 0, 2**31]) for env in pair), 0.0)
        assert compare(*pair, steps=500) >= 5

    def test_with_options_and_partial_resets(self, mode: AutoresetMode) -> None:
        pair = both(5, mode, scenario="InferenceBesideTraining", slots=3, **SHORT)
        assert_same(*(env.reset(seed=3) for env in pair), 0.0)
        compare(*pair, steps=40)
        some = np.array([True, False, False, True, True])
        for options in ({}, {"scenario": {"gpu": "h200-sxm"}}, {"scenarios": DIFFERENT}):
            for seed in (11, [5, None, None, 6, 7]):
                assert_same(*(env.reset(seed=seed, options={"reset_mask": some, **options}) for env in pair), 0.0)
                compare(*pair, steps=30, seed=1)
        everywhere = {"scenario": {"horizon_us": 700.0}, "scenarios": DIFFERENT}
        assert_same(*(env.reset(options=dict(everywhere)) for env in pair), 0.0)
        assert compare(*pair, steps=300) >= 5

    def test_with_scenarios_that_are_drawn_for_every_episode(self, mode: AutoresetMode) -> None:
        def sample(number: int, rng: np.random.Generator) -> dict[str, Any] | None:
            if number == 0:
                return None
            return {"horizon_us": float(rng.choice([150.0, 300.0])), "gpu": str(rng.choice(["h100-sxm", "h200-sxm"]))}

        pair = both(3, mode, sample_scenario=sample, scenario="InferenceBesideTraining", **SHORT)
        assert_same(*(env.reset(seed=1) for env in pair), 0.0)
        assert compare(*pair, steps=400) >= 8
        assert_same(*(env.reset(options={"scenario": {"horizon_us": 50.0}}) for env in pair), 0.0)
        assert compare(*pair, steps=200) >= 3

    def test_on_the_reference_device(self, mode: AutoresetMode) -> None:
        jobs = {"batch": {"arrivals": {"kind": "closed-loop"}, "jobs": 4}, "urgent": {"jobs": 4}}
        everything = {"commands": ["launch", "preempt", "partition"], "stream_priorities": [0, -1]}
        for count, more in ((3, {}), (2, {"tenants": jobs, "horizon_us": 200.0, "decision_us": 2.0, **everything})):
            pair = both(count, mode, device="reference", scenario="Toy", threads=1, **more)
            assert_same(*(env.reset(seed=5) for env in pair), 1e-6)
            assert compare(*pair, steps=150, tolerance=1e-6) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["InferenceBesideTraining", "ThreeTenants"])
def test_whole_episodes_equal_those_of_single_environments(scenario: str) -> None:
    tenants = {tenant.name: {"jobs": 2} for tenant in load_scenario(scenario).tenants}
    pair = both(4, NEXT_STEP, scenario=scenario, tenants=tenants, commands=["launch", "preempt", "partition"])
    assert_same(*(env.reset(seed=3) for env in pair), 0.0)
    assert compare(*pair, steps=20_000) >= 4


def test_an_episode_that_ends_before_the_first_decision() -> None:
    programs = build_problem(load_scenario("InferenceBesideTraining")).programs
    # A job of each tenant is left.
    last = -(10.0 + sum(program.alone_us for program in programs)) / 1e3
    for mode in (SAME_STEP, NEXT_STEP):
        changes = {"horizon_us": 10.0, "reward": {"makespan": 1.0}, "commands": ("launch",)}
        pair = both(2, mode, scenario="InferenceBesideTraining", **changes)
        assert_same(*(env.reset(seed=0) for env in pair), 0.0)
        assert compare(*pair, steps=6) >= 6
        _, rewards, *_ = pair[0].step([0, 0])
        assert all(reward in (0.0, pytest.approx(last)) for reward in rewards)


# ---- what Gymnasium makes and wraps ---------------------------------------------------------------


def test_make_vec_takes_the_native_environment() -> None:
    env = gymnasium.make_vec("gpusched/InferenceBesideTraining-v0", num_envs=8, autoreset_mode="SAME_STEP", **SHORT)
    assert isinstance(env, GpuSchedulingVectorEnv)
    assert env.spec is not None
    assert env.metadata["autoreset_mode"] is SAME_STEP
    assert GpuSchedulingVectorEnv.metadata["autoreset_mode"] is NEXT_STEP, "the class is not changed"
    single = gymnasium.make("gpusched/InferenceBesideTraining-v0", **SHORT)
    assert env.single_observation_space == single.observation_space
    assert env.single_action_space == single.action_space
    again = gymnasium.make_vec(env.spec)
    assert (again.num_envs, again.unwrapped.autoreset_mode) == (8, SAME_STEP)


def test_episode_statistics_of_gymnasium(toys: GpuSchedulingVectorEnv) -> None:
    env = wrappers.DictInfoToList(wrappers.RecordEpisodeStatistics(toys))
    env.reset(seed=0)
    for actions in np.tile([1, 2, 2, 0, 0, 1], (3, 1)).T:
        *_, infos = env.step(actions)
    for info in infos:
        assert info["episode"]["r"] == pytest.approx(-1.04)
        assert info["episode"]["l"] == 6
        assert info["episode_metrics"]["cost"] == pytest.approx(1.04)


def test_observation_wrappers_of_gymnasium(toys: GpuSchedulingVectorEnv) -> None:
    env = wrappers.FlattenObservation(toys)
    observations, _ = env.reset(seed=0)
    assert observations.shape == env.observation_space.shape
    assert len(observations) == 3


def test_observations_are_copies_unless_asked_otherwise() -> None:
    for copy in (True, False):
        env = GpuSchedulingVectorEnv("Toy", num_envs=2, copy=copy)
        first, infos = env.reset(seed=0)
        before = {name: table.copy() for name, table in first.items()}
        mask = infos["action_mask"].copy()
        env.step([1, 1])
        same = all(np.array_equal(first[name], before[name]) for name in first)
        assert same is copy
        np.testing.assert_array_equal(infos["action_mask"], mask)


def test_an_environments_episode_can_be_looked_at(toys: GpuSchedulingVectorEnv) -> None:
    toys.reset(seed=40)
    for actions in np.tile([1, 2, 2, 0, 0, 1], (3, 1)).T:
        toys.step(actions)
    episode = toys.episode(2)
    assert (episode.seed, episode.done, episode.end_us, episode.decisions) == (42, True, 410.0, 6)
    assert list(episode.timeline.jobs.column("completed_us")) == [210.0, 410.0]
