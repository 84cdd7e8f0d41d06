"""The reproduction of FIKIT: what figures depend on, and a small part of the runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpusched_env.display.frame import frame
from gpusched_env.experiments.lib.recorded import RECORDED_ON, TimeSliced
from gpusched_env.experiments.papers.fikit import Paper, runs
from gpusched_env.experiments.papers.fikit.figures import Claimed, JudgedClaim
from gpusched_env.experiments.papers.fikit.pairs import FEATURES, distribution, drivers, outsiders
from gpusched_env.experiments.papers.fikit.runs import (
    BY_ITSELF,
    CASES,
    CONTEXTS,
    DEFAULT,
    EPSILONS_US,
    EXCLUSIVE,
    FIKIT,
    GPU,
    LOADS,
    MPS,
    NETWORKS,
    NO_SCHEDULER,
    PROCESSES,
    RIGHT,
    SET_APART,
    SLICES,
    SWEEP,
    UNDER_MPS,
    FikitOutcome,
    FikitRun,
    all_cells,
    now_and_then,
)

SOME = ("AlexNet", "ResNet-50", "FCN-50", "Faster R-CNN", "FCOS")
"""Of each kind, without those of a thousand waits, which take long to simulate."""
TWO = ("AlexNet", "Faster R-CNN")
"""One that only waits for its answer, one that waits in mid-network."""


def network(name: str, waits: int = 3, gap_share: float = 0.0) -> dict[str, Any]:
    return {**dict.fromkeys(FEATURES, 0.0), "name": name, "alone_us": 1000.0, "waits": waits, "gap_share": gap_share}


def pair(high: dict[str, Any], low: dict[str, Any], speedup: float) -> dict[str, Any]:
    """A row of :attr:`Paper.pairs`; FIKIT gives the high-priority service the time that it has alone."""
    of_high, of_low = ({f"{side}_{key}": of[key] for key in FEATURES} for side, of in (("high", high), ("low", low)))
    times = {"speedup": speedup, DEFAULT: speedup * high["alone_us"], "fikit_us": high["alone_us"]}
    return {"high": high["name"], "low": low["name"], **of_high, **of_low, **times}


def test_distribution_of_speedups() -> None:
    found = distribution(frame({"speedup": [1.0, 2.0, 3.4, 4.0, 17.0]}))
    assert [found[name] for name in ("pairs", "smallest", "quartile", "median", "largest")] == [5, 1.0, 2.0, 3.4, 17.0]
    assert found["above"] == 0.4, "more than 3.4, not as much"
    assert [found[name] for name in ("below", "inside", "beyond")] == [0.2, 0.6, 0.2]


def test_a_range_is_spanned_as_far_as_quantiles_reach() -> None:
    """The published range is 1.32 to 16.41; the geometric middle of it is 4.654."""
    assert distribution(frame({"speedup": [2.0] * 40}))["spanned"] == 0.0
    assert distribution(frame({"speedup": [4.6542] * 20 + [100.0] * 20}))["spanned"] == pytest.approx(0.5, abs=1e-4)
    assert distribution(frame({"speedup": [0.5] * 20 + [100.0] * 20}))["spanned"] == pytest.approx(1.0)


def test_a_claim_is_shown_if_its_control_fails() -> None:
    def claimed(ours: bool, without: bool) -> Claimed:
        return Claimed("fast", "", "", GPU, 1, JudgedClaim(ours, ""), "priorities", JudgedClaim(without, ""))

    cases = [claimed(ours, without) for ours, without in ((True, False), (True, True), (False, False), (False, True))]
    assert [case.verdict for case in cases] == ["shown", "not shown", "off", "off"]
    assert [case.holds for case in cases] == [True, False, False, False]


def test_drivers_tell_the_services_apart() -> None:
    """The high-priority service's waits decide, whoever the other is; equal values share a rank."""
    highs = [network(f"h{i}", waits=10**i) for i in range(3)]
    lows = [network(f"l{i}", gap_share=i / 10) for i in range(3)]
    pairs = frame([pair(high, low, speedup=float(high["waits"])) for high in highs for low in lows])
    found = drivers(pairs).set_index(["side", "feature"])
    assert found.overall["high", "waits a job"] == pytest.approx(1.0)
    assert found.partner_fixed["high", "waits a job"] == pytest.approx(1.0)
    assert found.overall["low", "gap share"] == pytest.approx(0.0)
    assert math.isnan(found.partner_fixed["low", "gap share"])


def test_pairs_outside_the_range_get_a_reason() -> None:
    eager, waiting = network("Eager", gap_share=0.6), network("Waiting", waits=500, gap_share=0.5)
    dense, sparse = network("Dense", gap_share=0.02), network("Sparse", gap_share=0.7)
    pairs = [
        pair(eager, dense, 1.1),
        pair(waiting, dense, 20.0),
        pair(waiting, sparse, 1.2),
        pair(dense, sparse, 1.3),
        pair(dense, dense, 2.0),
    ]
    found = outsiders(frame(pairs)).set_index(["high", "low"]).reason
    assert list(found.index) == [("Waiting", "Dense"), ("Dense", "Sparse"), ("Waiting", "Sparse"), ("Eager", "Dense")]
    assert found["Waiting", "Dense"].startswith("500 waits a job, each of which gives away the GPU for 38 us")
    assert found["Waiting", "Sparse"] == "Sparse has gaps of 70% itself: its turns are short"
    assert "its launches queue up during Dense's turns" in found["Eager", "Dense"]
    assert found["Dense", "Sparse"] == "waits only for its answer, and Sparse has gaps of 70%: its turns are short"


def test_every_pair_runs_in_every_mode() -> None:
    cells = all_cells()
    assert len(cells) == len(set(cells))
    pairs = {(high, low) for high in NETWORKS for low in NETWORKS if high != low}
    for setting in (PROCESSES, MPS):
        for mode in (DEFAULT, *setting[1:]):
            ran = {(cell.lows, cell.high, cell.low) for cell in cells if (cell.gpu, cell.mode) == (setting.gpu, mode)}
            numbers = (1, 3) if mode == setting.nothing_filled else (1, 2, 3)
            assert ran - {(1, name, None) for name in NETWORKS} == {(n, *pair) for n in numbers for pair in pairs}, mode
    assert {(cell.high, cell.low) for cell in cells if cell.mode == NO_SCHEDULER} == pairs
    for load in LOADS:
        mode = now_and_then(MPS.nothing_filled, load)
        assert {(cell.high, cell.low) for cell in cells if cell.mode == mode} == pairs
    others = len(NETWORKS) - len(SET_APART)
    assert sum(cell.mode == EXCLUSIVE for cell in cells) == others * (others - 1)
    assert sum(cell.low is None for cell in cells) == 2 * 6 * len(NETWORKS)


def test_arrivals_and_priorities_of_the_modes() -> None:
    problem = FikitRun(GPU, "AlexNet", "VGG-16", now_and_then(FIKIT, 0.1)).problem()
    tenants = problem.scenario.tenants
    alone_us = [program.alone_us for program in problem.programs]
    assert tenants[0].arrivals.think_us == pytest.approx(9.0 * alone_us[0])  # type: ignore[union-attr]
    assert [tenant.priority for tenant in tenants] == [0, 1]
    assert tenants[0].jobs is None
    assert tenants[1].jobs == math.ceil(10.0 * alone_us[0] / alone_us[1])
    often = FikitRun(RECORDED_ON, "AlexNet", "VGG-16", now_and_then(UNDER_MPS, 0.3)).problem()
    alone_us = [program.alone_us for program in often.programs]
    assert often.scenario.tenants[0].arrivals.think_us == pytest.approx(7.0 / 3.0 * alone_us[0])  # type: ignore[union-attr]
    assert often.scenario.tenants[1].jobs == math.ceil(10.0 * alone_us[0] / alone_us[1]), "watched as long"
    alone_us = [program.alone_us for program in problem.programs]
    turns = FikitRun(GPU, "AlexNet", "VGG-16", EXCLUSIVE).problem().scenario.tenants
    assert [tenant.priority for tenant in turns] == [0, 0]
    assert turns[0].jobs == math.ceil(20_000.0 / alone_us[0]) + 1
    for mode, slice_us in SLICES.items():
        assert FikitRun(GPU, "AlexNet", "VGG-16", mode).problem().gpu.timing.slice_us == slice_us


@pytest.fixture(scope="module")
def small() -> Paper:
    """Everything about two networks for a few jobs, but on the second GPU nothing of services alone but their time."""
    cells = [cell for cell in all_cells(TWO) if cell.gpu == GPU or cell.mode not in list(BY_ITSELF)[1:]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "MEASURED_US", 4_000.0)
        return Paper.simulate(workers=1, cells=cells)


def test_waiting_in_mid_network_is_what_default_sharing_punishes(small: Paper) -> None:
    """Faster R-CNN waits 23 times a job; FIKIT gives either service nearly the time that it has alone."""
    pairs = small.by_gpu[GPU].set_index(["high", "low"])
    assert small.networks.loc[GPU].waits.to_dict() == {"AlexNet": 3, "Faster R-CNN": 23}
    assert 2.0 < pairs.speedup["Faster R-CNN", "AlexNet"] < 3.4
    assert (pairs[FIKIT] / pairs.high_alone_us).between(1.0, 1.02).all()


def test_exclusive_mode_waits_for_whole_jobs(small: Paper) -> None:
    alone_us = small.networks.alone_us[GPU]
    pairs = small.by_gpu[GPU]
    expected = alone_us.sum() / alone_us[pairs.high].to_numpy()
    assert (pairs[EXCLUSIVE] / pairs[FIKIT]).to_numpy() == pytest.approx(expected, rel=0.02)


def test_gaps_below_the_threshold_are_filled_and_no_others(small: Paper) -> None:
    """On an H100 under MPS AlexNet's launches fit into Faster R-CNN's gaps; with nothing filled none runs."""
    pairs = small.speedups(MPS, 1).set_index(["high", "low"])
    assert pairs[f"low_share: {MPS.fikit}"]["Faster R-CNN", "AlexNet"] > 0.03
    assert (pairs[f"low_share: {MPS.nothing_filled}"] == 0.0).all()
    assert (pairs[MPS.fikit] / pairs[MPS.nothing_filled]).max() < 1.03


def test_in_one_queue_the_urgent_wait_for_whole_jobs(small: Paper) -> None:
    ranked, unranked = (small.speedups(MPS, 3, mode).set_index(["high", "low"]) for mode in (None, MPS.one_queue))
    assert unranked.speedup["AlexNet", "Faster R-CNN"] < 0.5 < 1.0 < ranked.speedup["AlexNet", "Faster R-CNN"]


def test_filling_is_what_low_priority_services_live_on(small: Paper) -> None:
    pair = "Faster R-CNN, AlexNet"
    filled, never = (small.low_ratios(MPS, 0.3, mode)[pair] for mode in (MPS.fikit, MPS.nothing_filled))
    assert filled > never + 0.02


def test_overhead_fails_where_interception_is_dear(small: Paper) -> None:
    (ours,) = (claim for claim in small.checks() if (claim.claim, claim.setting) == ("overhead", GPU))
    dear = small.overheads()[GPU][10.0]
    assert ours.ours.comes_out
    assert ours.without.comes_out is bool(dear < 0.05)


def test_more_services_make_default_sharing_slower_and_fikit_not(small: Paper) -> None:
    by_number = {lows: of for (setting, lows), of in small.by_co_runners.items() if setting == PROCESSES}
    speedups = {lows: pairs.set_index(["high", "low"]).speedup for lows, pairs in by_number.items()}
    assert list(speedups) == [1, 2, 3]
    assert (speedups[1] < speedups[2]).all()
    assert (speedups[2] < speedups[3]).all()
    assert speedups[3]["Faster R-CNN", "AlexNet"] > 3.4
    for pairs in by_number.values():
        assert (pairs[FIKIT] / small.networks.alone_us[GPU][pairs.high].to_numpy()).max() < 1.02
        assert not pairs.set_apart.any()


def test_dearer_interception_costs_more(small: Paper) -> None:
    overheads = small.overheads()[GPU]
    assert list(overheads.index) == [1.0, 2.0, 5.0, 10.0]
    assert overheads.is_monotonic_increasing
    assert overheads[10.0] > 2.0 * overheads[1.0]


def test_the_result_is_data_and_a_page(small: Paper) -> None:
    data = small.as_dict()
    assert data["schema"] == "gpusched-fikit/1"
    assert len(data["runs"]) == len(small.runs)
    assert set(data["gpus"]) == {GPU, RECORDED_ON}
    assert [len(pairs) for pairs in data["by_slice_us"].values()] == [2, 2]
    page = small.markdown()
    lines = page.splitlines()
    assert lines[6] == small.missed()
    assert lines[8].startswith("Why: ")
    assert "came out, and fails without its mechanism: " in page
    assert "| speed-ups | 1.32 to 16.41 | 5 % and 95 % quantile of all pairs inside" in page
    assert "![Speed-ups by the number of low-priority services](fikit-speedups.svg)" in page
    assert "[Co-runners](fikit-co-runners.csv)" in page
    assert len(small.attachments()["co-runners"]) == 2 * 3 * 2
    assert b"<svg" in small.pictures()["speedups"]
    assert "Wrong profiles" not in page


def test_wrong_profiles_cost_little() -> None:
    """Durations off by two, or kernels that nobody measured: the urgent service hardly notices."""
    cases = (RIGHT, "durations halved", "each off by up to 2", "a tenth never measured", "nothing measured")
    found = {case: FikitRun(RECORDED_ON, "FCOS", "ResNet-50", case).run("compiled") for case in cases}
    right = found[RIGHT]
    assert right.low_share > 0.03, "the low-priority service lives on the gaps"
    assert all(wrong.high_us / right.high_us < 1.02 for wrong in found.values())
    assert found["nothing measured"].low_share == 0.0
    lost = found["a tenth never measured"].low_share / right.low_share
    assert 0.5 < lost < 1.05, "the gaps behind those kernels, long or short, stay empty"


@pytest.fixture(scope="module")
def tried() -> Paper:
    """AlexNet takes 100 us alone, VGG-16 200 us; together what the tests of trials say."""

    def made(high: str, low: str, alone_us: float, share: float) -> dict[FikitRun, FikitOutcome]:
        found = {FikitRun(RECORDED_ON, high, None, mode): FikitOutcome(alone_us, math.nan, 0.0) for mode in BY_ITSELF}
        modes = (DEFAULT, FIKIT, UNDER_MPS, *CASES)
        found |= {
            FikitRun(RECORDED_ON, high, low, mode): FikitOutcome(1.1 * alone_us, math.nan, share) for mode in modes
        }
        for (contexts, epsilon_us), mode in SWEEP.items():
            longer = 2.0 if contexts == CONTEXTS[0] else 3.0
            found[FikitRun(RECORDED_ON, high, low, mode)] = FikitOutcome(longer * alone_us, math.nan, epsilon_us)
        return found

    found = made("AlexNet", "VGG-16", 100.0, 0.1) | made("VGG-16", "AlexNet", 200.0, 0.3)
    found[FikitRun(RECORDED_ON, "AlexNet", "VGG-16", RIGHT)] = FikitOutcome(100.0, math.nan, 0.2)
    found[FikitRun(RECORDED_ON, "VGG-16", "AlexNet", SWEEP["shared", 50.0])] = FikitOutcome(600.0, math.nan, 70.0)
    return Paper(found)


def test_losses_are_relative_to_right_profiles(tried: Paper) -> None:
    found = tried.losses().set_index("case")
    assert list(found.index) == list(CASES)
    assert found.loc[RIGHT].tolist() == [1.0, 1.0]
    assert found.loc["gaps doubled"].tolist() == pytest.approx([1.05, 0.75])


def test_thresholds_are_averaged_over_the_pairs(tried: Paper) -> None:
    found = tried.thresholds().set_index("epsilon_us")
    assert list(found.index) == list(EPSILONS_US)
    assert found.high[20.0] == pytest.approx([2.0, 3.0])
    assert found.high[50.0] == pytest.approx([2.5, 3.0])
    assert found.low[50.0] == pytest.approx([60.0, 50.0])


def test_a_recorded_pair_takes_turns_as_simulated() -> None:
    recorded = [cell for cell in Paper.cells() if isinstance(cell, TimeSliced)]
    assert len(recorded) == 17
    pair = ("vgg16_fp32_infer_b1", "resnet50_fp32_infer_b1")
    (cell,) = (cell for cell in recorded if cell.networks == pair)
    (found,) = Paper({cell: cell.run("compiled")}).turns()
    assert found["networks"] == ["VGG-16", "ResNet-50"]
    assert found["recorded"] == pytest.approx((1807.11 / 1504.74, 6386.10 / 6025.49), rel=1e-4)
    assert max(abs(error) for error in found["errors"]) < 0.1


@pytest.mark.slow
def test_default_sharing_is_as_recorded_on_an_h100() -> None:
    recorded = [cell for cell in Paper.cells() if isinstance(cell, TimeSliced)]
    found = Paper({cell: cell.run("compiled") for cell in recorded}).turns()
    errors = [abs(error) for pair in found for error in pair["errors"]]
    assert np.median(errors) < 0.08
    assert max(errors) < 0.35


@pytest.mark.slow
def test_of_some_networks_the_trends_are_those_of_the_paper() -> None:
    """Waits in mid-network decide, gaps of the other service soften it; gaps are filled where there are."""
    result = Paper.simulate(workers=2, cells=[cell for cell in all_cells(SOME) if cell.mode not in SLICES])
    found = drivers(result.by_gpu[GPU]).set_index(["side", "feature"]).partner_fixed
    assert found["high", "waits a job"] > 0.5
    assert found["low", "gap share"] < -0.5
    filled = [claim for claim in result.checks() if claim.claim == "gaps are filled"]
    assert [claim.verdict for claim in filled] == ["off", "shown"], "between processes hardly any gap is long enough"
