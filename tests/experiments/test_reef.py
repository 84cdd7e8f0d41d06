"""The reproduction of REEF: one workload, and the page from figures that stand in."""

from __future__ import annotations

import pytest

from gpusched_env.experiments.papers import reef


@pytest.mark.long
def test_killing_protects_requests_where_waiting_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reef, "HORIZON_US", 100_000.0)
    found = {of: reef.LoadRun("A", of).run("compiled") for of in (reef.ALONE, reef.REEF, reef.WAITS, reef.SEQUENTIAL)}
    latencies = {of: served.latency_us[0] for of, served in found.items()}
    assert latencies[reef.ALONE] <= latencies[reef.REEF] < latencies[reef.WAITS] < latencies[reef.SEQUENTIAL]
    assert found[reef.REEF].all_per_s > found[reef.ALONE].all_per_s


def test_page_and_data_are_complete() -> None:
    """Where everything is as alone, latencies hold and throughput does not."""
    runs = {
        cell: reef.ReefServed((1e4,) * len(reef.LOADS[cell.load].urgent), 100.0, 100.0)
        for cell in reef.Paper.cells()
        if isinstance(cell, reef.LoadRun)
    }
    paper = reef.Paper(runs)
    assert [check.holds for check in paper.checks()] == [True] * 5 + [False]
    assert paper.as_dict()["runs"]
    assert "real time alone" in paper.markdown()
