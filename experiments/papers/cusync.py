"""cuSync (Jangda et al., CGO 2024): dependent kernels that synchronise their tiles.

The paper runs the two matrix products of the MLPs of GPT-3 and LLaMA (8-way model parallel), and the convolutions of
ResNet-38 and VGG-19, on a V100 and an A100. Blocks of a consumer wait for tiles instead of the whole producer
(*RowSync*: once for the row; *TileSync*: before each tile; for LLaMA that is StridedSync with tiles of its two fused
products), so that the producer's last wave is filled up. What was measured is in the result files of its artifact.

Blocks last as long as StreamSync's kernels do, over their waves: nothing else of the measured times is used. Grids,
split-K and options are those of the artifact's data base. No cost is fitted to what is scored: 5 us for the
wait kernel, 2.5 us for a block that takes its tile from a counter (5 us for two kernels, Table V), 1.5 us for a post
and a wait together, an estimate beside the paper's bound of 2 to 3 % for two copy kernels. Loads that are reordered are
13 us of a block's work (Table V). The 2.5 us were set after a first run: Table V's run, simulated with 5 us a block,
saved 10 us where the paper has 5. So Table V does not check them, and convolutions gained by it what MLPs lost.

Rows are scored where all variants have the same tiles and split-K, on a V100, with large matrices: 20 of the MLP rows.
The others are shown (``gpt3_v100_table4`` is the run behind Tables IV and V, with 1 to 64 tokens). Convolutions were
measured by the host's clock against a host that waits for each kernel: so a part of that gain is saved round trips.
They are simulated like that, and in stream order, which shows what overlapping alone gains.

What does not come out: losses. GPT-3 with 2,048, 2,304 and 3,072 tokens gains nothing or loses in the measurements, and
gains 4 to 7 % by its waves; with 2,560 it is the other way round. Convolutions lose 12 % at C = 512 and batch 16, and
5 % at C = 128 and batch 8. Convolutions of several waves lose here what their blocks of 10 to 100 us pay for each
synchronisation, and gain in the measurements: what a post, a wait and an order take must be less for them, and how many
of their blocks share an SM is assumed from the tile's size. Reordered loads and the wait kernel change nothing here
where the consumer's last blocks start behind the producer. On an A100 whole rows differ by more than waves can explain;
two of them, with tile heights that do not divide each other, are left out. No attention, Stream-K or whole models.
"""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
from scipy.stats import spearmanr

from gpusched_env.data.dependent import FOLD, aligned, convolution_kernels, mlp_kernels, published
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.judged import Simulation as AnyCell
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.verdicts import Target, record, table_of, targets_table
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.workload.dependent import TiledKernel, dependent
from gpusched_env.workload.workload import Workload

Scheme = Literal["stream", "row", "tile"]
SCHEMES: tuple[Scheme, ...] = ("row", "tile")
SCORED = {"gpt3_v100": 512, "llama_v100": 1024}
"""Least tokens of the rows that are scored."""
TITLES = {"row": "RowSync", "tile": "TileSync"}
MOST = {"row": 3.5, "tile": 4.5}
"""Largest median error of a gain, points."""
CROSS, RANKS, CLEAR = 8.5, 0.8, 5.0
"""Largest 90th percentile with costs fitted on the other model; least rank correlation; a gain or loss whose sign
has to be right, per cent."""
CONVOLUTIONS, SIGNS = 3.5, 0.9
POSTS_US = (0.0, 1.0, 2.0, 5.0, 10.0)
WAITS_US = {"row": (0.0, 2.0, 5.0, 10.0, 20.0), "tile": (0.0, 0.5, 1.0, 1.5, 2.0)}
COSTS = [(scheme, post_us, wait_us) for scheme in SCHEMES for post_us in POSTS_US for wait_us in WAITS_US[scheme]]
"""Of which those that fit one model best are tried on the other."""
TABLE_V = ("gpt3_v100_table4", 1)
"""The run behind Tables IV and V."""
OPTIMISATIONS = {"Vanilla": "", "+R": "R", "+WR": "WR", "+WRT": "WRT"}
TOY: dict[Scheme, float] = {"stream": 40.0, "row": 30.0, "tile": 30.0}


@dataclass(frozen=True, slots=True)
class Took:
    """Of one run."""

    time_us: float


def _problem(gpu: GpuSpec, workload: Workload) -> Problem:
    """One iteration alone."""
    scenario = make_scenario(
        {
            "name": "cuSync", "gpu": gpu.name, "horizon_us": 1e7, "variation": False, "lookahead": 8,
            "tenants": [{"name": "model", "workload": workload.name, "arrivals": {"kind": "backlog"}, "jobs": 1}],
        }
    )  # fmt: skip
    return build_problem(scenario, gpu=gpu, workloads={workload.name: workload})


def _scheduler(scheme: Scheme, options: str, fold: int) -> str:
    """The scheduler of a scheme with the artifact's options: T and W leave order and wait kernel out, R reorders."""
    if scheme == "stream":
        return "pass-through"
    policy = "strided" if scheme == "tile" and fold > 1 else scheme
    order = "native" if "T" in options else "row-major"
    wait_kernel, reorder = str("W" not in options).lower(), str("R" in options).lower()
    return f"cusync(policy={policy},order={order},wait_kernel={wait_kernel},reorder={reorder})"


@dataclass(frozen=True, slots=True)
class Mlp:
    """Two products."""

    model: str
    """With its GPU."""
    tokens: int
    scheme: Scheme
    post_us: float | None = None
    wait_us: float | None = None
    """``None``: as the GPU's specification says."""
    options: str | None = None
    """``None``: the artifact's."""

    @property
    def row(self) -> Any:
        return published()["mlp"][self.model][str(self.tokens)]

    def run(self, device: str) -> Took:
        row, (model, card, *_) = self.row, self.model.split("_")
        gpu = _free_launches(load_gpu(card), self.post_us, self.wait_us)
        options = row["options"][SCHEMES.index(self.scheme)] if self.scheme != "stream" else ""
        spec = _scheduler(self.scheme, options if self.options is None else self.options, FOLD[model])
        problem = _problem(gpu, dependent(self.model, gpu, mlp_kernels(self.model, self.tokens)))
        return Took(play(spec, problem, 0, device=device).end_us)


def _free_launches(gpu: GpuSpec, post_us: float | None, wait_us: float | None) -> GpuSpec:
    """A GPU whose launches cost nothing: they are in the measured times of kernels."""
    timing = msgspec.structs.replace(gpu.timing, launch_latency_us=0.0, stream_gap_us=0.0, event_latency_us=0.0)
    costs = {"post_us": post_us, "wait_us": wait_us}
    tiles = msgspec.structs.replace(gpu.tiles, **{name: us for name, us in costs.items() if us is not None})
    return msgspec.structs.replace(gpu, timing=timing, tiles=tiles)


@dataclass(frozen=True, slots=True)
class Convolutions:
    """Two or four convolutions on a V100."""

    network: str
    channels: int
    batch: int
    scheme: Scheme
    host_waits: bool = False
    """Whether the host waits for each kernel (of ``stream``)."""

    @property
    def row(self) -> Any:
        return published()["conv"][self.network][str(self.channels)][str(self.batch)]

    @property
    def same(self) -> bool:
        """Whether all schemes have the same split-K."""
        return len(set(self.row["slices"])) == 1

    def run(self, device: str) -> Took:
        row, gpu = self.row, load_gpu("v100")
        kernels = convolution_kernels(self.network, self.channels, self.batch)
        options = row["options"][SCHEMES.index(self.scheme)] if self.scheme != "stream" else ""
        workload = dependent(f"{self.network}-{self.channels}", gpu, kernels, host_waits=self.host_waits)
        end_us = play(_scheduler(self.scheme, options, 1), _problem(gpu, workload), 0, device=device).end_us
        return Took(end_us + gpu.timing.sync_latency_us)


@dataclass(frozen=True, slots=True)
class Toy:
    """Two products of 3 x 2 tiles on 4 SMs: waves of 10 us."""

    scheme: Scheme

    def run(self, device: str) -> Took:
        gpu = load_gpu("toy-4sm")
        workload = dependent("toy", gpu, [TiledKernel(3, 2, 1, 20.0)] * 2)
        return Took(play(_scheduler(self.scheme, "TW", 1), _problem(gpu, workload), 0, device=device).end_us)


@dataclass(frozen=True, slots=True)
class Gain:
    """Over StreamSync, per cent."""

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
        """Points."""
        return self.ours - self.measured


def gain(time_us: float, stream_us: float) -> float:
    return 100.0 * (1.0 - time_us / stream_us)


def errors(gains: Iterable[Gain]) -> list[float]:
    return [abs(one.error) for one in gains]


def right_signs(gains: Iterable[Gain]) -> tuple[int, int]:
    """In how many rows of a clear gain or loss ours has its sign, and how many there are."""
    clear = [one for one in gains if abs(one.measured) >= CLEAR]
    return sum(one.ours * one.measured > 0 for one in clear), len(clear)


class Paper(Reproduction):
    """Gains of MLPs and convolutions beside the measured ones."""

    name = "cusync"
    title = "cuSync"
    legend = (
        "*Gain*: by how much less time the synchronised kernels take than StreamSync's, per cent. *Scored*: rows on a "
        "V100 whose tiles and split-K are the same, of matrices that fill it. *In stream order*: over kernels that "
        "follow each other in a stream, without a host that waits."
    )

    @staticmethod
    def cells() -> Sequence[AnyCell]:
        rows = [(model, int(tokens), row) for model, of in published()["mlp"].items() for tokens, row in of.items()]
        mlps = [(model, tokens) for model, tokens, row in rows if aligned(row)]
        convolutions = [
            (network, int(channels), int(batch))
            for network, by_channels in published()["conv"].items()
            for channels, rows in by_channels.items()
            for batch in rows
        ]
        return [
            *(Toy(scheme) for scheme in TOY),
            *(Mlp(*of, scheme) for of in mlps for scheme in ("stream", *SCHEMES)),
            *(Mlp(*of, scheme, post_us, wait_us) for of in mlps if scored(*of) for scheme, post_us, wait_us in COSTS),
            *(Mlp(*TABLE_V, "tile", options=options) for options in OPTIMISATIONS.values()),
            *(Convolutions(*of, scheme) for of in convolutions for scheme in ("stream", *SCHEMES)),
            *(Convolutions(*of, "stream", host_waits=True) for of in convolutions),
        ]

    def _us(self, cell: AnyCell) -> float:
        found: Took = self.runs[cell]
        return found.time_us

    def _mlp_gains(self, scheme: Scheme, post_us: float | None = None, wait_us: float | None = None) -> list[Gain]:
        found = []
        for cell in self.of(Mlp):
            if (cell.scheme, cell.post_us, cell.wait_us, cell.options) == (scheme, post_us, wait_us, None):
                ours = gain(self._us(cell), self._us(Mlp(cell.model, cell.tokens, "stream")))
                measured = gain(cell.row[f"{scheme}_us"], sum(cell.row["gemms"]))
                tokens, is_scored = str(cell.tokens), scored(cell.model, cell.tokens)
                found.append(Gain(cell.model, tokens, scheme, measured, ours, is_scored))
        return found

    @functools.cached_property
    def mlps(self) -> list[Gain]:
        """All rows of the MLPs."""
        return [one for scheme in SCHEMES for one in self._mlp_gains(scheme)]

    @functools.cached_property
    def convolutions(self) -> list[Gain]:
        """All rows of the convolutions."""
        found = []
        for cell in self.of(Convolutions):
            if cell.scheme == "stream":
                continue
            of = cell.network, cell.channels, cell.batch
            waited_us, ordered_us = (self._us(Convolutions(*of, "stream", host_waits)) for host_waits in (True, False))
            measured = gain(cell.row[f"{cell.scheme}_us"], cell.row["stream_us"])
            ours, alone = (gain(self._us(cell), us) for us in (waited_us, ordered_us))
            size = f"C {cell.channels}, batch {cell.batch}"
            found.append(Gain(cell.network, size, cell.scheme, measured, ours, cell.same, alone))
        return found

    def fitted_elsewhere(self, scheme: Scheme) -> dict[str, float]:
        """By model: the 90th percentile of errors with the costs that fit the other one best."""
        found = {}
        for model in SCORED:
            best = min(
                (self._mlp_gains(*cost) for cost in COSTS if cost[0] == scheme),
                key=lambda gains: statistics.median(errors(one for one in gains if one.what != model)),
            )
            found[model] = float(np.percentile(errors(one for one in best if one.what == model), 90))
        return found

    def checks(self) -> list[Target]:
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
        return [*targets, Target(f"{name}: share of signs right", SIGNS, 1.0, right / clear)]

    def summary(self) -> str:
        targets = self.checks()
        held = sum(target.holds for target in targets)
        row, tile = (
            statistics.median(errors(one for one in self.mlps if one.scored and one.scheme == scheme))
            for scheme in SCHEMES
        )
        rows = f"median error of a gain {row:.1f} points by rows, {tile:.1f} by tiles"
        return f"{held} of {len(targets)} figures come out; {rows}"

    def table_v(self) -> list[dict[str, Any]]:
        """What each optimisation takes off the time of GPT-3's MLP, us."""
        steps, paper = OPTIMISATIONS, published()["table_v"]["mlp_gpt3_B1-64"]
        us = {name: self._us(Mlp(*TABLE_V, "tile", options=options)) for name, options in steps.items()}
        pairs = itertools.pairwise(steps)
        return [{"what": b, "published": paper[a] - paper[b], "ours": us[a] - us[b]} for a, b in pairs]

    def remains(self) -> float:
        """Median share of the simulated gains of convolutions that remains in stream order; of RowSync, scored."""
        rows = [one for one in self.convolutions if one.scheme == "row" and one.scored and one.ours >= CLEAR]
        return statistics.median((one.in_stream_order or 0.0) / one.ours for one in rows)

    def data(self) -> dict[str, Any]:
        return {
            "targets": [record(target) for target in self.checks()],
            "mlps": [record(one) for one in self.mlps],
            "convolutions": [record(one) for one in self.convolutions],
            "remains_in_stream_order": self.remains(),
            "table_v": self.table_v(),
        }

    def tables(self) -> list[Table]:
        scheme = "scheme = {scheme}"
        gains = "measured = {measured:+z.1f} % | ours = {ours:+z.1f} % | error = {error:+z.1f} | scored = {scored}"
        ordered = gains.replace("| error", "| in stream order = {in_stream_order:+z.1f} % | error")
        steps = "step = {what} | published = {published:.0f} us | ours = {ours:.1f} us"
        note = (
            f"In the median, {self.remains():.0%} of a gain remains in stream order (RowSync, gains of 5 % and more)."
        )
        return [
            targets_table("Targets and ours", self.checks()),
            table_of("What optimisations save", self.table_v(), steps),
            table_of("MLPs", self.mlps, f"model = {{what}} | tokens = {{size}} | {scheme} | {gains}"),
            table_of(
                "Convolutions", self.convolutions, f"network = {{what}} | layer = {{size}} | {scheme} | {ordered}", note
            ),
        ]


def scored(model: str, tokens: int) -> bool:
    """Whether a row of the MLPs is scored."""
    return tokens >= SCORED.get(model, 1 << 30) and all(published()["mlp"][model][str(tokens)]["same"])
