"""The vector environment is as many single ones, step by step; Gymnasium's SyncVectorEnv is the specification."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import vector as wrappers
from numpy.typing import NDArray

from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_arguments import SampleScenario
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import load_scenario

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


def assert_same(got: Any, expected: Any, tolerance: float, where: str = "") -> None:
    """Equal structures, types, shapes and dtypes; equal values, or ``tolerance`` apart (relative and absolute)."""
    assert isinstance(got, dict) is isinstance(expected, dict), where
    if isinstance(got, dict):
        assert got.keys() == expected.keys(), where
        for key in got:
            assert_same(got[key], expected[key], tolerance, f"{where}.{key}")
    elif isinstance(got, tuple):
        assert len(got) == len(expected), where
        for part, (one, other) in enumerate(zip(got, expected, strict=True)):
            assert_same(one, other, tolerance, f"{where}[{part}]")
    elif isinstance(got, np.ndarray):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype), where
        if got.dtype == object:
            assert_same(tuple(got), tuple(expected), tolerance, where)
        elif tolerance:
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance, err_msg=where)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=where)
    else:
        assert got == expected, where


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


@pytest.fixture
def toys() -> Iterator[GpuSchedulingVectorEnv]:
    env = GpuSchedulingVectorEnv("Toy", num_envs=3)
    yield env
    env.close()


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


# ---- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0"),
        ({"render_mode": "ansi"}, "the vector environment draws nothing"),
        ({"device": "reference"}, "runs on 'compiled' only"),
        ({"autoreset_mode": "SAMESTEP"}, "did you mean 'SAME_STEP'"),
        ({"threads": 0}, "threads is 0"),
        ({"wait_us": 0.0}, "wait_us is 0.0"),
        ({"running_slots": 0}, "running_slots is 0"),
        ({"slots": 1}, "slots is 1, but scenario Toy has 2 tenants"),
        ({"scenario": "Tay"}, "did you mean 'Toy'"),
        ({"horizn_us": 3.0}, "horizn_us"),
        ({"scenarios": [{}]}, "scenarios must be a list of 2 mappings"),
        ({"scenarios": [{}, {"gpu": "h1000"}]}, "h1000"),
        ({"scenarios": [{}, {"horizon_us": -1.0}]}, "environment 1: .*horizon_us"),
        ({"scenarios": [{}, {"stream_priorities": [0, -1]}]}, "environment 1: .*shape the action space"),
        ({"scenarios": [{}, {"tenants": THREE_TENANTS}], "slots": 2}, "slots is 2, but .* has 3 tenants"),
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        GpuSchedulingVectorEnv(**{"scenario": "Toy", "num_envs": 2, **arguments})


MASK = np.ones(3, np.bool_)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seed": [1, 2]}, "seed has 2 entries, but there are 3 environments"),
        ({"seed": [1, -2, 3]}, "the seed of environment 1 is -2"),
        ({"options": {"scenaro": {}}}, "did you mean 'scenario'"),
        ({"options": {"scenario": 3}}, "must be a mapping"),
        ({"options": {"scenarios": [{}]}}, "must be a list of 3 mappings"),
        ({"options": {"scenarios": [{}, {}, {"gpu": "h1000"}]}}, "h1000"),
        ({"options": {"scenarios": [{}, {}, {"tenants": THREE_TENANTS}]}}, "environment 2: .*do not fit into 2 slots"),
        ({"options": {"reset_mask": [True, True, True]}}, "must be a bool array"),
        ({"options": {"reset_mask": MASK[:2]}}, r"of shape \(3,\)"),
        ({"options": {"reset_mask": MASK.astype(int)}}, "must be a bool array"),
        ({"options": {"reset_mask": ~MASK}}, "with a True"),
    ],
)
def test_a_refused_reset_changes_nothing(arguments: dict[str, Any], message: str, toys: GpuSchedulingVectorEnv) -> None:
    other = GpuSchedulingVectorEnv("Toy", num_envs=3)
    for env in (toys, other):
        env.reset(seed=1)
        env.step([1, 2, 0])
    with pytest.raises(InputError, match=message):
        toys.reset(**arguments)
    assert_same(toys.step([2, 1, 1]), other.step([2, 1, 1]), 0.0)
    assert_same(toys.reset(), other.reset(), 0.0)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 3, 0], r"action 3 of environment 1 is not in 0\.\.2"),
        ([0, 0, -1], r"action -1 of environment 2 is not in 0\.\.2"),
        ([0, 0], r"of shape \(3,\), got int64 of shape \(2,\)"),
        ([0.0, 1.0, 0.0], "must be integers"),
        (1, "must be integers of shape"),
    ],
)
def test_refused_actions_change_nothing(actions: Any, message: str, toys: GpuSchedulingVectorEnv) -> None:
    toys.reset(seed=0)
    masks = toys.action_masks()
    with pytest.raises(InputError, match=message):
        toys.step(actions)
    np.testing.assert_array_equal(toys.action_masks(), masks)
    *_, infos = toys.step([0, 0, 0])
    np.testing.assert_array_equal(infos["elapsed_us"], [100.0] * 3)


def test_episodes_must_have_begun() -> None:
    env = GpuSchedulingVectorEnv("Toy", num_envs=2, autoreset_mode="DISABLED", horizon_us=100.0)
    for call in (lambda: env.step([0, 0]), env.action_masks):
        with pytest.raises(ResetNeeded, match=r"call reset\(\) first"):
            call()
    with pytest.raises(ResetNeeded, match="without reset_mask first"):
        env.reset(options={"reset_mask": np.array([True, False])})
    env.reset(seed=0)
    _, _, _, truncations, _ = env.step([0, 0])
    assert truncations.all()
    env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ResetNeeded, match="the episode of environment 1 is over"):
        env.step([0, 0])


def test_a_step_that_failed_needs_a_reset() -> None:
    draws = iter([None, {"horizon_us": -1.0}, None])
    env = GpuSchedulingVectorEnv(
        "Toy", horizon_us=100.0, autoreset_mode="SAME_STEP", sample_scenario=lambda e, rng: next(draws)
    )
    env.reset(seed=0)
    with pytest.raises(InputError, match=r"environment 0: .*horizon_us"):
        env.step([0])
    with pytest.raises(ResetNeeded, match="a step failed"):
        env.step([0])
    env.reset(options={"scenario": {"horizon_us": 50.0}})
    assert env.step([0])[4]["final_info"]["time_us"] == 50.0


def test_a_closed_environment_says_so() -> None:
    env = GpuSchedulingVectorEnv("Toy", num_envs=64, threads=2)
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step([0] * 64), env.action_masks):
        with pytest.raises(ClosedEnvironmentError):
            call()


# ---- memory ---------------------------------------------------------------------------------------


def resident_mib() -> float:
    """Memory of this process that is in RAM."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        pytest.skip("needs /proc/self/statm")
    gc.collect()
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def growth_mib(scenario: str, count: int, **kwargs: Any) -> float:
    """What resident memory grows by when ``count`` environments are made, used and closed."""

    def use() -> None:
        env = GpuSchedulingVectorEnv(scenario, threads=2, **kwargs)
        env.reset(seed=0)
        for _ in range(3):
            env.step(env.action_masks()[:, 1].astype(int))
        env.close()

    for _ in range(10):
        use()
    before = resident_mib()
    for _ in range(count):
        use()
    return resident_mib() - before


def test_a_hundred_environments_leave_no_memory_behind() -> None:
    assert growth_mib("Toy", 100, num_envs=8) < 3.0


@pytest.mark.slow
def test_a_thousand_environments_leave_no_memory_behind() -> None:
    assert growth_mib("InferenceBesideTraining", 1000, num_envs=8) < 10.0
