"""The page of the queue's agent judges held-out blocks, against everyone and the best of each block."""

from __future__ import annotations

from typing import Any

from gpusched_env.games.fleet.papers.cluster_queue_agent import (
    AGENT,
    OPPONENTS,
    DrawnStreams,
    OrderedBlock,
    Paper,
    Waited,
    player_of,
)
from gpusched_env.games.fleet.papers.fgd_lifetimes.runs import (
    HELD_OUT,
    LOOKED_AT,
    QueuedBlock,
    QueueFigures,
    play_block,
)


def made(less: float, blocks: tuple[int, ...] = HELD_OUT) -> Paper:
    """The agent waits for ``less`` than the others on some blocks."""
    runs: dict[Any, Any] = {}
    for cell in Paper.cells():
        if isinstance(cell, DrawnStreams):
            runs[cell] = Waited((1.0, 2.0))
            continue
        assert isinstance(cell, OrderedBlock | QueuedBlock)
        agent = isinstance(cell, OrderedBlock) and cell.order == AGENT and cell.block in blocks
        waits = 10.0 - (less if agent else 0.0)
        runs[cell] = QueueFigures(100, 50.0, 90.0, 5.0, waits, waits, waits, 1.0, (5.0,) * 12)
    return Paper(runs)


def test_only_held_out_blocks_are_judged() -> None:
    paper = made(1.0)
    assert len(paper.checks()) == 2 * (len(OPPONENTS) + 1)
    assert paper.holds
    assert "In 16 of the 16 held-out blocks" in paper.outcome().replace("\n", " ")
    for other in (made(1.0, LOOKED_AT), made(-1.0), made(1.0, HELD_OUT[:1])):
        assert not any(check.holds for check in other.checks())


def test_the_page_has_its_tables_and_the_training() -> None:
    page = made(1.0).markdown()
    assert "| 0.95 | Packing, shortest first |" in page
    assert "gpusched train-cluster-queue --steps 1000 --seed 0" in page
    assert len(made(1.0).attachments()["blocks"]) == 16 * 4 * 11


def test_without_an_order_it_is_fgd() -> None:
    """On a block that was looked at."""
    assert play_block(10, 1.0, player_of("", "fgd")) == QueuedBlock(10, "fgd", 1.0, "overtaking").run("")
