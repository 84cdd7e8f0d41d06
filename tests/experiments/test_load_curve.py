"""Comparisons over a load: which values, what the frame holds, where the objective breaks, and the way back."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

import gpusched_env
from gpusched_env.display.palette import BASELINE
from gpusched_env.errors import InputError
from gpusched_env.experiments.compare import compare
from gpusched_env.experiments.load_curve.figures import Capacity, LoadCurve, axis_of, capacity, parse_axis
from gpusched_env.experiments.load_curve.tables import looks, ordered, tables
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from tests.conftest import Run
from tests.experiments.sortable import assert_sortable
from tests.refusals import refused

SEEDS = 2
LOADS = [0.5, 2.0]


@pytest.fixture(scope="module")
def curve() -> LoadCurve:
    """Two schedulers of Toy, whose urgent jobs keep arriving and have an objective here, at two loads."""
    return compare(streaming(), "pass-through,sjf", SEEDS, sweep={"load": LOADS}, workers=1)


def streaming(**fields: float) -> Scenario:
    urgent = {"arrivals": {"kind": "poisson", "rate_per_s": 4_000.0}, "slo_us": 500.0}
    return load_scenario("Toy", horizon_us=5_000.0, tenants={"urgent": urgent}, **fields)


@pytest.mark.parametrize(
    ("text", "field", "values"),
    [
        ("load=0.6:1.0:0.1", "load", (0.6, 0.7, 0.8, 0.9, 1.0)),
        ("load=0.6:1.05:0.2", "load", (0.6, 0.8, 1.0)),
        ("load=1.2,0.8", "load", (0.8, 1.2)),
        ("tenants.urgent.slo_us=100,200", "tenants.urgent.slo_us", (100.0, 200.0)),
    ],
)
def test_values_are_a_range_or_a_list(text: str, field: str, values: tuple[float, ...]) -> None:
    axis = parse_axis(text)
    assert (axis.field, axis.values) == (field, values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("load", "expected FIELD=START:STOP:STEP, such as load=0.6:1.5:0.1"),
        ("load=0.6:1.5", "the step is missing; expected FIELD=START:STOP:STEP"),
        ("load=1:2:3:4", "4 parts where 3 belong"),
        ("load=0.6:1.5:0", "the step must be above 0"),
        ("load=1.5:0.6:0.1", "STOP not below START"),
        ("load=0.6:x:0.1", "'x' is no number; expected"),
        ("load=low,high", "'low' is no number"),
        ("load=1.0", "at least two values"),
        ("load=1,1", "different"),
        ("load=1,nan", "finite"),
        ("load=0:1:0.0001", "take a larger step"),
    ],
)
def test_what_is_wrong_with_a_sweep_and_what_would_be_right(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_axis(text)


def test_what_is_wrong_with_a_sweep_in_python() -> None:
    for sweep, message in (
        ({"load": [0.5, 1.0], "horizon_us": [1.0, 2.0]}, "one field with its values"),
        ({"load": 1.0}, "one field with its values"),
        ({"load": ["high"]}, "one field with its values"),
        ({"load": [1.0]}, "at least two values"),
    ):
        with pytest.raises(InputError, match=message):
            axis_of(sweep)  # type: ignore[arg-type]


def test_a_field_that_is_not_there_is_found_before_anything_runs() -> None:
    def never(finished: int, share: float) -> None:
        pytest.fail("an episode ran")

    for field, message in (
        ("tenants.urgnt.slo_us", "--sweep tenants.urgnt.slo_us=1: tenants has no 'urgnt'.*did you mean 'urgent'"),
        ("lood", "lood"),
        ("gpu", "gpu"),
    ):
        with pytest.raises(InputError, match=message):
            compare("Toy", "sjf", 1, sweep={field: [1.0, 2.0]}, workers=1, on_progress=never)
    for options, message in (
        ({"record": "blocks"}, "keeps jobs alone"),
        ({"window_us": (0.0, 10.0)}, "keeps jobs alone"),
        ({"share": 1.5}, "share is 1.5"),
    ):
        with pytest.raises(InputError, match=message):
            compare("Toy", "sjf", 1, sweep={"load": [1.0, 2.0]}, workers=1, on_progress=never, **options)


@pytest.mark.parametrize(
    ("attained", "expected"),
    [
        # A quarter of the way from 1.00 down to 0.80 is 0.95.
        ([1.0, 1.0, 0.8], Capacity(1.25, "within")),
        # What is kept again after a break does not count.
        ([1.0, 0.9, 1.0], Capacity(0.75, "within")),
        ([1.0, 0.95, 0.95], Capacity(2.0, "above")),
        ([0.9, 1.0, 1.0], Capacity(0.5, "below")),
        # A point without a known outcome is passed over.
        ([1.0, math.nan, 0.9], Capacity(1.25, "within")),
    ],
)
def test_the_capacity_lies_where_the_objective_breaks(attained: list[float], expected: Capacity) -> None:
    found = capacity([0.5, 1.0, 2.0], attained, 0.95)
    assert (found.where, found.value) == (expected.where, pytest.approx(expected.value))


def test_how_a_capacity_is_said() -> None:
    texts = [str(capacity([0.6, 1.5], attained)) for attained in ([1, 1], [0, 1], [1.0, 0.9], [math.nan] * 2)]
    assert texts == ["above 1.5", "below 0.6", "1.05", "–"]


def test_the_frame_has_a_row_a_value_scheduler_and_seed(curve: LoadCurve) -> None:
    frame = curve.to_frame()
    assert len(frame) == len(LOADS) * 2 * SEEDS
    assert set(frame.groupby(["load", "scheduler", "seed"]).size()) == {1}
    wanted = "cost goodput_per_s turnaround_p99_us slo_attainment jobs_completed jobs_rejected jobs_unfinished"
    assert set(wanted.split()) <= set(frame)
    tenants = curve.to_frame("tenants")
    assert len(tenants) == len(frame) * 2
    at = ["load", "scheduler", "seed"]
    assert (tenants.groupby(at).completed.sum() == frame.set_index(at).jobs_completed.sort_index()).all()
    jobs = curve.to_frame("jobs")
    assert (
        jobs.groupby(at, observed=True).turnaround_us.max() >= frame.set_index(at).turnaround_p99_us.sort_index()
    ).all()
    with refused(InputError, "did you mean 'tenants'"):
        curve.to_frame("tenant")  # type: ignore[arg-type]


def test_every_value_is_the_comparison_of_that_scenario(curve: LoadCurve) -> None:
    alone = compare(streaming(load=2.0), "pass-through,sjf", SEEDS, workers=1)
    for name in ("pass-through", "sjf"):
        assert curve.interval(name, 2.0, "cost") == alone.interval(name, "cost")
    assert curve.interval("sjf", 2.0, "cost").mean != curve.interval("sjf", 0.5, "cost").mean
    with refused(InputError, "compared"):
        curve.interval("sjf", 1.0, "cost")
    with refused(InputError, "did you mean 'sjf'"):
        curve.capacity("sfj")


def test_progress_goes_over_all_values() -> None:
    told: list[tuple[int, float]] = []
    compare(
        "Toy",
        "sjf",
        2,
        sweep={"load": [1.0, 2.0]},
        workers=1,
        on_progress=lambda done, share: told.append((done, share)),
    )
    assert told == [(1, 0.25), (2, 0.5), (3, 0.75), (4, 1.0)]


def test_an_interrupt_keeps_what_is_finished() -> None:
    def after_three(finished: int, share: float) -> None:
        if finished == 3:
            raise KeyboardInterrupt

    found = compare("Toy", "sjf", 2, sweep={"load": [1.0, 2.0, 3.0]}, workers=1, on_progress=after_three)
    assert found.interrupted
    assert found.values == [1.0, 2.0]
    assert len(found.to_frame()) == 3


def test_there_is_no_capacity_without_a_load_or_an_objective() -> None:
    found = compare("Toy", "sjf", 1, sweep={"decision_us": [0.0, 5.0]}, workers=1)
    with refused(InputError, "decision_us", "load"):
        found.capacity("sjf")
    assert "capacity" not in tables(found)[0].heads


def test_a_saved_curve_is_read_back(curve: LoadCurve, tmp_path: Path) -> None:
    files = curve.save(tmp_path / "out")
    assert files == ["jobs.parquet", "result.json", "sweep.csv", "sweep.html", "sweep.svg"]
    again = gpusched_env.load_sweep(tmp_path / "out")
    assert again.to_frame().equals(curve.to_frame())
    assert str(again) == str(curve)
    assert ordered(again) == ordered(curve)
    page = (tmp_path / "out" / "sweep.html").read_text()
    assert "<svg" in page
    colours = set(re.findall(r"(?<=: )#[0-9a-f]{6}", page[page.index("<svg") : page.index("</svg>")]))
    drawn = {own.colour for own in looks(curve).values()}
    assert drawn <= colours <= drawn | {"#000000", "#ffffff", "#ececec", "#888888"}
    assert_sortable(page)
    assert len(page) < 300_000, "it is small"
    assert "src=" not in page, "nothing is fetched"
    (tmp_path / "out" / "result.json").write_text('{"schema": "other"}')
    with refused(InputError, "curve"):
        gpusched_env.load_sweep(tmp_path / "out")


def test_charts_have_a_line_a_scheduler(curve: LoadCurve) -> None:
    for chart in (
        curve.plot.goodput(),
        curve.plot.p99(),
        curve.plot.p99("urgent"),
        curve.plot.attainment(),
        curve.plot.cost(),
    ):
        marked = [(trace.line.color, trace.line.dash) for trace in chart.data if trace.mode == "lines+markers"]
        assert marked == [(own.colour, own.dash) for own in looks(curve).values()]
        assert looks(curve)["pass-through"] == BASELINE
        assert [trace.name for trace in chart.data if trace.mode == "lines+markers"] == [
            curve.label(name) for name in ordered(curve)
        ]


def test_the_command_line_writes_a_sweep(gpusched: Run, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("compare", "Toy", "--schedulers", "sjf", "--seeds", "1", "--workers", "1", "--sweep")
    assert gpusched(*command, "load=1:2:0.5") == 0
    assert "results/Toy-load:" in capsys.readouterr().out
    assert gpusched_env.load_sweep("results/Toy-load").values == [1.0, 1.5, 2.0]
    assert gpusched(*command, "load=0.6:1.5") == 2
    assert "the step is missing; expected FIELD=START:STOP:STEP" in capsys.readouterr().err
    assert gpusched(*command, "load=1,2", "--traces") == 2
    assert "leave record and window_us (--traces, --window-us) out" in capsys.readouterr().err
