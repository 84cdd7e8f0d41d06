"""The rate model is found again from what it says itself; the fleet's page is made of its runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.baselines.registry import DISPATCHERS, make_dispatcher
from gpusched_env.games.fleet.co_location import CONTROLS, RateModel, capped_speed, published_fleet, shipped_rates
from gpusched_env.games.fleet.experiments import fit as fitting
from gpusched_env.games.fleet.experiments.fit import TRAINING, SharedGpuCell
from gpusched_env.games.fleet.papers.fleet_rates import Paper as Rates
from gpusched_env.games.fleet.papers.gpucolo_fleet import FleetDays, FleetFigures
from gpusched_env.games.fleet.papers.gpucolo_fleet import Paper as FleetPaper
from tests.refusals import refused

MADE = RateModel(
    inference_by_inference=0.8, inference_by_training=0.6, exponent=0.5, training_by_others=0.3,
    cap_knee=0.8, cap_exponent=0.7, apart=0.1,
)  # fmt: skip


def said(cell: SharedGpuCell) -> list[float]:
    """What the model says, also of what the cells have besides sharing: programs alone, or apart."""
    if len(cell.clients) == 1 and not cell.clients[0].training:
        return [1.0 / capped_speed(cell.training_share / 100.0, MADE.cap_knee, MADE.cap_exponent)]
    if cell.inference_share == 50 and len(cell.clients) == 2:
        slowed = 1.0 + MADE.apart * fitting.activity_of(cell.clients[1], "none")
        return [slowed / capped_speed(0.5, MADE.cap_knee, MADE.cap_exponent), 1.0]
    return fitting.predicted(cell, MADE, "none")


def test_the_fit_finds_the_model_that_made_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "utilisation", lambda workload, device: 0.75 if workload in TRAINING else 1.0)
    runs = {cell: said(cell) for cell in Rates.cells()}
    found = fitting.fit(runs, "none")
    assert found._asdict() == pytest.approx(MADE._asdict(), abs=2e-3)
    for off in fitting.errors(runs, found, [cell for cell in runs if cell.inference_share == 100], "none"):
        assert np.abs(off).max() < 0.01


def test_figure_6_says_what_training_adds() -> None:
    """76.3 / 72.2 ms at 20 %: with 1 s of sleep training of 0.6 s an iteration is active for 0.375 of the time, so that
    4.1 ms are 0.625 of what it adds: 6.56 ms over 69.74 ms, or 0.094; 0.264 at 50 %, 0.450 at 90 %."""
    found = fitting.with_published(MADE, published_fleet()["fig6_latency_ms"])
    tolls = [found.inference_by_training * share**found.exponent for share in (0.2, 0.5, 0.9)]
    assert tolls == pytest.approx([0.094, 0.264, 0.450], rel=0.06)
    assert found._replace(inference_by_training=0.6, exponent=0.5) == MADE


def test_shipped_rates_have_both_sources() -> None:
    shipped, published = shipped_rates(), shipped_rates("published")
    assert published.exponent > 0 > shipped.exponent, "only in the paper a smaller share makes batches quicker"
    with refused(InputError, "'measured'", "fleet"):
        shipped_rates("measured")


def test_dispatchers_by_name() -> None:
    for name in DISPATCHERS.names():
        assert make_dispatcher(name).control in CONTROLS
    with refused(InputError, "is 2.0", "above 0", "most 1"):
        make_dispatcher("gpucolo(inference=2)")
    with refused(InputError, "is 0", "least 1"):
        make_dispatcher("separate(inference=0)")


@pytest.mark.long
def test_a_small_fleet_is_in_the_published_order() -> None:
    """A fiftieth of the jobs: who needs more GPUs, and whose inference is late."""
    ask = ("no-colocation", "separate", "first-fit", "gslice", "gpucolo", "gpucolo(worst=True, inference=0.6)")
    alone, separate, free, slices, colo, safe = (FleetDays(who, scale=0.02).run("compiled") for who in ask)
    assert separate.gpus > alone.gpus > slices.gpus > colo.gpus
    assert slices.violations > free.violations > colo.violations > safe.violations
    assert alone.violations == separate.violations == alone.late_requests == 0.0
    assert slices.training_stretch > colo.training_stretch > free.training_stretch
    assert np.mean(colo.gpus_by_day[21:39]) > 1.2 * np.mean(colo.gpus_by_day[5:20]), "the burst"


def made_up_paper(gpucolo: FleetFigures) -> FleetPaper:
    """With the published counts, but for GPUColo's figures."""
    counts = published_fleet()["gpus"]
    runs = {cell: replace(gpucolo, gpus=counts.get(cell.dispatcher, 700.0)) for cell in FleetPaper.cells()}
    runs[FleetDays("gslice")] = replace(gpucolo, gpus=counts["gslice"], violations=0.27)
    return FleetPaper({**runs, FleetDays("gpucolo"): gpucolo})


def test_the_page_judges_counts_savings_and_violations() -> None:
    good = FleetFigures(766.0, 3100.0, 0.011, 0.01, 2.4, (766.0,) * 57)
    assert made_up_paper(good).holds
    assert "5 of 5 predictions come out" in made_up_paper(good).summary_line()
    for changed in ({"gpus": 600.0}, {"gpus": 900.0}, {"violations": 0.03}):
        assert not made_up_paper(replace(good, **changed)).holds
    page = made_up_paper(good).markdown()
    assert "| GPUs in use, GPUColo | 766 | 651.1 to 880.9 | 766 | inside | holds |" in page
    assert len(made_up_paper(good).attachments()["days"]) == 57
