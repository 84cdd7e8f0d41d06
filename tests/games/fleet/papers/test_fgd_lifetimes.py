"""The page of lifetimes judges held-out blocks; its runs are the same wherever they run."""

from __future__ import annotations

from typing import Any

import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.verdicts import run_cells
from gpusched_env.games.fleet.papers.fgd_lifetimes import MARKS, Paper
from gpusched_env.games.fleet.papers.fgd_lifetimes.runs import (
    HELD_OUT,
    LOOKED_AT,
    QueuedBlock,
    QueueFigures,
)
from tests.refusals import refused

QUIET = 9
"""A block in which nobody waits."""


def made(better: float = 1.0, blocks: tuple[int, ...] = HELD_OUT) -> Paper:
    """FGD has ``better`` less of everything than the others, and more in use, on some blocks."""
    runs: dict[Any, Any] = {}
    for cell in Paper.cells():
        assert isinstance(cell, QueuedBlock)
        less = better if cell.policy == "fgd" and cell.block in blocks else 0.0
        waits = 0.0 if cell.block == QUIET else 10.0 - less
        runs[cell] = QueueFigures(
            100, 50.0, 90.0 + less, 5.0 - less, waits, waits, waits, 1.0, tuple([5.0 - less] * 12)
        )
    return Paper(runs)


def test_only_held_out_blocks_are_judged() -> None:
    assert set(HELD_OUT).isdisjoint(LOOKED_AT)
    paper = made()
    assert paper.holds
    assert len(paper.checks()) == 50
    assert paper.summary().startswith("50 of 50 predictions come out")
    assert "1 of\n8 held-out blocks nobody waits" in paper.outcome()
    assert not any(check.holds for check in made(blocks=LOOKED_AT).checks())
    assert not any(check.holds for check in made(better=-1.0).checks())
    assert all(mark.control for mark in MARKS)


def test_a_gain_on_one_block_is_none() -> None:
    assert not any(check.holds for check in made(blocks=HELD_OUT[:1]).checks())


def test_the_page_has_its_tables_and_its_picture() -> None:
    paper = made()
    page = paper.markdown()
    assert "| overtaking | 0.95 | BestFit |" in page
    assert "fgd-lifetimes-blocks.csv.gz" in page
    assert "fgd-lifetimes-queues.svg" in page
    assert b"<svg" in paper.pictures()["queues"]
    assert len(paper.attachments()["blocks"]) == len(paper.runs)


CELLS = [QueuedBlock(QUIET, policy, load, "overtaking") for policy in ("best-fit", "fgd") for load in (0.3, 0.7)]


def test_where_nobody_waits_the_load_is_in_use() -> None:
    found = run_cells(CELLS, workers=1)
    for cell, of in found.items():
        assert of.used_pct == pytest.approx(100.0 * cell.load, abs=1.0)
        assert of.mean_wait_s == of.waited_for_pct == of.large_part == 0.0
        assert len(of.fragmented_by_hour) == 12
    assert found[CELLS[3]].compressed == pytest.approx(7.0 / 3.0 * found[CELLS[2]].compressed)


@pytest.mark.long
def test_runs_on_ray_are_the_same() -> None:
    pytest.importorskip("ray")
    assert run_cells(CELLS, ray_address="local") == run_cells(CELLS, workers=1)


@pytest.mark.long
def test_what_a_task_raises_on_ray_is_the_one_error() -> None:
    pytest.importorskip("ray")
    with refused(InputError, "load is 0") as caught:
        run_cells([QueuedBlock(QUIET, "fgd", 0.0, "overtaking")], ray_address="local")
    assert "Traceback" not in str(caught.value)
