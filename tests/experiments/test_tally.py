"""The reproduction of Tally: what is separated, one request beside a training, and the page."""

from __future__ import annotations

import pytest

from gpusched_env.experiments.papers import tally
from gpusched_env.experiments.papers.tally.runs import (
    ALONE,
    MPS,
    REQUESTS,
    TALLY,
    TRAININGS,
    ServiceRun,
    TallyOutcome,
    TrainingAlone,
    requests_of,
)


def test_neighbours_are_not_judged() -> None:
    """TGS and MPS with priority differ by less than a tenth, beside Llama time slicing and MPS as well."""
    bert, llama = (tally.separated(service) for service in ("BERT", "Llama"))
    assert (len(bert), len(llama)) == (9, 8)
    assert ("TGS", "MPS with priority") not in bert
    assert ("time slicing", "MPS") not in llama


def test_a_request_to_the_language_model_reads_all_weights_for_each_token() -> None:
    """13.5 GB of half precision at 1.555 TB/s take 8.7 ms at least; 8 tokens."""
    work = requests_of("Llama")
    assert work.iteration_us[0] > 7 * 2.0 * 6.74e9 / 4.8e6


@pytest.mark.long
def test_tally_protects_requests_and_mps_serves_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REQUESTS, "BERT", 30)
    training = TRAININGS[0]
    alone, kept, shared = (
        ServiceRun("BERT", None if system == ALONE else training, system).run("compiled")
        for system in (ALONE, TALLY, MPS)
    )
    assert kept.p99_us < 1.1 * alone.p99_us < shared.p99_us
    assert kept.work < shared.work


def test_page_and_data_are_complete() -> None:
    """Where all systems are alike no order comes out."""
    runs: dict[object, object] = dict.fromkeys(tally.Paper.cells(), TallyOutcome(1e4, 0.45))
    runs |= {cell: TallyOutcome(work=1.0) for cell in runs if isinstance(cell, TrainingAlone)}
    paper = tally.Paper(runs)
    held = {check.what for check in paper.checks() if check.holds}
    assert "training under Tally beside BERT" in held
    assert "training under MPS beside BERT" not in held
    assert len(paper.checks()) == 17 + 4 + 2
    assert paper.as_dict()["runs"]
    assert "Means over the trainings" in paper.markdown()
