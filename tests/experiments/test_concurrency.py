"""The reproduction of Gilman and Walls: larger batches, and how claims are judged."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from gpusched_env.experiments.lib.recorded import (
    AT_WORK,
    WAITING,
    GraphPair,
    GraphPairs,
    graph_cells,
    measurements,
    recorded_pairs,
)
from gpusched_env.experiments.lib.verdicts import Compared, Finding
from gpusched_env.experiments.papers.concurrency import Paper
from gpusched_env.experiments.papers.concurrency.claims import CLAIMS
from gpusched_env.experiments.papers.concurrency.controls import CONTROLS, ControlledClaim
from gpusched_env.experiments.papers.concurrency.hosts import BOUND_US, SWEPT_US, OneProcess, at_batch
from gpusched_env.experiments.papers.concurrency.recorded import PairSide, cause_of, on_hardware
from gpusched_env.experiments.papers.concurrency.runs import (
    ALONE,
    APART,
    ARRIVALS,
    GPUS,
    MECHANISMS,
    MOST,
    PAIRS,
    PAPERS,
    REQUESTS,
    SEEDS,
    SWITCHED_OFF,
    ConcurrencyRun,
    RunFigures,
    all_cells,
    judged_cells,
)
from gpusched_env.experiments.papers.concurrency.tables import long_share, turnaround_targets
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload


def kernel(name: str, blocks: int, duration_us: float, kind: str = "memory", shared_bytes: int = 0) -> Kernel:
    return Kernel(
        name=name, grid=(blocks, 1, 1), block=(128, 1, 1), registers=32, shared_bytes=shared_bytes,
        duration_us=duration_us, kind=kind,  # type: ignore[arg-type]
    )  # fmt: skip


def workload(*kernels: Kernel) -> Workload:
    ops = tuple(Op(OpKind.KERNEL, 1.0, i, 1.1 * kernel.duration_us, 0) for i, kernel in enumerate(kernels))
    return Workload(
        name="w", gpu="h100-sxm", source="made", kernels=kernels,
        variants=(Variant(ops=(*ops, Op(OpKind.SYNC, 2.0))),), iteration_us=(100.0,),
    )  # fmt: skip


def shape(given: Workload) -> list[tuple[int, int, float, float]]:
    """Blocks, shared memory, profiled and actual duration of each kernel."""
    ops = given.variants[0].ops
    return [
        (k.blocks, k.shared_bytes, k.duration_us, round(op.duration_us, 6))
        for k, op in zip(given.kernels, ops, strict=False)
    ]


def test_a_larger_batch_means_more_blocks_or_longer_ones_or_nothing() -> None:
    recorded = workload(
        kernel("vectorized_elementwise_kernel", 1000, 10.0),
        kernel("batch_norm_backward_kernel", 64, 200.0),
        kernel("multi_tensor_apply_kernel", 320, 50.0),
        kernel("copy_of_a_scalar", 1, 2.0),
    )
    assert shape(at_batch(recorded, 4)) == [
        (4000, 0, 40.0, 44.0),
        (64, 0, 800.0, 880.0),
        (320, 0, 50.0, 55.0),
        (1, 0, 2.0, 2.2),
    ]
    assert "4 times the batch" in at_batch(recorded, 4).source
    assert shape(at_batch(recorded, 1)) == shape(recorded)


def test_full_batch_gives_the_published_share_of_long_kernels() -> None:
    assert long_share() == pytest.approx(0.566, abs=0.05)
    for pair in PAIRS:
        for gpu in GPUS:
            assert len(ConcurrencyRun(gpu, pair, "sequential", "MPS").problem().programs) == 2


def test_every_mechanism_runs_on_every_setting_and_alone() -> None:
    cells = all_cells()
    others = len(GPUS) * len(PAIRS) * len(ARRIVALS) - 1
    assert len(set(cells)) == len(cells) == others * (len(MECHANISMS) + 1) + len(GPUS) * len(PAIRS) - 1
    own = judged_cells()
    assert len(set(own)) == len(own)
    judged = {(cell.mechanism, cell.seed) for cell in own if cell.alone_us == BOUND_US}
    assert judged == {(name, seed) for name in (*ALONE, *MECHANISMS, APART, MOST, *SWITCHED_OFF) for seed in SEEDS}
    assert {cell.alone_us for cell in own} == set(SWEPT_US)


def test_a_request_alone_takes_as_long_as_the_host_speed_says() -> None:
    """The bound of the training seconds: 90 s for 5,000 requests at 1.18 times the time alone."""
    assert pytest.approx(15_254.2, abs=0.1) == BOUND_US
    programs = ConcurrencyRun(*PAPERS, "MPS", BOUND_US).problem().programs
    recorded = ConcurrencyRun(*PAPERS, "MPS").problem().programs
    assert programs[0].alone_us == pytest.approx(BOUND_US, rel=0.01)
    slower = [
        sum(op.host_us for op in ours.variants[0]) / sum(op.host_us for op in theirs.variants[0])
        for ours, theirs in zip(programs, recorded, strict=True)
    ]
    assert slower[0] == pytest.approx(slower[1]), "both hosts are slower by the same factor"


def test_hosts_slow_each_other_under_priority_streams_only() -> None:
    found = {name: ConcurrencyRun(*PAPERS, name).problem().host_contention for name in (*MECHANISMS, APART, MOST)}
    assert {name for name, contention in found.items() if contention != (0.0, 0.0)} == {"priority streams", MOST}
    assert found["priority streams"] == (AT_WORK, WAITING) == (0.64, 0.32)


def figures(**given: float) -> RunFigures:
    plain = {field.name: 1.0 for field in dataclasses.fields(RunFigures)}
    return RunFigures(**{**plain, **given})  # type: ignore[arg-type]


def made_up(first: int = 0, **changed: dict[str, float]) -> Paper:
    """One setting that comes out as the paper says; ``changed`` has other figures by mechanism, in underscores, from
    the ``first`` seed on."""
    table: dict[str, dict[str, float]] = {
        "inference alone": {"turnaround_us": 4000, "variation": 0.0},
        "training alone": {"training_rate": 1.0},
        "priority streams": {"turnaround_us": 8000, "variation": 0.3, "training_rate": 0.8, "utilisation": 0.95},
        "time slicing": {"turnaround_us": 5000, "variation": 0.1, "training_rate": 0.5, "utilisation": 0.7},
        "MPS": {
            "turnaround_us": 7000, "variation": 0.2, "training_rate": 0.9, "utilisation": 0.9,
            "lengthening_us": 500, "training_stretch": 1.1,
        },
        "preemptive": {"turnaround_us": 4400, "training_rate": 0.7, "utilisation": 0.92, "preemptions": 20},
        "preemptive, at block ends": {"turnaround_us": 4800, "training_rate": 0.75},
        "preemptive, SMs reserved": {"turnaround_us": 4200, "training_rate": 0.65, "preemptions": 3},
    }  # fmt: skip
    table |= {
        name: {"turnaround_us": math.nan} for name in (*MECHANISMS, APART, MOST, *SWITCHED_OFF) if name not in table
    }
    runs = {}
    for seed in SEEDS:
        for mechanism, given in table.items():
            other = changed.get(mechanism.replace(" ", "_"), {}) if seed >= first else {}
            runs[ConcurrencyRun(*PAPERS, mechanism, BOUND_US, seed, REQUESTS)] = figures(**{**given, **other})
    return Paper(runs)


def verdicts(paper: Paper) -> dict[str, bool | None]:
    return {finding.claim: finding.holds for finding in paper.findings}


def test_outcomes_are_relative_to_the_tenants_alone() -> None:
    outcome = made_up().by_setting[PAPERS].loc["priority streams"]
    assert (outcome.slowdown, outcome.training_speed, outcome.progress) == pytest.approx((2.0, 0.8, 1.3))


def test_what_the_paper_says_is_judged_to_hold() -> None:
    found = made_up().findings
    assert {finding.holds for finding in found} == {True, None}
    assert [f.observation for f in found if f.holds is None] == ["O2", "O3", "O4", "O6"]
    assert all(f.note for f in found if f.holds is None)
    assert "turnaround +100 %; " in found[0].evidence
    assert (found[0].agree, found[0].settings) == (1, 1)


@pytest.mark.parametrize(
    ("changed", "contradicted"),
    [
        (
            {"priority_streams": {"turnaround_us": 4900}},
            {"the delay compounds", "MPS below priority", "lowest turnaround"},
        ),
        ({"priority_streams": {"variation": 0.05}}, {"less predictable", "most predictable"}),
        ({"priority_streams": {"waiting_us": 0.0}}, {"requests wait for them"}),
        ({"MPS": {"turnaround_us": 4500}}, {"lowest turnaround", "MPS below priority", "both low"}),
        ({"MPS": {"training_rate": 0.745}}, {"best utilisation", "least by MPS", "Occupancy misleads"}),
        ({"MPS": {"lengthening_us": -1.0}}, {"lengthens both"}),
        ({"time_slicing": {"utilisation": 0.99}}, {"poorest utilisation"}),
        ({"time_slicing": {"training_rate": 0.95}}, {"best utilisation", "both low", "bearable", "least by MPS"}),
        ({"preemptive": {"turnaround_us": 6000}}, {"below all of them"}),
        ({"preemptive,_SMs_reserved": {"preemptions": 30}}, {"kept open"}),
        ({"preemptive,_SMs_reserved": {"training_rate": 0.3}}, {"bearable"}),
    ],
)  # fmt: skip
def test_each_claim_can_be_contradicted(changed: dict[str, dict[str, float]], contradicted: set[str]) -> None:
    failed = {claim for claim, holds in verdicts(made_up(**changed)).items() if holds is False}
    assert len(failed) == len(contradicted), failed
    for part in contradicted:
        assert any(part in claim for claim in failed), failed


def test_a_claim_on_which_seeds_disagree_is_undecided() -> None:
    paper = made_up(first=2, MPS={"turnaround_us": 8100})
    (finding,) = (finding for finding in paper.findings if finding.undecided)
    assert "MPS below priority" in finding.claim
    assert (finding.verdict, finding.holds) == ("undecided", None)
    paper.sides = [side(1.0, 1.0)]
    assert "5 of 6 predictions come out;" in paper.summary_line(), "what is undecided counts, and does not come out"

    (added,) = (table.rows for table in paper.below() if "by how fast hosts are" in table.title)
    assert any(list(row)[:4] == ["4.0", "25", "75 to 102", "100"] for row in added)


def test_occupancy_does_not_mislead_if_it_ranks_like_progress() -> None:
    runs = made_up(
        priority_streams={"utilisation": 0.8}, MPS={"utilisation": 0.9},
        time_slicing={"utilisation": 0.5}, preemptive={"utilisation": 0.7},
    )  # fmt: skip
    (claim,) = (claim.text for claim in CLAIMS if claim.observation == "O10")
    assert verdicts(runs)[claim] is False
    assert verdicts(made_up())[claim] is True


def side(simulated: float, recorded: float) -> PairSide:
    return PairSide(
        mode="streams",
        pair="a beside b",
        side="foreground",
        simulated=simulated,
        recorded=recorded,
        tolerance=0.15,
        cause="",
    )


def test_a_side_holds_within_15_per_cent() -> None:
    assert side(1.149, 1.0).holds
    assert not side(1.151, 1.0).holds
    assert not side(0.849, 1.0).holds


def test_sides_are_slowdowns_beside_the_recorded_ones() -> None:
    pair = recorded_pairs()[0]
    together, foreground, background = pair.cells()
    first, second = Paper({together: [300.0, 800.0], foreground: [200.0], background: [400.0]}).sides
    assert (together.networks, foreground, background) == (
        (pair.fg, pair.bg),
        GraphPairs((pair.fg,)),
        GraphPairs((pair.bg,)),
    )
    assert (first.side, first.simulated, second.side, second.simulated) == ("foreground", 1.5, "background", 2.0)
    assert first.recorded == pair.fg_p50_us / pair.fg_solo_us
    assert second.pair == f"{pair.fg} beside {pair.bg}"


def test_causes_are_told_apart_by_what_was_recorded() -> None:
    times = {"fg_p50_us": 500.0, "fg_p99_us": 1100.0, "fg_solo_us": 200.0, "bg_p50_us": 120.0, "bg_solo_us": 100.0}
    pair = GraphPair(mode="streams", fg="a", bg="b", **times)
    assert cause_of(pair, 0, 2.6) == ""
    assert "p99 2.2 times the median" in cause_of(pair, 0, 3.5)
    assert cause_of(msgspec.structs.replace(pair, fg_p99_us=600.0), 0, 3.5) == "unexplained: an error of the simulator"


def test_a_short_run_gives_every_figure() -> None:
    sliced = ConcurrencyRun("rtx-3090", "AlexNet", "sequential", "preemptive", jobs=6).run("compiled")
    assert sliced.requests == 6
    assert all(math.isfinite(value) for value in dataclasses.astuple(sliced))
    assert sliced.preemptions > 0
    alone = ConcurrencyRun("rtx-3090", "AlexNet", "sequential", ALONE[0], jobs=6).run("compiled")
    assert math.isnan(alone.training_rate)
    assert alone.preemptions == 0
    assert alone.waiting_us < 10.0  # behind its own copies


def result(*held: bool | None, sides: tuple[PairSide, ...] = (side(1.0, 1.0),)) -> Paper:
    made = made_up()
    made.findings = [Finding("O1", "a claim", holds, "a figure", 1, 1, "") for holds in held]
    made.controls = [
        ControlledClaim("O1", text, "what it is about", holds, "a figure", False, "another")
        for text, holds in zip(CONTROLS, held, strict=False)
        if holds is not None
    ]
    made.published = [Compared("x", "%", 100.0, 90.0), Compared("y", "%", 75.0, None, "no recording")]
    made.sides = list(sides)
    return made


def test_it_fails_if_a_claim_or_a_recorded_pair_does_not_come_out() -> None:
    assert result(True, None).holds
    assert not result(True, False).holds
    assert not result(True, sides=(side(2.0, 1.0),)).holds
    assert result(True, False).summary_line() == (
        "FAILED: concurrency: 2 of 2 predictions come out; 1 claims fail without their mechanism; 0 of 0 slowdowns "
        "under the mechanisms within 15%"
    )


def test_the_result_is_data() -> None:
    data = result(True, False, None).as_dict()
    assert [row["difference"] for row in data["published"]] == [-10.0, None]
    assert (data["observations"]["hold"], data["observations"]["scored"]) == (1, 2)
    assert data["recorded_pairs"]["each"][0] | {"error": 0.0, "holds": True} == data["recorded_pairs"]["each"][0]
    speeds = {row["mechanism"]: row["training_speed"] for row in data["runs"]}
    assert speeds["priority streams"] == 0.8
    assert math.isnan(speeds[ALONE[1]])


def test_the_page_shows_failures_as_failures() -> None:
    paper = result(True, False, None, sides=(side(2.0, 1.0),))
    rows = {table.title: [list(row) for row in table.rows] for table in paper.below()}
    for verdict in ("contradicted", "not scored"):
        assert ["O1", "a claim", verdict, "1 of 1", "a figure"] in rows["Observations"]
    beyond = ["a beside b", "streams", "foreground", "2.00", "1.00", "+100.0%", "off", ""]
    assert beyond in rows["Sides beyond the limit"]
    assert ["y", "75 %", "–", "–", "no recording"] in rows["Published figures"]
    runs = rows["ResNet-50, sequential, rtx-3090: alone 4.00 ms"]
    assert ["priority streams", "8.00", "+100 %"] in [row[:3] for row in runs]


@pytest.fixture(scope="module")
def few() -> Paper:
    """The judged setting with one seed and a few requests, and the order at twice the time alone."""
    order = ("time slicing", "MPS", "priority streams")
    cells = [ConcurrencyRun(*PAPERS, each, BOUND_US, 0, 12) for each in (*ALONE, *MECHANISMS)]
    cells += [ConcurrencyRun(*PAPERS, each, 2.0 * BOUND_US, 0, 12) for each in (*ALONE, *order)]
    return Paper({cell: cell.run("compiled") for cell in cells})


@pytest.mark.slow
def test_what_comes_out_in_the_papers_own_setting(few: Paper) -> None:
    # MPS and priority streams are too close to tell at the least time alone that the training seconds allow.
    assert {f.observation for f in few.findings if f.holds is False} <= {"results"}
    slowdown = few.by_setting[PAPERS].slowdown
    assert slowdown["time slicing"] < 1.2 < slowdown["priority streams"]
    assert slowdown["preemptive"] < 1.02


@pytest.mark.slow
def test_the_published_order_comes_out_with_slower_hosts(few: Paper) -> None:
    (at,) = few.by_host[2.0 * BOUND_US]
    assert at.slowdown["time slicing"] < at.slowdown["MPS"] < at.slowdown["priority streams"]


def test_hosts_of_one_process_are_slowed_as_recorded() -> None:
    """ResNet-50 beside ResNet-50 at batch 32, which hardly waits: predicted from hosts alone."""
    apart, together = (OneProcess("resnet50", 32, hosts).run("compiled") for hosts in ("apart", "at work"))
    assert apart.simulated < 1.1
    assert together.simulated == pytest.approx(together.recorded, rel=0.05)


@pytest.fixture(scope="module")
def sides() -> Sequence[PairSide]:
    """Foreground and background of every recorded pair."""
    return Paper.simulate(workers=2, cells=graph_cells(recorded_pairs())).sides


@pytest.mark.slow
def test_recorded_pairs_that_are_not_within_15_per_cent_have_a_cause(sides: Sequence[PairSide]) -> None:
    assert len(sides) == 72
    assert all(s.cause for s in sides if not s.holds)


@pytest.mark.slow
@pytest.mark.xfail(reason="68 since nodes of graphs come later beside others: unseen pairs are better, two here worse")
def test_recorded_pairs_are_within_15_per_cent(sides: Sequence[PairSide]) -> None:
    assert sum(s.holds for s in sides) >= 70


def test_recorded_mechanisms_are_related_to_the_tasks_alone_before_them() -> None:
    def row(what: str, inference: float, training: float) -> dict[str, Any]:
        sides = {"inference_us": {"mean_us": inference}, "training_us": {"mean_us": training}}
        return {"what": what, "form": "eager", "inference": "net", "batch": 8, **sides}

    rows = [row("alone", 10.0, 100.0), row("streams", 15.0, 120.0), row("hosts only", 20.0, 7.0)]
    found = on_hardware([*rows, row("alone", 20.0, 50.0), row("time slicing", 30.0, 100.0)])
    assert found.index.get_level_values("alone_ms").tolist() == [0.01, 0.02]
    first, second = (found.iloc[i].dropna().drop("alone", level=1).to_dict() for i in (0, 1))
    assert {key: value for key, value in first.items() if key != ("training", "hosts only")} == {
        ("turnaround", "streams"): 1.5,
        ("turnaround", "hosts only"): 2.0,
        ("training", "streams"): 1.2,
    }
    assert second == {("turnaround", "time slicing"): 1.5, ("training", "time slicing"): 2.0}


def test_what_was_recorded_on_an_h100() -> None:
    found = on_hardware(measurements("sharing_modes.jsonl")).turnaround
    assert len(found) == 10
    (resnet,) = found.xs(("resnet50", "eager", 256), level=("inference", "form", "batch")).to_dict("records")
    assert resnet["priority streams"] < resnet["time slicing"] < resnet["streams"], "not the published order"
    assert sorted(found["hosts only"].dropna() > 1.5) == [False, True, True, True]


def test_published_turnarounds_are_judged_by_what_they_are_over_those_alone() -> None:
    """78 % for 103 % are 1.78 for 2.03, within 15 %; nothing for 18 % is not."""
    added = {("ResNet-50", "priority streams"): 78.0, ("ResNet-50", "time slicing"): 0.0}
    first, second = turnaround_targets(added)
    assert (first.what, first.published, first.holds) == (
        "published turnaround: ResNet-50, priority streams",
        "2.03",
        True,
    )
    assert (second.published, second.ours, second.holds) == ("1.18", 1.0, False)
