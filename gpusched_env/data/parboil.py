"""Kernels of Parboil on a Jetson TX2, as workloads by name, and mixes of a frame of kernels beside hogs and CPU-
bound processes, by seed.

Grids and blocks are those of Parboil's CUDA sources (their largest inputs). The kernels of histo were measured beside
locked co-runners, and beside two memory hogs (stored logs of wali-ku/BWLOCK-GPU, a4b5769; ``published/bwlock.json``):
from both follows what each asks of the memory (:func:`shares_of_histo`). Of the other benchmarks no time is stored.
Figure 9 of Ali and Yun (ECRTS 2018) has an axis that only histo and sad exceed, so sad is taken to ask for as much as
histo; the rest asks for what its class does, and all last for :data:`UNKNOWN_US`. These are assumptions, not
measurements.

Held-out mixes have at least one benchmark and one hog that no training mix has.
"""

from __future__ import annotations

import functools
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from gpusched_env.data import stored
from gpusched_env.errors import did_you_mean
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.generated_names import parameters_of
from gpusched_env.workload.kernel import Kernel, KernelClass
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

BENCHMARKS: Final = ("histo", "sad", "bfs", "spmv", "stencil", "lbm")
"""Names of the benchmarks, in the order of the paper's figures."""
ITERATIONS: Final = 10_000
"""Iterations of histo in the stored logs (the argument of its largest input), by which their seconds are divided."""
UNKNOWN_US: Final = 5_000.0
"""Time of a kernel for which none is stored: several periods of regulation."""
MOST_SHARE: Final = 0.95
"""Share of the reachable bandwidth that histo's most demanding kernel takes alone: nearly all (an assumption)."""
REGISTERS: Final = 32

HISTO: Final = {
    "prescan": ((64, 1, 1), (512, 1, 1)),
    "postpremems": ((1024, 1, 1), (256, 1, 1)),
    "intermediates": ((65, 1, 1), (498, 1, 1)),
    "main": ((14, 3, 1), (512, 1, 1)),
    "final": ((42, 1, 1), (512, 1, 1)),
}
"""Grid and block of histo's kernels; ``postpremems`` is a memset."""
OTHERS: Final[dict[str, tuple[str, tuple[int, int, int], tuple[int, int, int], KernelClass, float | None]]] = {
    "sad": ("mb_sad_calc", (480, 268, 1), (61, 1, 1), "memory", None),
    "bfs": ("BFS_kernel", (1954, 1, 1), (512, 1, 1), "latency", 0.30),
    "spmv": ("spmv_jds", (764, 1, 1), (192, 1, 1), "memory", 0.70),
    "stencil": ("block2D_hybrid_coarsen_x", (8, 128, 1), (32, 4, 1), "mixed", 0.50),
    "lbm": ("performStreamCollide", (120, 150, 1), (120, 1, 1), "memory", 0.70),
}
"""Other benchmarks: kernel, grid, block, class, and share of the reachable bandwidth (``None``: histo's) of each."""


def published() -> Any:
    """The measured rows."""
    return stored("published", "bwlock.json")


def shares_of_histo() -> dict[str, float]:
    """Share of the reachable bandwidth that each kernel of histo takes alone.

    Kernels that are bound by memory are slowed in proportion to what they ask for: their ratios beside two hogs on
    Cortex cores, with the largest at :data:`MOST_SHARE`.
    """
    rows = published()["histo_s"]
    ratios = [slow / alone for slow, alone in zip(rows["cortex_unlocked"], rows["cortex_locked"], strict=True)]
    return {name: MOST_SHARE * ratio / max(ratios) for name, ratio in zip(HISTO, ratios, strict=True)}


def histo_us() -> dict[str, float]:
    """How long each kernel of histo takes in an iteration, nearly alone (locked)."""
    return {
        name: seconds * 1e6 / ITERATIONS
        for name, seconds in zip(HISTO, published()["histo_s"]["cortex_locked"], strict=True)
    }


class Parboil(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The kernels of a benchmark, or of several one after the other; one iteration of each a job."""

    EXAMPLE: ClassVar = "parboil(benchmark=histo)"
    benchmark: str
    """A name of :data:`BENCHMARKS`, or several with ``+`` between them, each at most once."""

    def __post_init__(self) -> None:
        names = self.benchmarks
        for name in names:
            if name not in BENCHMARKS:
                raise ValueError(f"benchmark {name!r}; {did_you_mean(name, BENCHMARKS)}")
            if names.count(name) > 1:
                raise ValueError(f"benchmark {name} is there twice in {self.benchmark!r}")

    @property
    def benchmarks(self) -> list[str]:
        """Names of the benchmarks, in their order."""
        return self.benchmark.split("+")


def is_parboil(name: str) -> bool:
    """Whether a workload's name is that of a benchmark."""
    return name.partition("(")[0].strip() == "parboil"


def parboil_of(name: str) -> Parboil:
    """What ``parboil(benchmark=histo)`` asks for.

    Raises:
        InputError: it cannot be read, or there is no such benchmark.
    """
    return parameters_of(name, Parboil, Parboil.EXAMPLE)


@functools.lru_cache(maxsize=16)
def parboil(name: str) -> Workload:
    """One iteration of each benchmark: all kernels in a stream, then a synchronisation.

    Raises:
        InputError: as :func:`parboil_of`.
    """
    kernels = tuple(kernel for benchmark in parboil_of(name).benchmarks for kernel in _kernels(benchmark))
    ops = tuple(Op(OpKind.KERNEL, 10.0, row, kernel.duration_us) for row, kernel in enumerate(kernels))
    return Workload(
        name=name.strip(),
        gpu="tx2",
        source="Parboil's grids; demands as gpusched_env.data.parboil says",
        kernels=kernels,
        variants=(Variant(ops=(*ops, Op(OpKind.SYNC))),),
        iteration_us=(sum(kernel.duration_us for kernel in kernels) + 200.0,),
    )


def _kernels(benchmark: str) -> tuple[Kernel, ...]:
    """The kernels of one iteration of a benchmark."""
    shares, times = shares_of_histo(), histo_us()
    if benchmark == "histo":
        return tuple(
            _kernel(f"histo_{part}", grid, block, "memory", shares[part], times[part])
            for part, (grid, block) in HISTO.items()
        )
    kernel, grid, block, kind, share = OTHERS[benchmark]
    asked = sum(shares[part] * times[part] for part in HISTO) / sum(times.values()) if share is None else share
    return (_kernel(kernel, grid, block, kind, asked, UNKNOWN_US),)


def _kernel(
    name: str, grid: tuple[int, int, int], block: tuple[int, int, int], kind: KernelClass, share: float, us: float
) -> Kernel:
    """A kernel that asks for a ``share`` of the reachable bandwidth alone, and lasts for ``us`` microseconds."""
    gpu = load_gpu("tx2")
    reachable = gpu.dram_bytes_per_us * gpu.contention.dram_efficiency
    return Kernel(
        name=name, grid=grid, block=block, registers=REGISTERS, duration_us=us, kind=kind,
        dram_bytes=share * reachable * us,
    )  # fmt: skip


SEEN: Final = ("histo", "bfs", "spmv", "stencil")
UNSEEN: Final = tuple(name for name in BENCHMARKS if name not in SEEN)
HOGS: Final[dict[str, tuple[float, float]]] = {"write": (62.5, 128.0), "read": (80.0, 64.0), "copy": (40.0, 128.0)}
"""Misses a microsecond of each hog, and bytes of one: IsolBench's, and weaker ones."""
UNSEEN_HOGS: Final[dict[str, tuple[float, float]]] = {"update": (50.0, 112.0), "scan": (95.0, 64.0)}
BUSY: Final[dict[str, Any]] = {"name": "busy"}
CORES: Final = 4
"""Number of cores that run no tenant's host."""
HOG: Final = 0.85
"""Chance of a core to have a hog."""
BUSY_TOO: Final = 0.5
"""Chance of a core with a hog to have a CPU-bound process as well."""
LEAST_HOGS: Final = 2
SLACK: Final = (1.1, 1.6)
"""Range of a frame's objective over its time alone."""
LOAD: Final = (0.4, 0.7)
"""Range of a frame's time alone over the period of frames."""


def memory_mix(seed: int, *, held_out: bool = False) -> dict[str, Any]:
    """What takes the place of the tenant ``frames``: fields of a :class:`Substitute
    <gpusched_env.scenarios.workload_sets.Substitute>`.

    Args:
        seed: at least 0; the same seed gives the same mix.
        held_out: whether it has a benchmark and a hog that no other mix has.
    """
    rng = np.random.default_rng((seed, int(held_out)))
    names = _benchmarks(rng, held_out=held_out)
    alone_us = sum(sum(histo_us().values()) if name == "histo" else UNKNOWN_US for name in names)
    period_us = round(alone_us / rng.uniform(*LOAD))
    return {
        "workload": f"parboil(benchmark={'+'.join(names)})",
        "slo_us": float(round(alone_us * rng.uniform(*SLACK))),
        "arrivals": {"kind": "periodic", "period_us": float(period_us), "start_us": float(rng.integers(period_us))},
        "neighbours": _neighbours(rng, held_out=held_out),
    }


def _benchmarks(rng: np.random.Generator, *, held_out: bool) -> list[str]:
    """Names of two to four benchmarks, in any order."""
    first = list(rng.choice(UNSEEN, rng.integers(1, len(UNSEEN) + 1), replace=False)) if held_out else []
    least = max(0, 2 - len(first))
    others = rng.choice(SEEN, rng.integers(least, len(SEEN) + 1 - len(first)), replace=False)
    return [str(name) for name in rng.permutation([*first, *others])]


def _neighbours(rng: np.random.Generator, *, held_out: bool) -> list[list[dict[str, Any]]]:
    """Processes core by core, two hogs at least among them."""
    hogs = HOGS | (UNSEEN_HOGS if held_out else {})
    has = rng.random(CORES) < HOG
    has[rng.permutation(CORES)[:LEAST_HOGS]] = True
    kinds = [str(rng.choice(list(hogs))) for _ in range(CORES)]
    if held_out:
        kinds[int(rng.choice(np.flatnonzero(has)))] = str(rng.choice(list(UNSEEN_HOGS)))
    found: list[list[dict[str, Any]]] = []
    for core in range(CORES):
        misses_per_us, bytes_a_miss = hogs[kinds[core]]
        hog: dict[str, Any] = {"name": kinds[core], "misses_per_us": misses_per_us, "bytes_a_miss": bytes_a_miss}
        busy: list[dict[str, Any]] = [BUSY] if not has[core] or rng.random() < BUSY_TOO else []
        found.append([hog, *busy] if has[core] else busy)
    return found
