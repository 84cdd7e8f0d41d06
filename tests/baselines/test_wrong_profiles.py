"""Every hand-written scheduler copes with profiles that are wrong or missing."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest

from gpusched_env.baselines.registry import make_scheduler, scheduler_names
from gpusched_env.devices import make_device
from gpusched_env.episodes.metrics import Metrics, episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario, override
from tests.baselines.instances import quick
from tests.sampling import sampled_pairs

SHORT = override(
    load_scenario("PriorityFill"),
    tenants={"detection": {"jobs": 2}, "segmentation": {"jobs": 3}, "tagging": {"jobs": 3}},
)


def metrics(scheduler: str, **wrong: float) -> Metrics:
    problem = build_problem(override(SHORT, profiles=wrong))
    return episode_metrics(run_episode(make_scheduler(scheduler), problem, make_device("compiled"), 0))


WRONG: list[dict[str, Any]] = [
    {"durations": 2.0, "gaps": 2.0},
    {"durations": 0.5, "gaps": 0.5},
    {"scatter": 2.0},
    {"forget": 0.3},
    {"forget": 1.0},
]


@functools.cache
def right_cost(scheduler: str) -> float:
    return metrics(scheduler).cost


@pytest.mark.long
@pytest.mark.parametrize(
    ("scheduler", "wrong"), sampled_pairs(list(map(quick, scheduler_names(windowed=False))), WRONG)
)
def test_all_work_gets_done_with_wrong_profiles(scheduler: str, wrong: dict[str, Any]) -> None:
    found = metrics(scheduler, **wrong)
    assert [tenant.completed for tenant in found.tenants] == [2, 3, 3]
    assert math.isfinite(found.cost)
    assert found.cost < 1.5 * right_cost(scheduler), "a wrong profile costs something, but not the service"
