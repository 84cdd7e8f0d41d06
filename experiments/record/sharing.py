"""Inference beside training under what shares a GPU: the rows of ``sharing.jsonl``.

Time slicing has two processes, streams have two threads of one process. Those threads slow each other by the lock of
Python's interpreter where Python launches the kernels; where compiled code does they cannot. Both are recorded, and
what the threads cost each other without a GPU to share: beside a training that hardly uses it (``hosts only``), and
beside a thread that only runs Python and takes the lock whenever it can (``lock only``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import GpuError

if TYPE_CHECKING:
    from gpusched_env.experiments.record.sharing_gpu import TorchSharing

SHARING: Final = "sharing"
Spans = NDArray[np.float64]
"""Start and end of every iteration, s; shape (iterations, 2)."""
TRAININGS: Final[Mapping[str, int]] = {"vgg19": 128, "densenet201": 64, "resnet152": 64}
"""Networks of Gilman and Walls (2021), who ran the inference of each beside its own training, with the batch of the
training. They took the largest that fits into 24 GB; these are powers of two that do, see ``memory_bytes``."""
QUICK: Final = ("vgg19",)
PIXELS: Final = 224
HOSTS_ONLY: Final = ("resnet50", 2, 32)
"""A training that hardly uses the GPU: network, batch, edge of the images. That of VGG-19 is no such: its weights alone
keep the GPU busy."""
LAUNCHERS: Final = ("compiled", "eager")
"""What launches kernels: a loop in C++, outside the interpreter's lock, or Python."""
RECORDED: Final = "recorded"
"""Python launches the very program that pairs and traces are recorded of
(:func:`~gpusched_env.experiments.record.networks.network`), whatever task it is."""
SECONDS: Final = 2.0
"""Seconds of requests one after the other, and of training alone."""
WARM_UP: Final = {False: 20, True: 4}
"""Requests and training steps that are not counted."""
URGENT: Final = -5
"""Priority of the stream of requests in ``priority streams``; PyTorch takes the nearest that there is."""


class Task(NamedTuple):
    """Iterations of a network."""

    network: str
    """Name of the network in torchvision."""
    trains: bool
    batch: int = 1
    pixels: int = PIXELS
    """Edge of the images."""
    launcher: str = LAUNCHERS[0]
    """What launches its kernels, one of :data:`LAUNCHERS` or :data:`RECORDED`."""


class AloneRun(NamedTuple):
    """Iterations of a task alone."""

    spans: Spans
    memory_bytes: int
    """The most memory that was in use in them."""
    board: Mapping[str, Any] = {}
    """Energy and clocks meanwhile (:func:`~gpusched_env.experiments.record.board.metered`)."""


class SharedRows(NamedTuple):
    """Iterations of two tasks side by side."""

    front: Spans
    behind: Spans
    board: Mapping[str, Any] = {}
    """As :attr:`AloneRun.board`."""


def sharing(gpu: TorchSharing, networks: Sequence[str], there: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows that are still missing. What fails gives a row with ``error``, and is tried again another time.

    Args:
        gpu: runs the tasks.
        networks: of :data:`TRAININGS`.
        there: rows that are recorded.
    """
    done = {(row["inference"], row["form"], row["what"]) for row in there if "error" not in row}
    for network in networks:
        # Both launchers' threads before processes: a second process's memory is not there while threads run.
        for whats in (("alone", "streams", "priority streams", "hosts only", "lock only"), ("time slicing",)):
            for launcher in LAUNCHERS:
                for what in whats:
                    if (network, launcher, what) not in done:
                        yield _row(gpu, network, launcher, what)


def _row(gpu: TorchSharing, network: str, launcher: str, what: str) -> dict[str, Any]:
    front = Task(network, False, launcher=launcher)
    behind = Task(network, True, TRAININGS[network], launcher=launcher)
    if what == "hosts only":
        small, batch, pixels = HOSTS_ONLY
        behind = Task(small, True, batch, pixels, launcher)
    row = {
        "what": what,
        "form": launcher,
        "inference": network,
        "training": None if what == "lock only" else behind.network,
        "batch": None if what == "lock only" else behind.batch,
    }
    try:
        return row | _measured(gpu, front, behind, what)
    except (GpuError, RuntimeError, OSError, EOFError) as error:
        gpu.clear()
        return row | {"error": f"{type(error).__name__}: {error}"[:2000]}


def _measured(gpu: TorchSharing, front: Task, behind: Task, what: str) -> dict[str, Any]:
    if what == "alone":
        requests, steps = gpu.alone(front), gpu.alone(behind)
        return {
            "inference_us": figures(requests.spans),
            "training_us": figures(steps.spans),
            "memory_bytes": steps.memory_bytes,
        }
    if what == "lock only":
        return {"inference_us": figures(gpu.locked(front))}
    if what == "time slicing":
        return _both(gpu.processes(front, behind))
    if what == "hosts only":
        alone = figures(gpu.alone(behind).spans)
        return {"alone_training_us": alone, **_both(gpu.threads(front, behind, URGENT))}
    return _both(gpu.threads(front, behind, URGENT if what == "priority streams" else 0))


def _both(found: SharedRows) -> dict[str, Any]:
    return {"inference_us": figures(found.front), "training_us": figures(behind_within(found))}


def behind_within(found: SharedRows) -> Spans:
    """The iterations behind that began and ended while there were some in front."""
    start_s, end_s = found.front[0, 0], found.front[-1, 1]
    within: Spans = found.behind[(found.behind[:, 0] >= start_s) & (found.behind[:, 1] <= end_s)]
    return within


def figures(spans: Spans) -> dict[str, float | int | None]:
    """Number, mean, median, standard deviation and 99th percentile (us) of iterations; ``None`` if there are none."""
    if not len(spans):
        return {"n": 0, "mean_us": None, "median_us": None, "std_us": None, "p99_us": None}
    times_us = (spans[:, 1] - spans[:, 0]) * 1e6
    found = {
        "mean_us": times_us.mean(),
        "median_us": np.median(times_us),
        "std_us": times_us.std(),
        "p99_us": np.percentile(times_us, 99),
    }
    return {"n": len(spans), **{name: round(float(value), 1) for name, value in found.items()}}
