"""The reproduction of Atos: what a small graph gives, how it is judged and shown."""

from __future__ import annotations

import pytest

from gpusched_env.games.task_queues.papers import atos
from gpusched_env.games.task_queues.papers.atos import BLOCK, DISCRETE, WARP, FormRun, OnGraph, Paper, Runs
from gpusched_env.games.task_queues.papers.atos.several import GpusRun, OnGpus


def runs(cell: OnGraph | OnGpus, overwork: float = 1.1) -> Runs | GpusRun:
    """A discrete form is quicker than a persistent one by a fifth; warps by half, but on hubs. Searches take longer on
    more GPUs, rankings half as long on twice as many."""
    if isinstance(cell, OnGpus):
        ms = 10.0 + cell.gpus if cell.application == "bfs" else 10.0 / cell.gpus
        return GpusRun(ms, 100, 1.0 + 0.1 * cell.gpus, 50, 5, 0.2, 50)
    by_form = {BLOCK.name: 10.0, DISCRETE.name: 8.0, WARP.name: 40.0 if cell.graph == atos.HUBS else 5.0}
    found = [FormRun(form.name, by_form.get(form.name, 9.0), 100, overwork, 1, 50) for form in cell.forms]
    return Runs(100, 400, 9, tuple(found))


@pytest.fixture
def made_up() -> Paper:
    return Paper({cell: runs(cell) for cell in Paper.cells()})


def test_what_is_judged(made_up: Paper) -> None:
    held = {check.what: check.holds for check in made_up.checks()}
    assert len(held) == 42
    assert held[atos.RATIO.format("social")]
    assert not held[atos.RATIO.format("road")]
    assert held["hubs, warps over blocks: time"]
    assert not held["blocks, fetch 32, over warps: time"]
    assert held["overwork of a persistent search: road"]
    assert not made_up.holds


def test_the_page_begins_with_what_came_out(made_up: Paper) -> None:
    lines = made_up.markdown().splitlines()
    assert lines[0] == "# Atos"
    bold = next(line for line in lines if line.startswith("**"))
    assert bold.startswith(f"**{made_up.tally()}; ")
    assert made_up.tally().endswith(" of 41 predictions come out")
    assert made_up.missed() in lines
    assert "blocks, fetch 32, over warps: time (2 for at least 8)" in made_up.missed()


def test_neighbours_that_a_block_colours_at_once() -> None:
    """Blocks of 32 colour vertices that are neighbours at one time, and most of them again; warps do so one by one."""
    found = OnGraph("small mesh", "colouring", (BLOCK, WARP)).run("compiled")
    assert found.of(BLOCK).overwork > 4.0
    assert found.of(WARP).overwork < found.of(BLOCK).overwork / 2.0


def test_long_ways_are_for_persistent_workers() -> None:
    """The paper's crossing: 4.2 on a road network."""
    found = OnGraph("small road", "bfs", (BLOCK, DISCRETE)).run("compiled")
    assert found.of(DISCRETE).ms > 2.5 * found.of(BLOCK).ms
    assert found.of(DISCRETE).overwork < 1.05
