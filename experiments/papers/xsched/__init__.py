"""XSched (Shen et al., OSDI 2025): preemptible queues of commands, on a GV100 and an MI50.

The paper's artefact runs ResNet-152 beside itself: a foreground at a fifth of its capacity beside a background that
never pauses, under fixed priority; and two that never pause, at shares of 3 to 1. It also suspends a queue of equal
kernels at three levels. Here the same is simulated, with the artefact's thresholds, levels, slices and gaps.

* *A request alone* is an input: 6.487 ms on the GV100, 29.14 ms on the MI50. It is divided between the kernels of
  ResNet-152's layers: convolutions by multiplications, others by their traffic. The GV100 runs one image in an engine
  that fuses layers, the MI50 eight in PyTorch.
* *Processes*: on the GV100 the driver gives the GPU to one at a time (2 ms, 145 us a switch, as measured on an RTX
  3090). On the MI50 their kernels run side by side.
* *Suspending* costs what the boards' specifications say of launches, synchronisations and a kernel that is killed.
  What the daemon and its messages take is left out.
* *An idle queue* is noticed after 20 us, a guess: the artefact's daemon handles together what arrives before it is
  awake, so that the pause between two requests ends no turn.
* *Lengths of kernels* are counted in clocks of the nominal rate, and levels 1 and 2 take 1.32 times as long as that
  says, at every length: a lower clock would do so. They are judged as named; beside that level 2 with lengths that
  level 1 shows.

The MI50's files disagree on its time alone (29.1 ms, and 25 requests a second), so ratios to either are judged and no
absolute figures. All figures beside a time alone are the artefact's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gpusched_env.data import stored
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.verdicts import Simulation, Target, table_of, targets_table
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.experiments.papers.xsched.levels import Level, PreemptionLevel, PreemptionRun
from gpusched_env.experiments.papers.xsched.marks import MARKS
from gpusched_env.experiments.papers.xsched.runs import (
    ALONE,
    BOARDS,
    NATIVE,
    SHARES,
    XSCHED,
    LatencyRun,
    ThroughputRun,
)

PUBLISHED: Final = stored("published", "xsched.json")
MODES: Final = (ALONE, NATIVE, XSCHED)
LEVELS: Final[tuple[Level, ...]] = (1, 2, 3)
FIGURES: Final = ("avg", "p50", "p99")
TOLERANCE, FACTOR = 0.1, 1.5
NEVER: Final = "9999"
"""The name of a kernel that does not end by itself, in the artefact's files."""
NEVER_US: Final = 1e6
LENGTHS: Final = tuple(name for name in PUBLISHED["preemption_us"]["3"] if name != NEVER)
STRETCH: Final = PUBLISHED["preemption_us"]["1"]["2000"]["p99"] / (8 * 2000.0)
"""Length of a kernel over that named, by the longest 99th percentile at level 1: eight kernels in flight."""


def run_of(level: Level, length: str, stretch: float = 1.0) -> PreemptionRun:
    """Kernels of a length by the artefact's name of it."""
    return PreemptionRun(level, NEVER_US if length == NEVER else stretch * float(length))


class Paper(Reproduction):
    """Latencies and throughputs over those alone, and preemption latencies."""

    name = "xsched"
    title = "XSched"
    marks = MARKS
    legend = (
        "*p50*, *p99*: percentiles of the foreground's latency over the median, or 99th percentile, of that alone. "
        f"*Throughput*: over that alone. Both hold within {TOLERANCE:.0%} of what is published. *Level*: preemption "
        f"latencies; the figure is the largest factor between ours and theirs over all lengths, {FACTOR} at most."
    )

    @staticmethod
    def cells() -> Sequence[Simulation]:
        boards: list[Simulation] = [kind(b, m) for b in BOARDS for m in MODES for kind in (LatencyRun, ThroughputRun)]
        levels = [LatencyRun(board, XSCHED, level) for board in BOARDS for level in LEVELS]
        lengths = [run_of(level, length) for level in LEVELS for length in LENGTHS]
        stretched = [run_of(level, length, STRETCH) for level in LEVELS[:2] for length in LENGTHS]
        return [*boards, *levels, *lengths, run_of(3, NEVER), *stretched]

    def latency(self, board: str, mode: str, figure: str, level: int = 0) -> float:
        """Over the same percentile alone."""
        runs = (self.runs[LatencyRun(board, mode, level)], self.runs[LatencyRun(board, ALONE)])
        ours, alone = (getattr(run, f"{figure}_us") for run in runs)
        return float(ours / alone)

    def throughput(self, board: str, mode: str) -> list[float]:
        """Of each loop, over that alone."""
        alone = self.runs[ThroughputRun(board, ALONE)].per_s[0]
        return [per_s / alone for per_s in self.runs[ThroughputRun(board, mode)].per_s]

    def checks(self) -> list[Target]:
        found: dict[str, tuple[float, float]] = {}
        for board in BOARDS:
            latencies, served = PUBLISHED["latency_us"][board], PUBLISHED["throughput_per_s"][board]
            for mode in (NATIVE, XSCHED):
                for figure in ("p50", "p99"):
                    theirs = latencies[mode][figure] / latencies[ALONE][figure]
                    found[f"{board}, {mode}: {figure}"] = theirs, self.latency(board, mode, figure)
                for share, theirs, ours in zip(SHARES, served[mode], self.throughput(board, mode), strict=True):
                    found[f"{board}, {mode}: throughput, share {share:g}"] = theirs / served[ALONE][0], ours
        return [
            *(Target.of_figure(what, theirs, ours, TOLERANCE * theirs) for what, (theirs, ours) in found.items()),
            *(self._factor(level, figure) for level in LEVELS for figure in FIGURES),
            *(self._factor(3, figure, lengths=(NEVER,)) for figure in FIGURES),
            *(self._factor(level, figure, STRETCH) for level in LEVELS[:2] for figure in FIGURES),
        ]

    def _factor(self, level: Level, figure: str, stretch: float = 1.0, lengths: Sequence[str] = LENGTHS) -> Target:
        """The largest factor between a figure of ours and theirs."""
        published: Mapping[str, Any] = PUBLISHED["preemption_us"][str(level)]
        ratios = {
            length: getattr(self.runs[run_of(level, length, stretch)], figure) / published[length][figure]
            for length in lengths
        }
        worst = max(ratios, key=lambda length: max(ratios[length], 1.0 / ratios[length]))
        what = f"level {level}: {figure}" + (", a kernel without end" if lengths == (NEVER,) else "")
        what = what if stretch == 1.0 else f"lengths read off level 1, {what}"
        note = f"{'ours longer' if ratios[worst] > 1.0 else 'ours shorter'}, at {worst} us"
        return Target(what, 1.0, FACTOR, max(ratios[worst], 1.0 / ratios[worst]), note=note, published="1")

    def outcome(self) -> str:
        """Why it comes out as it does."""
        native = self.throughput("MI50", NATIVE)
        return (
            "Why:\n\n"
            "* *MI50, XSched*: suspending costs what is in flight, at most sixteen kernels. The "
            "artefact's foreground takes 5 ms longer in the median and up to 19 ms: more than any kernels in flight "
            "take. What its runtime adds is not modelled.\n"
            f"* *MI50, native*: {native[0]:.2f} of that alone each; theirs are 0.53 of a time alone that their own "
            "latencies contradict.\n"
            f"* *Level 2*: kernels are shorter here than on their board, see above. Lengths that level 1 shows "
            f"({STRETCH:.2f} times those named) bring it inside at every length.\n"
            "* *Level 3*: ours is the same each time; theirs spreads, most beside a kernel without end. That spread is "
            "the host's, which the model has not."
        )

    def summary(self) -> str:
        p50, p99 = (self.latency("GV100", XSCHED, figure) for figure in ("p50", "p99"))
        return f"{self.tally()}; latency of the foreground on the GV100 {p50:.2f} times that alone, p99 {p99:.2f}"

    def tables(self) -> list[Table]:
        latencies = [
            {
                "board": board, "mode": mode, "level": level or BOARDS[board].level,
                "theirs": PUBLISHED["latency_us"][board][mode] if not level else None,
                "ours": self.runs[LatencyRun(board, mode, level)],
            }
            for board in BOARDS
            for mode, level in [
                *((mode, 0) for mode in MODES),
                *((XSCHED, level) for level in LEVELS if level != BOARDS[board].level),
            ]
        ]  # fmt: skip
        shown = [
            {
                "board": row["board"],
                "mode": f"XSched, background at level {row['level']}" if row["mode"] == XSCHED else row["mode"],
                "ours": f"{row['ours'].p50_us / 1e3:.2f}, {row['ours'].p99_us / 1e3:.2f}",
                "theirs": f"{row['theirs']['p50'] / 1e3:.2f}, {row['theirs']['p99'] / 1e3:.2f}"
                if row["theirs"]
                else "–",
            }
            for row in latencies
        ]
        served = [
            {
                "board": board, "mode": mode,
                "ours": ", ".join(f"{per_s:.1f}" for per_s in self.runs[ThroughputRun(board, mode)].per_s),
                "theirs": ", ".join(f"{per_s:.1f}" for per_s in PUBLISHED["throughput_per_s"][board][mode]),
            }
            for board in BOARDS
            for mode in MODES
        ]  # fmt: skip
        both = "board = {board} | mode = {mode} | simulated = {ours} | published = {theirs}"
        return [
            targets_table("What is judged", self.checks()),
            table_of("Latency of the foreground, p50 and p99, ms", shown, both),
            table_of("Requests a second of both loops", served, both),
            table_of(
                "Preemption latency, p50 and p99, us",
                [self._length(length) for length in (*LENGTHS, NEVER)],
                "kernel = {length} us | " + " | ".join(f"level {n} = {{ours[{n}]}} ({{theirs[{n}]}})" for n in LEVELS),
                "In brackets as published. 9999: a kernel that does not end.",
            ),
        ]

    def _length(self, length: str) -> dict[str, Any]:
        """Preemption latencies of kernels of a length, by level."""
        ours: dict[int, str] = dict.fromkeys(LEVELS, "–")
        theirs: dict[int, str] = dict.fromkeys(LEVELS, "–")
        for level in LEVELS:
            published = PUBLISHED["preemption_us"][str(level)].get(length)
            if published is not None:
                found: PreemptionLevel = self.runs[run_of(level, length)]
                ours[level] = f"{found.p50:.0f}, {found.p99:.0f}"
                theirs[level] = f"{published['p50']:.0f}, {published['p99']:.0f}"
        return {"length": length, "ours": ours, "theirs": theirs}
