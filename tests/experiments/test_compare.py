"""Running comparisons: order, equal seeds, recording, interrupts, wrong input."""

from __future__ import annotations

import io
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

import gpusched_env
from gpusched_env.baselines.fifo import Fifo
from gpusched_env.errors import DeadlockError, GpuschedError, InputError
from gpusched_env.experiments.compare import compare, evaluate, with_agent
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.figures import find_figure
from gpusched_env.experiments.report.page import report_html
from gpusched_env.experiments.report.result import result_of
from gpusched_env.scenarios.scenario import load_scenario
from tests.notebook import html
from tests.refusals import refused

RunFake = Callable[..., Comparison]
COST = find_figure("cost", of_tenant=False)
P50 = find_figure("turnaround_p50_us", of_tenant=True)


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
    difference = comparison.difference("eager").difference
    assert (difference.mean, difference.low, difference.high) == pytest.approx((-0.32, -0.32, -0.32))
    assert comparison.difference("patient").difference.mean == 0.0


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


def test_frames_have_units_and_names(comparison: Comparison) -> None:
    episodes = comparison.to_frame()
    assert len(episodes) == 2 * 3 * 2
    assert {"scheduler", "seed", "tenant", "stp", "turnaround_p99_us"} <= set(episodes)
    assert episodes.tenant[:2].tolist() == ["batch", "urgent"]
    figures = comparison.to_frame("schedulers").set_index(["scheduler", "tenant", "figure"])
    assert figures.loc[("eager", "urgent", "turnaround_p50_us"), "mean"] == pytest.approx(60.0)
    jobs = comparison.to_frame("jobs")
    assert jobs.groupby(["scheduler", "tenant"], observed=True).size().tolist() == [12] * 4
    kernels = comparison.to_frame("kernels")
    assert set(kernels.tenant) == {"batch", "urgent"}
    assert kernels.name[0] == comparison.problem.kernels[0].kernel.name
    with refused(InputError, "did you mean 'jobs'"):
        comparison.to_frame("job")  # type: ignore[arg-type]


def test_percentiles_are_of_all_seeds_together(comparison: Comparison) -> None:
    # Twelve jobs of the urgent tenant under the first scheduler: four each of 70, 80 and 90 us.
    assert comparison.interval("patient", "turnaround_p99_us", "urgent").mean == pytest.approx(90.0)
    median = comparison.interval("patient", "turnaround_p50_us", "urgent")
    assert (median.mean, median.low, median.high) == pytest.approx((80.0, 70.0, 90.0))


def test_intervals_by_name_and_what_is_wrong_with_others(comparison: Comparison) -> None:
    # 4 (0.06 + 3 0.08) = 1.2 on average; 0.32 less under the other scheduler.
    assert comparison.interval("patient", "cost").mean == pytest.approx(1.2)
    for arguments, message in (
        (("patent", "cost"), "did you mean 'patient'"),
        (("patient", "costs"), "did you mean 'cost'"),
        (("patient", "cost", "urgent"), "belongs to the whole GPU.*figure='slowdown'"),
        (("patient", "slowdown"), "belongs to a tenant"),
        (("patient", "slowdown", "urgnt"), "did you mean 'urgent'"),
    ):
        with pytest.raises(InputError, match=message):
            comparison.interval(*arguments)


def test_what_a_newcomer_tries() -> None:
    found = gpusched_env.compare("Toy", "sjf,fifo", seeds=2, workers=1, horizon_us=1_500.0)
    assert found.problem.scenario.horizon_us == 1_500.0
    assert found.schedulers == ["sjf", "fifo"]
    assert not found.remarks, "they differ on every seed"
    assert "relative" in str(found.difference("fifo", "turnaround_p99_us", "urgent"))
    assert pickle.loads(pickle.dumps(found)).interval("sjf", "cost") == found.interval("sjf", "cost")
    with refused(InputError, "sead"):
        gpusched_env.compare("Toy", ["sjf"], sead=1)
    with refused(InputError, "did you mean 'blocks'"):
        gpusched_env.compare("Toy", ["sjf"], record="block")


def test_a_scheduler_whose_reset_takes_too_little_is_told_what_is_right() -> None:
    class Short:
        def reset(self, knowledge: object) -> None: ...

        def decide(self, view: object) -> object: ...

    with refused(GpuschedError, "'Short', seed 0", "TypeError", "reset(knowledge"):
        compare("Toy", [Short], seeds=1, workers=1)


def test_what_is_shown_is_short(comparison: Comparison) -> None:
    assert repr(comparison) == "<Comparison of 2 schedulers on Toy, 3 seeds, lowest cost eager 0.88 [0.72, 1.04]>"
    lines = str(comparison).splitlines()
    assert lines[0].startswith("batch: ")
    assert any(line.split()[:2] == ["eager", "0.040"] for line in lines)
    assert "green" not in str(comparison), "plain text has no colours"
    shown = html(comparison)
    assert shown.count("<table>") == 3
    assert "Fewer than 5 seeds" in shown
    assert len(shown) < 20_000


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
    assert comparison.difference("eager").difference.seeds == 1


def test_schedulers_without_a_finished_episode_drop_out(run_fake: RunFake) -> None:
    comparison = run_fake(on_progress=interrupt_after(1))
    assert comparison.schedulers == ["patient"]


def test_an_uninterrupted_comparison_says_so(comparison: Comparison) -> None:
    assert not comparison.interrupted
    assert comparison.interruption == ""


def test_a_deadlock_names_scheduler_and_seed(run_fake: RunFake) -> None:
    with refused(DeadlockError, "'patient', seed 1", "3 waits", "kernel 4"):
        run_fake("StuckDevice")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bug_in_a_scheduler_names_it_and_the_line(run_fake: RunFake, workers: int) -> None:
    expected = r"scheduler 'broken', seed \d: ZeroDivisionError: a bug in a scheduler \(fakes.py, line \d+, in decide\)"
    with pytest.raises(GpuschedError, match=expected):
        run_fake(names=("broken",), workers=workers)


def test_an_error_from_a_worker_shows_no_frames_of_the_workers(run_fake: RunFake) -> None:
    with pytest.raises(GpuschedError) as caught:
        run_fake(names=("broken",), workers=2)
    shown = "".join(traceback.format_exception(caught.value))
    assert "loky" not in shown
    assert "direct cause" not in shown


def test_a_class_is_called_by_its_name() -> None:
    class Lazy:
        def reset(self, knowledge: object, rng: object) -> None: ...

        def decide(self, view: object) -> object:
            raise ValueError("too lazy")

    for source in (Lazy, Lazy()):
        with pytest.raises(GpuschedError, match=r"^scheduler 'Lazy', seed 0: ValueError: too lazy"):
            gpusched_env.run_episode("Toy", source)  # type: ignore[arg-type]


def test_a_worker_that_dies_is_reported(run_fake: RunFake) -> None:
    with refused(GpuschedError, "unexpectedly"):
        run_fake("DyingDevice", workers=2)


def test_jobs_that_never_complete_leave_figures_undefined(run_fake: RunFake) -> None:
    comparison = run_fake("IdleDevice")
    interval = comparison.interval("eager", "turnaround_p50_us", "batch")
    assert (interval.seeds, interval.low) == (0, None)
    assert comparison.runs[0].metrics.tenants[0].unfinished == 4


def test_evaluate_takes_a_trained_model_and_says_so() -> None:
    for model in ("my_scheduler.py:OneAhead", Path("my_scheduler.py:OneAhead"), "mps(share=50)", Fifo, Fifo()):
        with refused(InputError, "scheduler"):
            evaluate(model, "Toy")  # type: ignore[arg-type]
    with refused(InputError, "absent.npz", "file"):
        evaluate("absent.npz", "Toy")


def test_evaluate_takes_differences_against_pass_through_where_it_takes_part() -> None:
    toy = load_scenario("Toy")
    assert with_agent("learned", toy, ["sjf", "pass-through"]) == ["pass-through", "learned", "sjf"]
    assert with_agent("learned", toy, ["sjf", "fifo"]) == ["learned", "sjf", "fifo"]
    assert with_agent("learned", toy, None)[:2] == ["pass-through", "learned"]


def test_schedulers_that_cost_the_same_as_the_first_are_counted() -> None:
    found = compare("Toy", {"one": "sjf", "same": "sjf", "other": "fifo"}, seeds=1, workers=1)
    assert [remark for remark in found.remarks if remark.startswith("1 of the 2 others cost the same as one within")]


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


def test_who_is_told_the_truth_is_marked_everywhere() -> None:
    found = compare("Toy", ["sjf", "sjf-clairvoyant"], seeds=1, workers=1, record="kernels")
    assert found.clairvoyant == {"sjf-clairvoyant"}
    assert [found.label(name) for name in found.schedulers] == ["sjf", "sjf-clairvoyant*"]
    told = found.to_frame().groupby("scheduler").clairvoyant.all().to_dict()
    assert told == {"sjf": False, "sjf-clairvoyant": True}
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(found)
    text = console.export_text()
    assert text.count("sjf-clairvoyant*") == 3, "in all tables"
    assert "* clairvoyant: is told the truth" in text
    result = result_of(found)
    assert {name: about.clairvoyant for name, about in result.schedulers.items()} == {
        "sjf": False,
        "sjf-clairvoyant": True,
    }
    page = report_html(found, result)
    assert page.count('<th scope="row">sjf (baseline), sjf-clairvoyant*</th>') == 3, "one row in every table"
    assert "<dt>sjf-clairvoyant*</dt>" in page
    assert "* clairvoyant: is told the truth" in page
    others = compare("Toy", ["sjf"], seeds=1, workers=1)
    assert others.legend == ""
