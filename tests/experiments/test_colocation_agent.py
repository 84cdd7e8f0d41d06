"""What an agent of co-location could gain: rules by load, and what the page makes of costs."""

from __future__ import annotations

import pytest

from gpusched_env.devices import make_device
from gpusched_env.episodes.session import run_episode
from gpusched_env.experiments.papers import colocation_agent as page
from gpusched_env.experiments.papers.colocation_agent import KnownLoad, SeenLatency, SeenLoad
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario

PERIOD_US = 5_000.0
BURST = load_scenario(
    "ServingColocated",
    horizon_us=30_000.0,
    restart_us=0.0,
    variation=False,
    tenants={
        # Four requests of 0.9 ms from 11 ms on, one a millisecond: the third period is busy, no other is.
        "answers": {"arrivals": {"kind": "periodic", "start_us": 11_000.0, "period_us": 1_000.0}, "jobs": 4},
    },
)


@pytest.mark.parametrize(("rule", "busy_from_us"), [(SeenLoad, 15_000.0), (KnownLoad, 10_000.0)])
def test_training_sleeps_longer_while_a_service_is_busy(rule: type[SeenLoad], busy_from_us: float) -> None:
    """As seen, from the period after it on; as known, in it. Pauses are in times of an iteration alone."""
    problem = build_problem(BURST)
    scheduler = rule(calm=0.25, busy=2.0, share=75.0, period_us=PERIOD_US)
    run_episode(scheduler, problem, make_device("compiled"), 0)
    alone_us = problem.knowledge.tenants[1].alone_us
    set_at = {at_us: pause_us / alone_us for at_us, _, pause_us, _ in scheduler.periods}
    # Later nothing happens in which a rule could be asked.
    expected = {at_us: 2.0 if at_us == busy_from_us else 0.25 for at_us in (5_000.0, 10_000.0, 15_000.0)}
    assert {at_us: set_at[at_us] for at_us in expected} == pytest.approx(expected)
    assert {share for *_, share in scheduler.periods} == {75.0}


def test_training_has_a_quarter_less_after_a_late_period() -> None:
    """Requests come in the third period; any turnaround is too long here, or none is."""
    shares = {}
    for high in (0.01, 100.0):
        scheduler = SeenLatency(share=100.0, high=high, period_us=PERIOD_US)
        run_episode(scheduler, build_problem(BURST), make_device("compiled"), 0)
        shares[high] = [share for *_, share in scheduler.periods][:3]
    assert shares == {0.01: [100.0, 100.0, 75.0], 100.0: [100.0] * 3}


def invented() -> page.Paper:
    """Costs of 100, but for the last setting of each way, which is a tenth cheaper; foresight saves half."""
    costs = {each: 90.0 if each.setting == len(page.SETTINGS[each.way]) - 1 else 100.0 for each in page.searching()}
    chosen = page.best_settings(costs)
    settings = [*chosen.items(), *page.FORESEEN]
    judged = {each: 50.0 if each.way == page.KNOWN else 100.0 for each in page.judging(settings)}
    late = page.LATENCY, chosen[page.LATENCY]
    return page.Paper({**costs, **judged, **dict.fromkeys(page.judging([late]), 95.0)})


def test_each_way_is_judged_by_its_best_setting() -> None:
    paper = invented()
    assert paper.chosen == {way: len(settings) - 1 for way, settings in page.SETTINGS.items()}
    assert paper.gain(page.FORESIGHT).mean == pytest.approx(0.5)
    assert paper.gain(page.SEEN).mean == 0.0
    assert paper.gain(page.LATENCY).mean == pytest.approx(0.05)
    assert len(paper.costs(page.FORESIGHT)) == 3 * len(page.FORESEEN_SEEDS)
    assert paper.holds, "nothing is published"


def test_a_setting_is_best_where_costs_are_least_in_proportion() -> None:
    """A variant that costs a hundred times as much does not decide alone."""
    costs = dict.fromkeys(page.searching(), 100.0)
    dear, cheap = page.TRAINED[:2]
    seed = page.SEARCHED[0]
    settings = range(len(page.SETTINGS[page.FIXED]))
    costs |= {page.ColocationEpisode(page.FIXED, n, "train", dear, seed): 10_000.0 for n in settings}
    costs[page.ColocationEpisode(page.FIXED, 1, "train", dear, seed)] = 9_900.0
    costs[page.ColocationEpisode(page.FIXED, 2, "train", cheap, seed)] = 50.0
    assert page.best_settings(costs)[page.FIXED] == 2


def test_the_page_begins_with_what_came_out() -> None:
    lines = [line for line in invented().markdown().splitlines() if line]
    assert lines[2].startswith("**A rule by the latency of the last period saves +5%")
    assert "foresight +50%" in lines[2]
    assert "with the same pause" in lines[3]
    assert "No agent is shipped" in lines[3]
