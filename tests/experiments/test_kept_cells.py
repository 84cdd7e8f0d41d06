"""Finished cells come back equal to the last bit, or not at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.kept_cells import KeptCells
from gpusched_env.experiments.lib.verdicts import run_cells
from tests.refusals import refused


@dataclass(frozen=True)
class Figures:
    values: tuple[float, ...]


@dataclass(frozen=True)
class Third:
    number: float

    def run(self, device: str) -> Figures:
        return Figures((self.number / 3.0, 0.1 + 0.2, 1e-300))


@dataclass(frozen=True)
class Other(Third):
    """Another cell with the same fields."""


def test_cells_come_back_equal(tmp_path: Path) -> None:
    cells = [Third(1.0), Other(1.0), Third(2.0)]
    told: list[int] = []
    first = run_cells(cells[:2], workers=1, kept=KeptCells(tmp_path, "made", "one"))
    kept = KeptCells(tmp_path, "made", "one")
    assert kept.of(cells) == first
    assert run_cells(cells, workers=1, on_progress=lambda done, _: told.append(done), kept=kept) == run_cells(cells)
    assert told == [3]
    assert len((tmp_path / "made.jsonl").read_text().splitlines()) == 1 + len(cells)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    KeptCells(tmp_path, "made", "one").add(Third(1.0), Third(1.0).run(""))
    with refused(InputError, "made.jsonl", "'two'", "name another folder"):
        KeptCells(tmp_path, "made", "two")
    path = tmp_path / "made.jsonl"
    path.write_text(path.read_text().replace("[0.3333333333333333,", '["much",'))
    with refused(InputError, "made.jsonl", "values[0]"):
        KeptCells(tmp_path, "made", "one").of([Third(1.0)])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_json_cannot_hold_is_not_kept(value: float, tmp_path: Path) -> None:
    kept = KeptCells(tmp_path, "made", "one")
    kept.add(Third(1.0), Figures((value,)))
    assert not (tmp_path / "made.jsonl").exists()
