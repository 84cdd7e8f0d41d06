"""Wrong profiles: told to schedulers and agents alike, while the device runs the true kernels."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.features import PendingFeature
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.session import run_episode

DEVICES = pytest.mark.parametrize(("device", "name"), [("compiled", "InferenceBesideTraining"), ("reference", "Toy")])


@DEVICES
def test_the_device_goes_on_truthfully(device: str, name: str) -> None:
    scenario = load_scenario(name, horizon_us=600.0)
    wrong = load_scenario(name, horizon_us=600.0, profile_error=4.0)
    # Stream priorities look at no profile: the same episode. SJF looks at job times, which stay.
    for scheduler in ("priority-streams", "sjf"):
        episodes = [
            run_episode(make_scheduler(scheduler), build_problem(s), make_device(device), 1, record="kernels")
            for s in (scenario, wrong)
        ]
        kernels = [episode.timeline.kernels.array for episode in episodes]
        np.testing.assert_array_equal(kernels[0], kernels[1])


def test_factors_are_within_bounds_and_follow_the_seed() -> None:
    true = build_problem(load_scenario("InferenceBesideTraining"))
    found = []
    for seed in (0, 0, 1):
        wrong = build_problem(load_scenario("InferenceBesideTraining", profile_error=2.0, profile_seed=seed))
        factors = [w.duration_us / t.duration_us for w, t in zip(wrong.kernels, true.kernels, strict=True)]
        assert 0.5 <= min(factors) < 0.6
        assert 1.8 < max(factors) <= 2.0
        assert wrong.programs == true.programs
        found.append((factors, wrong.gaps_us.tolist()))
    assert found[0] == found[1]
    assert found[0] != found[2]
    gaps = np.array(found[0][1])[true.gaps_us > 0] / true.gaps_us[true.gaps_us > 0]
    assert 0.5 <= gaps.min() < gaps.max() <= 2.0


@DEVICES
def test_agents_see_the_wrong_durations(device: str, name: str) -> None:
    shown = []
    for error in (1.0, 4.0):
        env = GpuSchedulingEnv(name, device=device, profile_error=error, commands=("launch",))
        observation, _ = env.reset(seed=0)
        assert env.view.pending.profiled_us[0] == env.problem.kernels[int(env.view.pending.identity[0])].duration_us
        shown.append(observation["pending"][:, PendingFeature.PROFILED])
    assert (shown[0] != shown[1]).any()
