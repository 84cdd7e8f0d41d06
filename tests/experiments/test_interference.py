"""The model of who disturbs whom: fitted, judged, and the page of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

from gpusched_env.experiments.cli import app
from gpusched_env.experiments.interference.pairs import (
    SCHEMA,
    UNSEEN,
    SideBySide,
    Simulated,
    Speeds,
    demand_of,
    errors,
    fit,
    fitted_networks,
    left_out_error,
    recorded_pairs_by_group,
)
from gpusched_env.experiments.interference.result import Interference
from gpusched_env.experiments.lib.files import read_struct
from gpusched_env.planning.interference import shipped_model
from gpusched_env.scenarios.profiles import JobDemand

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAIRS = DOCS / "results" / "interference" / "pairs.json.gz"


def made_up(networks: int) -> tuple[list[Speeds], dict[tuple[str, str, str], JobDemand]]:
    """Networks that slow each other by the product of their DRAM shares."""
    rng = np.random.default_rng(1)
    demands = {
        (f"n{i}", "host", "h100-sxm"): JobDemand(*rng.uniform(0.1, 0.9, 5).tolist(), float(rng.uniform(1.0, 30.0)))
        for i in range(networks)
    }
    pairs = [
        Speeds([a, b], "host", [float(np.exp(-one.dram * other.dram))] * 2)
        for (a, *_), one in demands.items()
        for (b, *_), other in demands.items()
        if a != b
    ]
    return pairs, demands


def test_a_law_of_its_own_form_is_found() -> None:
    pairs, demands = made_up(60)
    exact = fit(pairs, demands, 1e-6, "made up")
    assert np.abs(errors(exact, pairs, demands)).max() < 1e-4
    assert left_out_error(pairs, demands, 1e-6) < 1e-3 < left_out_error(pairs, demands, 1e4)


def test_no_network_is_on_both_sides() -> None:
    assert not set(UNSEEN) & set(fitted_networks())
    assert len(fitted_networks()) + len(UNSEEN) == 36


def test_recorded_groups_have_an_urgent_network_in_front() -> None:
    assert [len(group.pairs) for group in recorded_pairs_by_group()] == [18, 63, 80]
    assert all(pair.mode == "priority" for group in recorded_pairs_by_group() for pair in group.pairs)


def test_the_shipped_model_predicts_a_pair_that_was_not_in_the_fit() -> None:
    two = ("alexnet_fp32_infer_b1", "vgg16_fp32_infer_b1")
    alone = [SideBySide((name,), "host").run("compiled")[0] for name in two]
    speeds = np.array(SideBySide(two, "host").run("compiled")) / alone
    assert (speeds < 0.9).all()
    predicted = shipped_model().speeds(*(demand_of(name, "host") for name in two))
    np.testing.assert_allclose(predicted, speeds, rtol=0.25)


@pytest.mark.long
def test_the_page_and_the_shipped_model_are_those_of_the_result_file() -> None:
    result = Interference(read_struct(PAIRS, Simulated, SCHEMA, "", ""))
    assert result.model == shipped_model()
    assert result.markdown() == (DOCS / "interference.md").read_text(encoding="utf-8")
    assert result.holds


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_bytes(msgspec.json.encode({"schema": "gpusched-ranking/1", "pairs": [], "triples": []}))
    page = tmp_path / "page.md"
    done = CliRunner().invoke(app, ["lab", "interference", "--from", str(other), "--docs", str(page)])
    assert done.exit_code != 0
    assert not page.exists()
