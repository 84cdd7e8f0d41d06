"""The reproduction of ECLIP: what stands in for its models, and one mix."""

from __future__ import annotations

import json

import pytest

from gpusched_env.experiments.papers import eclip
from gpusched_env.experiments.papers import eclip as runs
from gpusched_env.scenarios.building import load_workload
from gpusched_env.workload.workload import OpKind


def kernels_of(model: str) -> list[int]:
    workload = runs.scaled(*runs.RECORDED[model])
    return [op.index for op in workload.variants[0].ops if op.kind is OpKind.KERNEL]


def test_models_have_the_kernels_that_table_1_implies() -> None:
    """One switch of KW-IOCTL a kernel."""
    for mix, models in runs.MIXES.items():
        published = eclip.PUBLISHED["switches_a_request"][str(mix)][runs.IOCTL]
        assert sum(len(kernels_of(model)) for model in models) == published


def test_kernels_keep_their_order_and_their_shares() -> None:
    recorded = [op.index for op in load_workload("bert_infer_b1_s128").variants[0].ops if op.kind is OpKind.KERNEL]
    longer = kernels_of("albert")
    counts = [longer.count(index) / recorded.count(index) for index in set(recorded)]
    assert max(counts) <= 2.0
    assert min(counts) >= 1.0
    changes = [index for place, index in enumerate(longer) if place == 0 or longer[place - 1] != index]
    assert changes == [index for place, index in enumerate(recorded) if place == 0 or recorded[place - 1] != index]


@pytest.mark.long
def test_a_mix_of_two_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """ECLIP keeps its budget and serves more than one stream; a call a kernel serves a fraction of that."""
    monkeypatch.setattr(runs, "HORIZON_US", 60_000.0)
    runs.problem.cache_clear()
    found = {of: eclip.MixRun(2, of).run("compiled") for of in (eclip.BASELINE, eclip.ECLIP, eclip.IOCTL)}
    runs.problem.cache_clear()
    assert found[eclip.ECLIP].total_per_s > 1.05 * found[eclip.BASELINE].total_per_s
    assert found[eclip.IOCTL].total_per_s < 0.5 * found[eclip.BASELINE].total_per_s
    assert max(found[eclip.ECLIP].switches) <= eclip.CHANGES
    assert found[eclip.BASELINE].switches == (0.0, 0.0)
    served = found[eclip.BASELINE]
    assert served.jobs_per_j == pytest.approx(sum(served.jobs) / served.energy_j)


@pytest.mark.long
def test_page_and_data_are_complete() -> None:
    """From figures that stand in for those of the simulation."""
    figures = runs.MixOutcome((10, 10), (25.0, 25.0), (1e4, 1e4), (0.0, 12.0), 80.0, 4e5, 0.25)
    paper = eclip.Paper(dict.fromkeys(eclip.Paper.cells(), figures))
    data = json.loads(json.dumps(paper.as_dict()))
    assert len(data["mixes"]) == 7 * 6
    assert not paper.holds, "nobody gains where all are equal"
    titles = {table.title for table in (*paper.leads(), *paper.below())}
    for heading in ("What is judged", "Switches a request", "Idle power", "What the gains depend on"):
        assert any(title.startswith(heading) for title in titles), heading
