"""The page of the fleet's agent says who wins by its rule of judgement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpusched_env.games.fleet.agents.rule import LearnedFleet
from gpusched_env.games.fleet.environment.problems import DAYS, fleet_cost, fleet_problem
from gpusched_env.games.fleet.experiments.game import run_day
from gpusched_env.games.fleet.papers.fleet_agent import (
    FIRST_SEED,
    SEEDS,
    DayFigures,
    Paper,
    opponents,
    rows,
    tuned,
)


def figures(gpus: float, late: int) -> DayFigures:
    """Of days that differ from seed to seed by the same for everyone."""
    own = tuple(gpus + 0.01 * seed for seed in range(SEEDS))
    return DayFigures(own, own, (late,) * SEEDS, (100,) * SEEDS, (0.0,) * SEEDS, (1.0,) * SEEDS, own)


def made_up(agent: DayFigures) -> Paper:
    """Everybody else needs 10 GPUs at 1 % violations."""
    return Paper({cell: agent if cell.dispatcher == "learned" else figures(10.0, 1) for cell in Paper.cells()})  # type: ignore[attr-defined]


def test_it_wins_with_fewer_gpus_at_no_more_violations() -> None:
    better = made_up(figures(9.0, 1))
    assert better.holds
    assert "the agent wins against 4 of 4: -1.00" in better.summary()
    assert "which is beyond chance" in better.outcome()
    for worse in (figures(9.0, 2), figures(10.0, 1), figures(11.0, 0)):
        paper = made_up(worse)
        assert not paper.holds
        assert "wins against 0 of 4" in paper.summary()
    uncertain = replace(figures(9.9, 0), gpus=(0.0, 19.6) * (SEEDS // 2))
    assert not made_up(uncertain).holds
    page = better.markdown()
    assert "| GPUColo, first fit | -1.00 [-1.00, -1.00] | 1.00% | 1.00% |" in page
    assert len(better.attachments()["days"]) == len(set(rows().values())) * len(DAYS) * SEEDS


def test_opponents_are_first_and_best_fit_with_searched_options() -> None:
    assert list(opponents().values())[:2] == ["gpucolo", "gpucolo(best=True)"]
    first, best = list(opponents().values())[2:]
    assert "best=true" not in first
    assert "best=true" in best
    assert tuned().best("gpucolo").spec in (first, best)
    assert len(tuned().trials["gpucolo"]) * len(tuned().seeds) >= 9_500


def test_days_are_not_those_of_searches_and_trainings() -> None:
    assert max(range(FIRST_SEED, FIRST_SEED + SEEDS)) < min(tuned().seeds) < 10_000_000


def test_the_shipped_agent_plays_as_it_did() -> None:
    """A day of the page, to three digits; and no job violates its SLO by placement."""
    run = run_day(LearnedFleet(), fleet_problem("small", FIRST_SEED))
    plain = run_day(LearnedFleet(moves=False), fleet_problem("small", FIRST_SEED))
    assert fleet_cost(run) < fleet_cost(plain)
    assert run.violations == pytest.approx(0.0, abs=0.02)
