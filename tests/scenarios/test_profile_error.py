"""Wrong profiles: told to schedulers and agents alike, while the device runs the true kernels."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.features import PendingFeature, RunningFeature
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.adapting import captured_graphs, with_profile_error, with_profiles
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.launching import Capture
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.profile_error import ProfileError, Profiles
from gpusched_env.scenarios.scenario import load_scenario, override
from tests.refusals import refused

RIGHT = Profiles(duration_us=np.array([10.0, 20.0, 40.0, 80.0]), gap_us=np.array([1.0, 2.0, 0.0, 4.0]))


def test_all_off_by_a_factor() -> None:
    told = RIGHT.distorted(ProfileError(durations=2.0, gaps=0.5))
    assert told.duration_us.tolist() == [20.0, 40.0, 80.0, 160.0]
    assert told.gap_us.tolist() == [0.5, 1.0, 0.0, 2.0]


def test_each_off_by_a_factor_of_its_own() -> None:
    found = [RIGHT.distorted(ProfileError(scatter=2.0, seed=seed)) for seed in (0, 0, 1)]
    off = found[0].duration_us / RIGHT.duration_us
    assert np.all((off >= 0.5) & (off <= 2.0))
    assert len(set(off.tolist())) == 4
    assert found[0].gap_us[0] / found[0].duration_us[0] != 0.1, "gaps have factors of their own"
    assert found[0].duration_us.tolist() == found[1].duration_us.tolist() != found[2].duration_us.tolist()


def test_a_share_is_never_measured() -> None:
    many = Profiles(np.ones(1000), np.ones(1000))
    told = many.distorted(ProfileError(forget=0.2))
    lost = np.isnan(told.duration_us)
    assert 150 < lost.sum() < 250
    assert np.isnan(told.gap_us).tolist() == lost.tolist()
    assert np.isnan(many.distorted(ProfileError(forget=1.0)).gap_us).all()


def test_right_profiles_are_the_true_ones() -> None:
    built = build_problem(load_scenario("InferenceBesideTraining"))
    assert [kernel.duration_us for kernel in built.knowledge.kernels] == [k.duration_us for k in built.kernels]
    assert built.knowledge.gap_us.tolist() == built.gaps_us.tolist()


def test_captured_graphs_take_as_long_as_is_told_of_their_kernels() -> None:
    true = build_problem(load_scenario("Toy"))
    identity = next(op.identity for op in true.programs[0].variants[0] if op.identity >= 0)
    told = true.told.duration_us.copy()
    told[identity] *= 3.0
    profiles = Profiles(told, true.told.gap_us)
    right, wrong = (captured_graphs(problem, Capture()) for problem in (true, with_profiles(true, profiles)))
    assert [graph.duration_us for graph in wrong.graphs] == [graph.duration_us for graph in right.graphs]
    more = wrong.told.duration_us - right.told.duration_us
    times = sum(op.identity == identity for op in true.programs[0].variants[0])
    assert more[len(true.kernels)] == pytest.approx(2.0 * times * true.kernels[identity].duration_us)
    told[identity] = math.nan
    unknown = captured_graphs(with_profiles(true, profiles), Capture()).knowledge.kernels[len(true.kernels)]
    assert math.isnan(unknown.duration_us)
    assert math.isnan(unknown.gap_us)


@pytest.mark.parametrize(
    "wrong", [{"durations": 0.0}, {"gaps": -1.0}, {"scatter": 0.5}, {"forget": 1.1}, {"seed": -1}, {"off": 2.0}]
)
def test_wrong_values_are_refused(wrong: dict[str, float]) -> None:
    with refused(InputError, "profiles"):
        load_scenario("Toy", profiles=wrong)


def left_us(built: Problem) -> list[list[float]]:
    return [[op.left_us for op in ops if op.identity >= 0] for program in built.programs for ops in program.variants]


def test_a_job_keeps_its_time_which_is_spread_as_told() -> None:
    """Otherwise the difference between two kernels' times left would be a true duration."""
    true = build_problem(load_scenario("InferenceBesideTraining"))
    told = with_profile_error(true, ProfileError(scatter=2.0))
    assert [left[0] for left in left_us(told)] == pytest.approx([left[0] for left in left_us(true)])
    ops = [op for op in told.programs[0].variants[0] if op.identity >= 0]
    share = [told.told.duration_us[op.identity] for op in ops]
    drops = -np.diff([op.left_us for op in ops] + [0.0])
    assert drops / drops.sum() == pytest.approx(np.array(share) / sum(share))
    bare = [
        tuple(replace(op, left_us=0.0) for ops in program.variants for op in ops)
        for program in (*true.programs, *told.programs)
    ]
    assert bare[:2] == bare[2:], "nothing else of the programs changes"


def test_of_a_job_never_measured_all_kernels_count_the_same() -> None:
    told = build_problem(load_scenario("Toy", profiles={"forget": 1.0}))
    for left in left_us(told):
        assert left == pytest.approx([left[0] * (1.0 - k / len(left)) for k in range(len(left))])


WRONG: list[dict[str, Any]] = [{"scatter": 4.0}, {"forget": 0.5, "durations": 3.0, "gaps": 0.0}]


@pytest.mark.parametrize("device", ["reference", "compiled"])
@pytest.mark.long
def test_the_device_goes_on_truthfully(device: str) -> None:
    scenario = load_scenario("InferenceBesideTraining", horizon_us=600.0)
    # These look at no profile: the same episode.
    for name in ("priority-streams", "fifo"):
        true, *others = (
            run_episode(make_scheduler(name), build_problem(s), make_device(device), 1, record="kernels")
            for s in (scenario, *(override(scenario, profiles=wrong) for wrong in WRONG))
        )
        for told in others:
            np.testing.assert_array_equal(told.timeline.kernels.array, true.timeline.kernels.array)


def test_factors_are_within_bounds_and_follow_the_seed() -> None:
    true = build_problem(load_scenario("InferenceBesideTraining"))
    found = []
    for seed in (0, 0, 1):
        wrong = build_problem(load_scenario("InferenceBesideTraining", profiles={"scatter": 2.0, "seed": seed}))
        assert [kernel.duration_us for kernel in wrong.kernels] == [kernel.duration_us for kernel in true.kernels]
        factors = wrong.knowledge.duration_us / true.knowledge.duration_us
        assert 0.5 <= min(factors) < 0.6
        assert 1.8 < max(factors) <= 2.0
        found.append((factors.tolist(), wrong.knowledge.gap_us.tolist()))
    assert found[0] == found[1]
    assert found[0] != found[2]
    gaps = np.array(found[0][1])[true.gaps_us > 0] / true.gaps_us[true.gaps_us > 0]
    assert 0.5 <= gaps.min() < gaps.max() <= 2.0


@pytest.mark.parametrize(("device", "name"), [("compiled", "InferenceBesideTraining"), ("reference", "Toy")])
def test_agents_see_the_wrong_durations(device: str, name: str) -> None:
    shown = []
    for error in (1.0, 4.0):
        env = GpuSchedulingEnv(name, device=device, profiles={"scatter": error}, commands=("launch",))
        observation, _ = env.reset(seed=0)
        known = env.problem.knowledge.kernels[int(env.view.pending.identity[0])]
        assert env.view.pending.profiled_us[0] == known.duration_us
        assert env.view.pending.profiled_gap_us[0] == known.gap_us
        shown.append(observation["pending"][:, PendingFeature.PROFILED])
    assert (shown[0] != shown[1]).any()


@pytest.mark.parametrize("device", ["reference", "compiled"])
def test_what_was_never_measured_is_nan_in_views_and_zero_in_observations(device: str) -> None:
    fields = {"profiles": {"forget": 1.0}, "horizon_us": 2000.0, "commands": ("launch",)}
    env = GpuSchedulingEnv("InferenceBesideTraining", device=device, **fields)
    observation, info = env.reset(seed=0)
    over, running = False, 0
    while not over:
        view = env.view
        assert np.isnan(view.pending.profiled_us).all()
        assert np.isnan(view.pending.profiled_gap_us).all()
        assert np.isnan(view.running.profiled_us).all()
        assert (view.tenants.launched_left_us == 0.0).all()
        assert all(left in (0.0, math.inf) for left in view.tenants.running_left_us)
        assert env.observation_space.contains(observation), "finite, and within bounds"
        assert (observation["pending"][:, [PendingFeature.PROFILED, PendingFeature.GAP]] == 0.0).all()
        hidden = [RunningFeature.PROFILED, RunningFeature.LEFT, RunningFeature.OVERDUE]
        assert (observation["running"][:, hidden] == 0.0).all()
        running += len(view.running)
        observation, _, terminated, truncated, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
        over = terminated or truncated
    assert running > 10
