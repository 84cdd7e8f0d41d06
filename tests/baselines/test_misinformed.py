"""Every hand-written scheduler copes with profiles that are wrong or missing."""

from __future__ import annotations

import math

import pytest

from gpusched_env.baselines.registry import make_scheduler, scheduler_names
from gpusched_env.devices import make_device
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import load_scenario, override
from gpusched_env.scheduling.metrics import Metrics, episode_metrics
from gpusched_env.scheduling.session import run_episode

SHORT = override(
    load_scenario("PriorityFill"),
    tenants={"detection": {"jobs": 2}, "segmentation": {"jobs": 3}, "tagging": {"jobs": 3}},
)


def metrics(scheduler: str) -> Metrics:
    return episode_metrics(run_episode(make_scheduler(scheduler), build_problem(SHORT), make_device("compiled"), 0))


@pytest.mark.parametrize("wrong", ["durations=2,gaps=2", "durations=0.5,gaps=0.5", "scatter=2", "forget=1"])
@pytest.mark.parametrize("scheduler", scheduler_names())
def test_all_work_gets_done_with_wrong_profiles(scheduler: str, wrong: str) -> None:
    found = metrics(f"misinformed(scheduler={scheduler},{wrong})")
    assert [tenant.completed for tenant in found.tenants] == [2, 3, 3]
    right = metrics(scheduler)
    assert math.isfinite(found.cost)
    assert found.cost < 1.5 * right.cost, "a wrong profile costs something, but not the service"


def test_right_profiles_change_nothing() -> None:
    assert metrics("misinformed(scheduler=fikit)").cost == metrics("fikit").cost


@pytest.mark.parametrize(
    "spec", ["misinformed", "misinformed(scheduler=nobody)", "misinformed(scheduler=fifo,scatter=0.5)"]
)
def test_refusals(spec: str) -> None:
    with pytest.raises(InputError, match=r"scheduler|misinformed"):
        make_scheduler(spec)
