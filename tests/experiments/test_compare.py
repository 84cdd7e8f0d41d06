"""Running comparisons: order, equal seeds, recording, interrupts, wrong input."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from gpusched_env.errors import DeadlockError, GpuschedError, InputError
from gpusched_env.experiments.compare import compare
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.figures import GLOBAL_FIGURES, TENANT_FIGURES
from gpusched_env.experiments.report import write_report
from gpusched_env.experiments.result_json import result_dict

RunFake = Callable[..., Comparison]
COST = next(f for f in GLOBAL_FIGURES if f.key == "cost")
P50 = next(f for f in TENANT_FIGURES if f.key == "turnaround_p50_us")


def interrupt_after(runs: int) -> Callable[[int, float], None]:
    """A progress callback that stands for Ctrl-C once so many episodes have finished."""

    def on_progress(finished: int, share: float) -> None:
        if finished >= runs:
            raise KeyboardInterrupt

    return on_progress


def test_runs_come_by_scheduler_then_seed_with_the_figures_of_the_device(comparison: Comparison) -> None:
    assert [(r.scheduler, r.seed) for r in comparison.runs] == [(s, n) for s in ("patient", "eager") for n in range(3)]
    # Tenant 1 takes 70 us plus 10 us a seed; the eager scheduler saves 20 us on every job.
    assert comparison.values("patient", P50, 1) == pytest.approx([70.0, 80.0, 90.0])
    assert comparison.values("eager", P50, 1) == pytest.approx([50.0, 60.0, 70.0])
    # Four jobs a tenant, weights 1 and 3, turnaround in ms.
    assert comparison.values("patient", COST) == pytest.approx([4 * (s + 3 * (s + 0.02)) for s in (0.05, 0.06, 0.07)])


def test_differences_are_paired_by_seed(comparison: Comparison) -> None:
    difference = comparison.against_first("eager", COST).difference
    assert (difference.mean, difference.low, difference.high) == pytest.approx((-0.32, -0.32, -0.32))
    assert comparison.against_first("patient", COST).difference.mean == 0.0


def test_only_the_first_seed_records_kernels(comparison: Comparison) -> None:
    assert [(r.scheduler, r.seed) for r in comparison.runs if r.timeline is not None] == [("patient", 0), ("eager", 0)]
    recorded = comparison.recorded("eager")
    assert recorded is not None
    assert recorded.timeline is not None
    assert len(recorded.timeline.kernels) == 8


def test_blocks_are_those_of_the_window(run_fake: RunFake) -> None:
    comparison = run_fake(window_us=(90.0, 200.0))
    assert comparison.window_us == (90.0, 200.0)
    timeline = comparison.block_runs["patient"].timeline
    assert timeline is not None
    # The second job of both tenants on two SMs; the first ones ended at 50 and 70 us.
    assert sorted(timeline.blocks.column("kernel")) == [2.0, 2.0, 3.0, 3.0]


def test_the_default_window_starts_where_tenants_meet(comparison: Comparison) -> None:
    assert comparison.window_us == (0.0, 400.0)


def test_workers_do_not_change_the_result(run_fake: RunFake, comparison: Comparison) -> None:
    parallel = run_fake(workers=2)
    assert [r.metrics.as_dict() for r in parallel.runs] == [r.metrics.as_dict() for r in comparison.runs]
    assert [r.jobs.tolist() for r in parallel.runs] == [r.jobs.tolist() for r in comparison.runs]


def test_rows_are_flat_records(comparison: Comparison) -> None:
    rows = list(comparison.rows())
    assert len(rows) == 2 * 3 * 2
    assert {"scheduler", "seed", "tenant", "stp", "turnaround_p99_us"} <= rows[0].keys()
    assert (rows[0]["tenant"], rows[1]["tenant"]) == ("batch", "urgent")


def test_progress_ends_with_everything_done(run_fake: RunFake) -> None:
    seen: list[tuple[int, float]] = []
    run_fake(record="jobs", on_progress=lambda finished, share: seen.append((finished, share)))
    assert seen[-1][0] == 6
    assert seen[-1][1] == pytest.approx(1.0)
    assert [share for _, share in seen] == sorted(share for _, share in seen)


def test_an_interrupt_keeps_what_is_finished(run_fake: RunFake) -> None:
    comparison = run_fake(on_progress=interrupt_after(3))
    assert comparison.interrupted
    # Seed by seed: both schedulers have seed 0, the first also seed 1.
    assert [(r.scheduler, r.seed) for r in comparison.runs] == [("patient", 0), ("patient", 1), ("eager", 0)]
    assert comparison.interruption == "interrupted: 3 of 6 episodes finished, the figures are partial"
    assert comparison.against_first("eager", COST).difference.seeds == 1


def test_schedulers_without_a_finished_episode_drop_out(run_fake: RunFake) -> None:
    comparison = run_fake(on_progress=interrupt_after(1))
    assert comparison.schedulers == ["patient"]


def test_an_uninterrupted_comparison_says_so(comparison: Comparison) -> None:
    assert not comparison.interrupted
    assert comparison.interruption == ""


def test_a_deadlock_names_scheduler_and_seed(run_fake: RunFake) -> None:
    with pytest.raises(DeadlockError, match=r"scheduler 'patient', seed 1: kernel 3 waits for kernel 4"):
        run_fake("StuckDevice")


def test_a_bug_in_a_scheduler_comes_with_the_worker_s_traceback(run_fake: RunFake) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_fake(names=("broken",), workers=2)
    assert any("fakes.py" in note for note in caught.value.__notes__)


def test_a_worker_that_dies_is_reported(run_fake: RunFake) -> None:
    with pytest.raises(GpuschedError, match="exit status 7"):
        run_fake("DyingDevice", workers=2)


def test_jobs_that_never_complete_leave_figures_undefined(run_fake: RunFake) -> None:
    comparison = run_fake("IdleDevice")
    interval = comparison.interval("eager", P50, 0)
    assert (interval.seeds, interval.low) == (0, None)
    assert comparison.runs[0].metrics.tenants[0].unfinished == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenario": "Toyy"}, "did you mean 'Toy'"),
        ({"schedulers": ["pass-thru"]}, "did you mean 'pass-through'"),
        ({"schedulers": ["fifo", "fifo"]}, "named twice: fifo"),
        ({"schedulers": []}, "at least one"),
        ({"schedulers": ["no.such.module:Greedy"]}, "cannot import"),
        ({"schedulers": {"mine": int}}, "is no scheduler"),
        ({"seeds": 0}, "at least 1"),
        ({"seeds": [1, 1]}, "different"),
        ({"seeds": [-1]}, "not negative"),
        ({"device": "cuda9"}, "unknown device"),
        ({"workers": 0}, "workers is 0"),
        ({"window_us": (5.0, 5.0)}, "must lie within"),
    ],
)
def test_wrong_input_is_refused_before_anything_runs(arguments: dict[str, object], message: str) -> None:
    usable: dict[str, object] = {"scenario": "Toy", "schedulers": ["fifo"], "seeds": 1}
    with pytest.raises(InputError, match=message):
        compare(**(usable | arguments))  # type: ignore[arg-type]


def test_who_is_told_the_truth_is_marked_everywhere(tmp_path: Path) -> None:
    found = compare("Toy", ["sjf", "sjf-clairvoyant"], seeds=1, workers=1, record="kernels")
    assert found.clairvoyant == {"sjf-clairvoyant"}
    assert [found.label(name) for name in found.schedulers] == ["sjf", "sjf-clairvoyant*"]
    assert {row["scheduler"]: row["clairvoyant"] for row in found.rows()} == {"sjf": False, "sjf-clairvoyant": True}
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(found)
    text = console.export_text()
    assert text.count("sjf-clairvoyant*") == 2, "in both tables"
    assert "* clairvoyant: is told the truth" in text
    result = result_dict(found)
    assert {name: about["clairvoyant"] for name, about in result["schedulers"].items()} == {
        "sjf": False,
        "sjf-clairvoyant": True,
    }
    write_report(found, result, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert '<th scope="row">sjf-clairvoyant*</th>' in page
    assert "<dt>sjf-clairvoyant*</dt>" in page
    assert "* clairvoyant: is told the truth" in page
    others = compare("Toy", ["sjf"], seeds=1, workers=1)
    assert others.legend == ""
