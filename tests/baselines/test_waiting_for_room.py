"""Schedulers that say what they wait for decide the same whether they are asked in between or not."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.baselines.registered import parse_spec
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scenarios.set_up import set_up_of
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.contract import Scheduler
from gpusched_env.scheduling.room import Room, WaitsForRoom
from gpusched_env.scheduling.view import View

LATER = ("edf(others=2)", "lithos(quota=all,atom_us=60)", "orion", "xsched(threshold=4,level=2)", "tally")
"""Some with options with which they launch later, or take kernels off the GPU."""
PROBLEMS = {
    "quick": build_problem(load_scenario("ServingPoisson", horizon_us=4000)),
    "slow": build_problem(load_scenario("ServingPoisson", horizon_us=3000, decision_us=2)),
    "beside": build_problem(load_scenario("InferenceBesideTraining", horizon_us=5000)),
}
"""Scenarios of three kinds: of services, of those with a host that takes time to decide, and with best-effort work."""


class Asked:
    """A scheduler that says nothing of what it waits for, and counts how often it is asked."""

    def __init__(self, spec: str) -> None:
        name, options = parse_spec(spec)
        self.scheduler: Scheduler = make_scheduler(name, **options)
        self.set_up, self.asked = set_up_of(self.scheduler), 0

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        self.scheduler.reset(knowledge, rng)

    def decide(self, view: View) -> Command:
        self.asked += 1
        return self.scheduler.decide(view)


class Waiting(Asked):
    """The same one, which says it."""

    @property
    def waits_for(self) -> Room | None:
        assert isinstance(self.scheduler, WaitsForRoom)
        return self.scheduler.waits_for


def played(scheduler: Asked, problem: str) -> Episode:
    return run_episode(scheduler, PROBLEMS[problem], CompiledDevice(), 1, record="kernels")


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("spec", LATER)
def test_episodes_are_equal_to_the_bit(spec: str, problem: str) -> None:
    always, seldom = Asked(spec), Waiting(spec)
    expected, found = played(always, problem), played(seldom, problem)
    for table in ("decisions", "kernels", "jobs"):
        rows = getattr(expected.timeline, table).array
        assert getattr(found.timeline, table).array.tobytes() == rows.tobytes(), table
    assert len(expected.timeline.decisions.array) > 0
    assert (found.metrics.cost, found.decisions) == (expected.metrics.cost, expected.decisions)
    assert seldom.asked <= always.asked


def test_who_waits_is_hardly_asked() -> None:
    """Who does nothing but launch is asked for launches, and one that looks at atoms and TPCs half as often."""
    rule, atoms, always = Waiting("edf"), Waiting("lithos"), Asked("lithos")
    decisions = played(rule, "quick").decisions
    assert decisions <= rule.asked <= decisions + 1
    assert played(atoms, "quick").decisions == played(always, "quick").decisions
    assert atoms.asked < always.asked / 2


def test_rules_that_reject_jobs_are_asked_whenever_something_happens() -> None:
    for spec in ("moore", "triage"):
        rule = Waiting(spec)
        played(rule, "quick")
        assert rule.waits_for is None
