"""The rate model of a fleet, fitted block by block.

A fleet of thousands of GPUs is simulated with a *rate model*: a job is on its GPU for a part of its time, its activity,
and kernels of others stretch its own in proportion to theirs. Its constants are fitted here, by least squares, to
programs that share a simulated H100 under MPS, block by block: inference (CUDA graphs, closed loop with pauses) beside
training that sleeps after each iteration or has a smaller share, inference beside inference, programs alone with
smaller shares, and both on halves of the SMs. Host times do not vary.

The model is judged on random mixes of three or four programs that it is not fitted to. What it misses there is the
error of every figure of a fleet that rests on it.

A smaller share of training makes batches slower here: its kernels take longer on fewer SMs, and blocks of a batch that
are on those SMs are slowed for longer. In Figure 6 it makes them quicker.

The *published* model takes what training does to batches from GPUColo's Figure 6 (RTX 3090, read off) instead, and the
other constants from here.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.verdicts import Simulation, Target, as_row, targets_table
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.games.fleet.co_location import RateModel, published_fleet
from gpusched_env.games.fleet.experiments.fit import (
    SharedGpuCell,
    apart_cells,
    capped_cells,
    errors,
    fit,
    inference_cells,
    pair_cells,
    random_cells,
    with_published,
)

DEVICE: Final = "compiled"
"""Device whose times alone the model reckons with."""
MOST: Final = 0.05
"""Median error on random mixes that holds."""

MARKS: Final = (
    CriterionMark(
        "median error of *",
        Kind.PREDICTED,
        "Constants are fitted to pairs, and the mixes that are judged are random ones of three or four programs.",
    ),
)


class Paper(Reproduction):
    """Constants, and their errors."""

    name = "fleet-rates"
    title = "The rate model of a fleet"
    marks = MARKS

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return list(_groups_of_cells(pair_cells, inference_cells, capped_cells, apart_cells, random_cells))

    @functools.cached_property
    def model(self) -> RateModel:
        return fit(self.runs, DEVICE)

    @functools.cached_property
    def published(self) -> RateModel:
        return with_published(self.model, published_fleet()["fig6_latency_ms"])

    def _errors(self, cells: list[SharedGpuCell]) -> dict[str, Any]:
        found = zip(("batches", "iterations"), errors(self.runs, self.model, cells, DEVICE), strict=True)
        return {what: np.abs(each) for what, each in found if len(each)}

    def checks(self) -> list[Target]:
        random = self._errors(random_cells())
        return [Target(f"median error of {what}", 0.0, MOST, float(np.median(each))) for what, each in random.items()]

    def summary(self) -> str:
        random = self._errors(random_cells())
        off = ", ".join(f"{what} {np.median(each):.1%}" for what, each in random.items())
        return f"{self.tally()}; median error on {len(random_cells())} random mixes: {off}"

    def outcome(self) -> str:
        pairs = self._errors(pair_cells())
        fitted = ", ".join(f"{what} {np.median(each):.1%}" for what, each in pairs.items())
        return (
            "Why: a job is one number here, its activity, whatever "
            "its kernels need. The pairs of inference and training that the constants are fitted to are off themselves "
            f"(median: {fitted})."
        )

    def tables(self) -> list[Table]:
        pairs = zip(RateModel._fields, self.model, self.published, strict=True)
        constants = [(name.replace("_", " "), f"{ours:.4g}", f"{theirs:.4g}") for name, ours, theirs in pairs]
        groups = {
            "inference beside training (fitted)": pair_cells(),
            "inference beside inference (fitted)": inference_cells(),
            "random mixes (not fitted)": random_cells(),
        }
        rows = [
            (group, what, str(len(each)), f"{np.median(each):.1%}", f"{each.mean():.1%}", f"{each.max():.1%}")
            for group, cells in groups.items()
            for what, each in self._errors(cells).items()
        ]
        return [
            Table("Constants", ("constant", "block level", "with Figure 6"), constants),
            Table("Errors", ("programs", "time of", "jobs", "median", "mean", "largest"), rows),
            targets_table("What is judged", self.checks()),
        ]

    def data(self) -> dict[str, Any]:
        random = self._errors(random_cells())
        return {
            "rates": {"block-level": self.model._asdict(), "published": self.published._asdict()},
            "errors": {what: {"median": float(np.median(e)), "mean": float(e.mean())} for what, e in random.items()},
            "checks": [as_row(check) for check in self.checks()],
        }


def _groups_of_cells(*groups: Any) -> list[SharedGpuCell]:
    return list(dict.fromkeys(cell for group in groups for cell in group()))
