"""Serving engines on silicon: time per token of dense models on one GPU.

AIConfigurator's repository has what engines were measured to take on an H100 or an H200, by model, number of clients,
lengths of prompt and answer (ai-dynamo/aiconfigurator, commit 095f58a, ``silicon_sample.csv``). Here the time from a
request's first token to its last, over the tokens between, is predicted from the shapes of the model's layers.

* *Inputs*: the sizes that the models' configurations publish; the GPUs' specifications; what kernels of another,
  smaller model took in this project's recording on an H200; the fastest products that others measured on these boards,
  of sixteen bits and of eight; what the engines' documentation says of steps, cache and precision.
* *Predicted*: the duration of every step, and with it how prompts of other clients delay a token. Each client sends its
  next request when the last is answered.
* *Not here*: time of the host, and of whatever the engine does between steps; prompts that begin alike and are cached.

Nothing is fitted to the rows. A first version took arithmetic of eight bits for twice as fast as that of sixteen, as
data sheets have it, and left out the kernels that convert to eight bits and norm heads: it was 19.5 % off in the
median. That these count was learnt from the rows; how much they count comes from elsewhere.

Time to first token is not judged: it is no function of what a row says. With 8 clients and prompts of 1,024 tokens the
same engine and model took 191 ms where answers have 128 tokens and 318 ms where they have 256; it hangs on which
requests happen to come together, and on the waiting before the engine. Rows of models that need several GPUs, and of
mixtures of experts, are left out.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.verdicts import Simulation, Target, as_row, table_of, targets_table
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.experiments.papers.time_per_token.silicon import SILICON, SiliconServed, SiliconTimes, cells_of

if TYPE_CHECKING:
    from pathlib import Path

    from gpusched_env.display.frame import DataFrame

MEDIAN = "time per token, median error"
WITHIN = 0.15


class Paper(Reproduction):
    """Time per token, row by row."""

    name = "time-per-token"
    title = "Serving engines on silicon"
    marks = (
        CriterionMark(
            MEDIAN,
            Kind.PREDICTED,
            "No constant was chosen by a row. Kernels and board limits that the first version lacked were added with "
            "these rows in view; rows that are not here are the better judge.",
            "a roofline: 0.324; tokens alone, without prompts among the steps: 0.404",
        ),
    )

    @staticmethod
    def cells() -> Sequence[Simulation]:
        return cells_of(SILICON)

    @staticmethod
    def reads() -> Sequence[Path]:
        return (SILICON,)

    def errors(self, figure: str = "predicted_ms") -> list[tuple[SiliconServed, float]]:
        """Signed relative errors of a figure of all rows."""
        return [
            (served, getattr(times, figure) / served.row.token_ms - 1.0)
            for served, times in self.of(SiliconServed).items()
        ]

    def median(self, figure: str = "predicted_ms") -> float:
        """Median of the absolute errors of a figure."""
        return statistics.median(abs(error) for _, error in self.errors(figure))

    def checks(self) -> Sequence[Target]:
        return [Target(MEDIAN, 0.0, WITHIN, self.median())]

    def summary(self) -> str:
        return (
            f"time per token of {len(self.runs)} rows is {self.median():.1%} off in the median; "
            f"by a roofline {self.median('roofline_ms'):.1%}"
        )

    def outcome(self) -> str:
        faster = [error for served, error in self.errors() if self.runs[served].roofline_ms > served.row.token_ms]
        return (
            f"{len(faster)} of these rows are faster than the roofline, as if the engine had processed fewer prompts "
            "or served fewer clients at a time than the row says. They count as all others do, with "
            f"{min(faster):+.0%} to {max(faster):+.0%}."
            if faster
            else ""
        )

    def tables(self) -> list[Table]:
        groups: defaultdict[tuple[str, ...], list[tuple[float, ...]]] = defaultdict(list)
        for served, times in self.of(SiliconServed).items():
            row = served.row
            errors = tuple(getattr(times, name) / row.token_ms - 1.0 for name in SiliconTimes._fields)
            groups[row.engine, row.model_path, row.system, row.format or "bf16"].append(errors)
        rows = []
        for (engine, model, gpu, layers), found in groups.items():
            own, roofline, alone = zip(*found, strict=True)
            rows.append(
                {
                    "engine": engine, "model": model, "gpu": gpu, "format": layers, "rows": len(found),
                    "error": statistics.median(map(abs, own)), "signed": statistics.median(own),
                    "roofline": statistics.median(map(abs, roofline)), "alone": statistics.median(map(abs, alone)),
                }
            )  # fmt: skip
        columns = (
            "engine = {engine} | model = {model} | GPU = {gpu} | products = {format} | rows = {rows}"
            " | error = {error:.1%} | signed = {signed:+z.1%} | roofline = {roofline:.1%} | tokens alone = {alone:.1%}"
        )
        note = (
            "Medians of errors, absolute ones but for *signed*. *Roofline*: the longer of a step's arithmetic and its "
            "bytes, at the peaks of the specification. *Tokens alone*: without prompts among the steps."
        )
        return [table_of("Errors by engine and model", rows, columns, note), targets_table("Criteria", self.checks())]

    def details(self) -> Sequence[Table]:
        columns = (
            "engine = {engine} {version} | model = {model_path} | GPU = {system} | products = {format} | "
            "clients = {clients} | prompt = {prompt} | answer = {answer} | measured, ms = {token_ms:.2f} | "
            "predicted, ms = {predicted_ms:.2f} | roofline, ms = {roofline_ms:.2f} | tokens alone, ms = {alone_ms:.2f}"
        )
        return [table_of("All rows", self.data()["rows"], columns, "Milliseconds a token.")]

    def data(self) -> dict[str, Any]:
        rows = [
            {**msgspec.structs.asdict(cell.row), **times._asdict()} for cell, times in self.of(SiliconServed).items()
        ]
        return {"checks": [as_row(check) for check in self.checks()], "rows": rows}

    def to_frame(self, kind: type | None = None) -> DataFrame:
        return frame(self.data()["rows"])
