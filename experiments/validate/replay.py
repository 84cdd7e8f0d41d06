"""Recorded scenarios on the compiled device: what a prediction may see goes in, times come out.

The recordings fill all streams first; a timer kernel on one SM raises a flag for each stream at its delay.
A scenario becomes streams that start when their flags have been seen, with the recorded priorities.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.lib.workers import Shared
from gpusched_env.experiments.validate.kernels import profile, timer_kernel
from gpusched_env.experiments.validate.recordings import RecordedScenario, SyntheticKernel
from gpusched_env.experiments.validate.streams import KernelStream, run_streams
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.profile import KernelProfile

FLAG_US = 4.0
"""From a raised memory flag to the start of the stream that waits for it (median of the recordings)."""
RAISED_TOGETHER_US = 0.55
"""Streams whose flags rise at the same time start this far apart, in stream order."""
BLOCK_GAP_US = 2.05
"""From a kernel's last block to the first block of the next in its stream, as block timers see it.

The specification's ``stream_gap_us`` is what profilers see, whose kernel durations contain part of it.
"""


DRAWS = 5
"""One draw's ends are within noise of each other; what is compared with medians of repetitions is their mean."""
SPACER_US = 0.01
"""Of a grid that takes a number."""


@dataclass(frozen=True)
class Replay:
    """Predicts recorded scenarios of one kernel library on one GPU."""

    kernels: Mapping[str, SyntheticKernel]
    gpu: GpuSpec
    spread: bool = True
    """Blocks of a kernel differ in duration as in its solo profile."""
    calibrate: bool = True
    """Kernels are scaled to their solo duration."""
    timer: bool = True
    """The timer kernel holds an SM."""
    draws: int = DRAWS
    """Of the spread of durations, over which a prediction is the mean; one where there is no spread."""
    _profiles: dict[str, KernelProfile] = field(default_factory=dict, init=False, repr=False, compare=False)

    def predict(self, scenario: RecordedScenario) -> NDArray[np.float64]:
        """Start and end of every launch of ``scenario``, us, shape ``(launches, 2)``; it sees no measured times.

        Means over :attr:`draws` of the spread.
        """
        draws = range(self.draws if self.spread else 1)
        total = sum((self.drawn(scenario, draw) for draw in draws), start=np.zeros((len(scenario.launches), 2)))
        return total / len(draws)

    def drawn(self, scenario: RecordedScenario, draw: int) -> NDArray[np.float64]:
        """The same of one draw (from 0).

        How long a block takes depends on its grid's number. As many grids of one thread come before the scenario's, and
        are done before the first flag is seen; the timer kernel keeps its place before them.
        """
        streams: list[KernelStream] = []
        last_us = max(launch.delay_us for launch in scenario.launches if launch.delay_us is not None)
        if self.timer and last_us > 0.0:
            streams.append(KernelStream("timer", [timer_kernel(last_us, self.gpu)]))
        streams += [KernelStream(f"draw {i}", [timer_kernel(SPACER_US, self.gpu)]) for i in range(draw)]
        launches: list[list[int]] = [[] for _ in streams]
        """Of each stream, rows of the scenario's launches; spacers and the timer kernel are none of them."""
        for number, ready_us in stream_starts(scenario).items():
            own = [i for i, launch in enumerate(scenario.launches) if launch.stream == number]
            kernels = [self._profile(scenario.launches[i].kernel) for i in own]
            streams.append(KernelStream(f"stream {number}", kernels, ready_us, scenario.launches[own[0]].priority))
            launches.append(own)
        times = np.empty((len(scenario.launches), 2))
        for own, found in zip(launches, run_streams(scenario.id, streams, self.gpu, gap_us=BLOCK_GAP_US), strict=True):
            if own:
                times[own] = found
        return times

    def _profile(self, kernel: str) -> KernelProfile:
        """The kernel as it is on this GPU: solved at its first launch."""
        if kernel not in self._profiles:
            self._profiles[kernel] = profile(
                self.kernels[kernel], self.gpu, spread=self.spread, calibrate=self.calibrate
            )
        return self._profiles[kernel]

    def ablations(self) -> dict[str, Replay]:
        """What predicts with one mechanism switched off, by the mechanism."""
        gpu = self.gpu
        fixed = msgspec.structs.replace(gpu, limits=msgspec.structs.replace(gpu.limits, carveouts=()))

        def without(switch: str) -> GpuSpec:
            return msgspec.structs.replace(gpu, contention=msgspec.structs.replace(gpu.contention, **{switch: False}))

        changes: dict[str, dict[str, GpuSpec | bool]] = {
            "sharing of issue slots": {"gpu": without("issue")},
            "older blocks first": {"gpu": without("oldest_first")},
            "light warps wait longer": {"gpu": without("light_wait")},
            "limit of DRAM bandwidth": {"gpu": without("dram")},
            "shared-memory carve-out": {"gpu": fixed},
            "spread of durations": {"spread": False},
            "older first and spread": {"gpu": without("oldest_first"), "spread": False},
            "scale to solo duration": {"calibrate": False},
            "timer kernel on an SM": {"timer": False},
        }
        return {name: dataclasses.replace(self, **change) for name, change in changes.items()}  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Predict:
    """One prediction; a worker process solves the kernels that it meets once."""

    replay: Shared[Replay]
    scenario: RecordedScenario

    def run(self, device: str) -> NDArray[np.float64]:
        return self.replay.value.predict(self.scenario)


def stream_starts(scenario: RecordedScenario) -> dict[int, float]:
    """When each stream's first launch may start (us), in order of that time."""
    raised: dict[int, float] = {}
    for launch in scenario.launches:
        if launch.delay_us is not None:
            raised.setdefault(launch.stream, launch.delay_us)
    starts: dict[int, float] = {}
    last = -np.inf
    for stream, delay_us in sorted(raised.items(), key=lambda item: (item[1], item[0])):
        starts[stream] = last = max(delay_us + FLAG_US, last + RAISED_TOGETHER_US)
    return starts
