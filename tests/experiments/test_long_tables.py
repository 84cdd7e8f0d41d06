"""Long tables as CSV: nothing of a cell is lost."""

from __future__ import annotations

import csv
import io

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.figures import find_figure, tables_csv


def test_intervals_become_columns_and_what_is_not_defined_is_empty() -> None:
    first = Table("one", ["scheduler", "cost", "against a", "goodput/s"], [["a", "1.5", "–", "10"]])
    second = Table("two", ["scheduler", "cost", "against b"], [["b, c", "2 [1.5, 2.5]", "-50.0% [-75.0%, +25.0%]"]])
    assert tables_csv([({"scenario": "One"}, first), ({"scenario": "Two"}, second)]).splitlines() == [
        "scenario,scheduler,cost,cost_low,cost_high,against,difference,difference_low,difference_high,goodput_per_s",
        "One,a,1.5,,,a,,,,10",
        'Two,"b, c",2,1.5,2.5,b,-0.5,-0.75,0.25,',
    ]


def test_a_renamed_heading_keeps_its_column() -> None:
    heading = find_figure("best_effort", of_tenant=False).label
    assert heading == "others' progress"
    table = Table("one", ["scheduler", heading], [["a", "0.75"]])
    assert tables_csv([({}, table)]).splitlines() == ["scheduler,best_effort", "a,0.75"]


def test_heads_that_repeat_are_columns_of_their_own() -> None:
    heads = ["mix", "gain", "gain", "requests", "gain", "energy", "gain", "against a", "against b", "seen_low"]
    (row,) = csv.DictReader(
        io.StringIO(tables_csv([({}, Table("", heads, [["1", "3", "4", "5", "+2%", "7", "-3%", "8", "9", "1"]]))]))
    )
    assert row == {
        "mix": "1", "mix_gain": "3", "mix_gain_2": "4", "requests": "5", "requests_gain": "0.02",
        "energy": "7", "energy_gain": "-0.03",
        "against_a": "8", "against_b": "9", "seen_low": "1",
    }  # fmt: skip
