"""Starting over: kernels that are reset, episodes that are given up."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from tests.gaming.policies import Policy, honest, play

BATCH = {
    "name": "batch", "workload": "toy_batch", "arrivals": {"kind": "backlog"}, "jobs": 1, "slo_us": 320.0,
}  # fmt: skip


def alone(device: str) -> GpuSchedulingEnv:
    """The batch job of `Toy` alone: kernels of 100 and of 200 us."""
    return GpuSchedulingEnv(
        "Toy", device=device, tenants=[BATCH], commands=("launch", "preempt"), preemption=("reset",), wait_us=50.0
    )


def killing(times: int) -> Policy:
    """Launches at full 100 us; resets what runs 50 us later, up to ``times`` times."""
    left = times

    def decide(env: GpuSchedulingEnv) -> int:
        nonlocal left
        if env.view.time_us % 100.0 != 50.0:
            return honest(env)
        if left and env.view.running.preemptible.any():
            left -= 1
            return int(np.flatnonzero(env.action_masks())[-1])
        return 0

    return decide


@pytest.mark.parametrize("device", ["compiled", "reference"])
def test_a_reset_kernel_runs_again_from_its_start(device: str) -> None:
    """Each reset costs exactly the 50 us that it throws away, and the 50 us of waiting after it."""
    env = alone(device)
    for resets in range(4):
        episode = play(env, killing(resets))
        assert episode.cost == pytest.approx(0.300 + resets * 0.100)
        assert episode.figures["batch/turnaround_mean_us"] == pytest.approx(300.0 + resets * 100.0)
    forever = play(env, killing(10**6))
    assert not forever.terminated
    assert forever.cost == pytest.approx(2.000 + 0.300)


@pytest.mark.parametrize("device", ["compiled", "reference"])
def test_a_reset_does_not_make_a_kernel_or_its_job_younger(device: str) -> None:
    env = alone(device)
    env.reset(seed=0)
    first = env.view
    before = first.pending.issued_us[0], first.pending.deadline_us[0], first.pending.job_left_us[0]
    env.step(1)
    env.step(0)
    env.step(int(np.flatnonzero(env.action_masks())[-1]))
    pending = env.view.pending
    assert pending.preempted[0] == 1.0
    assert (pending.issued_us[0], pending.deadline_us[0], pending.job_left_us[0]) == before
    assert pending.waited_us[0] == env.view.time_us == 50.0
    assert pending.blocks[0] == 2, "all of its blocks"


def test_a_given_up_episode_leaves_no_figures_and_no_trace() -> None:
    """Whoever resets an environment before a bad end has nothing to show: only ends report costs."""
    env = GpuSchedulingEnv("InferenceBesideTraining", tenants={"inference": {"jobs": 3}, "training": {"jobs": 1}})
    whole = play(env, honest, seed=4)
    env.reset(seed=3)
    for _ in range(200):
        _, _, terminated, truncated, info = env.step(honest(env))
        assert terminated is truncated is False
        assert not {"episode_metrics", "reward_terms"} & info.keys()
    _, info = env.reset(seed=4)
    assert not {"episode_metrics", "reward_terms"} & info.keys()
    assert play(env, honest, seed=4) == whole


def test_a_partial_reset_of_a_vector_environment_is_not_the_end_of_an_episode() -> None:
    env = GpuSchedulingVectorEnv("Toy", num_envs=2, autoreset_mode="SAME_STEP", threads=1)
    env.reset(seed=[1, 2])
    for _ in range(3):
        env.step([0, 0])
    _, info = env.reset(options={"reset_mask": np.array([True, False])})
    assert "final_info" not in info
    costs = []
    while len(costs) < 2:
        _, _, _, truncations, info = env.step([0, 0])
        costs += [row["cost"] for row in ([] if "final_info" not in info else [_metrics(info, truncations)])]
    # The abandoned episode began anew: it ends three waits after the other, at the same full cost.
    assert costs == pytest.approx([4 * 2.0 + 0.93] * 2)


def _metrics(info: dict[str, object], ended: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> dict[str, float]:
    """``episode_metrics`` of the one environment whose episode ended."""
    (number,) = np.flatnonzero(ended).tolist()
    final = info["final_info"]
    assert isinstance(final, dict)
    return {name: float(values[number]) for name, values in final["episode_metrics"].items() if name[0] != "_"}
