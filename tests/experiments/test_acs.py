"""The reproduction of ACS, on three programs."""

from __future__ import annotations

import json

import pytest

from gpusched_env.experiments.papers import acs
from gpusched_env.experiments.papers.acs import batches, runs
from gpusched_env.experiments.papers.acs.bracketed import Bracketed
from gpusched_env.workload.profile import profile_kernel

PROGRAMS = (
    "bodies6_step_b32768",
    "bodies6_step_b2048",
    "dynamic_routing_input0_b4",
    "amoebanet_infer_b1",
    "lstm_infer_b16_t50",
)


@pytest.fixture(scope="module")
def paper() -> acs.Paper:
    cells = [cell for cell in acs.Paper.cells() if isinstance(cell, runs.AcsRun) and cell.program in PROGRAMS]
    return acs.Paper.simulate(workers=1, cells=cells)


@pytest.mark.long
def test_who_gains_and_who_loses_is_as_published(paper: acs.Paper) -> None:
    found = paper.speedups.loc[runs.SIMULATOR_GAP_US]
    assert (found[f"{runs.HW}, 32"] > found[f"{runs.SW}, 32"]).all()
    assert (found[runs.GRAPH] < 1.0).all(), "made for each input, a graph costs more than it gains"
    assert (found[runs.BEFORE] > 1.1).all()
    assert (found[runs.SLOW_SW] < found[f"{runs.SW}, 32"]).all()


@pytest.mark.long
def test_larger_windows_gain_nothing_where_kernels_fill_the_gpu(paper: acs.Paper) -> None:
    by_host = paper.by_host
    assert by_host.loc[1.0, f"{runs.HW}, 32"] == pytest.approx(by_host.loc[1.0, f"{runs.HW}, 16"], rel=0.02)
    assert (by_host.loc[0.0] > by_host.loc[5.0]).all(), "a host that is slow leaves less to gain"


@pytest.mark.long
def test_longer_kernels_leave_less_to_gain_between_them(paper: acs.Paper) -> None:
    by_length = paper.by_length[f"{runs.HW}, 32"]
    for kind in (runs.DYNAMIC, runs.STATIC):
        assert by_length.loc[kind].loc[2.0:].is_monotonic_decreasing, "below, the host is the limit of some"
    assert 1.0 < by_length.loc[runs.DYNAMIC, 8.0] < 1.3, "towards what may run side by side"


def test_a_larger_batch_has_more_of_the_same_blocks() -> None:
    recorded = runs.load_program(acs.INSTANAS)
    larger = batches.in_batches(recorded, 16)
    for old, new in zip(recorded.kernels, larger.kernels, strict=True):
        assert new.blocks == 16 * old.blocks
        assert new.duration_us >= 0.999 * old.duration_us
        was, now = (profile_kernel(one, recorded.spec, recorded.spec).block[0].tolist() for one in (old, new))
        assert now == pytest.approx(was, rel=1e-6)
    assert batches.in_batches(recorded, 1) is recorded
    by_op = zip(recorded.variants[0].all_ops, larger.variants[0].all_ops, strict=True)
    assert all((old.reads, old.writes, old.host_us) == (new.reads, new.writes, new.host_us) for old, new in by_op)


def test_the_batch_is_the_smallest_that_is_as_near_as_any() -> None:
    assert batches.nearest({1: 0.1, 2: 0.3, 4: 0.45, 8: 0.6}, 0.39) == 4
    assert batches.nearest({1: 0.1, 2: 0.33, 4: 0.38, 8: 0.385, 64: 0.39}, 0.39) == 4
    assert batches.nearest({1: 0.6, 2: 0.7}, 0.39) == 1


@pytest.mark.parametrize("program", ["amoebanet_infer_b1", "dynamic_routing_input0_b4"])
def test_batches_are_those_of_the_rule(program: str) -> None:
    cells = {times: runs.AcsRun(program, runs.SERIAL, runs.SIMULATOR_GAP_US, times=times) for times in batches.TRIED}
    found = {times: cell.run("compiled").occupancy for times, cell in cells.items()}
    assert batches.nearest(found, acs.OCCUPANCY[acs.INSTANAS]) == batches.TIMES[program]


def test_programs_are_described() -> None:
    step = runs.facts("bodies6_step_b2048")
    assert (step["kernels"], step["levels"], step["own_levels"]) == (101, 74, 44)
    assert step["parallelism"] == pytest.approx(1.36, abs=0.01)
    assert step["own_parallelism"] == pytest.approx(2.29, abs=0.01)


@pytest.mark.parametrize(
    ("again", "own", "bracket", "holds"),
    [
        (1.2, 1.4, False, False),
        (1.2, 1.4, True, False),
        (1.2, 2.0, False, False),
        (1.2, 2.0, True, True),
        (2.0, 1.2, True, True),
        (1.5, 1.0, False, True),
        (1.0, 1.9, False, True),
    ],
)
def test_a_figure_holds_near_either_graph_or_between_them(again: float, own: float, bracket: bool, holds: bool) -> None:
    assert Bracketed("speed-up", 1.66, 1.66, again, own, 0.249, bracket).holds == holds


@pytest.mark.long
def test_memory_of_its_own_lets_software_gain_more(paper: acs.Paper) -> None:
    software = paper.by_memory[f"{runs.SW}, 32"].unstack()
    assert (software[runs.OWN] >= software[runs.AGAIN]).all()
    assert software.loc[runs.RL, runs.OWN] > 1.15 * software.loc[runs.RL, runs.AGAIN]


@pytest.mark.long
def test_physics_steps_fill_the_gpu_as_published(paper: acs.Paper) -> None:
    ours = {row["what"]: row["ours"] for row in paper.occupancies() if row["what"] == runs.RL}
    assert ours[runs.RL] == pytest.approx(acs.OCCUPANCY[runs.RL], abs=0.1)


@pytest.mark.long
def test_page_and_data_are_complete(paper: acs.Paper) -> None:
    data = json.loads(json.dumps(paper.as_dict()))
    assert {row["program"] for row in data["speedups"]} == set(PROGRAMS)
    assert len(data["targets"]) == 17
    titles = {table.title for table in (*paper.leads(), *paper.below())}
    for heading in ("Published figures and ours", "Occupancy", "Programs", "Time of a check"):
        assert heading in titles
