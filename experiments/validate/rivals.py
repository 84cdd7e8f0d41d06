"""Predictors that a simulator must beat: a constant that has seen the answers, and a model of nothing but SM shares.

Both know when streams start, and how long kernels take alone. The *constant* stretches every time alone by the median
stretch of its mode, read off the very recordings that it is compared on: no prediction is allowed that. The *model of
SM shares* gives each running kernel the SMs that it covers alone; where they are too few, the more urgent go first and
equals shrink in proportion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpusched_env.display.frame import frame
from gpusched_env.experiments.lib.graph_pairs import GraphPair
from gpusched_env.experiments.validate.recordings import RecordedScenario, SyntheticKernel
from gpusched_env.experiments.validate.replay import BLOCK_GAP_US, stream_starts
from gpusched_env.workload.workload import OpKind, Workload

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

PRIORITY = "priority"
"""The mode in which the foreground of a pair is more urgent."""
SIDES = ("foreground", "background")


@dataclass
class _Stream:
    """Of the model of SM shares: kernels as (SMs, us alone), one after the other."""

    kernels: Sequence[tuple[float, float]]
    free_us: float
    """When the next kernel may start."""
    priority: int
    done: int = 0
    left_us: float = 0.0
    """Of the present kernel, at full speed."""


def ends_of(
    scenarios: Mapping[str, Sequence[RecordedScenario]], kernels: Mapping[str, SyntheticKernel], sms: int
) -> DataFrame:
    """Of every launch, a row each in the order of :func:`~gpusched_env.experiments.validate.scoring.launches`:

    ``ready_us``, when its stream starts; ``alone_us``, when it would end if nothing else ran; ``shared_us``, when it
    ends by shares of SMs.
    """
    rows = []
    for of in scenarios.values():
        for scenario in of:
            shared_us = shared_ends(scenario, kernels, sms)
            for i, (ready_us, alone_us) in enumerate(alone_ends(scenario, kernels)):
                rows.append({"ready_us": ready_us, "alone_us": alone_us, "shared_us": shared_us[i]})
    return frame(rows)


def alone_ends(scenario: RecordedScenario, kernels: Mapping[str, SyntheticKernel]) -> list[tuple[float, float]]:
    """When the stream of each launch starts, and when the launch would end if its stream were alone (us)."""
    starts = stream_starts(scenario)
    at = dict(starts)
    found = []
    for launch in scenario.launches:
        ends_us = at[launch.stream] + kernels[launch.kernel].solo.duration_us
        found.append((starts[launch.stream], ends_us))
        at[launch.stream] = ends_us + BLOCK_GAP_US
    return found


def shared_ends(scenario: RecordedScenario, kernels: Mapping[str, SyntheticKernel], sms: int) -> NDArray[np.float64]:
    """When each launch ends by shares of SMs (us), shape ``(launches,)``."""
    own = {n: [i for i, of in enumerate(scenario.launches) if of.stream == n] for n in stream_starts(scenario)}
    starts = stream_starts(scenario)
    streams = []
    for number, rows in own.items():
        of = [kernels[scenario.launches[i].kernel] for i in rows]
        work = [(float(min(sms, kernel.grid)), kernel.solo.duration_us) for kernel in of]
        stream = _Stream(work, starts[number], scenario.launches[rows[0]].priority, left_us=work[0][1])
        streams.append(stream)
    ends_us = np.empty(len(scenario.launches))
    for stream_row, kernel_row, end_us in _played(streams, sms):
        ends_us[[*own.values()][stream_row][kernel_row]] = end_us
    return ends_us


def _played(streams: list[_Stream], sms: int) -> list[tuple[int, int, float]]:
    """Ends (us) of all kernels as (stream, kernel, end)."""
    now_us, found = 0.0, []
    while any(stream.done < len(stream.kernels) for stream in streams):
        open_rows = [row for row, stream in enumerate(streams) if stream.done < len(stream.kernels)]
        running = [row for row in open_rows if streams[row].free_us <= now_us]
        rates = _rates([streams[row] for row in running], sms)
        steps = [streams[row].left_us / rate for row, rate in zip(running, rates, strict=True) if rate > 0.0]
        steps += [streams[row].free_us - now_us for row in open_rows if streams[row].free_us > now_us]
        step_us = min(steps)
        now_us += step_us
        for row, rate in zip(running, rates, strict=True):
            stream = streams[row]
            stream.left_us -= rate * step_us
            if stream.left_us <= 1e-9 * stream.kernels[stream.done][1]:
                found.append((row, stream.done, now_us))
                stream.done, stream.free_us = stream.done + 1, now_us + BLOCK_GAP_US
                if stream.done < len(stream.kernels):
                    stream.left_us = stream.kernels[stream.done][1]
    return found


def _rates(running: Sequence[_Stream], sms: int) -> list[float]:
    """Speed of each present kernel over that alone."""
    left, rates = float(sms), dict[int, float]()
    for priority in sorted({stream.priority for stream in running}):
        level = [stream for stream in running if stream.priority == priority]
        wanted = sum(stream.kernels[stream.done][0] for stream in level)
        rate = min(1.0, left / wanted)
        rates |= {id(stream): rate for stream in level}
        left -= min(wanted, left)
    return [rates[id(stream)] for stream in running]


def constants(pairs: Sequence[GraphPair]) -> list[tuple[float, float]]:
    """Of each pair, the median recorded slowdowns of both sides over all pairs of its mode."""
    recorded = {mode: np.array([pair.recorded for pair in pairs if pair.mode == mode]) for mode in _modes(pairs)}
    medians = {mode: np.median(of, axis=0).tolist() for mode, of in recorded.items()}
    return [(medians[pair.mode][0], medians[pair.mode][1]) for pair in pairs]


def _modes(pairs: Sequence[GraphPair]) -> set[str]:
    return {pair.mode for pair in pairs}


def shares(pairs: Sequence[GraphPair], workloads: Mapping[str, Workload], sms: int) -> list[tuple[float, float]]:
    """Of each pair, slowdowns of both sides by shares of SMs, if any kernel of the one may meet any of the other.

    Args:
        pairs: of networks.
        workloads: of their networks, by name.
        sms: of the GPU.
    """
    return [
        slowdowns(
            covered(workloads[pair.fg], pair.fg_solo_us, sms),
            covered(workloads[pair.bg], pair.bg_solo_us, sms),
            sms,
            urgent=pair.mode == PRIORITY,
        )
        for pair in pairs
    ]


def covered(workload: Workload, alone_us: float, sms: int) -> NDArray[np.float64]:
    """How much of the time alone so many SMs are covered, shape ``(sms + 1,)``; it sums up to 1.

    Time in which no kernel runs, up to ``alone_us``, covers none.
    """
    time_us = np.zeros(sms + 1)
    for op in workload.variants[0].ops:
        if op.kind is OpKind.KERNEL:
            time_us[min(sms, math.prod(workload.kernels[op.index].grid))] += op.duration_us
    time_us[0] += max(0.0, alone_us - time_us.sum())
    of_time: NDArray[np.float64] = time_us / time_us.sum()
    return of_time


def slowdowns(
    first: NDArray[np.float64], second: NDArray[np.float64], sms: int, *, urgent: bool
) -> tuple[float, float]:
    """Of two networks that cover SMs as :func:`covered` says; ``urgent``: the first one goes first."""
    count = np.arange(sms + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        together = np.minimum(1.0, sms / (count[:, None] + count[None, :]))
        rest = np.minimum(1.0, (sms - count)[:, None] / count[None, :])
    # Rows are SMs of the first, columns of the second; what covers none is not slowed down.
    of_first = np.ones_like(together) if urgent else together.copy()
    of_second = rest if urgent else together.copy()
    of_first[0, :] = of_second[:, 0] = 1.0
    found = []
    for speed, own, other in ((of_first, first, second), (of_second.T, second, first)):
        mean = speed @ other
        found.append(float(np.divide(own, mean, out=np.full(len(own), np.inf), where=mean > 0.0)[own > 0.0].sum()))
    return found[0], found[1]
