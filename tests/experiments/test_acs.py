"""The reproduction of ACS, on three programs."""

from __future__ import annotations

import json

import pytest

from gpusched_env.experiments.papers import acs

PROGRAMS = ("bodies6_step_b2048", "dynamic_routing_input0_b4", "amoebanet_infer_b1", "lstm_infer_b16_t50")


@pytest.fixture(scope="module")
def paper() -> acs.Paper:
    cells = [cell for cell in acs.Paper.cells() if isinstance(cell, acs.AcsRun) and cell.program in PROGRAMS]
    return acs.Paper.simulate(workers=1, cells=cells)


@pytest.mark.long
def test_who_gains_and_who_loses_is_as_published(paper: acs.Paper) -> None:
    found = paper.speedups.loc[acs.SIMULATOR_GAP_US]
    assert (found[f"{acs.HW}, 32"] > found[f"{acs.SW}, 32"]).all()
    assert (found[acs.GRAPH] < 1.0).all(), "made for each input, a graph costs more than it gains"
    assert (found[acs.BEFORE] > 1.2).all()
    assert (found[acs.SLOW_SW] < found[f"{acs.SW}, 32"]).all()


@pytest.mark.long
def test_larger_windows_gain_a_little_where_the_host_is_quick(paper: acs.Paper) -> None:
    by_host = paper.by_host
    assert 1.0 < by_host.loc[1.0, f"{acs.HW}, 32"] / by_host.loc[1.0, f"{acs.HW}, 16"] < 1.1
    assert by_host.loc[5.0].std() < by_host.loc[0.0].std()


@pytest.mark.long
def test_longer_kernels_leave_less_to_gain_between_them(paper: acs.Paper) -> None:
    by_length = paper.by_length[f"{acs.HW}, 32"]
    for kind in (acs.DYNAMIC, acs.STATIC):
        assert by_length.loc[kind].loc[2.0:].is_monotonic_decreasing, "below, the host is the limit of some"
    assert 1.0 < by_length.loc[acs.DYNAMIC, 8.0] < 1.3, "towards what may run side by side"


def test_programs_are_described() -> None:
    step = acs.facts("bodies6_step_b2048")
    assert (step["kernels"], step["levels"]) == (101, 74)
    assert step["parallelism"] == pytest.approx(1.36, abs=0.01)


@pytest.mark.long
def test_page_and_data_are_complete(paper: acs.Paper) -> None:
    data = json.loads(json.dumps(paper.as_dict()))
    assert {row["program"] for row in data["speedups"]} == set(PROGRAMS)
    assert len(data["targets"]) == 12
    page = paper.markdown()
    for heading in ("Published figures and ours", "Occupancy", "Programs", "Time of a check"):
        assert f"## {heading}" in page
