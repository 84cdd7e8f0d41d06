"""Rules that are asked who goes first every so often."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusched_env.baselines.at_intervals import AtIntervals, rule_and_interval
from gpusched_env.baselines.edf import EarliestDeadline
from gpusched_env.baselines.fifo import Fifo
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.names import describe_scheduler, new_scheduler
from gpusched_env.planning.interval import BY_PLAN, Serve
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import problem_for
from gpusched_env.scheduling.contract import scheduler_rng
from gpusched_env.scheduling.view import View
from tests.devices.problems import K, problem
from tests.refusals import refused


class First(EarliestDeadline):
    """Always lets the same tenant go first, and counts how often it is asked."""

    def __init__(self, tenant: int | None) -> None:
        super().__init__()
        self.tenant, self.asked_us = tenant, list[float]()

    def first(self, view: View) -> int | None:
        self.asked_us.append(view.time_us)
        return self.tenant


def serves(path: Path) -> Problem:
    """Two jobs of the whole GPU with the same objective; the plan has the first tenant's first."""
    row = {"ops": [K(4, 50.0)] * 4, "jobs": 1, "slo_us": 1000.0}
    return problem(path, row, row, stream_priorities=[0, -1])


def test_the_one_that_the_rule_says_goes_first(tmp_path: Path) -> None:
    for tenant in range(2):
        episode = run_episode(AtIntervals(First(tenant)), serves(tmp_path), make_device("compiled"), 0)
        jobs = episode.timeline.jobs.dict()
        # Both hosts' first kernels are launched at once, and the GPU is given to the more urgent one's.
        ends = dict(zip(jobs["tenant"].tolist(), jobs["completed_us"].tolist(), strict=True))
        assert ends[tenant] < ends[1 - tenant] == pytest.approx(400.0)


def test_it_is_asked_when_an_interval_is_over(tmp_path: Path) -> None:
    rule = First(1)
    run_episode(AtIntervals(rule, 100.0), serves(tmp_path), make_device("compiled"), 0)
    assert rule.asked_us[0] == 0.0
    assert (np.diff(rule.asked_us) >= 100.0).all()


def test_whoever_the_plan_has_first_is_the_plan_s(tmp_path: Path) -> None:
    built = serves(tmp_path)
    for tenant, decided in ((0, BY_PLAN), (None, BY_PLAN), (1, Serve(1, BY_PLAN.others))):
        scheduler = AtIntervals(First(tenant))
        scheduler.reset(built.knowledge, scheduler_rng(0))
        device = make_device("compiled")
        view = device.reset(built, 0)
        assert view is not None
        scheduler.stand(view)
        assert scheduler.dispatcher is not None
        assert scheduler.dispatcher.decided == decided


def test_it_is_not_asked_for_what_a_dispatcher_does_not_do(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 5.0)]}, commands=["launch", "partition", "reject"])
    assert problem_for(AtIntervals(EarliestDeadline()), built).scenario.commands == ("launch", "reject")


def test_names() -> None:
    assert rule_and_interval("interval:moore(price=1.2)") == ("moore(price=1.2)", 250.0)
    assert rule_and_interval("interval:edf(interval_us=500)") == ("edf", 500.0)
    made = new_scheduler("interval:moore(price=1.2,interval_us=40)")
    assert isinstance(made, AtIntervals)
    assert describe_scheduler("interval:edf(interval_us=500)").startswith("Who goes first is asked every 500 us: ")
    with refused(InputError, "interval_us", "'often'"):
        new_scheduler("interval:edf(interval_us=often)")
    with refused(InputError, "interval_us is 0.5", "least 1"):
        new_scheduler("interval:edf(interval_us=0.5)")


def test_a_rule_that_ranks_nothing_is_refused() -> None:
    with refused(InputError, "tenant"):
        AtIntervals(Fifo())


def test_it_wants_an_episode_first(tmp_path: Path) -> None:
    view = make_device("compiled").reset(serves(tmp_path), 0)
    assert view is not None
    with refused(InputError, "episode"):
        AtIntervals(EarliestDeadline()).decide(view)
