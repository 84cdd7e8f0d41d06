"""Tally (Zhao, Jayarajan, Pekhimenko, ASPLOS 2025): requests beside trainings whose kernels give way between blocks.

The artefact runs BERT or Llama-2-7B inference beside each of six trainings on an A100 and reports 99th percentiles over
those alone, in means over the trainings. Here orders of systems are judged whose published means differ by more than
10 %, and the trade-off with the training's speed.

* *Stand-ins*: four recorded trainings (ResNet-50, BERT, VGG-19, ResNet-152) for six; BERT as recorded; of Llama-2-7B a
  prompt of 128 and 8 tokens of a recorded model of 1.2 billion weights, whose kernels take as much longer as it has
  weights less. All are carried over to an A100 PCIe 40 GB.
* *Requests* are Poisson at half of what the GPU serves, where the artefact scales a trace to that load. Hosts launch
  every 3 us, a guess.
* *Training*: work done (time of its kernels alone) over that done alone in the same time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Final

from gpusched_env.data import stored
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.verdicts import Simulation, Target, table_of, targets_table
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.experiments.papers.tally.runs import (
    ALONE,
    MPS,
    REQUESTS,
    SLICING,
    SYSTEMS,
    TALLY,
    TGS,
    TRAININGS,
    UNBOUNDED,
    ServiceRun,
    TrainingAlone,
)

PUBLISHED: Final = stored("published", "tally.json")
SEPARATED: Final = 1.1
MARKS: Final = (
    CriterionMark(
        "*: p99 under * below that under *",
        Kind.PREDICTED,
        "Systems are by their papers, kernels by recordings; no order was used.",
        "MPS with priority, without the mechanism: 24.8 and 1.68 times alone, Tally 1.15 and 1.00",
    ),
    CriterionMark(
        "training under *",
        Kind.PREDICTED,
        "What a system leaves a training follows from its rule; no figure was used.",
        "alone: 1",
    ),
)


def separated(service: str) -> list[tuple[str, str]]:
    """Pairs of systems whose published tails differ by more than a tenth, the better one first."""
    tails = PUBLISHED["p99_over_alone"][service]
    pairs = itertools.permutations(tails, 2)
    return [(first, second) for first, second in pairs if tails[second] > SEPARATED * tails[first]]


class Paper(Reproduction):
    """Orders of tails, and the training's speed."""

    name = "tally"
    title = "Tally"
    marks = MARKS
    legend = "*p99*: over that alone, mean over the trainings. An order is the ratio of two such means, below 1."

    @staticmethod
    def cells() -> Sequence[Simulation]:
        alone = [ServiceRun(service, None, ALONE) for service in REQUESTS]
        shared = itertools.starmap(ServiceRun, itertools.product(REQUESTS, TRAININGS, (*SYSTEMS, UNBOUNDED)))
        return [*alone, *map(TrainingAlone, TRAININGS), *shared]

    def tail(self, service: str, training: str, system: str) -> float:
        """The 99th percentile over that alone."""
        alone = self.runs[ServiceRun(service, None, ALONE)]
        return float(self.runs[ServiceRun(service, training, system)].p99_us / alone.p99_us)

    def speed(self, service: str, training: str, system: str) -> float:
        """A training's work over that alone."""
        return float(self.runs[ServiceRun(service, training, system)].work / self.runs[TrainingAlone(training)].work)

    def mean_tail(self, service: str, system: str) -> float:
        """Mean of :meth:`tail` over the trainings."""
        return sum(self.tail(service, training, system) for training in TRAININGS) / len(TRAININGS)

    def mean_speed(self, service: str, system: str) -> float:
        """Mean of :meth:`speed` over the trainings."""
        return sum(self.speed(service, training, system) for training in TRAININGS) / len(TRAININGS)

    def checks(self) -> list[Target]:
        return [*self._speeds(), *self._orders()]

    def _speeds(self) -> Iterator[Target]:
        """What each leaves the trainings."""
        for service, (system, (low, high)) in itertools.product(REQUESTS, PUBLISHED["training_over_alone"].items()):
            ours = self.mean_speed(service, system)
            yield Target(f"training under {system} beside {service}", low, high, ours, published=f"{low} to {high}")
        for service in REQUESTS:
            ours = self.mean_speed(service, TALLY) / self.mean_speed(service, MPS)
            yield Target(f"training under {TALLY} over {MPS} beside {service}", 0.0, 1.0, ours, published="below 1")

    def _orders(self) -> Iterator[Target]:
        """Ratios of tails of systems that are separated."""
        for service in REQUESTS:
            theirs = PUBLISHED["p99_over_alone"][service]
            for first, second in separated(service):
                ours = self.mean_tail(service, first) / self.mean_tail(service, second)
                what = f"{service}: p99 under {first} below that under {second}"
                yield Target(what, 0.0, 1.0, ours, published=f"{theirs[first] / theirs[second]:.2f}")

    def outcome(self) -> str:
        """Why it comes out as it does."""
        bert = {system: self.mean_tail("BERT", system) for system in SYSTEMS}
        return (
            "Why:\n\n"
            f"* *Time slicing beside BERT*: half of the GPU, less switches, is less than half load needs, so requests "
            f"queue up ({bert[SLICING]:.0f} times alone). The artefact's do not (2.73).\n"
            f"* *TGS* searches its rate during the run. Beside BERT that is seconds, and trainings get "
            f"{self.mean_speed('BERT', TGS):.0%} of their speed.\n"
            f"* *{UNBOUNDED}*: that best-effort kernels go one at a time, in pauses, and between blocks protects "
            "requests; how long one may take to give way matters less here."
        )

    def summary(self) -> str:
        tails = ", ".join(f"{self.mean_tail(service, TALLY):.2f} ({service})" for service in REQUESTS)
        return f"{self.tally()}; p99 under Tally over that alone {tails}"

    def tables(self) -> list[Table]:
        means = [
            {
                "service": service, "system": system, "tail": self.mean_tail(service, system),
                "theirs": PUBLISHED["p99_over_alone"][service].get(system, "–"),
                "speed": self.mean_speed(service, system),
            }
            for service, system in itertools.product(REQUESTS, (*SYSTEMS, UNBOUNDED))
        ]  # fmt: skip
        return [
            table_of(
                "Means over the trainings",
                means,
                "requests = {service} | system = {system} | p99 over alone = {tail:.2f} | published = {theirs} | "
                "training over alone = {speed:.2f}",
            ),
            targets_table("What is judged", self.checks()),
        ]

    def details(self) -> Sequence[Table]:
        rows: list[dict[str, Any]] = [
            {
                "service": service, "training": training, "system": system,
                "ms": self.runs[ServiceRun(service, training, system)].p99_us / 1e3,
                "tail": self.tail(service, training, system), "speed": self.speed(service, training, system),
            }
            for service, training, system in itertools.product(REQUESTS, TRAININGS, (*SYSTEMS, UNBOUNDED))
        ]  # fmt: skip
        columns = "requests = {service} | training = {training} | system = {system} | p99 = {ms:.2f} ms | "
        columns += "over alone = {tail:.2f} | training over alone = {speed:.2f}"
        return [table_of("By training", rows, columns)]
