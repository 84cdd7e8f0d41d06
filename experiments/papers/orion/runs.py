"""The artefact's Figures 7 and 10 as runs: a request's network beside a training, or beside another's requests."""

from __future__ import annotations

import functools
import gzip
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.recorded import situation, tenant, turnarounds_us
from gpusched_env.workload.importers.kernel_files import import_kernel_file
from gpusched_env.workload.workload import Workload

GPU: Final = "v100-sxm"
HOST_US: Final = 6.0
"""Host time of an operator in eager PyTorch, a guess; kernels take longer in all networks."""
IMAGE_BYTES: Final = 3 * 224 * 224 * 4
URGENT: Final = ("ResNet50", "MobileNetV2")
BESIDE: Final = ("ResNet50", "MobileNetV2", "ResNet101")
FILES: Final = {
    ("ResNet50", "inference"): ("resnet50_4_fwd", 4), ("MobileNetV2", "inference"): ("mobilenetv2_4_fwd", 4),
    ("ResNet101", "inference"): ("resnet101_4_fwd", 4), ("ResNet50", "training"): ("resnet50_32_fb1", 32),
    ("MobileNetV2", "training"): ("mobilenetv2_64_fb1", 64), ("ResNet101", "training"): ("resnet101_32_fb1", 32),
}  # fmt: skip
"""Kernel files, and images of an iteration."""
RATES: Final = {"ResNet50": 15.0, "MobileNetV2": 40.0}
"""Requests a second in Figure 7."""
BESIDE_RATES: Final = {"ResNet50": 80.0, "MobileNetV2": 100.0, "ResNet101": 40.0}
"""Best-effort requests a second in Figure 10, at equal distances."""
MOST_BESIDE_US: Final = {"ResNet50": 160.0, "MobileNetV2": 100.0}
"""Best-effort work in flight at most, by the urgent network."""
SHARE: Final = 0.025
"""Of :class:`~gpusched_env.baselines.orion.Orion`'s latency of reference that may be in flight."""
IDEAL, TEMPORAL, STREAMS, MPS, REEF, ORION = "ideal", "temporal", "streams", "MPS", "REEF", "Orion"
UNBOUNDED: Final = "Orion, nothing held back"
"""The control."""
SHARED: Final = {
    TEMPORAL: "exclusive", STREAMS: "priority-streams", MPS: "mps", REEF: "reef(reset=false,recall=false,depth=12)",
}  # fmt: skip
"""Systems besides Orion. REEF's policy on a GPU whose kernels cannot be killed, with the artefact's depth."""
SYSTEMS: Final = (*SHARED, ORION)
REQUESTS: Final = 200
Figure = Literal[7, 10]


@functools.cache
def network(name: str, what: str) -> Workload:
    """A network's iteration."""
    file, images = FILES[name, what]
    with resources.as_file(resources.files("gpusched_env.data") / "measurements" / "orion" / f"{file}.csv.gz") as path:
        return import_kernel_file(Path(path), GPU, HOST_US, images * IMAGE_BYTES, f"{name} {what}")


@functools.cache
def recorded_gaps_s() -> tuple[float, ...]:
    """Gaps between requests in Figure 10, in seconds."""
    file = resources.files("gpusched_env.data") / "measurements" / "orion" / "inter_arrival_times.json.gz"
    return tuple(json.loads(gzip.decompress(file.read_bytes())))


def arrivals(figure: Figure, urgent: str, rate_per_s: float | None = None, requests: int = REQUESTS) -> list[float]:
    """Times of requests (us): Poisson, as the artefact draws them, or as recorded."""
    if figure == 7:
        gaps_s = np.random.RandomState(42).exponential(1.0 / (rate_per_s or RATES[urgent]), requests)
    else:
        gaps_s = np.array(recorded_gaps_s()[:requests])
    return [float(time) for time in 1e6 * np.concatenate([[0.0], np.cumsum(gaps_s[:-1])])]


def scheduler(system: str, urgent: str) -> str:
    """A system's scheduler."""
    if system == UNBOUNDED:
        return "orion(sm_threshold=inf,reference_us=1e9,bound=1.0)"
    return SHARED.get(system) or f"orion(reference_us={MOST_BESIDE_US[urgent] / SHARE:g})"


@dataclass(frozen=True, slots=True)
class Served:
    """What the urgent network's requests took (us), and what is completed beside them."""

    p50_us: float
    p95_us: float
    p99_us: float
    beside_per_s: float


@dataclass(frozen=True, slots=True)
class OrionRun:
    """An urgent network beside another under a system; alone where it is ideal."""

    figure: Figure
    urgent: str
    beside: str
    system: str
    rate_per_s: float | None = None
    """Of requests; ``None``: the figure's."""
    requests: int = REQUESTS

    def run(self, device: str) -> Served:
        times_us = arrivals(self.figure, self.urgent, self.rate_per_s, self.requests)
        first = network(self.urgent, "inference")
        urgent = tenant(first.name, name="urgent", arrivals={"kind": "trace", "times_us": times_us}, jobs=len(times_us))
        second, other = beside(self.figure, self.beside)
        tenants = [urgent] if self.system == IDEAL else [urgent, {**other, "priority": 1}]
        workloads = {each.name: each for each in (first, second)}
        problem = situation(tenants, GPU, times_us[-1] + 0.2e6, workloads, physics=2)
        name = "pass-through" if self.system == IDEAL else scheduler(self.system, self.urgent)
        episode = play(name, problem, 0, device=device)
        took = turnarounds_us(episode)[0]
        p50_us, p95_us, p99_us = (float(np.percentile(took, q)) for q in (50, 95, 99))
        served = math.nan if self.system == IDEAL else episode.metrics.tenants[1].throughput_per_s
        return Served(p50_us, p95_us, p99_us, served)


def beside(figure: Figure, name: str) -> tuple[Workload, Mapping[str, Any]]:
    """The best-effort network and its tenant: a training without a pause, or requests."""
    if figure == 7:
        work = network(name, "training")
        return work, tenant(work.name, name="best effort")
    work = network(name, "inference")
    period = {"kind": "periodic", "period_us": 1e6 / BESIDE_RATES[name]}
    return work, tenant(work.name, name="best effort", arrivals=period)


@dataclass(frozen=True, slots=True)
class JobAlone:
    """Iterations a second."""

    per_s: float


@dataclass(frozen=True, slots=True)
class OrionTraining:
    """A training by itself."""

    network: str
    iterations: int = 10

    def run(self, device: str) -> JobAlone:
        work = network(self.network, "training")
        problem = situation([tenant(work.name, jobs=self.iterations)], GPU, workloads={work.name: work}, physics=2)
        took = turnarounds_us(play("pass-through", problem, 0, device=device), skip=1)[0]
        return JobAlone(1e6 / float(took.mean()))
