"""The paper's networks on a real GPU: what was recorded, how it is judged, and what is simulated of it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gpusched_env.experiments.papers.concurrency import recorded as shared_claims
from gpusched_env.experiments.papers.concurrency import recorded as shared_tables
from gpusched_env.experiments.papers.concurrency import runs as shared
from gpusched_env.experiments.papers.concurrency.controls import outcome
from gpusched_env.experiments.papers.concurrency.recorded import (
    RECORDED_CLAIMS,
    SharedSide,
    magnitudes_table,
    order_by_lock,
    recorded_findings,
    recorded_table,
    resnet50,
    rises,
    shared_sides,
    shared_table,
)
from gpusched_env.experiments.papers.concurrency.runs import (
    LAUNCHERS,
    NETWORKS,
    ONE_PROCESS,
    PAIRS,
    PAPERS,
    SCHEDULERS,
    ConcurrencyRun,
    SharedRun,
    SharedSlowdown,
    host_shares,
    shared_cells,
    shared_rows,
    training_hosts,
)
from gpusched_env.scenarios.building import load_workload
from tests.experiments.test_concurrency import made_up, result

Key = tuple[str, str, str]


def figures(mean_us: float | None, std_us: float = 0.0, n: int = 100) -> dict[str, Any]:
    return {"n": n, "mean_us": mean_us, "std_us": std_us}


def rows(**changed: Any) -> dict[Key, dict[str, Any]]:
    """Every network alike: 10 ms alone; 12 ms in slices, 14 ms under priority streams, 15 beside hosts."""
    whats = {
        "alone": (figures(10e3), figures(100e3)),
        "time slicing": (figures(12e3, 1e3), figures(150e3, 1e3)),
        "priority streams": (figures(14e3, 3e3), figures(110e3, 1e3)),
        "streams": (figures(16e3), figures(105e3)),
        "hosts only": (figures(15e3), figures(20e3)),
        "lock only": (figures(10.5e3), figures(None)),
    }
    found: dict[Key, dict[str, Any]] = {}
    for network in NETWORKS:
        for launcher in LAUNCHERS:
            for what, (inference, training) in whats.items():
                small = {"alone_training_us": figures(18e3 if launcher == "eager" else 9e3)}
                row = {"inference_us": inference, "training_us": training, "batch": 64, **small}
                found[network, launcher, what] = row
    return found


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[Key, dict[str, Any]]:
    """Made-up rows in place of the recorded ones."""
    found = rows()
    for module in (shared, shared_claims, shared_tables):
        monkeypatch.setattr(module, "shared_rows", lambda: found)
    return found


def test_all_that_was_recorded_is_there() -> None:
    whats = {"alone", "hosts only", "lock only", *SCHEDULERS}
    assert set(shared_rows()) == {(name, form, what) for name in NETWORKS for form in LAUNCHERS for what in whats}
    assert len(shared_cells()) == len(set(shared_cells())) == len(NETWORKS) * len(LAUNCHERS) * len(SCHEDULERS)


def test_the_lock_holds_up_requests_that_python_launches_and_no_others() -> None:
    for network in NETWORKS:
        found = {}
        for launcher in LAUNCHERS:
            alone, beside = (shared_rows()[network, launcher, what] for what in ("alone", "lock only"))
            found[launcher] = beside["inference_us"]["mean_us"] / alone["inference_us"]["mean_us"]
        assert found["eager"] > 100.0
        assert 0.9 < found["compiled"] < 1.15


def test_trainings_fill_24_gb_but_would_not_fit_twice() -> None:
    for network in NETWORKS:
        for launcher in LAUNCHERS:
            row = shared_rows()[network, launcher, "alone"]
            assert 12e9 < row["memory_bytes"] < 24e9
            load_workload(f"{network}_fp32_train_b{row['batch']}")


def test_hosts_slow_each_other_by_what_is_recorded(made: dict[Key, dict[str, Any]]) -> None:
    assert host_shares("vgg19", "eager") == pytest.approx((0.5, 0.25))
    made["vgg19", "eager", "hosts only"]["inference_us"] = figures(9e3)
    assert host_shares("vgg19", "eager") == (0.0, 0.0)


def test_the_host_of_a_training_is_as_fast_as_that_of_the_small_one(made: dict[Key, dict[str, Any]]) -> None:
    assert (training_hosts("eager"), training_hosts("compiled")) == (1.0, 0.5)
    made["vgg19", "compiled", "hosts only"]["alone_training_us"] = figures(18e3)
    assert training_hosts("compiled") == 0.5, "the median of networks"


def test_slowdowns_are_over_the_tasks_alone_of_the_same_launcher(made: dict[Key, dict[str, Any]]) -> None:
    made["vgg19", "compiled", "alone"]["inference_us"] = figures(5e3)
    assert SharedRun("vgg19", "eager", "time slicing").recorded() == SharedSlowdown(1.2, 1.5)
    assert SharedRun("vgg19", "compiled", "time slicing").recorded() == SharedSlowdown(2.4, 1.5)
    made["vgg19", "eager", "time slicing"]["training_us"] = figures(None, n=0)
    assert math.isnan(SharedRun("vgg19", "eager", "time slicing").recorded().training)


def test_what_fails_or_is_missing_is_not_simulated(made: dict[Key, dict[str, Any]]) -> None:
    del made["vgg19", "eager", "streams"]
    del made["vgg19", "compiled", "hosts only"]
    missing = {("vgg19", "eager", "streams"), *(("vgg19", "compiled", mode) for mode in SCHEDULERS)}
    cells = {(cell.network, cell.launcher, cell.mode) for cell in shared_cells()}
    assert cells == {(n, form, mode) for n in NETWORKS for form in LAUNCHERS for mode in SCHEDULERS} - missing


def test_an_order_is_judged_by_means_that_differ_by_more_than_their_error(made: dict[Key, dict[str, Any]]) -> None:
    turnaround, training, spread = RECORDED_CLAIMS
    assert [rises(claim, "vgg19", "eager") for claim in RECORDED_CLAIMS] == [True, True, True]
    # Standard errors 100 and 300 us, together 316 us: twice that is 632 us.
    slicing = made["vgg19", "eager", "time slicing"]
    for mean_us, verdict in ((13_300.0, True), (13_400.0, None), (14_600.0, None), (14_700.0, False)):
        slicing["inference_us"] = figures(mean_us, 1e3)
        assert rises(turnaround, "vgg19", "eager") is verdict
    slicing["inference_us"] = figures(10e3, 2.2e3)
    assert rises(spread, "vgg19", "eager") is False
    slicing["training_us"] = figures(109e3, 1e3)
    assert rises(training, "vgg19", "eager") is False


def test_a_claim_holds_if_it_does_for_every_network() -> None:
    def judge(of: dict[str, bool | None]) -> list[tuple[str, bool | None, str, int]]:
        found = recorded_findings(judge=lambda claim, network, launcher: of[network])
        return [(each.verdict, each.holds, each.evidence, each.agree) for each in found]

    every = judge(dict.fromkeys(NETWORKS, True))
    assert set(every) == {("holds", True, "so for VGG-19, DenseNet-201, ResNet-152", 3)}
    assert len(every) == len(RECORDED_CLAIMS) * len(LAUNCHERS)
    none = judge(dict.fromkeys(NETWORKS, False))
    assert none[0] == ("contradicted", False, "not for VGG-19, DenseNet-201, ResNet-152", 0)
    some = judge({"vgg19": False, "densenet201": True, "resnet152": None})
    assert some[0] == ("undecided", None, "so for DenseNet-201; not for VGG-19; equal for ResNet-152", 1)


def test_what_the_recording_says_of_the_paper() -> None:
    found = {finding.claim: finding for finding in recorded_findings()}
    python, compiled = (
        found[f"turnaround shorter in slices than under priority streams, launched by {name}"]
        for name in ("Python", "compiled code")
    )
    assert (python.verdict, python.agree) == ("undecided", 1)
    assert (compiled.verdict, compiled.agree) == ("contradicted", 0)
    steps = [(f.verdict, f.evidence) for f in found.values() if "training steps" in f.claim]
    every = "so for VGG-19, DenseNet-201, ResNet-152"
    assert steps == [("undecided", "so for VGG-19, ResNet-152; equal for DenseNet-201"), ("holds", every)]
    assert [f.agree for f in found.values() if "predictable" in f.claim] == [3, 2]


def side(
    simulated: float, recorded: float = 1.0, task: str = "turnaround", mode: str = "priority streams"
) -> SharedSide:
    return SharedSide(
        network="VGG-19",
        launched="Python",
        mode=mode,
        task=task,
        simulated=simulated,
        recorded=recorded,
        tolerance=0.15,
    )


def test_what_is_simulated_stands_beside_a_verdict(made: dict[Key, dict[str, Any]]) -> None:
    sides = [
        side(1.5),
        side(1.4, mode="time slicing"),
        side(1.5, task="training"),
        side(1.2, task="training", mode="time slicing"),
    ]
    notes = [(found.claim.split(", launched by ")[1], found.note) for found in recorded_findings(sides)]
    python, compiled = "Python", "compiled code"
    assert notes == [
        (python, "Simulated: so for VGG-19"),
        (compiled, ""),
        (python, "Simulated: not for VGG-19"),
        (compiled, ""),
        # Deviations are not simulated.
        (python, ""),
        (compiled, ""),
    ]


def test_simulated_stands_beside_recorded_with_its_error(made: dict[Key, dict[str, Any]]) -> None:
    cell = SharedRun("vgg19", "eager", "priority streams")
    sides = shared_sides({cell: SharedSlowdown(1.75, 1.1)})
    assert [(s.task, s.simulated, s.recorded, s.holds) for s in sides] == [
        ("turnaround", 1.75, 1.4, False),
        ("training", 1.1, 1.1, True),
    ]
    table = shared_table(sides)
    assert table.title == "The same, simulated: 1 of 2 within 15%"
    assert list(table.rows) == [("VGG-19", "Python", "priority streams", "1.40", "1.75", "+25%", "1.10", "1.10", "+0%")]


def test_the_recording_is_shown_over_the_tasks_alone(made: dict[Key, dict[str, Any]]) -> None:
    del made["vgg19", "eager", "streams"]
    first = next(iter(recorded_table().rows))
    assert first == ("VGG-19", "Python", "10.00", "1.20", "–", "1.40", "1.50", "1.05", "1.50", "–", "1.10")


def test_magnitudes_stand_beside_published_ones() -> None:
    published = [("VGG-19", "priority streams", 300.0), ("VGG-19", "MPS", 90.0), ("AlexNet", "MPS", 10.0)]
    sides = [side(1.5, 2.0), side(3.0, 2.5, mode="streams"), side(9.0, 9.0, "training")]
    rows = list(magnitudes_table(published, {("VGG-19", "MPS"): 44.4}, sides, {("AlexNet", "streams"): 1.25}).rows)
    assert rows == [
        ("VGG-19", "priority streams", "300", "100", "50", "–", "–", "–"),
        ("VGG-19", "MPS", "90", "150", "200", "–", "–", "44"),
        ("AlexNet", "MPS", "10", "25", "–", "–", "–", "–"),
    ]


def test_the_page_says_why() -> None:
    why, claims = outcome([], "that is the lock", 0.25).split("\n\n")
    assert why.startswith("Why: that is the lock; requests alone keep the SMs busy for 25% of the time")
    assert claims.endswith("these come out without it as well, which says nothing of it: none.")


def test_the_lock_decides_what_is_said_of_it() -> None:
    assert order_by_lock() == (
        "turnarounds were in the published order for DenseNet-201 with the interpreter's lock, for none without it"
    )
    other = order_by_lock(lambda claim, network, launcher: launcher == "compiled" and network != "vgg19")
    assert other.endswith("for none with the interpreter's lock, for DenseNet-201, ResNet-152 without it")


def test_the_papers_networks_run_beside_their_own_training_with_their_own_hosts() -> None:
    for name, network in (("VGG-19", "vgg19"), ("DenseNet-201", "densenet201"), ("ResNet-152", "resnet152")):
        pair = PAIRS[name]
        batch = shared_rows()[network, "eager", "alone"]["batch"]
        assert (pair.inference, pair.training) == (f"{network}_fp32_infer_b1", f"{network}_fp32_train_b{batch}")
        for mechanism in ("time slicing", "priority streams"):
            problem = ConcurrencyRun("rtx-3090", name, "sequential", mechanism).problem()
            expected = host_shares(network, "eager") if mechanism in ONE_PROCESS else (0.0, 0.0)
            assert problem.host_contention == expected


@pytest.mark.slow
def test_what_is_simulated_of_vgg_19_in_slices() -> None:
    """Predicted, not fitted: from how fast both are alone."""
    cell = SharedRun("vgg19", "compiled", "time slicing")
    simulated, recorded = cell.run("compiled"), cell.recorded()
    assert simulated.turnaround == pytest.approx(recorded.turnaround, rel=0.1)
    assert simulated.training == pytest.approx(recorded.training, rel=0.1)


def test_a_row_with_an_error_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"what": "alone", "form": "eager", "inference": "vgg19"}
    failed = [{**row, "error": "out of memory"}, {**row, "batch": 8}, {**row, "error": "again"}]
    monkeypatch.setattr(shared, "measurements", lambda name, gpu: failed)
    assert shared_rows.__wrapped__() == {("vgg19", "eager", "alone"): {**row, "batch": 8}}


def test_batches_fill_the_memory_of_the_gpus() -> None:
    for name, network in (("VGG-19", "vgg19"), ("DenseNet-201", "densenet201"), ("ResNet-152", "resnet152")):
        used = shared_rows()[network, "compiled", "alone"]["memory_bytes"]
        growth = PAIRS[name].growth
        assert 12e9 < growth["rtx-3090"] * used < 24e9
        assert 64e9 < growth["h100-sxm"] * used < 80e9


def test_resnet_50_was_recorded_elsewhere() -> None:
    found = {mode: round(value, 2) for (_, mode), value in resnet50().items()}
    assert found == {"streams": 1.71, "priority streams": 1.42, "time slicing": 1.7}


def test_a_slowdown_that_is_not_within_the_limit_does_not_hold() -> None:
    paper = result(True)
    assert paper.holds
    paper.shared = [side(1.1), side(1.2)]
    assert not paper.holds
    assert "; 1 of 2 slowdowns under the mechanisms within 15%" in paper.summary_line()


def test_what_is_added_is_that_on_the_papers_gpu() -> None:
    paper = made_up()
    other = paper.by_setting[PAPERS].assign(slowdown=9.0)
    paper.by_setting = {**paper.by_setting, ("h100-sxm", *PAPERS[1:]): other, (*PAPERS[:2], "poisson"): other}
    assert paper.added == pytest.approx(
        {("ResNet-50", "priority streams"): 100.0, ("ResNet-50", "time slicing"): 25.0, ("ResNet-50", "MPS"): 75.0}
    )
