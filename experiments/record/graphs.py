"""Networks as CUDA graphs on streams of their own: replayed alone, and one beside another that never pauses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from gpusched_env.errors import GpuError, InputError
from gpusched_env.experiments.record.gpu import more_queues
from gpusched_env.experiments.record.networks import NETWORKS, Step, pairs
from gpusched_env.versions import versions

MODEL_PAIRS: Final = "model_pairs"
REPLAYS: Final = 200
"""Of a network alone, and of a foreground."""
LEAST_BEHIND: Final = 10
"""Counted replays of a background: beside a short foreground this takes more than :data:`REPLAYS` of it."""
WARM_UP: Final = 20
EAGER_WARM_UP: Final = 3
"""Iterations before a capture, in which libraries choose their kernels."""
AHEAD: Final = 3
"""Replays of a background that are queued at any time, so that the GPU never waits for the host."""
URGENT: Final = -5
"""Priority of the foreground's stream in mode ``priority``; PyTorch takes the nearest that it has."""


class Span(NamedTuple):
    """When a replay ran, ms since some event."""

    start_ms: float
    end_ms: float


class Replay(Protocol):
    """A replay that is under way or done."""

    def begun(self) -> bool:
        """Whether it has started."""

    def done(self) -> bool:
        """Whether it has ended."""

    def span(self) -> Span:
        """When it ran; it has ended."""


class Replayed(Protocol):
    """A network that can be replayed."""

    def replay(self) -> Replay:
        """Queue one behind those before it."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A foreground beside a background; times in us."""

    front_us: Sequence[float]
    """Of every replay."""
    behind_us: Sequence[float]
    """Of the replays that began after the foreground's first start and ended before its last end."""
    busy: float
    """Share of the time from that start to that end in which a replay of the background was under way."""


def alone(network: Replayed, replays: int = REPLAYS) -> list[float]:
    """Times of replays one at a time, us."""
    spans = []
    for _ in range(WARM_UP + replays):
        one = network.replay()
        while not one.done():
            pass
        spans.append(one.span())
    return [_us(span) for span in spans[WARM_UP:]]


def beside(front: Replayed, behind: Replayed, replays: int = REPLAYS, least_behind: int = LEAST_BEHIND) -> Beside:
    """Replays of a foreground one at a time, while a background is replayed back to back.

    The background runs before the foreground begins, and still when it ends: whoever is slower, each of the two has the
    other beside it all the time. The same thread queues both, so that neither waits for the other's host.

    Args:
        front: one at a time.
        behind: back to back.
        replays: of the foreground, at least.
        least_behind: replays of the background that are counted, at least.
    """
    ahead: deque[Replay] = deque()
    ended: list[Replay] = []
    fronts: list[Replay] = []

    def keep_busy() -> None:
        while ahead and ahead[0].done():
            ended.append(ahead.popleft())
        while len(ahead) < AHEAD:
            ahead.append(behind.replay())

    keep_busy()
    while not ahead[0].begun():
        pass
    before = len(ahead)
    """Replays of the background that are queued before the foreground begins: none of them counts."""
    while len(fronts) < replays or len(ended) < before + least_behind:
        one = front.replay()
        while not one.done():
            keep_busy()
        fronts.append(one)
        keep_busy()
    while not ahead[-1].done():
        pass
    return counted([one.span() for one in fronts], [one.span() for one in (*ended, *ahead)])


def counted(fronts: Sequence[Span], behinds: Sequence[Span]) -> Beside:
    """What counts of replays side by side: of the background, those within the foreground's time."""
    start_ms, end_ms = fronts[0].start_ms, fronts[-1].end_ms
    within = [span for span in behinds if start_ms <= span.start_ms and span.end_ms <= end_ms]
    overlaps = (min(span.end_ms, end_ms) - max(span.start_ms, start_ms) for span in behinds)
    busy = sum(max(0.0, overlap) for overlap in overlaps) / (end_ms - start_ms)
    return Beside([_us(span) for span in fronts], [_us(span) for span in within], min(1.0, busy))


def _us(span: Span) -> float:
    return (span.end_ms - span.start_ms) * 1e3


class TorchReplay:
    """Between two events."""

    def __init__(self, zero: Any, start: Any, end: Any) -> None:
        self._zero, self._start, self._end = zero, start, end

    def begun(self) -> bool:
        """Whether it has started."""
        return bool(self._start.query())

    def done(self) -> bool:
        """Whether it has ended."""
        return bool(self._end.query())

    def span(self) -> Span:
        """When it ran; the duration is that between its own events, which is more exact than two times since zero."""
        start_ms = float(self._zero.elapsed_time(self._start))
        return Span(start_ms, start_ms + float(self._start.elapsed_time(self._end)))


class TorchGraph:
    """A network captured as a CUDA graph on a stream of its own, whose priority its kernels keep."""

    def __init__(self, torch: Any, step: Step, zero: Any, priority: int) -> None:
        """
        Args:
            torch: the module.
            step: one iteration.
            zero: event that times count from.
            priority: of the stream, CUDA's convention.
        """
        self._torch, self._zero = torch, zero
        self._stream = torch.cuda.Stream(priority=priority)
        self._graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.stream(self._stream):
            for _ in range(EAGER_WARM_UP):
                step()
        torch.cuda.synchronize()
        with torch.cuda.graph(self._graph, stream=self._stream):
            self._result = step()
        torch.cuda.synchronize()

    def replay(self) -> TorchReplay:
        """Queue one behind those before it."""
        start, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        with self._torch.cuda.stream(self._stream):
            start.record()
            self._graph.replay()
            end.record()
        return TorchReplay(self._zero, start, end)


class TorchGraphs:
    """Networks on the GPU at hand, each built and captured when it is first asked for."""

    def __init__(self) -> None:
        """
        Raises:
            InputError: PyTorch is not installed, or sees no GPU.
        """
        more_queues()
        try:
            torch = import_module("torch")
        except ImportError:
            raise InputError("recording networks needs PyTorch: pip install torch") from None
        if not torch.cuda.is_available():
            raise InputError(
                "PyTorch sees no GPU: there is none in this machine, or this build of PyTorch is for CPUs only"
            )
        self._torch = torch
        torch.manual_seed(0)
        self._steps: dict[str, Step] = {}
        self._graphs: dict[tuple[str, int], TorchGraph] = {}
        self._zero = torch.cuda.Event(enable_timing=True)
        self._zero.record()
        properties = torch.cuda.get_device_properties(0)
        self.head: dict[str, Any] = {
            "gpu": str(properties.name),
            "sms": int(properties.multi_processor_count),
            "torch": versions()["torch"],
            "cuda": str(torch.version.cuda),
            "replays": REPLAYS,
        }
        """First line of the file."""

    def graph(self, name: str, priority: int = 0) -> TorchGraph:
        """A network by name.

        Raises:
            GpuError: it cannot be built or captured.
        """
        key = name, priority
        if key not in self._graphs:
            try:
                if name not in self._steps:
                    self._steps[name] = NETWORKS[name].build()
                self._graphs[key] = TorchGraph(self._torch, self._steps[name], self._zero, priority)
            except RuntimeError as error:
                raise GpuError(f"{name} does not become a CUDA graph: {error}; leave it out with --networks") from error
        return self._graphs[key]


class Graphs(Protocol):
    """What has networks by name."""

    def graph(self, name: str, priority: int = 0) -> Replayed:
        """A network on a stream of a priority."""


def model_pairs(
    graphs: Graphs, networks: Sequence[str], there: Sequence[Mapping[str, Any]]
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
            median_us, p99_us = _percentiles(alone(graphs.graph(name)))
            solo_us[name] = median_us
            yield {"what": "solo", "model": name, "p50_us": median_us, "p99_us": p99_us}
    for mode, front, behind in pairs(networks):
        if (mode, front, behind) in done:
            continue
        found = beside(graphs.graph(front, URGENT if mode == "priority" else 0), graphs.graph(behind))
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
        }


def _percentiles(times_us: Sequence[float]) -> tuple[float, float]:
    """Median and 99th percentile, us."""
    median_us, p99_us = np.percentile(times_us, (50, 99)).tolist()
    return round(median_us, 3), round(p99_us, 3)
