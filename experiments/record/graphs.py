"""Networks as CUDA graphs on streams of their own: replayed alone, and one beside another that never pauses."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from gpusched_env.experiments.record.board import metered
from gpusched_env.experiments.record.networks import pairs

if TYPE_CHECKING:
    from gpusched_env.experiments.record.torch_gpu import TorchGpu, TorchGraph, TorchReplay

MODEL_PAIRS: Final = "model_pairs"
REPLAYS: Final = 200
"""Replays of a network alone, and of a foreground."""
LEAST_BEHIND: Final = 10
"""Counted replays of a background: beside a short foreground this takes more than :data:`REPLAYS` of it."""
WARM_UP: Final = 20
"""Replays that are not counted."""
QUEUED_REPLAYS: Final = 3
"""Replays of a background that are queued at any time, so that the GPU never waits for the host."""
URGENT: Final = -5
"""Priority of the foreground's stream in mode ``priority``; PyTorch takes the nearest that it has."""


class Span(NamedTuple):
    """When a replay ran, ms since some event."""

    start_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True)
class PairReplay:
    """A foreground beside a background; times in us."""

    front_us: Sequence[float]
    """Times of every replay."""
    behind_us: Sequence[float]
    """Times of the replays that began after the foreground's first start and ended before its last end."""
    busy: float
    """Share of the time from that start to that end in which a replay of the background was under way."""


def alone(network: TorchGraph, replays: int = REPLAYS) -> list[float]:
    """Times of replays one at a time, us."""
    spans = []
    for _ in range(WARM_UP + replays):
        one = network.replay()
        while not one.done():
            pass
        spans.append(one.span())
    return [_us(span) for span in spans[WARM_UP:]]


def beside(
    front: TorchGraph, behind: TorchGraph, replays: int = REPLAYS, least_behind: int = LEAST_BEHIND
) -> PairReplay:
    """Replays of a foreground one at a time, while a background is replayed back to back.

    The background runs before the foreground begins, and still when it ends: whoever is slower, each of the two has the
    other beside it all the time. The same thread queues both, so that neither waits for the other's host.

    Args:
        front: one at a time.
        behind: back to back.
        replays: of the foreground, at least, after some that are not counted.
        least_behind: replays of the background that are counted, at least.
    """
    ahead: deque[TorchReplay] = deque()
    ended: list[TorchReplay] = []

    def keep_busy() -> None:
        while ahead and ahead[0].done():
            ended.append(ahead.popleft())
        while len(ahead) < QUEUED_REPLAYS:
            ahead.append(behind.replay())

    def follow() -> TorchReplay:
        one = front.replay()
        while not one.done():
            keep_busy()
        keep_busy()
        return one

    keep_busy()
    while not ahead[0].begun():
        pass
    for _ in range(WARM_UP):
        follow()
    before = len(ended) + len(ahead)
    """Replays of the background that are queued before the foreground's time begins: none of them counts."""
    fronts: list[TorchReplay] = []
    while len(fronts) < replays or len(ended) < before + least_behind:
        fronts.append(follow())
    while not ahead[-1].done():
        pass
    return replays_within_foreground([one.span() for one in fronts], [one.span() for one in (*ended, *ahead)])


def replays_within_foreground(fronts: Sequence[Span], behinds: Sequence[Span]) -> PairReplay:
    """What counts of replays side by side: of the background, those within the foreground's time."""
    start_ms, end_ms = fronts[0].start_ms, fronts[-1].end_ms
    within = [span for span in behinds if start_ms <= span.start_ms and span.end_ms <= end_ms]
    overlaps = (min(span.end_ms, end_ms) - max(span.start_ms, start_ms) for span in behinds)
    busy = sum(max(0.0, overlap) for overlap in overlaps) / (end_ms - start_ms)
    return PairReplay([_us(span) for span in fronts], [_us(span) for span in within], min(1.0, busy))


def _us(span: Span) -> float:
    return (span.end_ms - span.start_ms) * 1e3


def model_pairs(
    graphs: TorchGpu, networks: Sequence[str], there: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Rows of networks alone, then of their pairs, that are still missing.

    Args:
        graphs: has the networks.
        networks: their names.
        there: rows that are recorded.
    """
    solo_us = {str(row["model"]): float(row["p50_us"]) for row in there if row["what"] == "solo"}
    done = {(row["mode"], row["fg"], row["bg"]) for row in there if row["what"] == "pair"}
    for name in networks:
        if name not in solo_us:
            graph = graphs.graph(name)
            times_us, board = metered(graphs.board, functools.partial(alone, graph))
            median_us, p99_us = _percentiles(times_us)
            solo_us[name] = median_us
            yield {"what": "solo", "model": name, "p50_us": median_us, "p99_us": p99_us, "board": board}
    for mode, front, behind in pairs(networks):
        if (mode, front, behind) in done:
            continue
        both = graphs.graph(front, URGENT if mode == "priority" else 0), graphs.graph(behind)
        graphs.restart()
        found, board = metered(graphs.board, functools.partial(beside, *both))
        median_us, p99_us = _percentiles(found.front_us)
        yield {
            "what": "pair",
            "mode": mode,
            "fg": front,
            "bg": behind,
            "fg_n": len(found.front_us),
            "fg_p50_us": median_us,
            "fg_p99_us": p99_us,
            "fg_solo_us": solo_us[front],
            "bg_n": len(found.behind_us),
            "bg_p50_us": _percentiles(found.behind_us)[0],
            "bg_solo_us": solo_us[behind],
            "bg_busy": found.busy,
            "board": board,
        }


def _percentiles(times_us: Sequence[float]) -> tuple[float, float]:
    """Median and 99th percentile, us."""
    median_us, p99_us = np.percentile(times_us, (50, 99)).tolist()
    return round(median_us, 3), round(p99_us, 3)
