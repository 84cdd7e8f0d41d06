"""A recording: its files one after the other, each row written as soon as it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.record.gpu import CupyRecorder, Recorder
from gpusched_env.experiments.record.graphs import MODEL_PAIRS, Graphs, model_pairs
from gpusched_env.experiments.record.networks import NETWORKS, chosen
from gpusched_env.experiments.record.rows import SUFFIX, Rows, read_lines
from gpusched_env.experiments.record.sets import KERNELS, QUICK, RecordingSizes, Synthetic, known_sets
from gpusched_env.experiments.record.torch_gpu import TorchGpu
from gpusched_env.experiments.validate.recordings import KERNEL_SETS, TRACE_SUFFIX, TRACES, find_all

NETWORK_SETS: Final = (MODEL_PAIRS, TRACES)
SETS: Final = (*known_sets(), *NETWORK_SETS)
QUICK_NETWORKS: Final = ("resnet50_infer_b1", "resnet50_infer_b32", "vgg16_infer_b8")
"""Two pairs, both of whose sides were slowed down in earlier recordings."""
Told = Callable[[Path, int], None]
"""Called after each row with its file and the number of rows there, or with a folder and its number of traces."""


class Networks(Graphs, Protocol):
    """What has the networks."""

    head: dict[str, Any]

    def trace(self, name: str, path: Path) -> None:
        """Write the profiler's trace of a network."""


@dataclass(frozen=True, kw_only=True)
class RecordingPlan:
    """What is to be recorded."""

    folder: Path
    sets: Sequence[str] = SETS
    seed: int = 0
    like: Path | None = None
    """Folder whose kernels and scenarios are recorded again; ``None``: they are drawn from the seed."""
    quick: bool = False
    networks: Sequence[str] = ()
    """Empty: all, or those of :data:`QUICK_NETWORKS`."""
    resume: bool = False

    def __post_init__(self) -> None:
        for name in self.sets:
            if name not in SETS:
                raise InputError(f"nothing called {name!r} can be recorded; {did_you_mean(name, SETS)}")
        if self.seed < 0:
            raise InputError(f"--seed is {self.seed}; it must be at least 0")


def record(
    plan: RecordingPlan,
    told: Told,
    *,
    gpu: Callable[[], Recorder] = CupyRecorder,
    networks: Callable[[], Networks] = TorchGpu,
) -> None:
    """Record what a plan says.

    Args:
        plan: what.
        told: of progress.
        gpu: makes what runs synthetic kernels.
        networks: makes what has the networks.

    Raises:
        InputError: something that is needed is missing, or a file is in the way.
        GpuError: the GPU or its driver has failed; what was recorded stays.
    """
    if plan.like is not None:
        # All that is to be recorded again must be there before anything is.
        find_all(plan.like, KERNELS, *(name for name in KERNEL_SETS if name in plan.sets))
    names: list[str] = []
    if any(name in plan.sets for name in NETWORK_SETS):
        names = chosen(plan.networks or (QUICK_NETWORKS if plan.quick else NETWORKS))
    if any(name in plan.sets for name in known_sets()):
        _synthetic(plan, told, gpu())
    if names:
        _networks(plan, names, told, networks())


def _synthetic(plan: RecordingPlan, told: Told, gpu: Recorder) -> None:
    sizes = QUICK if plan.quick else RecordingSizes()
    synthetic = Synthetic(gpu, plan.seed, sizes, plan.like)
    head = gpu.head | {
        "seed": plan.seed,
        "like": None if plan.like is None else plan.like.name,
        "repetitions": sizes.repetitions,
    }
    library: list[dict[str, Any]] = []
    if KERNELS not in plan.sets and any(name in plan.sets for name in KERNEL_SETS):
        library = _library(plan.folder)
    for name in (name for name in known_sets() if name in plan.sets):
        rows = Rows(plan.folder, name, head, resume=plan.resume)
        if name in KERNEL_SETS:
            _write(rows, synthetic.together(name, list(rows.rows), library), told)
            continue
        make = {KERNELS: synthetic.kernels, "waves": synthetic.waves, "launch": synthetic.launch}[name]
        _write(rows, make(list(rows.rows)), told)
        if name == KERNELS:
            library = rows.rows


def _library(folder: Path) -> list[dict[str, Any]]:
    """The kernels that an earlier recording has left in the folder."""
    path = folder / f"{KERNELS}{SUFFIX}"
    if not path.is_file():
        raise InputError(f"{folder}: has no {KERNELS}{SUFFIX}; record {KERNELS} too")
    return read_lines(path)[0][1:]


def _networks(plan: RecordingPlan, names: Sequence[str], told: Told, networks: Networks) -> None:
    if MODEL_PAIRS in plan.sets:
        rows = Rows(plan.folder, MODEL_PAIRS, networks.head, resume=plan.resume)
        _write(rows, model_pairs(networks, names, list(rows.rows)), told)
    if TRACES in plan.sets:
        _traces(plan, names, told, networks)


def _traces(plan: RecordingPlan, names: Sequence[str], told: Told, networks: Networks) -> None:
    folder = plan.folder / TRACES
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from error
    for number, name in enumerate(names, start=1):
        path = folder / f"{name}{TRACE_SUFFIX}"
        if path.exists() and not plan.resume:
            raise InputError(f"{path}: is there already; keep it with --resume, or name another folder")
        if not path.exists():
            networks.trace(name, path)
        told(folder, number)


def _write(rows: Rows, made: Iterator[dict[str, Any]], told: Told) -> None:
    for row in made:
        rows.add(row)
        told(rows.path, len(rows.rows))
