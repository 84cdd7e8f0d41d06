"""BWLOCK++ (Ali and Yun, ECRTS 2018): cores of the CPU are throttled while a real-time kernel runs on the GPU beside.

A Jetson TX2's cores and GPU share one memory. Memory hogs on the cores slow a kernel more than twice. BWLOCK++ takes a
*lock* from a launch to the return of the synchronisation. While it counts, each core has a budget of cache misses in a
period of 1 ms, and stands still once that is spent. A process that stood still has not run, so Linux' fair scheduler
(CFS) takes it again and again; *throttle-fair scheduling* (TFS) charges it for the time that it stood.

**What is fitted.** One number sets what a byte of the cores costs (kappa): histo beside two hogs on Cortex cores. One
more sets the demand of a hog on a Denver core. What each kernel of histo asks for follows from its own slowdown beside
Cortex hogs. Everything else is predicted. Stored are only the logs of histo with two co-runners, and the abstract's "up
to 3x" with three.

**What is assumed.** A hog on a Cortex core misses 62.5 times a microsecond (4 GB/s). The most demanding kernel of histo
alone takes 95 % of the memory. Sad asks for as much as histo, since only these two exceed the axis of Figure 9; the
others ask for what kernels of their class do. So *which* benchmark is slowed most follows from assumptions.

**The law.** Cores are served first, at kappa bytes a byte, and the GPU shares what is left. The cores' cost saturates
softly, with the exponent 4 of the GPU's own traffic. The tables also show exponent 1, by which the memory serves both
sides in proportion to what they ask. It was looked at after the three hogs were known, and is not scored.

Here a budget is the same for all kernels. What there is to gain where each has its own, and what a trained agent gains,
is on [a page of its own](shared-memory-agent.md).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

from gpusched_env.data.parboil import BENCHMARKS, HISTO, published
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.judged import Simulation
from gpusched_env.experiments.lib.verdicts import Target, missed, record, table_of, targets_table
from gpusched_env.experiments.papers.bwlock.runs import Beside, OneCore, Took, denver_misses_per_us, kappa
from gpusched_env.experiments.papers.reproduction import Reproduction

THRESHOLDS: Final = (16_384, 4096, 1024, 256, 64, 16)
RHOS: Final = {0.0: "CFS", 1.0: "TFS-1", 3.0: "TFS-3"}
IN_PROPORTION: Final = 1.0
LOCKED: Final = 512
"""Budget of the stored locked logs."""
SOLO: Final[dict[str, Beside]] = {name: Beside(name) for name in BENCHMARKS}
THREE: Final[dict[str, Beside]] = {name: Beside(name, hogs=3) for name in BENCHMARKS}
THREE_LOCKED: Final[dict[str, Beside]] = {
    name: Beside(name, hogs=3, budget=published()["budgets_events"].get(name, 1024)) for name in BENCHMARKS
}
CORTEX: Final = Beside(hogs=2)
CORTEX_LOCKED: Final = Beside(hogs=2, budget=LOCKED)
DENVER: Final = Beside(cores="denver", hogs=2)
DENVER_LOCKED: Final = Beside(cores="denver", hogs=2, budget=LOCKED)
SLEEPING: Final = Beside(hogs=2, budget=LOCKED, spins=False)
"""The lock's holder sleeps in its synchronisations."""
PROPORTIONAL: Final = {hogs: Beside(hogs=hogs, saturation=IN_PROPORTION) for hogs in (1, 2, 3)}
BY_HOGS: Final = {1: Beside(hogs=1), 2: CORTEX, 3: THREE["histo"]}
SWEEP: Final = {events: Beside(hogs=3, budget=events, jobs=200) for events in THRESHOLDS}
MIXED: Final = {rho: Beside(hogs=3, busy=1, budget=1024, rho=rho, jobs=200) for rho in RHOS}
"""Figure 10: a hog and a busy process on each of three cores."""
ALONE: Final = {rho: OneCore(rho) for rho in RHOS}
RUN_COLUMNS: Final = "misses a period = {events} | slowdown = {slowdown:.2f} | cores throttled = {throttled:.0%}"


class Paper(Reproduction):
    """Slowdowns, thresholds, locks, and what charging for throttled time changes."""

    name = "bwlock"
    title = "BWLOCK++: memory shared with the CPU"
    legend = "*Slowdown*: mean time of an iteration over that alone. *Throttled*: of the time of the cores with hogs."

    @staticmethod
    def cells() -> Sequence[Simulation]:
        several = (SOLO, THREE, THREE_LOCKED, PROPORTIONAL, BY_HOGS, SWEEP, MIXED, ALONE)
        pairs = (CORTEX, CORTEX_LOCKED, DENVER, DENVER_LOCKED, SLEEPING)
        return list(dict.fromkeys([*pairs, *(cell for cells in several for cell in cells.values())]))

    def slowdown(self, cell: Beside) -> float:
        """Of an iteration."""
        took, alone = self.runs[cell], self.runs[SOLO[cell.benchmark]]
        return float(took.job_us / alone.job_us)

    def by_kernel(self, cell: Beside) -> list[float]:
        """Slowdown of each kernel of histo."""
        pairs = zip(self.runs[cell].kernels_us, self.runs[SOLO["histo"]].kernels_us, strict=True)
        return [took / alone for took, alone in pairs]

    def throttled(self, rho: float) -> float:
        """Throttled time with mixed co-runners, relative to CFS."""
        return self._share(self.runs[MIXED[rho]], 3) / self._share(self.runs[MIXED[0.0]], 3)

    @staticmethod
    def _share(took: Took, cores: int) -> float:
        return took.throttled_us / (took.lasted_us * cores)

    def checks(self) -> list[Target]:
        return [*self._bandwidth(), *self._locks(), *self._fairness()]

    def _bandwidth(self) -> list[Target]:
        rows = published()["histo_s"]
        fitted = sum(rows["cortex_unlocked"]) / sum(rows["cortex_locked"])
        denver = sum(rows["denver_unlocked"]) / sum(rows["cortex_locked"])
        measured = [slow / alone for slow, alone in zip(rows["denver_unlocked"], rows["cortex_locked"], strict=True)]
        three = {name: self.slowdown(cell) for name, cell in THREE.items()}
        most = sorted(three, key=lambda name: -three[name])[:2]
        found = [
            Target.of_figure("histo, two Cortex hogs (fitted)", fitted, self.slowdown(CORTEX), 0.02),
            Target.of_figure("histo, two Denver hogs (fitted)", denver, self.slowdown(DENVER), 0.02),
        ]
        for name, theirs, ours in zip(HISTO, measured, self.by_kernel(DENVER), strict=True):
            found.append(Target.of_figure(f"kernel {name}, two Denver hogs", theirs, ours, 0.15 * theirs))
        sweep = list(map(self.slowdown, SWEEP.values()))
        falls = sum(after <= 1.01 * before for before, after in itertools.pairwise(sweep))
        return [
            *found,
            Target("histo, three Cortex hogs", 2.5, 3.5, three["histo"], published="up to 3"),
            Target("histo and sad among the two that are slowed most", 2, 2, len({*most} & {"histo", "sad"})),
            *(_three(name, 2.5, math.inf, three, "above 2.5") for name in ("histo", "sad")),
            *(_three(name, 1.0, 2.5, three, "up to 2.5") for name in BENCHMARKS[2:]),
            Target(
                "steps from threshold 16384 to 16 that slow no more than by 1 %", len(sweep) - 1, len(sweep) - 1, falls
            ),
        ]

    def _locks(self) -> list[Target]:
        rows = published()["histo_s"]
        gain = sum(rows["cortex_unlocked"]) / sum(rows["cortex_locked"])
        nothing = sum(rows["denver_unlocked"]) / sum(rows["denver_locked"])
        cortex, denver = (
            self.slowdown(unlocked) / self.slowdown(locked)
            for unlocked, locked in ((CORTEX, CORTEX_LOCKED), (DENVER, DENVER_LOCKED))
        )
        return [
            Target.of_figure("unlocked over locked, Cortex", gain, cortex, 0.05 * gain),
            Target.of_figure("unlocked over locked, Denver", nothing, denver, 0.02),
            Target(
                "holder sleeps: locked over unlocked", 1.0, 1.0, self.slowdown(SLEEPING) / self.slowdown(CORTEX), 0.01
            ),
            Target("largest slowdown locked, three hogs", 1.0, 1.15, max(map(self.slowdown, THREE_LOCKED.values()))),
        ]

    def _fairness(self) -> list[Target]:
        found = []
        for rho, cell in ALONE.items():
            took = self.runs[cell]
            share = {0.0: 1 / (1 + cell.f), 1.0: 0.5, 3.0: 1 / (4 - 2 * cell.f)}[rho]
            ours = (took.memory_us + took.throttled_us) / took.lasted_us
            found.append(Target(f"hog's share of periods, {RHOS[rho]}", share, share, ours, 0.02 * share))
        busy = [self.runs[cell].compute_us / self.runs[cell].lasted_us for cell in MIXED.values()]
        return [
            *found,
            Target("throttled time, TFS-1 over CFS", 0.5, 1.0, self.throttled(1.0), 0.01),
            Target("throttled time, TFS-3 over CFS", 0.25, 1.0, self.throttled(3.0), 0.01),
            Target("busy processes: TFS-1 over CFS", 1.0, math.inf, busy[1] / busy[0], published="gain"),
            Target("busy processes: TFS-3 over TFS-1", 1.0, math.inf, busy[2] / busy[1], published="gain"),
        ]

    def summary(self) -> str:
        checks = self.checks()
        three, other = self.slowdown(THREE["histo"]), self.slowdown(PROPORTIONAL[3])
        beside = f"histo beside three hogs {three:.2f} times slower ({other:.2f} with exponent 1)"
        return f"{sum(check.holds for check in checks)} of {len(checks)} figures come out; {beside}"

    def outcome(self) -> str:
        checks = self.checks()
        denver = [one for one in checks if one.what.startswith("kernel ")]
        worst = max(abs(one.ours / one.low - 1.0) for one in denver)
        said = (
            f"Came out: from histo beside Cortex hogs, each kernel's slowdown beside Denver hogs within {worst:.0%}; "
            f"locks protect where their holder runs; TFS lowers throttled time to {self.throttled(1.0):.0%} and "
            f"{self.throttled(3.0):.0%}. Did not: {missed(checks)}."
        )
        why = (
            "\n\nWhy: three hogs cost half as much again as two here, and leave the GPU too little. With exponent 1 "
            "they do not, as a table below shows. Nothing public decides it."
        )
        return said if all(check.holds for check in checks) else said + why

    def data(self) -> dict[str, Any]:
        return {
            "kappa": kappa(), "denver_misses_per_us": denver_misses_per_us(),
            "checks": [record(check) for check in self.checks()],
            "runs": [{**record(cell), **record(found)} for cell, found in self.runs.items()],
        }  # fmt: skip

    def tables(self) -> list[Table]:
        rows = published()["histo_s"]
        kernels = [
            {"kernel": name, "alone": alone / 10, "cortex": c / alone, "ours": ours, "denver": d / alone, "our": mine}
            for name, alone, c, d, ours, mine in zip(
                HISTO, rows["cortex_locked"], rows["cortex_unlocked"], rows["denver_unlocked"],
                self.by_kernel(CORTEX), self.by_kernel(DENVER), strict=True,
            )
        ]  # fmt: skip
        hogs = [{"hogs": n, "four": self.slowdown(BY_HOGS[n]), "one": self.slowdown(PROPORTIONAL[n])} for n in BY_HOGS]
        locked = {
            name: {"three": self.slowdown(THREE[name]), "locked": self.slowdown(THREE_LOCKED[name])} for name in THREE
        }
        benchmarks = [{**record(THREE_LOCKED[name]), **row} for name, row in locked.items()]
        thresholds = [
            {"events": n, "slowdown": self.slowdown(cell), "throttled": self._share(self.runs[cell], 3)}
            for n, cell in SWEEP.items()
        ]
        fair = []
        for rho, name in RHOS.items():
            took, mixed = self.runs[ALONE[rho]], self.runs[MIXED[rho]]
            hog, stood, busy = (us / took.lasted_us for us in (took.memory_us, took.throttled_us, took.compute_us))
            compute = mixed.compute_us / (3 * mixed.lasted_us)
            row = {"name": name, "hog": hog, "stood": stood, "busy": busy, "mixed": self.throttled(rho)}
            fair.append(row | {"compute": compute, "slowdown": self.slowdown(MIXED[rho])})
        return [
            targets_table("What is judged", self.checks()),
            table_of("Kernels of histo beside two hogs", kernels, KERNEL_COLUMNS),
            table_of("Histo by number of Cortex hogs and exponent", hogs, HOG_COLUMNS),
            table_of("Benchmarks beside three hogs (Figures 7 and 9)", benchmarks, BENCHMARK_COLUMNS),
            table_of("Thresholds, three hogs (Figure 8)", thresholds, RUN_COLUMNS),
            table_of("CFS and TFS (Figures 5, 6 and 10)", fair, FAIR_COLUMNS),
        ]


def _three(name: str, low: float, high: float, slowdowns: dict[str, float], published: str) -> Target:
    """A benchmark beside three hogs; ``published``: of the axis of Figure 9."""
    return Target(f"{name}, three hogs", low, high, slowdowns[name], published=published)


KERNEL_COLUMNS: Final = (
    "kernel = {kernel} | alone, ms = {alone:.2f} | Cortex, published = {cortex:.2f} | Cortex, ours = {ours:.2f} | "
    "Denver, published = {denver:.2f} | Denver, ours = {our:.2f}"
)
HOG_COLUMNS: Final = "hogs = {hogs} | exponent 4 = {four:.2f} | exponent 1 (not scored) = {one:.2f}"
BENCHMARK_COLUMNS: Final = (
    "benchmark = {benchmark} | unlocked = {three:.2f} | budget = {budget} | locked = {locked:.2f}"
)
FAIR_COLUMNS: Final = (
    "scheduler = {name} | one core: hog runs = {hog:.1%} | throttled = {stood:.1%} | busy process runs = {busy:.1%} | "
    "three cores: throttled, of CFS = {mixed:.0%} | busy processes run = {compute:.1%} | histo = {slowdown:.2f}"
)
