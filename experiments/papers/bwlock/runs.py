"""What is simulated of BWLOCK++: benchmarks beside hogs, and a core that a hog shares with a busy process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from gpusched_env.data.parboil import HISTO, histo_us, published, shares_of_histo
from gpusched_env.experiments.lib.play import play
from gpusched_env.hardware.contention import served_traffic
from gpusched_env.hardware.records import gpu_record
from gpusched_env.hardware.shared_memory import left_for_gpu
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.scheduling.view import ViewTable

SPECIFIED: Final = 4.0
"""Exponent of the saturation of the cores' traffic: that of the GPU's own."""
HOG_MISSES_PER_US: Final = 62.5
"""Of IsolBench's ``bandwidth -a write`` on a Cortex core: 4 GB/s of refills (assumed; not stored)."""
WRITTEN_BACK: Final = 128.0
"""Bytes a miss: the line is read, and written back later."""
PERIOD_US: Final = 1000.0
PHASES_US: Final = (130.0, 470.0, 810.0)
"""Of the timers of cores 3 to 5, which are not synchronised (assumed)."""
Cores = Literal["cortex", "denver"]


def reachable() -> float:
    """Bandwidth of a TX2 that kernels reach, bytes/us."""
    return float(gpu_record(load_gpu("tx2"))[0]["dram_bytes_per_us"])


def slowdown_of_histo(left: float) -> float:
    """Of all its kernels together, where this share of the bandwidth is left: what the laws say."""
    times, shares = histo_us(), shares_of_histo()
    took = 0.0
    for name in HISTO:
        asked = shares[name] / (1.0 - shares[name] ** SPECIFIED) ** (1.0 / SPECIFIED)
        took += times[name] * shares[name] / served_traffic(asked, left, SPECIFIED)
    return took / sum(times.values())


def solved(function: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where a falling function reaches a target."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if function(middle) > target else (low, middle)
    return 0.5 * (low + high)


def cost_of_two(cores: Cores, saturation: float) -> float:
    """What two hogs cost of the memory, as a share of the reachable bandwidth, by histo's slowdown in the logs."""
    rows = published()["histo_s"]
    ratio = sum(rows[f"{cores}_unlocked"]) / sum(rows["cortex_locked"])
    left = solved(slowdown_of_histo, ratio, 1e-3, 1.0)
    return solved(lambda cost: left_for_gpu(1.0, cost, 1.0, saturation), left, 0.0, 100.0)


@functools.cache
def kappa(saturation: float = SPECIFIED) -> float:
    """Bytes of bandwidth that a byte of the cores costs: from one number, histo beside two hogs on Cortex cores."""
    return cost_of_two("cortex", saturation) * reachable() / (2 * HOG_MISSES_PER_US * WRITTEN_BACK)


@functools.cache
def denver_misses_per_us(saturation: float = SPECIFIED) -> float:
    """Of a hog on a Denver core: the one demand that histo beside two of them sets."""
    return cost_of_two("denver", saturation) * reachable() / (2 * kappa(saturation) * WRITTEN_BACK)


def hog(cores: Cores, saturation: float = SPECIFIED) -> dict[str, Any]:
    """The counter of Denver cores does not see their misses."""
    misses = HOG_MISSES_PER_US if cores == "cortex" else denver_misses_per_us(saturation)
    return {"name": "hog", "misses_per_us": misses, "bytes_a_miss": WRITTEN_BACK, "counted": cores == "cortex"}


@dataclass(frozen=True, slots=True)
class Took:
    """What a run comes to."""

    job_us: float
    """Mean turnaround of a job."""
    kernels_us: tuple[float, ...]
    """Mean duration of each of its kernels."""
    throttled_us: float
    """Of all cores."""
    memory_us: float
    compute_us: float
    lasted_us: float


def _times(cores: ViewTable) -> tuple[float, float, float]:
    """Sums over cores: throttled, and run by processes that miss the cache and by others."""
    return float(cores.throttled_us.sum()), float(cores.memory_us.sum()), float(cores.compute_us.sum())


@dataclass(frozen=True, slots=True)
class Beside:
    """A benchmark beside hogs, each on a core of its own; its host is on core 0."""

    benchmark: str = "histo"
    cores: Cores = "cortex"
    hogs: int = 0
    budget: int | None = None
    """Misses a period while the lock counts; ``None``: unlocked."""
    saturation: float = SPECIFIED
    spins: bool = True
    busy: int = 0
    """CPU-bound processes beside each hog."""
    rho: float = 0.0
    jobs: int = 40

    def run(self, device: str) -> Took:
        busy = [{"name": f"busy{i}"} for i in range(self.busy)]
        rows = [
            {"number": 3 + i, "phase_us": PHASES_US[i], "processes": [hog(self.cores, self.saturation), *busy]}
            for i in range(self.hogs)
        ]
        beside = {
            "kappa": kappa(self.saturation), "saturation": self.saturation, "period_us": PERIOD_US,
            "spins": self.spins, "cores": [{"number": 0, "host": self.benchmark}, *rows],
        }  # fmt: skip
        tenant = {
            "name": self.benchmark, "workload": f"parboil(benchmark={self.benchmark})", "jobs": self.jobs,
            "arrivals": {"kind": "closed-loop", "think_us": 137.0},
        }  # fmt: skip
        scenario = make_scenario(
            {"name": "bwlock", "gpu": "tx2", "tenants": [tenant], "cores": beside, "horizon_us": 1e8}
        )
        scheduler = "unlocked" if self.budget is None else f"bwlock(events={self.budget},rho={self.rho})"
        episode = play(scheduler, build_problem(scenario), 0, device=device, record="kernels")
        jobs, kernels = episode.timeline.jobs.dict(), episode.timeline.kernels.dict()
        lasted = kernels["ended_us"] - kernels["started_us"]
        order = kernels["started_us"].argsort()
        each = len(order) // self.jobs
        assert episode.last is not None
        table = episode.last.cores
        return Took(
            float((jobs["completed_us"] - jobs["arrived_us"]).mean()),
            tuple(float(lasted[order][i::each].mean()) for i in range(each)),
            *_times(table),
            episode.end_us,
        )


@dataclass(frozen=True, slots=True)
class OneCore:
    """A hog and a busy process on core 3 under a static budget, for 1,000 periods (Figures 5 and 6)."""

    rho: float
    budget: int = 16_384
    periods: int = 1000

    @property
    def f(self) -> float:
        """Share of a period in which the hog spends its budget."""
        return self.budget / (HOG_MISSES_PER_US * PERIOD_US)

    def run(self, device: str) -> Took:
        core = {"number": 3, "processes": [hog("cortex"), {"name": "busy"}]}
        lasts_us = PERIOD_US * (self.periods + 1)
        tenant = {
            "name": "idle", "workload": "parboil(benchmark=stencil)", "jobs": 2,
            "arrivals": {"kind": "periodic", "period_us": 2 * lasts_us},
        }  # fmt: skip
        fields = {"name": "core", "gpu": "tx2", "tenants": [tenant], "cores": {"cores": [core]}}
        scenario = make_scenario({**fields, "horizon_us": lasts_us})
        scheduler = f"static-budgets(events={self.budget},rho={self.rho})"
        episode = play(scheduler, build_problem(scenario), 0, device=device, record="kernels")
        assert episode.last is not None
        table = episode.last.cores
        return Took(0.0, (), *_times(table), PERIOD_US * self.periods)
