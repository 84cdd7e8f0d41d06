"""cuSync (Jangda et al., CGO 2024): dependent kernels that synchronise their tiles.

The paper runs the two matrix products of the MLPs and the four of attention of GPT-3 and LLaMA (8-way model parallel),
and the convolutions of ResNet-38 and VGG-19, on a V100 and an A100. Blocks of a consumer wait for tiles instead of the
whole producer (*RowSync*: once for the row; *TileSync*: before each tile; *StridedSync*: tiles of matrices side by side
share a semaphore), so that the producer's last wave is filled up. What was measured is in the result files of its
artifact.

Blocks last as long as StreamSync's kernels do, over their waves: nothing else of the measured times is used. Grids,
split-K and options are those of the artifact's data base. No cost is fitted to what is scored. A post (a barrier, a
fence, an atomic addition) and a wait (a read, a barrier) take as many clocks as on an H100, where they were timed: 0.54
and 0.25 us on a V100, of tiles of any length. A block that takes its tile from a counter pays 2.5 us in a kernel's
first wave (5 us for two kernels, Table V), and two waits later on; the wait kernel takes 5 us, and loads that are
reordered are 13 us of a block's work (Table V). The 2.5 us were set after a first run: Table V's run, simulated with 5
us a block, saved 10 us where the paper has 5. So Table V does not check them.

Rows are scored where all variants have the same tiles and split-K, on a V100, with large matrices: 20 of the MLP rows.
The others are shown (``gpt3_v100_table4`` is the run behind Tables IV and V, with 1 to 64 tokens; LLaMA's TileSync is
StridedSync there). Attention and convolutions were measured by the host's clock against a host that waits for each
kernel: so a part of that gain is saved round trips. They are simulated like that, and in stream order, which shows what
overlapping alone gains. Of attention's products only the times of the first two are stored. The other two share what
is left of the total by waves and multiplications: so its rows are shown, not scored. Scores need two bands of the first
product, their row of queries and their column's row of keys; sums of values need all of it.

What does not come out: losses. GPT-3 with 2,048, 2,304 and 3,072 tokens gains nothing or loses in the measurements, and
gains 4 to 7 % by its waves; with 2,560 it is the other way round. Convolutions lose 12 % at C = 512 and batch 16, and
5 % at C = 128 and batch 8: none of these losses is foreseen. How many of their blocks share an SM is assumed from the
tile's size. Reordered loads and the wait kernel change nothing here
where the consumer's last blocks start behind the producer.

Attention gains 10 to 16 % in the measurements of 1,024 and 2,048 tokens and up to 7 % here. By waves there is little to
gain: slices come slowest in the order of blocks, so tiles of a product with split-K are there only at its end; and
scores go row by row, and hold slots while they wait for keys of later rows. Single tokens come out by rows, and gain
too much by tiles: reordered loads are counted as in MLPs, and the last product is shorter. On an A100 whole rows differ
by more than waves can explain; two of them, with tile heights that do not divide each other, are left out. Stream-K
comes out there but where its own products were slower than those that it divides.

Whole transformers gain about what the measured times of their parts add up to, all-reduces included. Networks of
convolutions gain less than their parts where split-K differs, or where blocks pay too much for synchronising. The
measured parts themselves lie outside of the published ranges at most sizes: their runs are not those of the ranges.

A trained agent that chooses policy, order, wait kernel and the form of each product is among the [results](results.md),
on these rows.
"""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpusched_env.data.dependent_kernels import published
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.verdicts import Simulation as AnyCell
from gpusched_env.experiments.lib.verdicts import Target, as_row, table_of, targets_table
from gpusched_env.experiments.papers.cusync.marks import MARKS
from gpusched_env.experiments.papers.cusync.runs import (
    BASELINES,
    NETWORKS,
    OF_ATTENTION,
    SCHEMES,
    TRANSFORMERS,
    AttentionRun,
    ConvolutionsRun,
    MlpRun,
    RunTimes,
    Scheme,
    Toy,
    Whole,
    all_attention,
    all_convolutions,
    all_mlps,
    whole_models,
)
from gpusched_env.experiments.papers.reproduction import Reproduction

SCORED = {"gpt3_v100": 512, "llama_v100": 1024}
"""Least tokens of the rows that are scored."""
TITLES = {"row": "RowSync", "tile": "TileSync", "strided": "StridedSync"}
MOST = {"row": 3.5, "tile": 4.5}
"""Largest median error of a gain, points."""
CROSS, RANKS, CLEAR = 8.5, 0.8, 5.0
"""Largest 90th percentile with costs fitted on the other model; least rank correlation; a gain or loss whose sign
has to be right, per cent."""
CONVOLUTIONS, SIGNS = 3.5, 0.9
BOTH_SIGNS = "share of signs right, mean of that of gains and that of losses"
POSTS_US = (0.0, 1.0, 2.0, 5.0, 10.0)
WAITS_US = {"row": (0.0, 2.0, 5.0, 10.0, 20.0), "tile": (0.0, 0.5, 1.0, 1.5, 2.0)}
COSTS = [(scheme, post_us, wait_us) for scheme in SCHEMES for post_us in POSTS_US for wait_us in WAITS_US[scheme]]
"""Costs that are tried; those that fit one model best are tried on the other."""
TABLE_V = ("gpt3_v100_table4", 1)
"""The run behind Tables IV and V."""
OPTIMISATIONS = {"Vanilla": "", "+R": "R", "+WR": "WR", "+WRT": "WRT"}
WHOLE = (
    "model = {model} | size = {size} | published = {low:g} to {high:g} % | of measured parts = {measured:+z.1f} % | "
    "ours = {ours:+z.1f} % | inside = {holds}"
)
NOTE_ON_WHOLE = (
    "A layer's attention and MLP with the all-reduces behind them (measured for GPT-3; for LLaMA by their bytes), or "
    "all layers of convolutions, each by the best of the schemes or by none."
)
NOTE_ON_STREAM_K = (
    "On an A100, in stream order: every product's steps are divided evenly, at the price of partial tiles written and "
    "read once."
)
NOTE_ON_ATTENTION = (
    "*Alike*: tiles and split-K are the same, and the stored gain is that of the stored times. Not scored: of two of "
    "four products the time is an estimate."
)
TOY: dict[Scheme, float] = {"stream": 40.0, "row": 30.0, "tile": 30.0}


@dataclass(frozen=True, slots=True)
class Gain:
    """A gain over StreamSync, per cent."""

    what: str
    size: str
    scheme: Scheme
    measured: float
    ours: float
    scored: bool
    in_stream_order: float | None = None
    """Ours, over StreamSync in stream order."""

    @property
    def error(self) -> float:
        """The error of the gain, points."""
        return self.ours - self.measured


def gain(time_us: float, stream_us: float) -> float:
    return 100.0 * (1.0 - time_us / stream_us)


def errors(gains: Iterable[Gain]) -> list[float]:
    return [abs(one.error) for one in gains]


def right_signs(gains: Iterable[Gain]) -> tuple[int, int]:
    """The number of rows of a clear gain or loss in which ours has its sign, and how many there are."""
    clear = [one for one in gains if abs(one.measured) >= CLEAR]
    return sum(one.ours * one.measured > 0 for one in clear), len(clear)


def _by_sign(gains: Sequence[Gain]) -> tuple[list[Gain], list[Gain]]:
    """The rows that gain and those that lose in the measurements."""
    return [one for one in gains if one.measured > 0], [one for one in gains if one.measured < 0]


class Paper(Reproduction):
    """Gains of MLPs and convolutions beside the measured ones."""

    name = "cusync"
    title = "cuSync"
    marks = MARKS
    legend = (
        "*Gain*: by how much less time the synchronised kernels take than StreamSync's, per cent. *Scored*: rows on a "
        "V100 whose tiles and split-K are the same, of matrices that fill it. *In stream order*: over kernels that "
        "follow each other in a stream, without a host that waits."
    )

    @staticmethod
    def cells() -> Sequence[AnyCell]:
        mlps = list(all_mlps())
        return [
            *(Toy(scheme) for scheme in TOY),
            *(MlpRun(*of, scheme) for of in mlps for scheme in ("stream", *SCHEMES)),
            *(
                MlpRun(*of, scheme, post_us, wait_us)
                for of in mlps
                if scored(*of)
                for scheme, post_us, wait_us in COSTS
            ),
            *(MlpRun(*TABLE_V, "tile", options=options) for options in OPTIMISATIONS.values()),
            *(MlpRun(*of, "stream-k") for of in mlps if "stream_k_us" in published()["mlp"][of[0]][str(of[1])]),
            *(AttentionRun(*of, scheme) for of in all_attention() for scheme in (*BASELINES, *OF_ATTENTION)),
            *(ConvolutionsRun(*of, scheme) for of in all_convolutions() for scheme in (*BASELINES, *SCHEMES)),
        ]

    def _us(self, cell: AnyCell) -> float:
        found: RunTimes = self.runs[cell]
        return found.time_us

    def _mlp_gains(self, scheme: Scheme, post_us: float | None = None, wait_us: float | None = None) -> list[Gain]:
        found = []
        for cell in self.of(MlpRun):
            if (cell.scheme, cell.post_us, cell.wait_us, cell.options) == (scheme, post_us, wait_us, None):
                ours = gain(self._us(cell), self._us(MlpRun(cell.model, cell.tokens, "stream")))
                measured = gain(cell.row[scheme.replace("-", "_") + "_us"], sum(cell.row["gemms"]))
                tokens, is_scored = str(cell.tokens), scored(cell.model, cell.tokens)
                found.append(Gain(cell.model, tokens, scheme, measured, ours, is_scored))
        return found

    @functools.cached_property
    def mlps(self) -> list[Gain]:
        """All rows of the MLPs."""
        return [one for scheme in SCHEMES for one in self._mlp_gains(scheme)]

    @functools.cached_property
    def stream_k(self) -> list[Gain]:
        """The gains of Stream-K where they were measured."""
        return self._mlp_gains("stream-k")

    @functools.cached_property
    def attention(self) -> list[Gain]:
        """All rows of attention."""
        return [
            self._host_timed(
                cell,
                AttentionRun(cell.model, cell.keys, cell.tokens, "waited-for"),
                AttentionRun(cell.model, cell.keys, cell.tokens, "stream"),
                (cell.model, f"{cell.tokens}" + (f", {cell.keys} before" if cell.keys else "")),
                cell.row["same"] and "doubtful" not in cell.row,
            )
            for cell in self.of(AttentionRun)
            if cell.scheme in OF_ATTENTION
        ]

    @functools.cached_property
    def convolutions(self) -> list[Gain]:
        """All rows of the convolutions."""
        return [
            self._host_timed(
                cell,
                ConvolutionsRun(cell.network, cell.channels, cell.batch, "waited-for"),
                ConvolutionsRun(cell.network, cell.channels, cell.batch, "stream"),
                (cell.network, f"C {cell.channels}, batch {cell.batch}"),
                cell.same,
            )
            for cell in self.of(ConvolutionsRun)
            if cell.scheme in SCHEMES
        ]

    def _host_timed(
        self, cell: Any, waited_for: AnyCell, in_order: AnyCell, names: tuple[str, str], alike: bool
    ) -> Gain:
        """The gain over a host that waits for each kernel, and in stream order."""
        measured = gain(cell.row[f"{cell.scheme}_us"], cell.row["stream_us"])
        ours, alone = (gain(self._us(cell), self._us(other)) for other in (waited_for, in_order))
        return Gain(*names, cell.scheme, measured, ours, alike, alone)

    @functools.cached_property
    def wholes(self) -> list[Whole]:
        """Gains of whole models."""
        return whole_models(self._us)

    def fitted_elsewhere(self, scheme: Scheme) -> dict[str, float]:
        """The 90th percentile of errors with the costs that fit the other model best, by model."""
        found = {}
        for model in SCORED:
            best = min(
                (self._mlp_gains(*cost) for cost in COSTS if cost[0] == scheme),
                key=lambda gains: statistics.median(errors(one for one in gains if one.what != model)),
            )
            found[model] = float(np.percentile(errors(one for one in best if one.what == model), 90))
        return found

    def checks(self) -> list[Target]:
        from scipy.stats import spearmanr

        targets = [Target(f"toy, us: {scheme}", us, us, self._us(Toy(scheme))) for scheme, us in TOY.items()]
        for scheme in SCHEMES:
            rows = [one for one in self.mlps if one.scheme == scheme and one.scored]
            name = f"MLPs, {TITLES[scheme]}"
            right, clear = right_signs(rows)
            ranks = float(spearmanr([one.measured for one in rows], [one.ours for one in rows]).statistic)
            targets += [
                Target(f"{name}: median error, points", 0.0, MOST[scheme], statistics.median(errors(rows))),
                Target(f"{name}: rank correlation", RANKS, 1.0, ranks),
                Target(f"{name}: signs right", clear, clear, right),
                *(
                    Target(f"{name}: 90th percentile on {model}, costs fitted on the other", 0.0, CROSS, worst)
                    for model, worst in self.fitted_elsewhere(scheme).items()
                ),
            ]
        rows = [one for one in self.convolutions if one.scheme == "row" and one.scored]
        right, clear = right_signs(rows)
        name, error = "convolutions, RowSync", statistics.median(errors(rows))
        targets.append(Target(f"{name}: median error, points", 0.0, CONVOLUTIONS, error))
        targets.append(Target(f"{name}: share of signs right", SIGNS, 1.0, right / clear))
        shares = [of_sign / many for of_sign, many in map(right_signs, _by_sign(rows))]
        targets.append(Target(f"{name}: {BOTH_SIGNS}", SIGNS, 1.0, statistics.mean(shares)))
        for model in (*TRANSFORMERS, *NETWORKS):
            sizes = [one for one in self.wholes if one.model == model]
            inside = sum(one.holds for one in sizes)
            targets.append(Target(f"{model}, whole: sizes in the published range", 1, len(sizes), inside))
        return targets

    def summary(self) -> str:
        row, tile = (
            statistics.median(errors(one for one in self.mlps if one.scored and one.scheme == scheme))
            for scheme in SCHEMES
        )
        rows = f"median error of a gain {row:.1f} points by rows, {tile:.1f} by tiles"
        return f"{self.tally()}; {rows}"

    def outcome(self) -> str:
        inside = sum(one.holds for one in self.wholes)
        rows = [one for one in self.convolutions if one.scheme == "row" and one.scored]
        (gains, of_gains), (losses, of_losses) = map(right_signs, _by_sign(rows))
        lost = ", ".join(
            f"{one.size} of {one.what.split('_')[0]} {one.measured:+.0f} % (here {one.ours:+.0f} %)"
            for one in rows
            if one.measured <= -CLEAR < one.ours
        )
        return (
            f"Why: losses are not foreseen, whatever a post costs. Of convolutions that gain {CLEAR:g} % or more "
            f"{gains} of {of_gains} gain here, of those that lose as much {losses} of {of_losses} lose: {lost}. Their "
            "waves leave room that a consumer fills, and the host waits once instead of each time; nothing in their "
            "grids, tiles or options tells them from those that gain. MLPs with a wrong sign gain by their waves, and "
            f"lose in the measurements for a reason that is not stored. Of whole models {inside} of "
            f"{len(self.wholes)} sizes lie in the published range."
        )

    def table_v(self) -> list[dict[str, Any]]:
        """What each optimisation takes off the time of GPT-3's MLP, us."""
        steps, paper = OPTIMISATIONS, published()["table_v"]["mlp_gpt3_B1-64"]
        us = {name: self._us(MlpRun(*TABLE_V, "tile", options=options)) for name, options in steps.items()}
        pairs = itertools.pairwise(steps)
        return [{"what": b, "published": paper[a] - paper[b], "ours": us[a] - us[b]} for a, b in pairs]

    def apart(self) -> str:
        """How far whole models are from the sums of their measured parts."""
        points = [abs(one.ours - one.measured) for one in self.wholes]
        middle = statistics.median(points)
        return f"Ours is {middle:.1f} points from measured parts in the median, {max(points):.1f} at most."

    def attention_error(self, scheme: Scheme) -> float:
        """Median error of rows of attention whose tiles and split-K are the same, points."""
        return statistics.median(errors(one for one in self.attention if one.scored and one.scheme == scheme))

    def remains(self) -> tuple[float, float]:
        """RowSync's gains of convolutions where they are clear, over a host that waits and in stream order: medians."""
        rows = [one for one in self.convolutions if one.scheme == "row" and one.scored and one.ours >= CLEAR]
        ordered = [one.in_stream_order for one in rows if one.in_stream_order is not None]
        return statistics.median(one.ours for one in rows), statistics.median(ordered)

    def data(self) -> dict[str, Any]:
        return {
            "targets": [as_row(target) for target in self.checks()],
            "mlps": [as_row(one) for one in self.mlps],
            "stream_k": [as_row(one) for one in self.stream_k],
            "attention": [as_row(one) for one in self.attention],
            "convolutions": [as_row(one) for one in self.convolutions],
            "whole_models": [as_row(one) for one in self.wholes],
            "convolutions_over_waiting_and_in_stream_order": self.remains(),
            "table_v": self.table_v(),
        }

    def tables(self) -> list[Table]:
        scheme = "scheme = {scheme}"
        gains = "measured = {measured:+z.1f} % | ours = {ours:+z.1f} % | error = {error:+z.1f} | scored = {scored}"
        ordered = gains.replace("| error", "| in stream order = {in_stream_order:+z.1f} % | error")
        steps = "step = {what} | published = {published:.0f} us | ours = {ours:.1f} us"
        waited_for, in_order = self.remains()
        note = (
            f"RowSync's gains of 5 % and more over a host that waits are {waited_for:.1f} % in the median; of the same "
            f"rows in stream order {in_order:+z.1f} %."
        )
        middle = ", ".join(f"{self.attention_error(scheme):.1f} ({TITLES[scheme]})" for scheme in OF_ATTENTION)
        rows = "model = {what} | tokens = {size} |"
        return [
            targets_table("What is judged", self.checks()),
            table_of("What optimisations save", self.table_v(), steps),
            table_of("Whole models", self.wholes, WHOLE, f"{NOTE_ON_WHOLE} {self.apart()}"),
            table_of("MLPs", self.mlps, f"{rows} {scheme} | {gains}"),
            table_of("MLPs by Stream-K", self.stream_k, f"{rows} {gains.partition('| scored')[0]}", NOTE_ON_STREAM_K),
            table_of(
                "Attention", self.attention, f"{rows} {scheme} | {ordered.replace('scored', 'alike', 1)}",
                f"Median error of rows alike, points: {middle}. {NOTE_ON_ATTENTION}",
            ),
            table_of(
                "Convolutions", self.convolutions, f"network = {{what}} | layer = {{size}} | {scheme} | {ordered}", note
            ),
        ]  # fmt: skip


def scored(model: str, tokens: int) -> bool:
    """Whether a row of the MLPs is scored."""
    return tokens >= SCORED.get(model, 1 << 30) and all(published()["mlp"][model][str(tokens)]["same"])
