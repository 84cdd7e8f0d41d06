"""``result.json``: what a reader of the file relies on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gpusched_env.experiments.compare import compare
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.files import encoded
from gpusched_env.experiments.ranking.made import data_hash
from gpusched_env.experiments.report.load import load_comparison
from gpusched_env.experiments.report.result import result_of
from gpusched_env.scenarios.scenario import Scenario, load_scenario


def test_it_holds_figures_intervals_and_everything_to_repeat_the_run(comparison: Comparison) -> None:
    result = json.loads(encoded(result_of(comparison)))
    assert result["schema"] == "gpusched-comparison/2"
    assert result["interrupted"] is False
    assert result["seeds"] == [0, 1, 2]
    assert result["gpu"]["name"] == "toy-4sm"
    assert {"python", "numpy"} <= result["provenance"]["versions"].keys()
    assert list(result["schedulers"]) == ["patient", "eager"]
    eager = result["schedulers"]["eager"]
    assert eager["seeds"] == [0, 1, 2]
    p50 = eager["figures"]["tenants"]["urgent"]["turnaround_p50_us"]
    assert (p50["mean"], p50["low"], p50["high"], p50["seeds"]) == (60.0, 50.0, 70.0, 3)
    assert [seed["tenants"][1]["turnaround_p50_us"] for seed in eager["per_seed"]] == [50.0, 60.0, 70.0]
    assert eager["per_seed"][1]["seed"] == 1
    assert eager["cost_difference"]["against"] == "patient"
    assert eager["cost_difference"]["difference"]["mean"] == pytest.approx(-0.32)
    assert eager["figures"]["cost"]["mean"] == pytest.approx(0.88)


def test_it_holds_hashes_of_what_is_called_by_its_name(tmp_path: Path) -> None:
    """A class has no name that would say where it is from; of those that have one the file keeps what it was."""
    from gpusched_env.baselines.fifo import Fifo

    found = compare("Toy", {"fifo": "fifo", "orion": Fifo}, 1, workers=1)
    made = result_of(found).provenance.made
    assert made.schedulers["Toy"].keys() - {"alone"} == {"fifo"}
    assert made.physics.keys() == {"compiled"}
    assert made.data["Toy"] == {"Toy": data_hash(load_scenario("Toy"))}
    found.save(tmp_path / "saved")
    file = tmp_path / "saved" / "result.json"
    file.write_text(file.read_text().replace(made.physics["compiled"], "of another"))
    assert result_of(load_comparison(tmp_path / "saved")).provenance.made.physics == {"compiled": "of another"}


def test_the_scenario_reads_back(comparison: Comparison) -> None:
    import msgspec

    result = json.loads(encoded(result_of(comparison)))
    assert msgspec.convert(result["scenario"], Scenario) == load_scenario("Toy")


def test_undefined_figures_are_null(run_fake: Callable[..., Comparison]) -> None:
    text = encoded(result_of(run_fake("IdleDevice", record="jobs"))).decode()
    result = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert result["schedulers"]["eager"]["figures"]["antt"] == {"mean": None, "low": None, "high": None, "seeds": 0}


def test_an_interrupt_is_marked(run_fake: Callable[..., Comparison]) -> None:
    def stop(finished: int, share: float) -> None:
        if finished == 2:
            raise KeyboardInterrupt

    result = result_of(run_fake(on_progress=stop))
    assert result.interrupted is True
    assert [scheduler.seeds for scheduler in result.schedulers.values()] == [[0], [0]]
