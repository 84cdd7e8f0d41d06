"""The page of headroom: what was told the truth against the strongest rule, on episodes of made-up costs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.ranking.bound import ALONE
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.experiments.ranking.pages import headroom, headroom_pages, headrooms
from gpusched_env.experiments.ranking.result import Ranking
from tests.experiments.test_ranking import made_of
from tests.refusals import refused

TOLD = "hindsight(rounds=5)"


def ranked(scenario: str, costs: dict[str, list[float]], alone: float | None = None) -> Ranking:
    """A ranking with a scheduler that was told the truth, and what everybody alone costs."""
    ranking = msgspec.structs.replace(made_of(scenario, costs), clairvoyant=[TOLD])
    if alone is None:
        return ranking
    cells = [RankedEpisode(scenario, scenario, ALONE, "compiled", seed) for seed in ranking.seeds]
    episodes = [*ranking.episodes, *(EpisodeCost(cell, alone) for cell in cells)]
    return msgspec.structs.replace(ranking, bounded=[scenario], episodes=episodes)


FOUND = ranked("One", {"a": [10.0, 30.0], "b": [50.0, 20.0], "learned": [9.0, 29.0], TOLD: [6.0, 26.0]}, alone=5.0)
BEATEN = ranked("Two", {"a": [10.0] * 6, "b": [12.0] * 6, TOLD: [11.0] * 6})
BY_AN_AGENT = ranked("Three", {"a": [10.0] * 6, "learned": [8.0] * 6, TOLD: [9.0] * 6})


def test_headroom_is_against_the_cheapest_rule_on_the_same_episodes() -> None:
    one = headroom(FOUND, "One")
    assert (one.title, one.rule, one.cost, one.told) == ("One", "a", 20.0, TOLD)
    assert one.foresight.mean == pytest.approx(16.0 / 20.0 - 1.0)
    assert one.agent is not None
    assert one.agent.mean == pytest.approx(19.0 / 20.0 - 1.0)
    assert one.alone == pytest.approx(5.0 / 20.0 - 1.0)
    assert one.is_bound


@pytest.mark.parametrize("ranking", [BEATEN, BY_AN_AGENT], ids=["rule", "agent"])
def test_who_is_beaten_is_no_bound(ranking: Ranking) -> None:
    (scenario,) = ranking.variants
    assert not headroom(ranking, scenario).is_bound


def test_the_page_has_a_row_a_scenario_the_largest_headroom_first() -> None:
    assert [one.title for one in headrooms([BEATEN, FOUND, BY_AN_AGENT])] == ["One", "Three", "Two"]
    found = headroom_pages([BEATEN, FOUND, BY_AN_AGENT], Path("docs/headroom.md"))
    assert list(found) == ["headroom.md", "headroom.svg"]
    text, figure = (content.decode() for content in found.values())
    lines = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert lines[0].startswith(
        f"| One | a | 20 | {TOLD} | -20.0% [-40.0%, -13.3%] | -5.0% [-10.0%, -3.3%] | -75.0% | 2 "
    )
    assert lines[2] == f"| Two | a | 10 | {TOLD} | +10.0% [+10.0%, +10.0%] (no bound) | – | – | 6 seeds |"
    assert f"  - Two: {TOLD} +10.0% [+10.0%, +10.0%]." in text
    assert f"gpusched lab rank Two --schedulers 'a,b,{TOLD}' --seeds 6" in text
    assert ">One<" in figure
    assert ">Two<" not in figure, "a bar would say that there is no headroom"


def test_only_plans_are_drawn() -> None:
    """A reference of another kind may do what no scheduler can."""
    free = msgspec.structs.replace(made_of("Five", {"a": [10.0] * 6, "free": [5.0] * 6}), clairvoyant=["free"])
    text, figure = (content.decode() for content in headroom_pages([FOUND, free], Path("docs/headroom.md")).values())
    assert "| Five | a | 10 | free | -50.0%" in text
    assert ">Five<" not in figure


def test_somebody_has_to_be_told_the_truth() -> None:
    with refused(InputError, "hindsight"):
        headroom(made_of("Four", {"a": [1.0], "b": [2.0]}), "Four")
