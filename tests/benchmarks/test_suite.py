"""``gpusched lab bench``: every measurement runs, figures are what the timings say, targets are judged."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.experiments.benchmarks import suite
from gpusched_env.experiments.benchmarks.mechanisms import decisions, made_up_problem
from gpusched_env.experiments.benchmarks.suite import (
    BenchmarkRow,
    BenchmarkSizes,
    basis_of,
    markdown,
    measure,
    results_dict,
    rows_of,
)
from gpusched_env.experiments.benchmarks.timing import Elapsed, Stopwatch, take_turns
from gpusched_env.experiments.cli import main

TINY = BenchmarkSizes(
    rounds=1,
    copies=4,
    threads=1,
    steps=3,
    warm_up=2,
    interval_copies=2,
    interval_steps=3,
    cartpole_steps=2,
    single_steps=40,
    wrapped_copies=2,
    wrapped_steps=2,
    learners=2,
    kernels=40,
    mechanism_copies=2,
    pairs=3,
    fleet_gpus=2,
    fleet_reports=1,
    cluster_copies=1,
    cluster_hours=0.25,
    policy_states=30,
    torch_states=2,
)
SECONDS = {
    "vector": 1e-6, "vector_cartpole": 8e-6, "single": 10e-6, "single_cartpole": 5e-6,
    "interval": 100e-6, "interval_futures": 150e-6, "fleet": 50e-6, "fleet_separate": 45e-6,
    "cluster_queue": 20e-6,
    "pairs_row": 50e-6, "pairs_tile": 150e-6, "periods": 10e-6, "tasks": 0.1e-6,
    "autoreset": 2e-3, "ppo": 440e-6, "ppo_null": 400e-6, "ppo_large_batches": 40e-6, "ppo_large_batches_null": 30e-6,
    "kernel_alone": 5e-6, "kernel_alone_million": 7e-6, "two_tenants": 7e-6, "two_tenants_million": 28e-6,
    "sms_1320": 7e-6, "small_kernel": 4e-6, "small_kernels_64_tenants": 24e-6, "tenants_64": 50e-6,
    **{f"{what}_{n}": s for n in (2, 3, 8) for what, s in (("network", 4e-6), ("scheduler", 25e-6), ("torch", 1e-3))},
    **{f"{what}_{n}": s for n in (2, 3, 8) for what, s in (("rule", 1e-6), ("rule_scheduler", 12e-6))},
    **{f"{what}_{n}": s for n in suite.WRAPPED for what, s in (("native", 8e-6), ("made", 33e-6), ("plain", 30e-6))},
}  # fmt: skip
"""Of one thing, on a free machine."""


def made_up_timings(busy: float = 1.0) -> dict[str, list[Elapsed]]:
    """Timings of three rounds, the second three times as slow; wall times are ``busy`` times processor times."""
    timings = {
        name: [Elapsed(1000, s * 1000 * slow * busy, s * 1000 * slow, s * 1000 * slow) for slow in (1.0, 3.0, 1.0)]
        for name, s in SECONDS.items()
    }
    cold, cached = Elapsed(1, 25.0 * busy, 25.0, 25.0), Elapsed(1, 1.0 * busy, 1.0, 1.0)
    return {**timings, "first_use": [cold], "first_use_cached": [cached]}


def by_name(rows: list[BenchmarkRow]) -> dict[str, BenchmarkRow]:
    return {row.what: row for row in rows}


def test_figures_are_medians_and_ratios_of_rounds() -> None:
    rows = by_name(rows_of(made_up_timings(), "wall"))
    assert rows["vector environment, 256 copies, 2 threads"].value == pytest.approx(1e6)
    assert rows["... over CartPole in a SyncVectorEnv of 256"].value == pytest.approx(8.0)
    assert rows["single environment through gym.make"].value == pytest.approx(1e5)
    assert rows["... of a null environment's frames/s"].value == pytest.approx(100 / 1.1)
    assert rows["... of 10^6 blocks"].value == pytest.approx(1.4)
    assert rows["... with render_mode=None"].value == pytest.approx(30.0)
    assert rows["... the former over the latter"].value == pytest.approx(1.1)
    assert rows["learned policy (slots), 8 tenants"].value == pytest.approx(4.0)
    assert rows["learned policy (slots), 8 tenants"].holds is True
    assert rows["... from view to command"].holds is False
    assert rows["... in torch over compiled"].value == pytest.approx(250.0)
    assert rows["first use, compilation included"].value == 25.0
    assert rows["... by tiles"].value == pytest.approx(1e6 / 150)
    assert rows["... of separate runs of them"].value == pytest.approx(90.0)
    share = rows["... share of autoresets, not counted above"].value
    assert share == pytest.approx(100 * 2.0 / 3.0), "2 ms beside 1000 decisions of 1 us"


def test_targets_are_judged_in_their_direction() -> None:
    rows = by_name(rows_of(made_up_timings(), "wall"))
    assert rows["... of a null environment's frames/s"].holds is True
    assert rows["... 10^6 blocks each"].holds is False
    assert rows["... over CartPole through gym.make"].holds is None
    assert BenchmarkRow("", 2.9, target=3.0).holds is False
    assert BenchmarkRow("", 2.9, target=3.0, at_least=False).holds is True


def test_a_busy_machine_is_judged_by_processor_time() -> None:
    free, busy = made_up_timings(), made_up_timings(busy=4.0)
    assert (basis_of(free), basis_of(busy)) == ("wall", "cpu")
    data = results_dict(busy, TINY)
    first = data["rows"][0]
    assert (first["wall"], first["cpu"], first["value"]) == pytest.approx((2.5e5, 1e6, 1e6))
    assert first["holds"] is True
    assert "The machine was busy" in markdown(data)
    assert "The machine was busy" not in markdown(results_dict(free, TINY))


def test_without_the_learning_libraries_their_figures_are_missing() -> None:
    timings = {name: turns for name, turns in made_up_timings().items() if not name.startswith(("ppo", "torch"))}
    assert not any("PPO" in row.what or "torch" in row.what for row in rows_of(timings, "wall"))


def test_measurements_take_turns() -> None:
    order: list[str] = []

    def measurement(name: str) -> Any:
        def measure() -> Elapsed:
            order.append(name)
            with Stopwatch() as watch:
                pass
            return watch.timing(7)

        return measure

    timings = take_turns({name: measurement(name) for name in "ab"}, 3)
    assert order == list("ababab")
    assert [t.count for t in timings["a"]] == [7, 7, 7]
    assert all(0.0 <= t.cpu_s <= t.process_s for t in timings["a"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.long
def test_every_measurement_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "first_uses", lambda: (Elapsed(1, 2.0, 2.0, 2.0), Elapsed(1, 1.0, 1.0, 1.0)))
    data = results_dict(measure(TINY), TINY)
    assert set(data["timings"]) == {*SECONDS, "first_use", "first_use_cached"}
    assert {name: turns[0]["count"] for name, turns in data["timings"].items()} == {
        "vector": 12, "vector_cartpole": 8, "interval": 6, "interval_futures": 6, "single": 40, "single_cartpole": 40,
        "autoreset": 16,
        "fleet": 1172, "fleet_separate": 1172, "cluster_queue": 5785,
        **{f"{what}_{scenario}": 4 for scenario in suite.WRAPPED for what in ("native", "made", "plain")},
        "pairs_row": 6, "pairs_tile": 6, "periods": 440, "tasks": 366_029,
        "ppo": 128, "ppo_null": 128, "ppo_large_batches": 128, "ppo_large_batches_null": 128,
        "kernel_alone": 40, "kernel_alone_million": 40, "two_tenants": 40, "two_tenants_million": 40, "sms_1320": 40,
        "small_kernel": 40, "small_kernels_64_tenants": 1280, "tenants_64": 1280,
        "network_2": 30, "network_3": 30, "network_8": 30, "scheduler_2": 30, "scheduler_3": 30, "scheduler_8": 30,
        "rule_2": 30, "rule_3": 30, "rule_8": 30,
        "rule_scheduler_2": 30, "rule_scheduler_3": 30, "rule_scheduler_8": 30,
        "torch_2": 2, "torch_3": 2, "torch_8": 2, "first_use": 1, "first_use_cached": 1,
    }  # fmt: skip
    assert all(row["value"] > 0.0 for row in data["rows"])


def test_made_up_kernels_fill_the_gpu_as_they_say() -> None:
    problem = made_up_problem(blocks=1056, sms=132, tenants=1, kernels=20)
    wide, narrow = problem.kernels
    assert (wide.kernel.blocks, wide.footprint.blocks_per_sm, wide.duration_us) == (1056, 8, 20.0)
    assert narrow.duration_us == 20.0
    assert decisions(problem)().count == 20


def test_the_command_writes_figures_and_page_and_succeeds(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(suite, "measure", lambda sizes, on_progress: made_up_timings())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["gpusched", "bench", "--json", "bench.json", "--docs", "page.md"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, "a missed target is no failure"
    data = json.loads((tmp_path / "bench.json").read_text())
    assert data["schema"] == "gpusched-bench/1"
    assert data["timings"]["vector"][1] == {"count": 1000, "wall_s": 0.003, "cpu_s": 0.003, "process_s": 0.003}
    assert data["versions"]["numba"]
    assert data["machine"]["processor"]
    written = (tmp_path / "page.md").read_text()
    assert "| ... over CartPole in a SyncVectorEnv of 256 | 8 x | 8 x | ≥ 1.5 | holds |" in written
    assert "| ... 10^6 blocks each | 4 x | 4 x | ≤ 3 | misses |" in written
    printed = capsys.readouterr().out
    assert "misses" in printed
