"""REEF (Han et al., OSDI 2022): real-time inference that kills best-effort kernels and is padded with them, on an MI50.

The paper's abstract says that real-time requests take less than 2 % longer, and that overall throughput rises by up to
7.7 times, over a GPU that real-time requests have to themselves. Its other figures are not available as numbers. The
workloads are those of its benchmark, DISB: A to E.

* *Networks*: recorded PyTorch programs in single precision, carried over to an MI50. ResNet-50 stands in for Inception
  v3 and BERT in half precision for DistilBERT, of which there is no recording. Hosts launch every 5 us, a guess.
* *Workloads*: real-time requests come at equal distances, without a pause, or by chance, best-effort ones without a
  pause. That of recorded times (REAL) is left out.
* *Overall throughput* counts all requests alike, whichever network they ask.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import situation, tenant, turnarounds_us
from gpusched_env.experiments.lib.verdicts import Simulation, Target, table_of, targets_table
from gpusched_env.experiments.papers.reproduction import Reproduction

GPU: Final = "mi50"
HOST_US: Final = 5.0
HORIZON_US: Final = 1e6
NETWORKS: Final = {
    "ResNet-152": "resnet152_fp32_infer_b1", "DenseNet-201": "densenet201_fp32_infer_b1",
    "VGG-19": "vgg19_fp32_infer_b1", "Inception v3": "resnet50_fp32_infer_b1", "DistilBERT": "bert_infer_b1_s128",
}  # fmt: skip
ALL: Final = tuple(NETWORKS)
CONTINUOUS: Final = {"kind": "closed-loop"}


@dataclass(frozen=True)
class Load:
    """A workload of the benchmark."""

    urgent: tuple[str, ...]
    arrivals: Mapping[str, Any]
    beside: tuple[str, ...]


LOADS: Final = {
    "A": Load(("VGG-19",), {"kind": "periodic", "period_us": 10_000.0}, ("ResNet-152",)),
    "B": Load(("VGG-19",), CONTINUOUS, ("ResNet-152",)),
    "C": Load(("VGG-19",), {"kind": "periodic", "period_us": 10_000.0}, ALL),
    "D": Load(ALL, {"kind": "periodic", "period_us": 50_000.0}, ALL),
    "E": Load(ALL, {"kind": "poisson", "rate_per_s": 20.0}, ALL),
}
ALONE, REEF, WAITS, STREAMS, SEQUENTIAL = "real time alone", "REEF", "REEF, nothing killed", "streams", "sequential"
SYSTEMS: Final = {
    REEF: "reef", WAITS: "reef(reset=false)", STREAMS: "pass-through", SEQUENTIAL: "exclusive",
}  # fmt: skip
LONGER, THROUGHPUT, TOLERANCE = 1.02, 7.7, 0.25
MARKS: Final = (
    *(
        CriterionMark(
            f"{load}: real-time latency over that alone",
            Kind.VACUOUS,
            "With one other network the control passes as well.",
            f"nothing killed: {found}",
        )
        for load, found in {"A": "1.01", "B": "1.00"}.items()
    ),
    *(
        CriterionMark(
            f"{load}: real-time latency over that alone",
            Kind.PREDICTED,
            "What a reset takes is the board's; nothing was fitted to latencies.",
            f"nothing killed: {found}",
        )
        for load, found in {"C": "1.05", "D": "1.08", "E": "1.19"}.items()
    ),
    CriterionMark(
        "largest overall throughput over real time alone",
        Kind.PREDICTED,
        "It follows from the networks, of which some are stand-ins.",
        "a job at a time: 1.99",
    ),
)


@dataclass(frozen=True, slots=True)
class ReefServed:
    """Latency of real-time requests over the workload's networks, and requests a second."""

    latency_us: tuple[float, ...]
    """Mean of each real-time network; NaN where none was completed."""
    urgent_per_s: float
    all_per_s: float


@dataclass(frozen=True, slots=True)
class LoadRun:
    """A workload under a system."""

    load: str
    system: str

    def run(self, device: str) -> ReefServed:
        of = LOADS[self.load]
        urgent = [
            tenant(NETWORKS[name], name=f"{name} real time", arrivals=of.arrivals, host_us=HOST_US)
            for name in of.urgent
        ]
        others = [tenant(NETWORKS[name], name=f"{name} best effort", priority=1, host_us=HOST_US) for name in of.beside]
        tenants = urgent if self.system == ALONE else [*urgent, *others]
        problem = situation(tenants, GPU, HORIZON_US, physics=2, variation=False)
        episode = play(SYSTEMS.get(self.system, "pass-through"), problem, 0, device=device)
        served = [each.throughput_per_s for each in episode.metrics.tenants]
        took = turnarounds_us(episode)[: len(urgent)]
        means = tuple(float(np.mean(each)) if len(each) else math.nan for each in took)
        return ReefServed(means, sum(served[: len(urgent)]), sum(served))


class Paper(Reproduction):
    """Latencies over those alone, and the largest throughput."""

    name = "reef"
    title = "REEF"
    marks = MARKS
    legend = "*Latency*: of real-time requests over that without others, mean over the workload's networks."

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return [LoadRun(load, system) for load in LOADS for system in (ALONE, *SYSTEMS)]

    def longer(self, load: str, system: str) -> float:
        """Mean over the networks of the latency over that alone."""
        pairs = zip(self._of(load, system).latency_us, self._of(load, ALONE).latency_us, strict=True)
        return float(np.mean([ours / alone for ours, alone in pairs]))

    def throughput(self, load: str, system: str) -> float:
        """All requests a second over those of real time alone."""
        return self._of(load, system).all_per_s / self._of(load, ALONE).all_per_s

    def _of(self, load: str, system: str) -> ReefServed:
        found: ReefServed = self.runs[LoadRun(load, system)]
        return found

    def checks(self) -> list[Target]:
        largest = max(self.throughput(load, REEF) for load in LOADS)
        what = "largest overall throughput over real time alone"
        return [*self._latencies(), Target.of_figure(what, THROUGHPUT, largest, TOLERANCE * THROUGHPUT)]

    def _latencies(self) -> Iterator[Target]:
        for load in LOADS:
            what = f"{load}: real-time latency over that alone"
            yield Target(what, 0.0, LONGER, self.longer(load, REEF), published=f"at most {LONGER}")

    def outcome(self) -> str:
        """Why it comes out as it does."""
        alone_ms = self._of("A", ALONE).latency_us[0] / 1e3
        return (
            "Why:\n\n"
            f"* *Throughput*: VGG-19 takes {alone_ms:.1f} ms alone here, so that real time has half of the GPU in A "
            "and C. The paper's networks are compiled for it; what they take alone is not available.\n"
            "* *D and E*: real-time requests of five networks wait for each other too, and beside them what is padded "
            "lengthens more kernels at a time."
        )

    def summary(self) -> str:
        worst = max(self.longer(load, REEF) for load in LOADS)
        return f"{self.tally()}; real-time requests take {worst:.2f} times as long as alone at most"

    def tables(self) -> list[Table]:
        rows = [
            {
                "load": load, "system": system,
                "longer": NONE if system == ALONE else f"{self.longer(load, system):.2f}",
                "ms": ", ".join(f"{us / 1e3:.2f}" for us in self._of(load, system).latency_us),
                "urgent": self._of(load, system).urgent_per_s, "all": self._of(load, system).all_per_s,
                "throughput": self.throughput(load, system),
            }
            for load, system in itertools.product(LOADS, (ALONE, *SYSTEMS))
        ]  # fmt: skip
        return [
            targets_table("What is judged", self.checks()),
            table_of(
                "Workloads",
                rows,
                "workload = {load} | system = {system} | latency = {longer} | in ms = {ms} | real time a second = "
                "{urgent:.1f} | all a second = {all:.1f} | over real time alone = {throughput:.2f}",
            ),
        ]
