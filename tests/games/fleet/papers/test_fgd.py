"""Published runs come out to the last digit; the page says what differs; a run that was ended goes on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.games.fleet.papers.fgd import Paper
from gpusched_env.games.fleet.papers.fgd.runs import (
    NAMES,
    SEEDS,
    WORKLOADS,
    AllocationCurves,
    ClusterCurves,
    PlacedWorkload,
    equal_runs,
    published,
)


@pytest.mark.parametrize("policy", [policy for policy in NAMES if policy != "random"])
def test_a_published_run_comes_out_to_the_last_digit(policy: str) -> None:
    """Allocation and fragmentation at each of 131 per cents, of a seed that nothing was found with."""
    seed = 46
    found = PlacedWorkload("multigpu20", policy, seed).run("compiled")
    theirs = published("multigpu20", policy)
    place = SEEDS.index(seed)
    assert np.abs(np.array(found.allocation) - theirs.allocation[place]).max() <= 0.005 + 1e-6
    assert np.abs(np.array(found.fragmentation) - theirs.fragmentation[place]).max() <= 0.005 + 1e-6


def test_random_has_the_published_mean() -> None:
    ours = [PlacedWorkload("cpu200", "random", seed).run("compiled").allocation[-1] for seed in SEEDS]
    theirs = published("cpu200", "random")
    assert np.mean(ours) == pytest.approx(theirs.used, abs=0.3)


def made() -> Paper:
    """The published curves in place of ours."""
    runs = {}
    for cell in Paper.cells():
        assert isinstance(cell, PlacedWorkload)
        theirs = published(cell.workload, cell.policy)
        place = SEEDS.index(cell.seed) if cell.seed in SEEDS else 0
        runs[cell] = ClusterCurves(tuple(theirs.allocation[place]), tuple(theirs.fragmentation[place]))
    return Paper(runs)


def changed(paper: Paper, policy: str, used: float, fragmented: float) -> Paper:
    """All runs of a policy with so many points more in use, and so many times as much fragmented."""
    return Paper(
        {
            cell: of
            if cell.policy != policy
            else replace(
                of,
                allocation=tuple(np.array(of.allocation) + used),
                fragmentation=tuple(np.array(of.fragmentation) * fragmented),
            )
            for cell, of in paper.runs.items()
        }
    )


def test_the_page_judges_its_runs() -> None:
    paper = made()
    assert paper.holds
    assert len(paper.checks()) == 3 * 54 + 9 + 5
    assert paper.summary().startswith("176 of 176 predictions come out")
    assert "450 of 450 published runs" in paper.outcome()
    page = paper.markdown()
    assert "| cpu050 | 91.24 (91.24) |" in page
    assert "## A cluster of your own" in page
    assert len(paper.attachments()["curves"]) == 54 * 131


@pytest.mark.parametrize(
    ("used", "fragmented", "off"),
    [
        (0.0, 1.07, "largest difference of fragmentation in %, cpu050, FGD"),
        (0.8, 1.0, "largest difference of the curve in points, cpu050, FGD"),
        (-0.5, 1.0, "% of GPUs in use, cpu050, FGD"),
        (-4.0, 1.0, "pairs of policies out of order, cpu050"),
        (0.02, 1.0, "runs of new seeds equal to the last digit, FGD"),
    ],
)
def test_a_difference_is_off(used: float, fragmented: float, off: str) -> None:
    checks = changed(made(), "fgd", used, fragmented).checks()
    assert off in [check.what for check in checks if not check.holds]


def test_runs_are_equal_up_to_rounding() -> None:
    theirs = AllocationCurves(np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros((2, 2)))
    ours = AllocationCurves(theirs.allocation + np.array([[0.005, 0.0], [0.0, 0.006]]), theirs.fragmentation)
    assert equal_runs(ours, theirs).tolist() == [True, False]


def test_finished_runs_are_kept(tmp_path: Path) -> None:
    """Two of four are there, and half a line; all are equal to the last bit, however many processes there are."""
    cells = [PlacedWorkload("cpu050", policy, seed) for policy in ("random", "fgd") for seed in SEEDS[:2]]
    whole = Paper.simulate(workers=1, cells=cells)
    Paper.simulate(workers=1, cells=cells[:2], kept=Paper.kept(tmp_path, "compiled"))
    with (tmp_path / "fgd.jsonl").open("ab") as file:
        file.write(b'{"cell": {"kind": ')
    told: list[int] = []
    again = Paper.simulate(
        workers=2, cells=cells, kept=Paper.kept(tmp_path, "compiled"), on_progress=lambda done, _: told.append(done)
    )
    assert told == [3, 4]
    assert again.runs == whole.runs
    assert list(again.runs) == cells
    assert Paper.kept(tmp_path, "compiled").of(cells) == whole.runs
    assert WORKLOADS[0] == "default"
