"""The page of a fleet at two levels is made of its runs; a small fleet has the same jobs for the same seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.experiments.levels import BlockLevel, SmallFleet
from gpusched_env.games.fleet.papers.fleet_blocks import NAMES, SEEDS, FleetAtLevel, LevelFigures, Paper
from tests.refusals import refused

BLOCKS = LevelFigures(
    gpus=10.0, running=14.0, violations=0.2, late_requests=0.1, latency=0.8, training_stretch=1.5, training_done=0.5,
    decisions=1000,
)  # fmt: skip


def made(rates: LevelFigures) -> Paper:
    return Paper({cell: BLOCKS if cell.level == "blocks" else rates for cell in Paper.cells()})


def test_levels_that_agree_hold() -> None:
    paper = made(replace(BLOCKS, decisions=0))
    assert paper.holds
    assert "6 of 6 predictions come out; largest errors of rates: GPUs in use 0%" in paper.summary()


def test_errors_are_those_of_rates() -> None:
    paper = made(replace(BLOCKS, gpus=11.5, latency=0.6, violations=0.05, decisions=0))
    assert not paper.holds
    assert "largest errors of rates: GPUs in use 15%, latency 25%, work of training 0%" in paper.summary()
    page = paper.markdown()
    assert "With GPUColo 20% of the inference jobs violate their SLO block by block, and 5% by rates." in page
    assert "| GPUColo | blocks | 10.0 | 14.0 | 20.0% | 10.0% | 0.80 | 1.50 | 50% |" in page
    assert "8,000 decisions" in page
    assert len(paper.data()["runs"]) == 2 * len(SEEDS) * len(NAMES)


def test_a_cell_runs_at_both_levels() -> None:
    small = FleetAtLevel("first-fit", "rates", seed=1, seconds=0.5, gpus=2, jobs=5)
    rates, blocks = small.run("compiled"), replace(small, level="blocks").run("compiled")
    assert (rates.decisions, blocks.decisions > 100) == (0, True)
    assert blocks.latency == pytest.approx(rates.latency, rel=0.5)


def test_a_small_fleet_is_that_of_its_seed() -> None:
    one, same, other = (SmallFleet().problem(seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.jobs, same.jobs)
    assert one.programs == same.programs != other.programs
    assert (len(one.jobs), one.gpus) == (40, 16)
    trained = one.jobs["training"] == 1
    assert ["train" in program for program in one.programs] == trained.tolist()
    assert (one.jobs["slo_us"][~trained] > one.jobs["step_us"][~trained]).all()


def test_a_control_without_a_scheduler_is_refused() -> None:
    with refused(InputError, "'gslice'", "gpucolo"):
        BlockLevel()._scheduler("gslice")
