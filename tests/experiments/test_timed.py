"""Schedulers in simulation with the host times that they had on a real GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusched_env.baselines.at_intervals import AtIntervals
from gpusched_env.baselines.edf import EarliestDeadline
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.experiments.live.run import TimedIntervals
from gpusched_env.scenarios.adapting import with_durations
from gpusched_env.scheduling.commands import Command, Launch
from gpusched_env.scheduling.view import View
from tests.devices.problems import K, kernel_ends, problem


class Second(EarliestDeadline):
    """The second tenant goes first."""

    def first(self, view: View) -> int | None:
        return 1


class Watched(TimedIntervals):
    """Notes when which tenant's kernels are launched at the urgent priority."""

    def __init__(self, intervals_us: list[float]) -> None:
        super().__init__(AtIntervals(Second()), intervals_us)
        self.urgent: list[tuple[float, int]] = []

    def decide(self, view: View) -> Command:
        command = super().decide(view)
        if isinstance(command, Launch) and command.priority == -1:
            self.urgent.append((view.time_us, int(view.pending.tenant[view.pending.id == command.launch][0])))
        return command


@pytest.mark.parametrize("decision_us", [0.0, 40.0, 300.0])
def test_a_decision_stands_when_it_is_made(tmp_path: Path, decision_us: float) -> None:
    """Until then the plan goes on, by which the first tenant is ahead."""
    row = {"ops": [K(4, 10.0)] * 40, "jobs": 1, "slo_us": 1000.0}
    built = problem(tmp_path, row, row, stream_priorities=[0, -1])
    scheduler = Watched([decision_us])
    run_episode(scheduler, built, make_device("compiled"), 0)
    assert {tenant for time_us, tenant in scheduler.urgent if time_us < decision_us} <= {0}
    # Once the second one is done, the first one is alone.
    second_ends_us = max(time_us for time_us, tenant in scheduler.urgent if tenant == 1)
    assert {tenant for time_us, tenant in scheduler.urgent if decision_us <= time_us <= second_ends_us} == {1}


def test_later_decisions_take_the_mean(tmp_path: Path) -> None:
    row = {"ops": [K(4, 10.0)] * 40, "jobs": 1, "slo_us": 1000.0}
    scheduler = Watched([10.0, 30.0])
    run_episode(scheduler, problem(tmp_path, row, row, stream_priorities=[0, -1]), make_device("compiled"), 0)
    assert scheduler.dispatcher is not None
    assert next(scheduler.dispatcher.latencies_us) == 20.0


def test_kernels_take_other_times_than_is_told(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 50.0), K(4, 20.0)], "jobs": 1})
    longer = with_durations(built, {1: 30.0})
    ends = kernel_ends(run_episode(EarliestDeadline(), longer, make_device("compiled"), 0, record="kernels"))
    assert ends == [(0, 0.0, 50.0), (0, 50.0, 80.0)]
    assert longer.knowledge.kernels == built.knowledge.kernels
    assert with_durations(built, {}) is built
