"""Plans of the very episode: an instance solved by hand, and random ones against the schedulers that are tried."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusched_env.baselines.hindsight import PORTFOLIO, RULES, Hindsight
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.baselines.rehearsal import JobList, JobOrder
from gpusched_env.devices import make_device
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import load_scenario, scenario_names
from gpusched_env.scenarios.set_up import problem_for
from gpusched_env.scheduling.contract import Scheduler
from tests.devices.problems import K, problem

COMMANDS = (("launch",), ("launch", "reject"))
MEMBERS = PORTFOLIO.split("+")


def played(scheduler: Scheduler, built: Problem, seed: int = 0) -> Episode:
    return run_episode(scheduler, built, make_device("compiled"), seed)


def cost(scheduler: Scheduler, built: Problem, seed: int = 0) -> float:
    return played(scheduler, built, seed).metrics.cost


def offered(built: Problem) -> Problem:
    """The problem as the planner plays it."""
    return problem_for(Hindsight(), built)


def due(block_us: float, slo_us: float, start_us: float = 0.0) -> dict[str, Any]:
    """A tenant with a job of one kernel on the whole GPU."""
    return {"ops": [K(4, block_us)], "slo_us": slo_us, "arrivals": {"kind": "backlog", "start_us": start_us}}


def surprise(folder: Path, commands: tuple[str, ...]) -> Problem:
    """Two times that ask for opposite rules, the first one because of what is not there yet; nothing has to be missed.

    A job holds the whole GPU. At 0 there are 60 us due at 130, 15 us due at 180 and 15 us due at 190: in time in any
    order. But 15 us due at 55 come at 20, and are met only if the long one has not begun. At 200 there are 60 us due at
    265 and 15 us due at 300: both are met if the long one goes first.
    """
    first = [due(60.0, 130.0), due(15.0, 180.0), due(15.0, 190.0), due(15.0, 35.0, 20.0)]
    second = [due(60.0, 65.0, 200.0), due(15.0, 100.0, 200.0)]
    return problem(folder, *first, *second, reward={"slo_miss": 1.0}, commands=list(commands))


@pytest.mark.parametrize("commands", COMMANDS, ids=" ".join)
def test_it_finds_what_no_rule_does(tmp_path: Path, commands: tuple[str, ...]) -> None:
    built = offered(surprise(tmp_path, commands))
    assert min(cost(make_scheduler(name), built) for name in MEMBERS) == 1.0
    assert min(cost(JobList(rule), built) for rule in RULES) == 1.0
    planner = Hindsight()
    episode = played(planner, built)
    assert episode.metrics.cost == planner.cost == 0.0
    assert [t.slo_attainment for t in episode.metrics.tenants] == [1.0] * 6


def dilemma(folder: Path, commands: tuple[str, ...]) -> Problem:
    """A job holds the whole GPU, and is missed or not.

    At 0 there are 60 us of work due at 60, and twice 20 us due at 70 and 75: one of them must be missed, and only if it
    is the long one, the others are met. At 200 there are 60 us due at 265 and 20 us due at 300: both are met if the
    long one goes first.
    """
    first = [due(60.0, 60.0), due(20.0, 70.0), due(20.0, 75.0)]
    second = [due(60.0, 65.0, 200.0), due(20.0, 100.0, 200.0)]
    return problem(folder, *first, *second, reward={"slo_miss": 1.0}, commands=list(commands))


@pytest.mark.parametrize("commands", COMMANDS, ids=" ".join)
def test_what_is_given_up_goes_last_or_is_rejected(tmp_path: Path, commands: tuple[str, ...]) -> None:
    built = dilemma(tmp_path, commands)
    plan = JobOrder(slack=1.0, left=1.0, reject=True, given_up=frozenset({(0, 0)}))
    episode = played(JobList(plan), built)
    assert episode.metrics.cost == 1.0
    assert [t.rejected for t in episode.metrics.tenants] == [int("reject" in commands), 0, 0, 0, 0]
    assert episode.done


def test_jobs_are_moved_in_the_order(tmp_path: Path) -> None:
    """By deadline the long job is first; moved by 11 us it is second, by 16 us last of the first three."""
    built = dilemma(tmp_path, ("launch",))
    ends = []
    for shift in (0.0, 11.0, 16.0):
        jobs = played(
            JobList(JobOrder(left=1.0, late=False, others=0, shifts={(0, 0): shift})), built
        ).timeline.jobs.dict()
        ends.append(round(float(jobs["completed_us"][jobs["tenant"] == 0][0]), 3))
    assert ends == [60.0, 80.0, 100.0]


def drawn(folder: Path, seed: int) -> Problem:
    """Four tenants with two or three jobs each; what they are charged for differs."""
    rng = np.random.default_rng(seed)
    tenants = []
    for number in range(4):
        kernels = [K(int(rng.integers(1, 9)), float(rng.integers(5, 40)), 2.0) for _ in range(rng.integers(1, 4))]
        start_us = float(rng.integers(0, 100))
        arrivals = {"kind": "closed-loop" if number == 0 else "backlog", "start_us": start_us}
        weight = float(rng.integers(1, 4))
        slo_us = float(rng.integers(50, 400))
        jobs = int(rng.integers(2, 4))
        tenants.append({"ops": kernels, "arrivals": arrivals, "jobs": jobs, "weight": weight, "slo_us": slo_us})
    reward = {"turnaround": float(seed % 2), "slo_miss": 1.0}
    return problem(folder, *tenants, reward=reward, commands=list(COMMANDS[seed % 3 > 0]), horizon_us=2000.0)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_played_costs_what_was_planned_and_no_more_than_others(tmp_path: Path, seed: int) -> None:
    built = offered(drawn(tmp_path, seed))
    planner = Hindsight(rounds=25)
    costs = [cost(make_scheduler(name), built, seed) for name in MEMBERS]
    assert cost(planner, built, seed) == planner.cost <= min(costs)
    again = Hindsight(rounds=25)
    assert cost(again, built, seed) == planner.cost
    assert again.chosen == planner.chosen


def test_the_search_pays() -> None:
    """More rounds never cost more: the search goes on where a shorter one stops."""
    built = build_problem(load_scenario("Toy"))
    costs = [cost(Hindsight(rounds=rounds, portfolio="sjf"), built) for rounds in (0, 5, 60)]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == pytest.approx(1.140, rel=1e-9)


def test_a_random_scheduler_is_played_as_it_was_tried(tmp_path: Path) -> None:
    built = drawn(tmp_path, 0)
    planner = Hindsight(rounds=0, portfolio="random")
    assert cost(planner, built, 5) == planner.cost == cost(make_scheduler("random"), built, 5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": -1}, "rounds is -1, must be at least 0"),
        ({"rounds": 0, "portfolio": ""}, "without a portfolio"),
        ({"portfolio": "sjf+eddf"}, "unknown scheduler 'eddf'"),
        ({"portfolio": "sjf-clairvoyant"}, "sjf-clairvoyant is told the truth itself"),
        ({"portfolio": "hindsight"}, "hindsight is told the truth itself"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_scheduler("hindsight", **options)


@pytest.mark.parametrize("scenario", [name for name in scenario_names() if name != "KernelGraph"])
def test_the_portfolio_plays_every_scenario(scenario: str) -> None:
    """With the commands that co-location systems bring; the kernels of one program are ordered by other schedulers."""
    built = offered(build_problem(load_scenario(scenario)))
    assert all(problem_for(make_scheduler(spec), built) is built for spec in MEMBERS)


def test_what_preempts_is_a_bound_for_what_does(tmp_path: Path) -> None:
    built = build_problem(load_scenario("Toy"))
    assert built.scenario.commands == ("launch",)
    rule = make_scheduler("preemptive-priority")
    assert cost(rule, built) < 1.04, "the optimum of those that only launch"
    assert cost(Hindsight(rounds=0), built) == cost(rule, built)


@pytest.mark.parametrize("member", ["time-slicing", "fikit(contexts=per-tenant)"])
def test_schedulers_with_a_problem_of_their_own_are_refused(tmp_path: Path, member: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"hindsight: {member} changes the problem")):
        played(Hindsight(portfolio=f"sjf+{member}"), drawn(tmp_path, 0))


def test_the_portfolio_is_text(tmp_path: Path) -> None:
    planner = make_scheduler("hindsight(rounds=0,portfolio=edf(classes=one)+fikit)")
    assert isinstance(planner, Hindsight)
    played(planner, drawn(tmp_path, 0))
    assert planner.chosen in ("edf(classes=one)", "fikit")
