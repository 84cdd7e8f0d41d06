"""NVIDIA's sharing mechanisms as Gilman and Walls (2021) found them.

Gilman and Walls ran batch-1 inference beside training at the largest batch that fits, on an RTX 3090, for
5000 requests one after the other or 500 at random times. Their networks were recorded on an H100 here, two
of them in training. Training is carried to a full batch (4 times the recorded one in 24 GB, 12 times in 80 GB),
and both to the GPU at hand: tiles that do not fit are split, and matrix kernels that fill the GPU take longer by
the ratio of the tensor cores' rates. VGG-16 and ResNet-101 stand in for VGG-19 and ResNet-152.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib import judged
from gpusched_env.experiments.lib.graph_pairs import Graphs, graph_cells, recorded_pairs
from gpusched_env.experiments.lib.verdicts import (
    Compared,
    Finding,
    Judged,
    compared_table,
    findings_table,
    record,
    table_of,
)
from gpusched_env.experiments.papers.concurrency import recorded
from gpusched_env.experiments.papers.concurrency.claims import CLAIMS, PAPERS, SETTING, percent
from gpusched_env.experiments.papers.concurrency.recorded import LIMIT, Side
from gpusched_env.experiments.papers.concurrency.runs import ALONE, HORIZON_US, MECHANISMS, Cell, all_cells
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.hardware.timing import save_us
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

JUDGED_IN = ", ".join((*PAPERS[1:], PAPERS[0]))
TURNAROUND: tuple[tuple[str, str | None, str, float], ...] = (
    ("ResNet-50", "ResNet-50", "priority streams", 103.0),
    ("ResNet-50", "ResNet-50", "MPS", 78.0),
    ("ResNet-50", "ResNet-50", "time slicing", 18.0),
    ("ResNet-152", "ResNet-101", "MPS", 100.0),
    ("VGG-19", "VGG-16", "priority streams", 300.0),
    ("DenseNet-201", None, "priority streams", 75.0),
)
"""Published network, ours in its place, mechanism, and by how many percent it adds to the mean turnaround: notes on the
paper's text and slides, and of its own networks."""
LONG_US, LONG_SHARE = 1000.0, 56.63
"""Percent of ResNet-50's training time in kernels of more than a millisecond."""
SM_STATE_BYTES = 448 * 1024
"""What the authors take one SM to hold: shared memory, registers, constants."""
SM_SAVE_US = 37.0
"""Time to save it at the SM's share of the bandwidth, as printed; the arithmetic gives 39 to 40."""


class Paper(Reproduction):
    """Claims of the paper, judged; and pairs of networks recorded on an H100, within 15 % each."""

    name = "concurrency"
    title = "NVIDIA's sharing mechanisms"
    legend = f"""\
Claims are judged in the paper's own setting ({JUDGED_IN}); *settings* counts those in which the sign is the same, of
all pairs, arrivals and GPUs. *Added*: mean turnaround over that alone. *dev/mean*: standard deviation of turnarounds
over their mean. *Training*: speed, 1 alone. *Progress*: the sum of both tasks'. *Saves*: preemptions a request. A
mechanism under which a task never completes anything has no figure (nan)."""

    @staticmethod
    def cells() -> Sequence[judged.Cell]:
        return [*all_cells(), *graph_cells(recorded_pairs())]

    def checks(self) -> list[Judged]:
        return [*self.findings, *self.sides]

    def summary(self) -> str:
        held = [finding.holds for finding in self.findings if finding.holds is not None]
        within = sum(side.holds for side in self.sides)
        return (
            f"{sum(held)} of {len(held)} claims come out; "
            f"{within} of {len(self.sides)} sides of recorded pairs within {LIMIT:.0%}"
        )

    @functools.cached_property
    def outcomes(self) -> DataFrame:
        """Mechanisms against the same requests, and the same training, alone; the index is setting and mechanism.

        ``slowdown``: mean turnaround over that alone. ``training_speed``: work done over that alone, about 0 to 1.
        ``progress``: the sum of both tasks'; 1 is what taking turns without loss gives.
        """
        runs = self.to_frame(Cell)
        alone = runs[runs.mechanism == ALONE[0]][[*SETTING, "turnaround_us"]]
        training = runs[runs.mechanism == ALONE[1]][["gpu", "pair", "training_rate"]]
        runs = runs[runs.mechanism.isin(MECHANISMS)].merge(alone, on=SETTING, suffixes=("", "_alone"))
        runs = runs.merge(training, on=["gpu", "pair"], suffixes=("", "_alone"))
        runs["slowdown"] = runs.turnaround_us / runs.pop("turnaround_us_alone")
        runs["training_speed"] = runs.training_rate / runs.pop("training_rate_alone")
        runs["progress"] = runs.training_speed + 1.0 / runs.slowdown
        return runs.set_index([*SETTING, "mechanism"])

    @functools.cached_property
    def by_setting(self) -> dict[Any, DataFrame]:
        """Outcomes by mechanism, in every setting."""
        return {where: of.droplevel(SETTING) for where, of in self.outcomes.groupby(level=SETTING, sort=False)}

    @functools.cached_property
    def findings(self) -> list[Finding]:
        """Every claim, judged."""
        return [claim.judged(self.by_setting, PAPERS) for claim in CLAIMS]

    @functools.cached_property
    def published(self) -> list[Compared]:
        """Every published figure that has a counterpart, and those that lack one."""
        slowdown = self.outcomes.slowdown.xs((PAPERS[0], PAPERS[2]), level=("gpu", "arrivals"))
        rows = []
        for theirs, ours, mechanism, published in TURNAROUND:
            value = None if ours is None else 100.0 * (float(slowdown.get((ours, mechanism), float("nan"))) - 1.0)
            note = "" if theirs == ours else "no recording" if ours is None else f"ours: {ours} beside ResNet-50"
            rows.append(Compared(f"{theirs}, {mechanism}: added to turnaround", "%", published, value, note))
        gpu = load_gpu(PAPERS[0])
        saved_us = save_us(SM_STATE_BYTES * gpu.sms, gpu.dram_bytes_per_us)
        long = "ResNet-50 training: time in kernels above 1 ms"
        return [
            *rows,
            Compared(long, "%", LONG_SHARE, 100.0 * long_share(), "the batch was chosen for it"),
            Compared("saving what an SM holds", "us", SM_SAVE_US, saved_us, "all SMs at once"),
        ]

    @functools.cached_property
    def sides(self) -> list[Side]:
        """Both sides of every recorded pair of networks that was run."""
        return recorded.sides(self.of(Graphs))

    def data(self) -> dict[str, Any]:
        held = [finding.holds for finding in self.findings if finding.holds is not None]
        speeds = self.outcomes[["slowdown", "training_speed"]].reset_index()
        return {
            "horizon_us": HORIZON_US,
            "judged_in": JUDGED_IN,
            "observations": {"hold": sum(held), "scored": len(held), "each": [record(f) for f in self.findings]},
            "published": [record(row) for row in self.published],
            "recorded_pairs": {
                "limit": LIMIT,
                "within": sum(side.holds for side in self.sides),
                "sides": len(self.sides),
                "each": [record(side) for side in self.sides],
            },
            "runs": self.to_frame(Cell).merge(speeds, how="left").to_dict("records"),
        }

    def tables(self) -> list[Table]:
        sides = (recorded.sides_by_mode(self.sides), recorded.sides_table(self.sides))
        return [*self._judged(), recorded.hardware_table(), *sides]

    def details(self) -> list[Table]:
        return [self._mechanisms(*of) for of in self.by_setting.items()]

    def printed(self) -> list[Table]:
        mechanisms = [self._mechanisms(*of) for of in self.by_setting.items() if PAPERS[-1] in of[0]]
        beyond = recorded.sides_table([side for side in self.sides if not side.holds], "Sides beyond the limit")
        return [*mechanisms, *self._judged(), recorded.sides_by_mode(self.sides), beyond]

    def _judged(self) -> list[Table]:
        return [findings_table("Observations", self.findings), compared_table("Published figures", self.published)]

    def _mechanisms(self, where: tuple[str, str, str], found: DataFrame) -> Table:
        gpu, pair, arrivals = where
        shown = found.assign(
            mean_ms=found.turnaround_us / 1e3, p99_ms=found.turnaround_p99_us / 1e3, added=found.slowdown.map(percent)
        )
        alone_ms = self.runs[Cell(*where, ALONE[0])].turnaround_us / 1e3
        return table_of(
            f"{pair}, {arrivals}, {gpu}: alone {alone_ms:.2f} ms",
            shown,
            "mechanism = {mechanism} | mean ms = {mean_ms:.2f} | added = {added} | p99 ms = {p99_ms:.2f} "
            "| dev/mean = {variation:.2f} | training = {training_speed:.2f} | progress = {progress:.2f} "
            "| SMs = {utilisation:.0%} | saves = {preemptions:.1f}",
        )


def long_share() -> float:
    """Share of the paper's training's kernel time in kernels of more than a millisecond."""
    program = Cell(*PAPERS, ALONE[1]).problem().programs[0]
    durations = [op.device_us for op in program.variants[0] if op.kind is OpKind.KERNEL]
    return sum(d for d in durations if d > LONG_US) / sum(durations)
