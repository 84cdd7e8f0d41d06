"""Orion (Strati et al., EuroSys 2024): best-effort kernels beside requests, by what either is bound by, on a V100.

The paper's Figures 7 and 10 run ResNet-50 or MobileNetV2 as requests of high priority, beside trainings or beside other
requests. Their bars are not available as numbers, and the artefact holds one result; so few figures are judged here,
and all of ours are shown: they stand as predictions.

* *Kernels* are the artefact's own profiles: what bounds an operator, the SMs that it needs, its time alone. Six of ten
  pairs have them; BERT and Transformer-XL are left out. Grids are unknown: an SM is taken to hold four blocks.
  `gpusched import kernels` turns such files into workloads.
* *Hosts* launch an operator every 6 us, a guess; inputs are copied first.
* *Requests* come as in the artefact: Poisson at 15 and 40 a second with its seed, or at its recorded gaps.
* *Systems*: alone (ideal); a job at a time (temporal); streams with priorities, MPS without; REEF's policy where
  kernels cannot be killed; Orion with the artefact's bound of 160 or 100 us in flight.
* *The saving* is read as twice the training's throughput over that alone: one GPU does the work of two.
* *The artefact's result* is a short run under MPS: 100 requests at 30 a second beside ResNet-50's training.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

from gpusched_env.data import stored
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.verdicts import Simulation, Target, table_of, targets_table
from gpusched_env.experiments.papers.orion.runs import (
    BESIDE,
    IDEAL,
    MPS,
    ORION,
    REEF,
    SHARED,
    STREAMS,
    SYSTEMS,
    TEMPORAL,
    UNBOUNDED,
    URGENT,
    Figure,
    OrionRun,
    OrionTraining,
    Served,
)
from gpusched_env.experiments.papers.reproduction import Reproduction

PUBLISHED: Final = stored("published", "orion.json")
LOGGED: Final = PUBLISHED["mps"]
FIGURES: Final[tuple[Figure, ...]] = (7, 10)
TOLERANCE: Final = 0.15
LOG_TOLERANCE: Final = 0.25
PAIRS: Final = tuple(itertools.product(URGENT, BESIDE))
LOG_RUN: Final = OrionRun(7, "ResNet50", "ResNet50", MPS, float(LOGGED["rate_per_s"]), LOGGED["requests"])
MARKS: Final = (
    *(
        CriterionMark(
            f"figure *: Orion's p99 below that of {system}, *",
            Kind.PREDICTED,
            "The abstract says that it improves tails over the state of the art; which pair shows it was open.",
            "Orion that holds nothing back: 1.72 and 1.33 times alone in the mean, as streams",
        )
        for system in (STREAMS, REEF)
    ),
    *(
        CriterionMark(
            f"figure *: Orion's p99 below that of {system}, *",
            Kind.VACUOUS,
            "Orion that holds nothing back, whose requests only have priority, passes as well.",
            "Orion that holds nothing back: 1.72 and 1.33 times alone in the mean",
        )
        for system in (TEMPORAL, MPS)
    ),
    CriterionMark(
        "largest saving in trainings' costs",
        Kind.PREDICTED,
        "Nothing is fitted to it; how it is computed is our reading.",
        "a GPU each: 1",
    ),
    CriterionMark(
        "MPS, artefact: *",
        Kind.PREDICTED,
        "Kernels are profiles of either network alone.",
        "requests alone: 7 ms in the median",
    ),
)


class Paper(Reproduction):
    """Orders of tails, the saving, one result, and all figures."""

    name = "orion"
    title = "Orion"
    shows = 3
    marks = MARKS
    legend = (
        "*Figure 7*: requests beside a training; *figure 10*: beside other requests. An order is the ratio of two 99th "
        "percentiles, below 1."
    )

    @staticmethod
    def cells() -> Sequence[Simulation]:
        ideal = [OrionRun(figure, urgent, "ResNet50", IDEAL) for figure in FIGURES for urgent in URGENT]
        shared = [OrionRun(f, *pair, system) for f in FIGURES for pair in PAIRS for system in (*SYSTEMS, UNBOUNDED)]
        return [*ideal, *shared, *map(OrionTraining, BESIDE), LOG_RUN]

    def served(self, figure: Figure, urgent: str, beside: str, system: str) -> Served:
        """The figures of a run."""
        found: Served = self.runs[OrionRun(figure, urgent, "ResNet50" if system == IDEAL else beside, system)]
        return found

    def over_ideal(self, figure: Figure, urgent: str, beside: str, system: str) -> float:
        """The 99th percentile over that alone."""
        ideal = self.served(figure, urgent, beside, IDEAL)
        return self.served(figure, urgent, beside, system).p99_us / ideal.p99_us

    def training(self, urgent: str, beside: str, system: str) -> float:
        """A training's throughput over that alone."""
        return float(self.served(7, urgent, beside, system).beside_per_s / self.runs[OrionTraining(beside)].per_s)

    def checks(self) -> list[Target]:
        logged, ours = LOGGED, self.runs[LOG_RUN]
        figures = {
            f"{name}, ms": (logged[f"{name}_us"] / 1e3, getattr(ours, f"{name}_us") / 1e3) for name in LOG_FIGURES
        }
        figures["trainings a second"] = logged["trainings_per_s"], ours.beside_per_s
        saving = max(2.0 * self.training(*pair, ORION) for pair in PAIRS)
        largest = PUBLISHED["largest_saving"]
        return [
            *self._orders(),
            Target.of_figure("largest saving in trainings' costs", largest, saving, TOLERANCE * largest),
            *(
                Target.of_figure(f"MPS, artefact: {what}", theirs, found, LOG_TOLERANCE * theirs)
                for what, (theirs, found) in figures.items()
            ),
        ]

    def _orders(self) -> Iterator[Target]:
        """Orion's tail over that of each other system, by pair."""
        for figure, (urgent, beside), system in itertools.product(FIGURES, PAIRS, SHARED):
            found = (
                self.served(figure, urgent, beside, ORION).p99_us / self.served(figure, urgent, beside, system).p99_us
            )
            what = f"figure {figure}: Orion's p99 below that of {system}, {urgent} beside {beside}"
            yield Target(what, 0.0, 1.0, found, published="below 1")

    def outcome(self) -> str:
        """What the systems come to on average."""
        lines = []
        for figure in FIGURES:
            means = {
                system: sum(self.over_ideal(figure, *pair, system) for pair in PAIRS) / len(PAIRS)
                for system in (*SYSTEMS, UNBOUNDED)
            }
            said = ", ".join(f"{system} {mean:.2f}" for system, mean in means.items())
            lines.append(f"* *Figure {figure}*: 99th percentiles over that alone, mean over the pairs: {said}.")
        lines.append(
            "* *The artefact's result*: its requests wait twice as long under MPS as ours, beside a training as fast. "
            "What else that run had, such as hosts of eight CPUs, is not in its files."
        )
        return "In short:\n\n" + "\n".join(lines)

    def summary(self) -> str:
        means = [sum(self.over_ideal(f, *pair, ORION) for pair in PAIRS) / len(PAIRS) for f in FIGURES]
        tail = f"{means[0]:.2f} beside trainings, {means[1]:.2f} beside requests"
        return f"{self.tally()}; Orion's p99 over that alone {tail}"

    def tables(self) -> list[Table]:
        def row(figure: Figure, urgent: str, beside: str) -> dict[str, Any]:
            shown = {}
            for system in (*SYSTEMS, UNBOUNDED):
                tail = f"{self.over_ideal(figure, urgent, beside, system):.2f}"
                served = self.served(figure, urgent, beside, system).beside_per_s
                rest = f"{self.training(urgent, beside, system):.2f}" if figure == 7 else f"{served:.0f} a second"
                shown[system] = f"{tail}; {rest}"
            ideal_ms = self.served(figure, urgent, beside, IDEAL).p99_us / 1e3
            return {"urgent": urgent, "beside": beside, "alone": f"{ideal_ms:.1f} ms", "of": shown}

        columns = "requests = {urgent} | beside = {beside} | p99 alone = {alone} | "
        columns += " | ".join(f"{system} = {{of[{system}]}}" for system in (*SYSTEMS, UNBOUNDED))
        rest = {7: "the training's throughput over that alone", 10: "completed best-effort requests"}
        return [
            targets_table("What is judged", [check for check in self.checks() if "below that of" not in check.what]),
            *(
                table_of(
                    f"Figure {figure}: p99 over that alone; {rest[figure]}",
                    [row(figure, *pair) for pair in PAIRS],
                    columns,
                )
                for figure in FIGURES
            ),
            targets_table("Orders of tails", list(self._orders())),
        ]


LOG_FIGURES: Final = ("p50", "p95", "p99")
