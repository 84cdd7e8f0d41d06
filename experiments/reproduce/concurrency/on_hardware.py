"""The mechanisms on a real H100: batch-1 inference beside ResNet-50 training, in one process and in two.

What the paper's figures contain besides the GPU: in one process both tasks' threads share Python's interpreter.
*Eager* launches every kernel from Python, *graph* replays CUDA graphs, with hardly any host work. MPS was not
available; plain streams hand out blocks in the same order. *Hosts only*: the training is too small to use the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpusched_env.experiments.reproduce.recordings import measurements

FILE = "sharing_modes.jsonl"
MODES = ("streams", "priority streams", "time slicing", "hosts only")


@dataclass(frozen=True, slots=True)
class Shared:
    """One network beside training, by mode; modes that were not recorded are missing."""

    form: str
    """``eager`` or ``graph``."""
    inference: str
    batch: int
    """Of the training."""
    alone_us: float
    """Mean turnaround of a request."""
    slowdown: dict[str, float]
    """Mean turnaround over that alone."""
    training: dict[str, float]
    """Mean time of a training step over that alone."""


def recorded() -> list[Shared]:
    """Every recorded network, in the order of the recording."""
    return shared(measurements(FILE)[1:])


def shared(rows: Sequence[dict[str, Any]]) -> list[Shared]:
    """``rows`` of the recording, each mode related to the tasks alone that precede it."""
    found: list[Shared] = []
    training_us = 0.0
    for row in rows:
        turnaround_us, step_us = (float(row[side]["mean_us"]) for side in ("inference_us", "training_us"))
        if row["what"] == "alone":
            found.append(Shared(row["form"], row["inference"], row["batch"], turnaround_us, {}, {}))
            training_us = step_us
            continue
        found[-1].slowdown[row["what"]] = turnaround_us / found[-1].alone_us
        if row["what"] != "hosts only":
            found[-1].training[row["what"]] = step_us / training_us
    return found
