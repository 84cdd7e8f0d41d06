"""The reproduction of Orion: its arrivals, one pair, and the page from figures that stand in."""

from __future__ import annotations

import pytest

from gpusched_env.experiments.papers import orion
from gpusched_env.experiments.papers.orion.runs import (
    IDEAL,
    ORION,
    STREAMS,
    TEMPORAL,
    JobAlone,
    OrionRun,
    OrionTraining,
    Served,
    arrivals,
    network,
)


def test_networks_take_what_their_files_say() -> None:
    """Sums of the operators' durations, ms."""
    sums = {key: sum(op.duration_us for op in network(*key).variants[0].ops) / 1e3 for key in orion.runs.FILES}
    assert sums["ResNet50", "inference"] == pytest.approx(6.498, abs=0.001)
    assert sums["ResNet101", "training"] == pytest.approx(155.93, abs=0.01)


def test_requests_come_as_recorded_or_as_drawn() -> None:
    assert arrivals(10, "ResNet50", requests=4) == pytest.approx([0.0, 31e3, 43e3, 116e3])
    drawn = arrivals(7, "MobileNetV2", requests=4000)
    assert drawn[-1] / 3999 == pytest.approx(1e6 / 40.0, rel=0.05)


@pytest.mark.long
def test_orion_protects_a_request_beside_a_training() -> None:
    p99 = {
        system: OrionRun(7, "ResNet50", "ResNet50", system, requests=20).run("compiled").p99_us
        for system in (IDEAL, ORION, STREAMS, TEMPORAL)
    }
    assert p99[IDEAL] < p99[ORION] < p99[STREAMS] < p99[TEMPORAL]


def test_page_and_data_are_complete() -> None:
    """Where all systems are alike no order comes out."""
    runs: dict[object, object] = {cell: Served(5e4, 1e5, 2e5, 5.0) for cell in orion.Paper.cells()}
    runs |= {cell: JobAlone(10.0) for cell in runs if isinstance(cell, OrionTraining)}
    paper = orion.Paper(runs)
    orders = [check for check in paper.checks() if "below" in check.what]
    assert len(orders) == 2 * 6 * 4
    assert not paper.holds
    assert paper.as_dict()["runs"]
    assert "Figure 10" in paper.markdown()
