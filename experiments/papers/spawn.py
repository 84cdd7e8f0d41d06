"""SPAWN (Tang et al., HPCA 2017): which child kernels to launch and which work to leave in the parent's threads.

The paper simulates thirteen benchmarks on a Kepler and reports speed-ups over flat programs, which launch nothing. Here
the benchmarks are the same algorithms on generated inputs ([dynamic parallelism](dynamic-parallelism.md)), on a device
at the granularity of warps ([rules](warp-devices.md)).

What the paper does not give is fixed as follows, for all benchmarks alike unless it says otherwise:

* *The machine* ([constants](../gpusched_env/hardware/warp_machine.py)): bandwidths and latencies from its Table I and
  Kepler's data; launches from its Table II. That a kernel with nothing to do holds its hardware queue for about 4,000
  cycles was found from benchmarks that are bound by the queues, so their bars are not independent of it.
* *An iteration*, per application ([loops](../gpusched_env/workload/dynamic_parallelism/bodies.py)): instructions,
  chained loads and lines of memory are counted from the loop's source; hit rates are the paper's (Figure 17).
* *Inputs*, by what the paper's figures show of their structure, never by a speed-up.
* *SPAWN's own open choices* are options of the scheduler; see the ablation. That only requests above the program's own
  threshold reach the launch call follows from Figure 18, where SPAWN launches no more than Baseline-DP on all thirteen.

Offline-Search tries the thresholds of Figure 5, some between, and none at all. DTBL is in the paper's Figure 21,
aggregation is later work.

What does not come out: a third of the speed-ups lie between 1.0 and 1.3, where ranks hang on a few percent, so that the
correlations miss 0.85 by 0.01 to 0.04 and any constant moves them by as much. Mandelbrot gains nothing here, since the
heavy tiles of a warp lie side by side and are alike; launching few requests of JOIN-uniform cannot gain (1.36 in the
paper, with at most 50 launches). Baseline-DP of AMR and of BFS-graph500 loses less than published: how the paper's mesh
refines is not known, and its children stay on their SM twice as long. Block sizes (Figure 7) hardly matter here. SA has
three published speed-ups: 4.38 (Figure 15), 6.96 (Figure 21) and 8.60 (Figure 5).
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from gpusched_env.baselines.dynamic_parallelism.registry import make_launch_scheduler
from gpusched_env.baselines.dynamic_parallelism.threshold import Threshold
from gpusched_env.devices.dynamic_parallelism import make_launch_device
from gpusched_env.display.table import Table
from gpusched_env.dynamic_parallelism.problem import LaunchProblem, launch_problem
from gpusched_env.dynamic_parallelism.scheduler import LaunchScheduler, run_application
from gpusched_env.experiments.dynamic_parallelism.changes import Change, block_slots, body, child_block, machine
from gpusched_env.experiments.lib.bars import bars_svg
from gpusched_env.experiments.lib.judged import Simulation as AnyCell
from gpusched_env.experiments.lib.verdicts import Target, record, targets_table
from gpusched_env.experiments.measure.prediction import OnGpu, predicted, prediction_table
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.hardware.warp_machine import H200
from gpusched_env.workload.dynamic_parallelism.suite import benchmark

if TYPE_CHECKING:
    from pandas import Series

    from gpusched_env.display.frame import DataFrame

FLAT, DP, OFFLINE, SPAWN, DTBL, AGGREGATION = "flat", "baseline-dp", "offline-search", "spawn", "dtbl", "aggregation"
QUICK = "offline-search(points=9)"
BARS = {"dp": DP, "offline": OFFLINE, "spawn": SPAWN}
"""The paper's bars."""
MEANS = {"dp": 1.08, "offline": 1.75, "spawn": 1.69}
"""Geometric means over flat, Figure 15."""
WITHIN, CORRELATION, NEAR, ALIKE = 0.15, 0.85, 0.10, 10
CHOICES = {
    "block time: mean of all": "spawn(block_time=mean)",
    "warp time: at most 1,024 cycles": "spawn(warp_time=within-1024)",
    "warp time: all of it": "spawn(warp_time=residency)",
    "block time: mean of all, warp time: all of it": "spawn(block_time=mean,warp_time=residency)",
    "running blocks: the last window, at least 1": "spawn(running=window)",
    "running blocks: the last window in which any ran": "spawn(running=last)",
    "running blocks: a full GPU, if none ran": "spawn(running=most)",
    "lanes: those that launch so far": "spawn(lanes=spawned)",
    "lanes: 1": "spawn(lanes=one)",
    "cold start: 208 blocks at most": "spawn(cold_blocks=208)",
}
"""Of SPAWN that the paper leaves open."""
SHARE = "share "
OF_OFFLOADABLE = ("GC-citation", "GC-graph500", "MM-small", "MM-large")
"""Whose published shares are read as shares of what can be offloaded."""


@functools.cache
def published() -> dict[str, Any]:
    """The paper's figures, by benchmark (``data/published/spawn.json``)."""
    text = (resources.files("gpusched_env.data") / "published" / "spawn.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)["benchmarks"]
    return found


def _both(what: str, change: Callable[..., Change], *names: str) -> dict[str, Change]:
    return {f"{what} x {factor:g}": change(**dict.fromkeys(names, factor)) for factor in (0.5, 2.0)}


SENSITIVITY: dict[str, Change] = {
    **_both("latency", machine, "l2_cycles", "dram_cycles", "step_cycles"),
    **_both("lines of memory", body, "parent_lines", "child_lines"),
    **_both("instructions", body, "instructions"),
    **_both("lines of the GPU a cycle", machine, "gpu_lines"),
    **_both("lines of an SM a cycle", machine, "sm_lines"),
    **_both("DRAM latency", machine, "dram_cycles"),
    **_both("prologue", machine, "prologue_cycles"),
    **_both("dispatch", machine, "dispatch_cycles"),
    **_both("A", machine, "per_child_cycles"),
    **_both("b", machine, "per_call_cycles"),
}
MECHANISMS: dict[str, Change] = {
    "no launch cost (A = b = dispatch = 0)": machine(per_child_cycles=0, per_call_cycles=0, dispatch_cycles=0),
    "no cost a child (A = 0)": machine(per_child_cycles=0),
    "128 hardware queues": machine(hardware_queues=4),
    "no limit of hardware queues": machine(hardware_queues=1 << 20),
    "64 blocks an SM": block_slots,
    "no limits of memory": machine(gpu_lines=1e9, sm_lines=1e9),
    "no limits of memory and issue": machine(gpu_lines=1e9, sm_lines=1e9, issue_width=1e9),
}
STRUCTURE: dict[str, Change] = {
    **{f"blocks of {threads}": child_block(threads) for threads in (32, 64, 128, 256)},
    "a queue a parent's block": lambda problem: problem.changed(queue_of="block"),
}
TODAY = "H200"
VARIATIONS: dict[str, Change] = {
    "": lambda problem: problem,
    **SENSITIVITY,
    **MECHANISMS,
    **STRUCTURE,
    TODAY: lambda problem: problem.on(H200),
}


@dataclass(frozen=True, slots=True)
class SpawnOutcome:
    """Of one run."""

    cycles: float
    children: int
    occupancy: float
    """Warps on SMs over what they hold, mean over the run."""


@dataclass(frozen=True, slots=True)
class SpawnRun:
    """A benchmark under a scheduler."""

    benchmark: str
    scheduler: str
    """A name with options, or :data:`SHARE` and the percentage of the work that a static threshold offloads."""
    variation: str = ""
    """Of :data:`VARIATIONS`."""

    def problem(self) -> LaunchProblem:
        """The benchmark as the variation has it."""
        return VARIATIONS[self.variation](problem_of(self.benchmark))

    def run(self, device: str) -> SpawnOutcome:
        run = run_application(self._scheduler(), self.problem(), make_launch_device(device))
        return SpawnOutcome(run.cycles, run.children, run.occupancy)

    def _scheduler(self) -> LaunchScheduler:
        if not self.scheduler.startswith(SHARE):
            return make_launch_scheduler(self.scheduler)
        made = problem_of(self.benchmark).benchmark
        whole = made.offloadable if self.benchmark in OF_OFFLOADABLE else 1.0
        return Threshold(made.threshold_of(float(self.scheduler.removeprefix(SHARE)) / 100 * whole))


@functools.lru_cache(maxsize=16)
def problem_of(name: str) -> LaunchProblem:
    """A benchmark on the paper's machine."""
    return launch_problem(benchmark(name))


def geometric_mean(values: Series) -> float:
    """Of speed-ups."""
    return math.exp(sum(math.log(value) for value in values) / len(values))


class Paper(Reproduction):
    """Speed-ups over flat programs, and what they depend on."""

    name = "spawn"
    title = "SPAWN"
    legend = (
        "*Speed-up*: time of the flat program over that under the scheduler. *Correlation*: Spearman's, of our "
        "speed-ups with the paper's over the thirteen benchmarks. Where two figures stand in a cell, ours is first."
    )

    @staticmethod
    def cells() -> Sequence[AnyCell]:
        schemes = (FLAT, DP, OFFLINE, SPAWN, DTBL, AGGREGATION, *CHOICES.values())
        found: list[AnyCell] = []
        for name, figures in published().items():
            found += [SpawnRun(name, scheme) for scheme in (*schemes, *(SHARE + share for share in figures["offload"]))]
            found += [
                SpawnRun(name, scheme, of) for of in (*SENSITIVITY, *MECHANISMS) for scheme in (FLAT, DP, QUICK, SPAWN)
            ]
            found += [SpawnRun(name, DP, of) for of in STRUCTURE]
            found += [SpawnRun(name, scheme, TODAY) for scheme in (FLAT, DP, QUICK, SPAWN)]
        return [*found, *predicted()]

    @functools.cached_property
    def published(self) -> dict[str, Any]:
        """The paper's figures of the benchmarks that were run."""
        run = {cell.benchmark for cell in self.of(SpawnRun)}
        return {name: figures for name, figures in published().items() if name in run}

    @functools.cached_property
    def speedups(self) -> DataFrame:
        """By variation and benchmark; a column a scheduler."""
        runs = self.to_frame(SpawnRun)
        cycles = runs.pivot(index=["variation", "benchmark"], columns="scheduler", values="cycles")
        flat = cycles[FLAT].where(cycles[FLAT].notna(), cycles[DP])
        return cycles.rdiv(flat, axis=0).reindex(list(self.published), level="benchmark")

    def _bars(self, variation: str) -> DataFrame:
        """Our speed-ups as the paper's bars."""
        found = self.speedups.loc[variation]
        offline = found[OFFLINE].where(found[OFFLINE].notna(), found[QUICK])
        return found.assign(**{OFFLINE: offline})[list(BARS.values())].set_axis(list(BARS), axis=1)

    @functools.cached_property
    def _theirs(self) -> DataFrame:
        import pandas as pd

        return pd.DataFrame({name: figures["speedup"] for name, figures in self.published.items()}).T

    def _children(self, scheduler: str = SPAWN) -> Series:
        runs = self.to_frame(SpawnRun)
        runs = runs[(runs.variation == "") & (runs.scheduler == scheduler)]
        return runs.set_index("benchmark")["children"]

    def _alike(self, scheduler: str = SPAWN) -> int:
        """Benchmarks whose launched children are within a factor of two of the paper's."""
        ours = self._children(scheduler)
        pairs = [(max(1, ours[name]), figures["children"]["spawn"]) for name, figures in self.published.items()]
        return sum(0.5 <= mine / theirs <= 2.0 for mine, theirs in pairs)

    def _sums(self, bars: DataFrame) -> dict[str, Any]:
        """Geometric means and rank correlations."""
        ranks = {bar: float(bars[bar].rank().corr(self._theirs[bar].rank())) for bar in bars}
        return {"geomean": {bar: geometric_mean(bars[bar]) for bar in bars}, "spearman": ranks}

    def checks(self) -> list[Target]:
        sums = self._sums(self._bars(""))
        means, ranks = sums["geomean"], sums["spearman"]
        return [
            *(Target(f"{BARS[bar]}, geometric mean", m, m, means[bar], WITHIN * m) for bar, m in MEANS.items()),
            *(Target(f"{BARS[bar]}, rank correlation", CORRELATION, 1.0, ranks[bar]) for bar in MEANS),
            Target("spawn over offline-search, means", 1.0 - NEAR, 1.0 + NEAR, means["spawn"] / means["offline"]),
            Target("benchmarks with launches within a factor of two", ALIKE, 13, float(self._alike())),
        ]

    def summary(self) -> str:
        targets, means = self.checks(), self._sums(self._bars(""))["geomean"]
        found = ", ".join(f"{BARS[bar]} {means[bar]:.2f} ({MEANS[bar]})" for bar in BARS)
        return f"{sum(t.holds for t in targets)} of {len(targets)} figures come out; speed-up over flat: {found}"

    def data(self) -> dict[str, Any]:
        bars, runs = self._bars(""), self.to_frame(SpawnRun)
        runs = runs[runs.variation == ""].set_index(["benchmark", "scheduler"])
        rows = {}
        for name, figures in self.published.items():
            beside = {bar: {"ours": float(bars.loc[name, bar]), "paper": figures["speedup"][bar]} for bar in BARS}
            for what, unit in (("children", 1), ("occupancy", 100)):
                key = "occupancy_percent" if what == "occupancy" else what
                beside[what] = {
                    bar: {"ours": unit * float(runs.loc[(name, of), what]), "paper": figures[key][bar]}
                    for bar, of in BARS.items()
                }
            rows[name] = beside
        sums = self._sums(bars)
        return {
            "benchmarks": rows,
            "geomean": {bar: {"ours": sums["geomean"][bar], "paper": MEANS[bar]} for bar in BARS},
            "spearman": sums["spearman"],
            "targets": [record(target) for target in self.checks()],
            "offload": self._offload(),
            "variations": {of: self._sums(self._bars(of)) for of in (*SENSITIVITY, *MECHANISMS, TODAY)},
        }

    def tables(self) -> Sequence[Table]:
        return (
            targets_table("Figures of the paper", self.checks()),
            self._speedup_table(),
            self._launch_table(),
            self._offload_table(),
            self._choice_table(),
            self._variation_table("Sensitivity to the constants", SENSITIVITY),
            self._variation_table("What each mechanism is worth", MECHANISMS),
            self._structure_table(),
            self._today_table(),
            prediction_table(self.of(OnGpu)),
        )

    def printed(self) -> Sequence[Table]:
        return self.tables()[1::-1]

    def _speedup_table(self) -> Table:
        bars, found = self._bars(""), self.speedups.loc[""]
        rows = []
        for name, figures in self.published.items():
            pairs = [f"{bars.loc[name, bar]:.2f} / {figures['speedup'][bar]:.2f}" for bar in BARS]
            dtbl = figures["dtbl"]
            beside = f"{found.loc[name, DTBL]:.2f}" + (f" / {dtbl:.2f}" if dtbl else "")
            rows.append((name, *pairs, beside, f"{found.loc[name, AGGREGATION]:.2f}"))
        means = [f"{geometric_mean(bars[bar]):.2f} / {MEANS[bar]:.2f}" for bar in BARS]
        rows.append(("geometric mean", *means, *(f"{geometric_mean(found[of]):.2f}" for of in (DTBL, AGGREGATION))))
        return Table(
            "Speed-up over flat",
            ("benchmark", *BARS.values(), DTBL, AGGREGATION),
            rows,
            "![Speed-up over flat](spawn-speedup.svg)",
        )

    def _launch_table(self) -> Table:
        runs = self.to_frame(SpawnRun)
        runs = runs[runs.variation == ""].set_index(["benchmark", "scheduler"])
        rows = []
        for name, figures in self.published.items():
            of = [runs.loc[(name, scheduler)] for scheduler in BARS.values()]
            launched = [f"{o.children:,} / {figures['children'][bar]:,}" for bar, o in zip(BARS, of, strict=True)]
            shares = [
                f"{100 * o.occupancy:.0f} / {figures['occupancy_percent'][bar]:.0f}"
                for bar, o in zip(BARS, of, strict=True)
            ]
            rows.append((name, *launched, *shares))
        heads = [f"{what} {of}" for what in ("children", "occupancy %") for of in BARS.values()]
        return Table(
            "Child kernels and occupancy", ("benchmark", *heads), rows, "The paper's are read off to 25 launches."
        )

    def _offload(self) -> dict[str, dict[str, dict[str, float]]]:
        found = self.speedups.loc[""]
        return {
            name: {
                share: {"ours": float(found.loc[name, SHARE + share]), "paper": theirs}
                for share, theirs in figures["offload"].items()
            }
            for name, figures in self.published.items()
        }

    def _offload_table(self) -> Table:
        rows = [
            (name, ", ".join(f"{share} %: {of['ours']:.2f} / {of['paper']:.2f}" for share, of in shares.items()))
            for name, shares in self._offload().items()
        ]
        note = "Static thresholds that offload a share of the work (Figure 5; of GC and MM, of what can be offloaded)."
        return Table("Speed-up by offloaded share", ("benchmark", "share: speed-up"), rows, note)

    def _choice_table(self) -> Table:
        found, rows = self.speedups.loc[""], []
        for what, spec in {"as shipped": SPAWN, **CHOICES}.items():
            correlation = found[spec].rank().corr(self._theirs["spawn"].rank())
            over = geometric_mean(found[spec]) / geometric_mean(found[OFFLINE])
            figures = (geometric_mean(found[spec]), over, correlation)
            rows.append((what, *(f"{figure:.2f}" for figure in figures), f"{self._alike(spec)} of 13"))
        heads = ("choice", "geometric mean", "over offline-search", "correlation", "launches within x 2")
        return Table("SPAWN's open choices", heads, rows)

    def _variation_table(self, title: str, variations: Sequence[str] | dict[str, Change]) -> Table:
        rows = []
        for of in ("", *variations):
            sums = self._sums(self._bars(of))
            figures = [f"{sums[what][bar]:.2f}" for what in ("geomean", "spearman") for bar in BARS]
            rows.append((of or "as shipped", *figures))
        heads = [f"{what} {of}" for what in ("mean", "correlation") for of in BARS.values()]
        return Table(title, ("", *heads), rows, "Fewer thresholds are tried than above.")

    def _structure_table(self) -> Table:
        runs = self.to_frame(SpawnRun).pivot(index="benchmark", columns=["variation", "scheduler"], values="cycles")
        rows = []
        for name, figures in self.published.items():
            of = runs.loc[name]
            sizes = [
                f"{of['blocks of 32', DP] / of[f'blocks of {size}', DP]:.2f} / {theirs:.2f}"
                for size, theirs in figures["block_size"].items()
            ]
            own = of["a queue a parent's block", DP] / of["", DP]
            rows.append((name, *sizes, f"{own:.2f} / {figures['own_queues']:.2f}"))
        heads = ("benchmark", *(f"blocks of {size}" for size in (64, 128, 256)), "own queues")
        note = (
            "Of Baseline-DP: speed-up over children's blocks of 32 (Figure 7), and of a queue a child over a queue a "
            "parent's block (Figure 8)."
        )
        return Table("Blocks and queues of children", heads, rows, note)

    def _today_table(self) -> Table:
        bars, runs = self._bars(TODAY), self.to_frame(SpawnRun)
        children = runs[(runs.variation == TODAY) & (runs.scheduler == SPAWN)].set_index("benchmark")["children"]
        rows = [
            (name, *(f"{bars.loc[name, bar]:.2f}" for bar in BARS), f"{children[name]:,}") for name in self.published
        ]
        rows.append(("geometric mean", *(f"{geometric_mean(bars[bar]):.2f}" for bar in BARS), ""))
        note = "The same programs with the launch costs, queues and pool measured on an H200."
        return Table("What would SPAWN win today?", ("benchmark", *BARS.values(), "children spawn"), rows, note)

    def pictures(self) -> dict[str, bytes]:
        """Speed-ups as bars, beside the paper's."""
        bars = self._bars("")
        return {"speedup": bars_svg({BARS[bar]: (bars[bar].to_dict(), self._theirs[bar].to_dict()) for bar in BARS})}
