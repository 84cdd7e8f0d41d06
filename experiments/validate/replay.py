"""Recorded scenarios on the compiled device: what a prediction may see goes in, times come out.

The recordings fill all streams first; a timer kernel on one SM raises a flag for each stream at its delay.
A scenario becomes streams that start when their flags have been seen, with the recorded priorities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusched_env.experiments.reproduce.recordings import SCHEDULERS, graph_turnarounds_us
from gpusched_env.experiments.validate.dataset import ModelPair, RecordedScenario, SyntheticKernel
from gpusched_env.experiments.validate.scoring import Prediction
from gpusched_env.experiments.validate.streams import Stream, run_streams
from gpusched_env.experiments.validate.synthetic import profile, timer_kernel
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.problem import load_workload

FLAG_US = 4.0
"""From a raised memory flag to the start of the stream that waits for it (median of the recordings)."""
RAISED_TOGETHER_US = 0.55
"""Streams whose flags rise at the same time start this far apart, in stream order."""
BLOCK_GAP_US = 2.05
"""From a kernel's last block to the first block of the next in its stream, as block timers see it.

The specification's ``stream_gap_us`` is what profilers see, whose kernel durations contain part of it.
"""
PAIR_HORIZON_US = 150_000.0
"""Pairs of networks are simulated this long, or for :data:`PAIR_ITERATIONS` of the longer network."""
PAIR_ITERATIONS = 5


@dataclass(frozen=True, slots=True)
class Mechanisms:
    """What the replay takes into account besides the specification's own switches (for ablations)."""

    spread: bool = True
    """Blocks of a kernel differ in duration as in its solo profile."""
    calibrate: bool = True
    """Kernels are scaled to their solo duration."""
    timer: bool = True
    """The timer kernel holds an SM."""


class Replay:
    """Predicts recorded scenarios of one kernel library on one GPU."""

    def __init__(self, kernels: dict[str, SyntheticKernel], gpu: GpuSpec, mechanisms: Mechanisms | None = None) -> None:
        """Solves every kernel's demands (about a second for a hundred kernels)."""
        self.gpu = gpu
        self.mechanisms = mechanisms or Mechanisms()
        use = self.mechanisms
        self._profiles = {
            id_: profile(kernel, gpu, spread=use.spread, calibrate=use.calibrate) for id_, kernel in kernels.items()
        }

    def predict(self, scenario: RecordedScenario) -> Prediction:
        """Start and end of every launch of ``scenario``; its measured times are not looked at."""
        streams: list[Stream] = []
        if self.mechanisms.timer:
            last_us = max(launch.delay_us for launch in scenario.launches if launch.delay_us is not None)
            if last_us > 0.0:
                streams.append(Stream("timer", [timer_kernel(last_us, self.gpu)]))
        launches: list[list[int]] = [[] for _ in streams]
        """Of each stream, rows of the scenario's launches; the timer kernel is none of them."""
        for number, ready_us in stream_starts(scenario).items():
            own = [i for i, launch in enumerate(scenario.launches) if launch.stream == number]
            kernels = [self._profiles[scenario.launches[i].kernel] for i in own]
            streams.append(Stream(f"stream {number}", kernels, ready_us, scenario.launches[own[0]].priority))
            launches.append(own)
        start = np.empty(len(scenario.launches))
        end = np.empty(len(scenario.launches))
        times = run_streams(scenario.id, streams, self.gpu, gap_us=BLOCK_GAP_US)
        for own, (own_start, own_end) in zip(launches, (t.T for t in times), strict=True):
            if own:
                start[own], end[own] = own_start, own_end
        return Prediction(scenario, start, end)


def stream_starts(scenario: RecordedScenario) -> dict[int, float]:
    """When each stream's first launch may start (us), in order of that time."""
    raised: dict[int, float] = {}
    for launch in scenario.launches:
        if launch.delay_us is not None and launch.stream not in raised:
            raised[launch.stream] = launch.delay_us
    starts: dict[int, float] = {}
    last = -np.inf
    for stream, delay_us in sorted(raised.items(), key=lambda item: (item[1], item[0])):
        last = max(delay_us + FLAG_US, last + RAISED_TOGETHER_US)
        starts[stream] = last
    return starts


def network_alone_us(network: str, gpu: str) -> float:
    """Median turnaround of a network as a CUDA graph by itself."""
    return _turnarounds_us([network], gpu, "pass-through")[0]


def networks_together_us(pair: ModelPair, gpu: str) -> tuple[float, float]:
    """Median turnarounds of a pair's foreground and background as CUDA graphs on two streams."""
    foreground, background = _turnarounds_us([pair.fg, pair.bg], gpu, SCHEDULERS[pair.mode])
    return foreground, background


def _turnarounds_us(networks: list[str], gpu: str, scheduler: str) -> list[float]:
    longest_us = max(max(load_workload(name).iteration_us) for name in networks)
    return graph_turnarounds_us(networks, gpu, scheduler, max(PAIR_HORIZON_US, PAIR_ITERATIONS * longest_us))
