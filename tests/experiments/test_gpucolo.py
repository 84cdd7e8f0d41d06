"""GPUColo on one GPU: runs in which knobs stand or move, and what the page makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.papers.gpucolo import BURST, FIG9, KNOBS, STEADY, TIGHT, Paper
from gpusched_env.experiments.papers.gpucolo import EXAMPLE as JOBS_OF_EXAMPLE
from gpusched_env.experiments.papers.gpucolo.runs import (
    INFERENCE,
    PUBLISHED,
    TRAINING,
    Colocation,
    ControllerRun,
    Example,
    Finish,
    Fixed,
    generated,
    problem,
    slope_ms,
)
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "colocation.yaml"


def made(
    latency_ms: float, steps: float = 1.0, periods: tuple[tuple[float, float, float, float], ...] = ()
) -> Colocation:
    return Colocation(latency_ms, latency_ms, 1e3 / latency_ms, steps, periods)


def test_the_slope_is_that_of_each_percent_of_share() -> None:
    """Shares of 20 and 50 percent with -0.2 ms a second each: -4 and -10 ms a second, at any level."""
    points = {
        Fixed(pause_s, share): made(level - 0.2 * share * pause_s)
        for share, level in ((20.0, 76.0), (50.0, 84.0))
        for pause_s in (0.0, 0.5, 1.0)
    }
    assert slope_ms(points) == pytest.approx(-0.2)


def test_an_iteration_of_generated_kernels_is_as_long_as_the_published_one() -> None:
    workload = generated(1500.0, 0.3)
    assert sum(op.duration_us for op in workload.variants[0].ops) == pytest.approx(200e3, rel=0.08)
    assert workload.kernels[0].blocks == 10 * 6 * 82


def invented() -> Paper:
    """A page of made-up runs: GPUColo at its objective but for 95 ms, twice the training of GSLICE."""
    periods = tuple((4.0 * n, 100.0 if 23 <= n <= 24 else 90.0, 1.0, 80.0) for n in range(1, 101))
    runs = dict.fromkeys(Paper.cells(), made(80.0, 1.0, periods))
    for goal in FIG9:
        runs[STEADY["gpucolo", goal]] = made(min(goal, 92.0), 2.0, periods)
    runs[BURST["gpucolo"]] = made(90.0, 2.0, periods)
    runs[BURST["gslice"]] = made(122.4, 1.0, periods)
    for cell in runs:
        if isinstance(cell, Fixed):
            runs[cell] = made(80.0 - 0.2 * cell.training_share * cell.pause_s)
        if isinstance(cell, Example):
            runs[cell] = Finish(tuple(1.05 * end_s for end_s in PUBLISHED[cell.system]))
    return Paper(runs)


def test_figures_are_judged_by_the_runs() -> None:
    targets = {target.what: target for target in invented().checks()}
    assert targets["Fig. 9: latency at 90 ms"].holds
    assert not targets["Fig. 9: latency at 95 ms"].holds
    assert targets["Fig. 8: inference over GSLICE, %"].ours == pytest.approx(36.0)
    assert targets["Fig. 8: training over GSLICE, %"].ours == pytest.approx(100.0)
    assert not targets["Fig. 8: training over GSLICE, %"].holds
    assert targets["Fig. 6: shares with a steeper slope than the smaller one"].ours == 2


def test_the_reaction_is_counted_from_the_first_late_period_of_the_burst() -> None:
    """84, 77 and 81 ms for 80: the second one is too early, the third within 2 percent. What was late before the burst
    does not count, and what never is in time again does to the end."""
    paper = invented()
    for latencies, expected in (
        ((90.0, 84.0, 77.0, 81.0), 2),
        ((90.0, 80.0, 84.0, 81.0), 1),
        ((90.0, 80.0, 80.0, 80.0), 0),
        ((90.0, 84.0, 84.0, 90.0, 90.0), 4),
    ):
        # The burst begins in the second.
        periods = tuple((84.0 + 4.0 * n, latency, 0.5, 80.0) for n, latency in enumerate(latencies, 1))
        paper.runs[TIGHT] = made(80.0, 2.0, periods)
        assert paper.reaction == expected


def test_two_knobs_are_judged_by_how_much_latency_falls() -> None:
    """By 17 percent in the paper, so between 12 and 23 are good enough; 30 percent of the latency itself would be more
    than what the knob does."""
    for after_ms, holds in ((85.0, True), (95.0, False), (70.0, False)):
        paper = invented()
        paper.runs[KNOBS[2]], paper.runs[KNOBS[3]] = made(100.0), made(after_ms)
        targets = {target.what: target for target in paper.checks()}
        target = targets["Fig. 4: sleep 0.2 -> 0.8 s, latency falls by, %"]
        assert target.ours == pytest.approx(100.0 - after_ms)
        assert target.holds == holds


def test_jobs_of_the_example_alone_take_as_long_as_published() -> None:
    for name, alone_s in {**{name: alone for name, (alone, _) in INFERENCE.items()}, **TRAINING}.items():
        done = play("open-loop", problem((name,)), 0).timeline.jobs.dict()["completed_us"]
        # Nobody waits after the last batch.
        assert done.max() / 1e6 == pytest.approx(alone_s, rel=0.01)


def test_jobs_of_the_example_that_end_near_the_published_time_are_counted() -> None:
    paper = invented()
    assert (paper.near("simple"), paper.near("gpucolo")) == (4, 4)
    paper.runs[JOBS_OF_EXAMPLE["simple"]] = Finish((74.0, 95.0, 110.0, 130.0))
    assert paper.near("simple") == 2
    targets = {target.what: target for target in paper.checks()}
    assert targets["motivating example: finish times within 10 %, of all systems"].ours == 18
    (ends,) = (table.rows for table in paper.below() if table.title.startswith("When the jobs"))
    assert ["simple", "74 s", "74 s", "84 s", "95 s", "110 s", "110 s", "112 s", "130 s"] in ends


def test_gpucolo_holds_the_objectives_of_the_example() -> None:
    simple, colo = (Example(system).run("compiled").seconds for system in ("simple", "gpucolo"))
    for row, (_, goal_s) in enumerate(INFERENCE.values()):
        assert colo[row] < 1.02 * goal_s < simple[row]
        assert colo[row] == pytest.approx(PUBLISHED["gpucolo"][row], rel=0.1)


def test_the_page_has_its_tables() -> None:
    paper = invented()
    assert len(paper.below()) >= 7
    page = paper.markdown()
    assert paper.missed() in page
    assert "\n\nWhy: " in page


@pytest.mark.long
def test_the_inner_tier_holds_latency_at_the_objective() -> None:
    found = ControllerRun("gpucolo", 80.0, 40.0, outer=0).run("compiled")
    assert found.latency_ms == pytest.approx(80.0, rel=0.02)
    assert 0.0 < found.periods[-1][2] < 1.0


@pytest.mark.long
def test_the_example_is_a_scenario_that_controllers_can_play() -> None:
    """Without control batches are later than the objective; GPUColo comes closer, and trains more than the most
    careful."""
    problem = build_problem(load_scenario(EXAMPLE, horizon_us=6e6))
    took, done = {}, {}
    for name in ("open-loop", "gpucolo", "conservative"):
        inference, training = episode_metrics(play(name, problem, 0)).tenants
        took[name], done[name] = inference.turnaround_p50_us, training.completed
    assert took["open-loop"] > 80e3
    assert took["conservative"] < took["gpucolo"] < took["open-loop"]
    assert done["conservative"] < done["gpucolo"]
