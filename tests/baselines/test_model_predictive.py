"""Model-predictive scheduling: an instance worked out by hand, and what holds of any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.model_predictive import ModelPredictive
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from tests.baselines.instances import spans
from tests.devices.problems import K, problem

LONG = {"ops": [K(4, 60.0)], "slo_us": 120.0}
SHORT = {"ops": [K(4, 20.0)], "slo_us": 200.0}


def comes_later(weight: float) -> dict[str, Any]:
    """A job of 40 us that has to begin within 40 us."""
    arrivals = {"kind": "poisson", "rate_per_s": 1000.0, "start_us": 10.0}
    return {"ops": [K(4, 40.0)], "slo_us": 80.0, "weight": weight, "jobs": 1, "arrivals": arrivals}


@pytest.mark.parametrize(("weight", "expected"), [(0.01, [0, 1]), (50.0, [1, 0])])
def test_who_goes_first_depends_on_who_will_come(tmp_path: Path, weight: float, expected: list[int]) -> None:
    """60 us by 120 and 20 us by 200 are both in time whoever goes first, and moore goes by deadline.

    A job that is expected often could be late for either, but less often for the short one: if it is worth much, the
    short one goes first.
    """
    built = problem(tmp_path, LONG, SHORT, comes_later(weight), gpu={"priorities": 6})
    for spec, order in (("moore(others=1)", [0, 1]), ("plan(others=1,first=1,beside=0,scale=1,price=0)", expected)):
        ran = sorted(spans(make_scheduler(spec), built), key=lambda row: row[1])
        assert [tenant for tenant, *_ in ran if tenant < 2] == order, spec


def test_an_episode_is_the_same_again() -> None:
    built = build_problem(load_scenario("ServingPoisson", load=1.5, horizon_us=10000.0))
    first, again = (
        run_episode(make_scheduler("plan(samples=4)"), built, make_device("compiled"), 3, record="jobs")
        for _ in range(2)
    )
    assert first.metrics.cost == again.metrics.cost
    ends = [done.timeline.jobs.dict()["completed_us"].tolist() for done in (first, again)]
    assert len(ends[0]) > 2
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "samples is 0, must be above 0"),
        ({"horizon_us": float("inf")}, "horizon_us is inf"),
        ({"scale": 0.0}, "scale is 0.0"),
        ({"prior_us": float("nan")}, "prior_us is nan"),
        ({"first": 1.5}, "first 1.5, beside 0.8, margin 0.1; must be at most 1"),
        ({"beside": -0.1}, "beside -0.1"),
        ({"margin": -1.0}, "margin -1.0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ModelPredictive(**options)
