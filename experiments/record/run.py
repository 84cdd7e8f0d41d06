"""A recording: its files one after the other, each row written as soon as it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.lib.rows import SUFFIX, Rows, read_lines
from gpusched_env.experiments.record.capped import CAPPED, CupyCapped, capped_rows
from gpusched_env.experiments.record.ends import ENDS, CupySmWatcher, ends_rows
from gpusched_env.experiments.record.gpu import CupyRecorder
from gpusched_env.experiments.record.graphs import MODEL_PAIRS, model_pairs
from gpusched_env.experiments.record.networks import NETWORKS, PROGRAMS, chosen, draw, program, torchvision_networks
from gpusched_env.experiments.record.processes import PAIRS, PROCESSES, processes_rows, programs_of
from gpusched_env.experiments.record.processes import QUICK as QUICK_PAIRS
from gpusched_env.experiments.record.rows import CACHE, cache_rows
from gpusched_env.experiments.record.scatters import SCATTERS, CupyScatters, scatters_rows
from gpusched_env.experiments.record.sets import KERNELS, QUICK, RecordingSizes, Synthetic, known_sets
from gpusched_env.experiments.record.sharing import QUICK as QUICK_SHARING
from gpusched_env.experiments.record.sharing import SHARING, TRAININGS, sharing
from gpusched_env.experiments.record.sharing_gpu import TorchSharing
from gpusched_env.experiments.record.torch_gpu import TorchGpu
from gpusched_env.experiments.validate.recordings import KERNEL_SETS, TRACE_SUFFIX, TRACES, find_all

MEMORY: Final = "memory"
"""Programs with the memory that their kernels touch; recorded where it is asked for."""
NETWORK_SETS: Final = (MODEL_PAIRS, TRACES, CACHE)
SETS: Final = (*known_sets(), MODEL_PAIRS, TRACES)
EXECUTION_SUFFIX: Final = ".execution.json"
HELD_SUFFIX: Final = "-held"
"""What the names of recordings end with in which no memory of an iteration is used again within it."""
QUICK_NETWORKS: Final = ("resnet50_infer_b1", "resnet50_infer_b32", "vgg16_infer_b8")
"""Two pairs, both of whose sides were slowed down in earlier recordings."""
OnRow = Callable[[Path, int], None]
"""Called after each row with its file and the number of rows there, or with a folder and its number of traces."""


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
    """Names of networks; empty: all, or those of :data:`QUICK_NETWORKS`."""
    drawn: int | None = None
    """Seed of the draw of networks that no earlier recording has; ``None``: those of ``networks``."""
    resume: bool = False

    def __post_init__(self) -> None:
        known = (*SETS, CACHE, ENDS, MEMORY, SHARING, PROCESSES, SCATTERS, CAPPED)
        for name in self.sets:
            if name not in known:
                raise InputError(f"nothing called {name!r} can be recorded; {did_you_mean(name, known)}")
        if self.seed < 0:
            raise InputError(f"--seed is {self.seed}; it must be at least 0")


def record(
    plan: RecordingPlan,
    told: OnRow,
    *,
    gpu: Callable[[], CupyRecorder] = CupyRecorder,
    networks: Callable[[], TorchGpu] = TorchGpu,
    shared: Callable[[], TorchSharing] = TorchSharing,
    watcher: Callable[[], CupySmWatcher] = CupySmWatcher,
    scatterer: Callable[[], CupyScatters] = CupyScatters,
    holder: Callable[[], CupyCapped] = CupyCapped,
) -> None:
    """Record what a plan says.

    Args:
        plan: what.
        told: of progress.
        gpu: makes what runs synthetic kernels.
        networks: makes what has the networks.
        shared: makes what tasks share.
        watcher: makes what sees SMs become free.
        scatterer: makes what runs kernels that add to drawn places.
        holder: makes what holds a client to some of the SMs.

    Raises:
        InputError: something that is needed is missing, or a file is in the way.
        GpuError: the GPU or its driver has failed; what was recorded stays.
    """
    if plan.like is not None:
        # All that is to be recorded again must be there before anything is.
        find_all(plan.like, KERNELS, *(name for name in KERNEL_SETS if name in plan.sets))
    names: list[str] = []
    if any(name in plan.sets for name in NETWORK_SETS):
        names = chosen(_of_plan(plan))
    programs = chosen(plan.networks or PROGRAMS, program) if MEMORY in plan.sets else []
    if any(name in plan.sets for name in known_sets()):
        _synthetic(plan, told, gpu())
    if SHARING in plan.sets or PROCESSES in plan.sets:
        _shared(plan, told, shared())
    made_by: dict[str, tuple[Callable[[], Any], Callable[..., Iterator[dict[str, Any]]]]] = {
        ENDS: (watcher, ends_rows),
        SCATTERS: (scatterer, scatters_rows),
        CAPPED: (holder, capped_rows),
    }
    for name in (name for name in made_by if name in plan.sets):
        make, rows_of = made_by[name]
        runner = make()
        rows = Rows(plan.folder, name, runner.head, resume=plan.resume)
        _write(rows, rows_of(runner, list(rows.rows)), told)
    if not names and not programs:
        return
    made = networks()
    if names:
        _networks(plan, names, told, made)
    if programs:
        _memory(plan, programs, told, made)


def _shared(plan: RecordingPlan, told: OnRow, gpu: TorchSharing) -> None:
    if SHARING in plan.sets:
        rows = Rows(plan.folder, SHARING, gpu.head, resume=plan.resume)
        _write(rows, sharing(gpu, QUICK_SHARING if plan.quick else tuple(TRAININGS), list(rows.rows)), told)
    if PROCESSES in plan.sets:
        rows = Rows(plan.folder, PROCESSES, gpu.head, resume=plan.resume)
        _write(rows, processes_rows(gpu, QUICK_PAIRS if plan.quick else PAIRS, list(rows.rows)), told)
    gpu.clear()


def _of_plan(plan: RecordingPlan) -> Sequence[str]:
    """Networks of pairs and traces; without pairs, and beside programs in processes, those programs."""
    if plan.drawn is None and not plan.networks and PROCESSES in plan.sets and MODEL_PAIRS not in plan.sets:
        # What a prediction of them may see.
        return programs_of(QUICK_PAIRS if plan.quick else PAIRS)
    if plan.drawn is None:
        return plan.networks or (QUICK_NETWORKS if plan.quick else tuple(NETWORKS))
    try:
        known = torchvision_networks()
    except ImportError as error:
        raise InputError(f"--drawn draws networks of torchvision, which cannot be imported ({error})") from None
    return draw(plan.drawn, known)


def _synthetic(plan: RecordingPlan, told: OnRow, gpu: CupyRecorder) -> None:
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


def _networks(plan: RecordingPlan, names: Sequence[str], told: OnRow, networks: TorchGpu) -> None:
    if MODEL_PAIRS in plan.sets:
        head = networks.head | ({} if plan.drawn is None else {"drawn": plan.drawn})
        rows = Rows(plan.folder, MODEL_PAIRS, head, resume=plan.resume)
        _write(rows, model_pairs(networks, names, list(rows.rows)), told)
    if CACHE in plan.sets:
        rows = Rows(plan.folder, CACHE, networks.head, resume=plan.resume)
        _write(rows, cache_rows(networks, names, list(rows.rows)), told)
    if TRACES in plan.sets:
        _traces(plan, names, told, networks)


def _memory(plan: RecordingPlan, names: Sequence[str], told: OnRow, networks: TorchGpu) -> None:
    folder = _folder(plan, MEMORY)
    each = [(name, held) for name in names for held in (False, True)]
    for number, (name, held) in enumerate(each, start=1):
        stem = f"{name}{HELD_SUFFIX if held else ''}"
        path, execution = folder / f"{stem}{TRACE_SUFFIX}", folder / f"{stem}{EXECUTION_SUFFIX}"
        if _wanted(path, plan):
            networks.trace_memory(name, path, execution, held=held)
        told(folder, number)


def _folder(plan: RecordingPlan, name: str) -> Path:
    folder = plan.folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror})") from error
    return folder


def _wanted(path: Path, plan: RecordingPlan) -> bool:
    """Whether a trace is still missing.

    Raises:
        InputError: it is there, and the recording is not one that goes on.
    """
    if path.exists() and not plan.resume:
        raise InputError(f"{path}: is there already; keep it with --resume, or name another folder")
    return not path.exists()


def _traces(plan: RecordingPlan, names: Sequence[str], told: OnRow, networks: TorchGpu) -> None:
    folder = _folder(plan, TRACES)
    for number, name in enumerate(names, start=1):
        path = folder / f"{name}{TRACE_SUFFIX}"
        if _wanted(path, plan):
            networks.trace(name, path)
        told(folder, number)


def _write(rows: Rows, made: Iterator[dict[str, Any]], told: OnRow) -> None:
    for row in made:
        rows.add(row)
        told(rows.path, len(rows.rows))
