"""The simulator against its recordings.

The shipped recordings against the simulator: tenants alone, CUDA graphs side by side, time slicing.

* *Alone*: every shipped workload by itself takes its recorded (unprofiled) iteration time. The importer
  scales host times to it with a closed form; here hosts, streams and SMs have to arrive at the same.
* *Beside training*: ResNet-50 inference and training as CUDA graphs on two streams, of equal priority
  and with a more urgent foreground; slowdowns as recorded in ``data/measurements/h100/model_pairs.jsonl``.
* *Time slicing*: two eager processes without MPS; mean iteration times as recorded in
  ``data/measurements/h100/eager_time_slicing.jsonl`` (host times scaled to the processes' speed alone).
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.data import recorded_names
from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib import recorded
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import (
    RECORDED_ON,
    graph_cells,
    recorded_pairs,
    recorded_turns,
    situation,
    tenant,
    turnarounds_us,
)
from gpusched_env.experiments.lib.verdicts import Check, Simulation, as_row, run_cells, table_of
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.scenarios.building import load_workload

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

ALONE_TOLERANCE = 0.03
SHARED_TOLERANCE = 0.15
TURNS = "eager_time_slicing.jsonl"
SIDES = ("slowdown of inference", "slowdown of training")
MARKS = (
    CriterionMark("alone: *", Kind.FITTED, "Host times are scaled to the very time that is compared."),
    CriterionMark(
        "ResNet-50 inference beside training, *",
        Kind.FITTED,
        "The demands of classes of kernels were chosen on an earlier recording of the same pair.",
    ),
    CriterionMark(
        "time slicing, *",
        Kind.PREDICTED,
        "Slices were read off another recording, and host times are scaled to each process alone.",
    ),
)
FOREGROUND, BACKGROUND = "resnet50_infer_b1", "resnet50_train_b32"


@dataclass(frozen=True, kw_only=True)
class GroupFigure(Check):
    """One figure of a group."""

    group: str
    what: str
    unit: str

    def named(self) -> str:
        return f"{self.group}: {self.what}"


def figures(group: str, unit: str, tolerance: float, found: Iterable[tuple[str, float, float]]) -> list[GroupFigure]:
    """The figures of a group: what each is, simulated and recorded."""
    return [
        GroupFigure(group=group, what=what, unit=unit, simulated=simulated, recorded=recorded, tolerance=tolerance)
        for what, simulated, recorded in found
    ]


@dataclass(frozen=True)
class RecordedAlone:
    """A workload by itself, eager.

    Without the recorded variation of host times: some networks' iterations spread by a factor of three, and the median
    of a few draws would say more about the draw than about the simulator.
    """

    workload: str
    jobs: int = 4

    def run(self, device: str) -> list[GroupFigure]:
        iterations = load_workload(self.workload).iteration_us
        problem = situation([tenant(self.workload, jobs=self.jobs)], variation=False)
        (took,) = turnarounds_us(play("pass-through", problem, seed=0, device=device), skip=1)
        found = (self.workload, float(np.median(took)), statistics.median(iterations))
        return figures("alone", "us", ALONE_TOLERANCE, [found])


@dataclass(frozen=True)
class BesideTraining:
    """Inference and training as CUDA graphs on two streams, in every recorded mode."""

    horizon_us: float = 250_000.0

    def run(self, device: str) -> list[GroupFigure]:
        pairs = [pair for pair in recorded_pairs() if (pair.fg, pair.bg) == (FOREGROUND, BACKGROUND)]
        where = {"horizon_us": self.horizon_us}
        runs = run_cells(graph_cells(pairs, **where), device, workers=1)
        found = []
        for pair in pairs:
            group = f"ResNet-50 inference beside training, {pair.mode}"
            slowdowns = zip(SIDES, pair.simulated(runs, **where), pair.recorded, strict=True)
            found += figures(group, "x", SHARED_TOLERANCE, slowdowns)
        return found


@dataclass(frozen=True)
class TimeSlicedPair:
    """A pair of eager processes that take turns."""

    networks: tuple[str, ...]
    horizon_us: float = 500_000.0

    def run(self, device: str) -> list[GroupFigure]:
        turns = recorded.TimeSliced(TURNS, self.networks, self.horizon_us, skip=1).run(device)
        names = [f"mean iteration of {name}" for name in self.networks]
        found = zip(names, turns.simulated_us, turns.recorded_us, strict=True)
        return figures(f"time slicing, {' and '.join(self.networks)}", "us", SHARED_TOLERANCE, found)


class Paper(Reproduction):
    """Every figure within its tolerance."""

    name = "recordings"
    title = "The simulator against its recordings"
    marks = MARKS

    @staticmethod
    def cells() -> Sequence[Simulation]:
        shipped = [name for name in recorded_names() if load_workload(name).gpu == RECORDED_ON]
        return [*map(RecordedAlone, shipped), BesideTraining(), *map(TimeSlicedPair, recorded_turns(TURNS))]

    def checks(self) -> list[GroupFigure]:
        return [figure for figures in self.runs.values() for figure in figures]

    def summary(self) -> str:
        checks = self.checks()
        worst = max(checks, key=lambda check: abs(check.error) / check.tolerance)
        return (
            f"{self.tally()}; worst {worst.group}, {worst.what}: {worst.error:+z.1%} (tolerance {worst.tolerance:.0%})"
        )

    def tables(self) -> list[Table]:
        columns = "figure = {what} | simulated = {simulated:.4g} {unit} | recorded = {recorded:.4g} {unit}"
        columns += " | error = {error:+z.1%} | tolerance = {tolerance:.0%} | verdict = {verdict}"
        groups = itertools.groupby(self.checks(), key=lambda check: check.group)
        return [table_of(group[0].upper() + group[1:], list(figures), columns) for group, figures in groups]

    def data(self) -> dict[str, Any]:
        return {"checks": [as_row(check) for check in self.checks()]}

    def to_frame(self, kind: type | None = None) -> DataFrame:
        return frame(self.data()["checks"])
