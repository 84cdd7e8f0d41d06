"""Other simulators side by side.

LLMServingSim's repository has what vLLM was measured to do with 300 requests of ShareGPT that arrive at 10 a second,
and what LLMServingSim predicts. Here the same requests are served by the model of time per token
(``docs/time-per-token.md``).

* *Inputs*: arrivals and lengths; vLLM's limits (2,048 tokens a step; 256 or 128 requests; on the RTX 4090 the 41,408
  tokens that its log says the cache holds, on the other nine tenths of what the weights leave); the board's data sheet.
* *Nothing was measured on these boards*: kernels take what those of another model took on an H200, by the ratio of data
  sheets. LLMServingSim has profiled every operator on the very board.
* *A cache that is full* makes requests wait. So a step that is too short by some per cent leaves a queue that is
  shorter by many, and time to first token with it.

The last table has a step of Qwen3-TTS on some of an H200's SMs (green contexts), with the memory to itself. No kernels
of its vocoder are here: what is published of that, 2.5 to 1.18 times as long, cannot be predicted.

Nothing was fitted to these figures, and nothing was changed after the first comparison.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from gpusched_env.data import stored
from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.criteria import CriterionMark, Kind
from gpusched_env.experiments.lib.language_models import MODELS, DenseModel
from gpusched_env.experiments.lib.verdicts import Simulation, Target, as_row, table_of, targets_table
from gpusched_env.experiments.papers import time_per_token
from gpusched_env.experiments.papers.reproduction import Reproduction
from gpusched_env.experiments.papers.time_per_token.serving import Answered, EngineModel, EngineRequest, served
from gpusched_env.experiments.papers.time_per_token.silicon import CACHE_SHARE, SiliconServed
from gpusched_env.experiments.papers.time_per_token.steps import HALF_BYTES, EngineStep, Formats, Layers
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.reading import read_bytes, table_rows
from gpusched_env.workload.carry_over import KERNEL_OFF, NETWORK_OFF, PRODUCT_OFF

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

FOLDER: Final = Path(str(resources.files("gpusched_env.data"))) / "measurements" / "engine"
FIGURES: Final = ("time per token", "time to first token", "latency")
WITHIN: Final = 0.15
STEP_TOKENS: Final = 2048
MODEL: Final = "llama-3.1-8b"
HALF: Final = Formats(HALF_BYTES, HALF_BYTES)
SMS: Final = (32, 48, 64, 80, 96)
TALKER: Final = DenseModel(28, 2048, 16, 8, 128, 6144, 3072, head_norms=True)
PREDICTOR: Final = DenseModel(5, 1024, 16, 8, 128, 3072, 2048, head_norms=True)
CODES: Final = 16
"""Codes of a step of Qwen3-TTS (1.7B): the talker makes the first, the predictor the others, one after the other."""
BATCH, CONTEXT = 16, 300
"""Requests; and tokens of each, which nobody published and which matter little."""


class Means(NamedTuple):
    """Means over all requests, milliseconds."""

    token_ms: float
    first_ms: float
    latency_ms: float

    @classmethod
    def of(cls, requests: Iterable[Answered]) -> Means:
        """Means of requests that were answered."""
        rows = [
            (one.token_us, one.first_us - one.request.arrival_us, one.last_us - one.request.arrival_us)
            for one in requests
        ]
        return cls(*(1e-3 * statistics.fmean(column) for column in zip(*rows, strict=True)))


@dataclass(frozen=True, slots=True)
class PeerOutcome:
    """What 300 requests came to."""

    measured: Means
    ours: Means
    roofline: Means


@dataclass(frozen=True)
class Replayed:
    """The requests on a board, as the log of its vLLM has them."""

    gpu: str
    most: int
    """Requests at a time."""
    cache_tokens: int | None = None
    """``None``: nine tenths of what the weights leave."""

    def run(self, device: str) -> PeerOutcome:
        measured = logged(FOLDER / f"vllm_{self.gpu}.csv")
        requests = [one.request for one in measured]
        layers = Layers(MODELS[MODEL], load_gpu(self.gpu), HALF)
        cache = self.cache_tokens or layers.cache_tokens(CACHE_SHARE)
        engine = EngineModel(mixed=True, reserves=False, step_tokens=STEP_TOKENS, cache_tokens=cache, most=self.most)
        ours, roofline = (Means.of(served(requests, engine, us)) for us in (layers.step_us, layers.roofline_us))
        return PeerOutcome(Means.of(measured), ours, roofline)


def logged(path: Path) -> list[Answered]:
    """The requests of a log: seconds of arrival, first and last token, and lengths."""
    _, *rows = (values for _, values in table_rows(read_bytes(path), str(path)))
    return [
        Answered(EngineRequest(1e6 * float(arrival), int(prompt), int(answer)), 1e6 * float(first), 1e6 * float(last))
        for arrival, prompt, answer, first, last in rows
    ]


def peers() -> Any:
    """What others have published, and what was measured of them."""
    return stored("published", "peers.json")


@dataclass(frozen=True)
class OnSms:
    """A step of Qwen3-TTS with a number of an H200's SMs."""

    sms: int

    def run(self, device: str) -> float:
        gpu = msgspec.structs.replace(load_gpu("h200-sxm"), sms=self.sms, sm_order="linear")
        talker, predictor = Layers(TALKER, gpu, HALF), Layers(PREDICTOR, gpu, HALF)
        codes_us = (
            predictor.step_us(EngineStep(running=BATCH, cached=BATCH * (number + 1))) for number in range(1, CODES)
        )
        return talker.step_us(EngineStep(running=BATCH, cached=BATCH * CONTEXT)) + sum(codes_us)


class Paper(Reproduction):
    """The same requests, and published figures beside ours."""

    name = "peers"
    title = "Other simulators side by side"
    shows = 4
    marks = (
        *(
            CriterionMark(
                f"{gpu}: *",
                Kind.PREDICTED,
                "Nothing was measured on the board; costs of kernels are those of another model on an H200.",
                f"a roofline: {roofline} of 3",
            )
            for gpu, roofline in (("rtx-4090", 0), ("rtx-pro-6000", 0))
        ),
        *(
            CriterionMark(
                f"SMs: {sms} of 132*",
                Kind.PREDICTED if sms < 64 else Kind.VACUOUS,
                "Costs were recorded with all SMs; fewer have more waves of tiles, and memory as a whole.",
                f"no slowdown at all: {'off' if sms < 64 else 'holds'}",
            )
            for sms in SMS
        ),
    )

    @staticmethod
    def cells() -> Sequence[Simulation]:
        boards = Replayed("rtx-4090", 256, 41_408), Replayed("rtx-pro-6000", 128)
        return [*boards, *map(OnSms, (*SMS, 132)), *time_per_token.Paper.cells()]

    @staticmethod
    def reads() -> Sequence[Path]:
        return [FOLDER / "vllm_rtx-4090.csv", FOLDER / "vllm_rtx-pro-6000.csv", *time_per_token.Paper.reads()]

    def same(self) -> list[dict[str, Any]]:
        """The same requests, a row a board and figure."""
        return [
            {
                "gpu": cell.gpu, "figure": figure, "measured": measured, "ours": ours, "error": ours / measured - 1.0,
                "theirs": peers()["requests"][cell.gpu][figure], "roofline": roofline / measured - 1.0,
            }
            for cell, found in self.of(Replayed).items()
            for figure, measured, ours, roofline in zip(
                FIGURES, found.measured, found.ours, found.roofline, strict=True
            )
        ]  # fmt: skip

    def checks(self) -> Sequence[Target]:
        low, high = 1.0 - WITHIN, 1.0 + WITHIN
        rows = [(f"{row['gpu']}: {row['figure']}", row["ours"] / row["measured"]) for row in self.same()]
        rows += [(f"SMs: {row['sms']} of 132", row["ours"] / row["measured"]) for row in self.by_sms()]
        return [Target(f"{what}, predicted over measured", low, high, ratio) for what, ratio in rows]

    def by_sms(self) -> list[dict[str, float]]:
        """A step by SMs, over that with all."""
        found, published = self.of(OnSms), peers()["sms"]["step"]
        if not found:
            return []
        whole = found[OnSms(132)]
        return [
            {"sms": sms, "measured": measured, "ours": found[OnSms(sms)] / whole}
            for sms, measured in zip(SMS, published, strict=True)
        ]

    def summary(self) -> str:
        return f"{self.tally()}: what engines took on the same work, within {WITHIN:.0%}"

    def tables(self) -> list[Table]:
        columns = (
            "GPU = {gpu} | mean = {figure} | vLLM, ms = {measured:.1f} | ours, ms = {ours:.1f} | ours = {error:+z.1%}"
            " | LLMServingSim = {theirs:+z.1%} | roofline = {roofline:+z.1%}"
        )
        note = (
            f"300 requests of Llama-3.1-8B. Measurements and errors of LLMServingSim: {peers()['requests']['source']}."
        )
        return [
            table_of("The same requests", self.same(), columns, note),
            self._published(),
            self._steps(),
            table_of(
                "A share of the SMs",
                [{**row, "error": row["ours"] / row["measured"] - 1.0} for row in self.by_sms()],
                "SMs = {sms} of 132 | measured = {measured:.2f} | ours = {ours:.2f} | error = {error:+z.1%}",
                f"Time of a step of Qwen3-TTS over that with all SMs: {peers()['sms']['source']}.",
            ),
            targets_table("Criteria", self.checks()),
        ]

    def _published(self) -> Table:
        median = time_per_token.Paper(self.of(SiliconServed)).median()
        ours = [
            ("time per token of three models on an H100 and an H200, median of 80 rows", f"{median:.1%}",
             "kernels of another model on an H200", "[time per token](time-per-token.md)"),
            ("networks, medians, from an H100 to an H200 or back", f"{NETWORK_OFF:.1%}",
             "the network on the other board", "[carrying over](carry-over.md)"),
            ("single kernels, medians, likewise", f"{KERNEL_OFF:.1%}", "the kernel on the other board", "likewise"),
            ("single products between boards of four generations, median of the worst pair", f"{PRODUCT_OFF:.1%}",
             "the product on another board, and what the judged one sustains", "likewise"),
        ]  # fmt: skip
        rows = [(one["who"], one["what"], one["error"], one["knows"], one["source"]) for one in peers()["errors"]]
        rows += [("gpusched_env", *row) for row in ours]
        return Table("Published errors", ("who", "of what", "error", "knows", "source"), rows, KNOWS)

    def _steps(self) -> Table:
        source, *found = peers()["steps"].items()
        rows = [(who, f"{one['per_second']:,}", one["what"]) for who, one in found]
        note = f"Measured here: {source[1]}. A step of one is not the work of a step of the other."
        return Table("Steps a second", ("environment", "steps/s", "what was measured"), rows, note)

    def data(self) -> dict[str, Any]:
        return {"checks": [as_row(check) for check in self.checks()], "same": self.same(), "published": peers()}

    def to_frame(self, kind: type | None = None) -> DataFrame:
        return frame(self.same())


KNOWS: Final = "*Knows*: what was measured beforehand. The works differ, so that errors are no ranking."
