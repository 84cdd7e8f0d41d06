"""Tables on the terminal: they fit, and mark what is best."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from rich.console import Console

from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.report.tables import COLUMNS, asked_columns, comparison_tables
from tests.refusals import refused


def render(comparison: Comparison, width: int, columns: str = "", explain: bool = False, **options: object) -> str:
    file = io.StringIO()
    shown = comparison_tables(comparison, columns=asked_columns(columns), explain=explain)
    Console(file=file, width=width, **options).print(shown)  # type: ignore[arg-type]
    return file.getvalue()


def heads(text: str) -> list[str]:
    """The lines with the heads of tables."""
    return [line for line in text.splitlines() if line.startswith("scheduler")]


@pytest.mark.parametrize("width", [120, 100, 80, 70])
def test_tables_fit_and_keep_every_scheduler_and_cost(comparison: Comparison, width: int) -> None:
    lines = render(comparison, width).splitlines()
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    for word in ("patient", "eager", "batch", "urgent", "p50", "p99", "slowdown", "cost", "verdict"):
        assert word in text
    # No number is cut or wrapped.
    assert "…" not in text


def test_six_columns_lead_and_the_others_come_when_they_are_asked_for(comparison: Comparison) -> None:
    *tenants, whole = heads(render(comparison, 120))
    shown = ["scheduler", "cost", "vs patient", "verdict", "goodput/s", "urgent p99"]
    assert whole.split() == " ".join(shown).split()
    assert len(shown) == COLUMNS
    assert all(len(head.replace(" %", "").split()) <= COLUMNS for head in tenants)
    everything = render(comparison, 200, "all")
    for word in ("STP", "ANTT", "DRAM", "energy", "p95", "rejected"):
        assert word in everything
        assert word not in "".join([*tenants, whole])
    *_, asked = heads(render(comparison, 120, "stp,p99"))
    assert asked.split() == ["scheduler", "cost", "vs", "patient", "verdict", "STP"]
    with refused(InputError, "stq", "stp"):
        asked_columns("cost,stq")


def test_abbreviations_are_explained_where_they_stand(comparison: Comparison) -> None:
    text = " ".join(render(comparison, 120, "all").split())
    for said in ("p99: 99 % are shorter", "STP: sum of the tenants' progress", "~: of few jobs"):
        assert said in text
    assert "STP:" not in render(comparison, 120)


def test_how_to_read_tables_is_said_to_those_who_ask(comparison: Comparison) -> None:
    assert "bootstrap" not in render(comparison, 120)
    assert "95 %, bootstrap over 3 seeds" in " ".join(render(comparison, 120, explain=True).split())


def test_intervals_show_where_there_is_room(comparison: Comparison) -> None:
    # 50, 60 and 70 us: the resampled means' percentiles are 50 and 70.
    assert "0.060 ±0.010" in render(comparison, 120)
    # The interval of the cost goes after all others, that of the difference last.
    assert "0.060 ±" not in render(comparison, 58)
    assert "1.20 ±0.16" in render(comparison, 78)
    assert "Fewer than 5 seeds" in render(comparison, 70)


def test_one_seed_shows_no_intervals(run_fake: Callable[..., Comparison]) -> None:
    text = render(run_fake(seeds=1, record="jobs"), 120)
    assert "±" not in text
    assert "One seed" in text


def test_the_best_of_a_column_is_highlighted(comparison: Comparison) -> None:
    text = render(comparison, 120, force_terminal=True, color_system="standard", highlight=False)
    # Median of the batch tenant: 40 us with the eager scheduler, 60 us with the other.
    assert "\x1b[1;32m0.040" in text
    assert "\x1b[1;32m0.060" in text  # the urgent tenant's best
    assert text.count("0.060") > text.count("\x1b[1;32m0.060")


def test_the_paired_difference_is_relative_to_the_first(comparison: Comparison) -> None:
    # 4 (0.06 + 3 0.08) = 1.2 on average, and 0.32 less.
    assert "-26.7 %" in render(comparison, 120)


def test_undefined_figures_are_dashes(run_fake: Callable[..., Comparison]) -> None:
    text = render(run_fake("IdleDevice", record="jobs"), 120)
    assert "–" in text
    assert not re.search(r"\bnan\b", text)


def test_a_lone_scheduler_has_no_difference(run_fake: Callable[..., Comparison]) -> None:
    assert " vs " not in render(run_fake(names=("patient",), record="jobs"), 120)
