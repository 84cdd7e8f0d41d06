"""What runs together in a recording: pairs of kernels, mixes of streams, sequences of short kernels.

The shares and ranges are those of the recordings of an H100 that the simulator was validated with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gpusched_env.experiments.record.library import generator
from gpusched_env.experiments.validate.recordings import RecordedLaunch

FIRST_US: Final = 20.0
"""Delay of a pair's first kernel."""
OVERLAPS: Final = (0.0, 0.25, 0.5)
"""Share of the first kernel's duration alone after which the second one of a pair comes."""
URGENT: Final = -5
URGENT_SHARE: Final = 1 / 3
"""Of pairs and sequences with priorities."""
PRIORITIES: Final = (0, -1, URGENT)
"""Of the streams of a mix that has any; every other mix has none."""
MIX_STREAMS: Final = (2, 8)
MIX_LAUNCHES: Final = (1, 4)
"""A stream."""
MIX_DELAYS_US: Final = (20.0, 620.0)
SEQUENCE_STREAMS: Final = (2, 5)
SEQUENCE_LAUNCHES: Final = (15, 50)
SEQUENCE_KERNELS: Final = 6
"""That a stream repeats."""
SEQUENCE_DELAYS_US: Final = (20.0, 320.0)


def pair(number: int, seed: int, kernels: Mapping[str, float]) -> list[RecordedLaunch]:
    """Two kernels on two streams; the second comes with the first or while it runs, a third of them with priority.

    Args:
        number: of the scenario.
        seed: of the recording.
        kernels: durations alone (us) by id.
    """
    rng = generator(seed, "pair", number)
    first, second = (str(name) for name in rng.choice(list(kernels), 2))
    later_us = round(FIRST_US + float(rng.choice(OVERLAPS)) * kernels[first], 1)
    urgency = URGENT if rng.random() < URGENT_SHARE else 0
    return [
        RecordedLaunch(stream=0, priority=0, delay_us=FIRST_US, kernel=first),
        RecordedLaunch(stream=1, priority=urgency, delay_us=later_us, kernel=second),
    ]


def mix(number: int, seed: int, kernels: Sequence[str]) -> list[RecordedLaunch]:
    """Two to eight streams of one to four kernels each; ``kernels``: ids to draw from."""
    rng = generator(seed, "mix", number)
    urgent = rng.random() < 0.5
    launches = []
    for stream in range(rng.integers(*MIX_STREAMS, endpoint=True)):
        priority = int(rng.choice(PRIORITIES)) if urgent else 0
        names = rng.choice(list(kernels), rng.integers(*MIX_LAUNCHES, endpoint=True)).tolist()
        delay_us = round(float(rng.uniform(*MIX_DELAYS_US)), 1)
        launches += _stream(stream, priority, delay_us, names)
    return launches


def sequence(number: int, seed: int, kernels: Sequence[str]) -> list[RecordedLaunch]:
    """Two to five streams that each repeat six short kernels in any order; ``kernels``: ids to draw from."""
    rng = generator(seed, "sequence", number)
    urgent = rng.random() < URGENT_SHARE
    launches = []
    for stream in range(rng.integers(*SEQUENCE_STREAMS, endpoint=True)):
        priority = int(rng.choice((0, URGENT))) if urgent else 0
        own = rng.choice(list(kernels), min(SEQUENCE_KERNELS, len(kernels)), replace=False)
        names = rng.choice(own, rng.integers(*SEQUENCE_LAUNCHES, endpoint=True)).tolist()
        delay_us = round(float(rng.uniform(*SEQUENCE_DELAYS_US)), 1)
        launches += _stream(stream, priority, delay_us, names)
    return launches


def _stream(stream: int, priority: int, delay_us: float, names: Sequence[str]) -> list[RecordedLaunch]:
    """Kernels that queue behind each other."""
    return [
        RecordedLaunch(stream=stream, priority=priority, delay_us=None if place else delay_us, kernel=name)
        for place, name in enumerate(names)
    ]
