"""The reproduction of XSched: its network, its suspensions, and the page from figures that stand in."""

from __future__ import annotations

import pytest

from gpusched_env.experiments.papers import xsched
from gpusched_env.experiments.papers.xsched.levels import RETURN_US, SIGNAL_US, TIMING, PreemptionLevel, PreemptionRun
from gpusched_env.experiments.papers.xsched.network import layers, resnet152
from gpusched_env.experiments.papers.xsched.runs import (
    ALONE,
    BOARDS,
    Latency,
    LatencyRun,
    Throughput,
    ThroughputRun,
)


def test_the_network_has_its_published_layers() -> None:
    """151 convolutions, four shortcuts and a matrix; 11.3e9 multiplications (CVPR 2016, Table 1), 60.2e6 weights."""
    found = list(layers())
    assert len(found) == 151 + 4 + 1
    assert sum(layer.multiplications(1) for layer in found) == pytest.approx(11.3e9, rel=0.03)
    assert sum(layer.inputs * layer.channels for layer in found) == pytest.approx(60.0e6, rel=0.01)


@pytest.mark.parametrize("board", BOARDS)
def test_a_request_alone_takes_what_it_was_given(board: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of = BOARDS[board]
    monkeypatch.setitem(BOARDS, board, of._replace(requests=3))
    found = LatencyRun(board, ALONE).run("compiled")
    assert found.p50_us == pytest.approx(of.alone_us, rel=0.005)


def test_kernels_are_fused_in_an_engine_only() -> None:
    fused, eager = (resnet152("mi50", 29_140.0, runtime, 8, 2.5) for runtime in ("engine", "eager"))
    assert (len(fused.kernels), len(eager.kernels)) == (156, 3 * 156 + 50)


def test_levels_wait_for_the_queue_the_kernel_or_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight kernels in flight, of which the first has run for up to 800 us; the one that runs; and none."""
    monkeypatch.setattr("gpusched_env.experiments.papers.xsched.levels.SUSPENSIONS", 20)
    first, second, third = (PreemptionRun(level, 2000.0).run("compiled") for level in (1, 2, 3))
    assert 8 * 2000.0 - 800.0 <= first.p50 <= 8 * 2000.0 + RETURN_US
    assert 1200.0 <= second.p50 <= 2000.0 + RETURN_US
    assert third.p50 == pytest.approx(SIGNAL_US + TIMING.reset_us + RETURN_US)


def test_page_and_data_are_complete() -> None:
    """With the artefact's own figures everything holds."""
    published = xsched.PUBLISHED
    runs: dict[object, object] = {}
    for cell in xsched.Paper.cells():
        if isinstance(cell, LatencyRun):
            of = published["latency_us"][cell.board][cell.mode]
            runs[cell] = Latency(of["p50"], of["p99"])
        elif isinstance(cell, ThroughputRun):
            runs[cell] = Throughput(tuple(published["throughput_per_s"][cell.board][cell.mode]))
    for level in xsched.LEVELS:
        for length, of in published["preemption_us"][str(level)].items():
            for stretch in (1.0, xsched.STRETCH):
                runs[xsched.run_of(level, length, stretch)] = PreemptionLevel(of["avg"], of["p50"], of["p99"])
    paper = xsched.Paper(runs)
    assert paper.holds
    assert "29 of 29" in paper.summary()
    assert paper.as_dict()["runs"]
    assert "Level 2" in paper.markdown()
