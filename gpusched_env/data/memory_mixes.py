"""Generated mixes of ``SharedMemory``: a frame of kernels beside hogs and CPU-bound processes, by seed.

Held-out mixes have at least one benchmark and one hog that no training mix has.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gpusched_env.data.parboil import BENCHMARKS, UNKNOWN_US, histo_us

SEEN: Final = ("histo", "bfs", "spmv", "stencil")
UNSEEN: Final = tuple(name for name in BENCHMARKS if name not in SEEN)
HOGS: Final[dict[str, tuple[float, float]]] = {"write": (62.5, 128.0), "read": (80.0, 64.0), "copy": (40.0, 128.0)}
"""Misses a microsecond, and bytes of one: IsolBench's, and weaker ones."""
UNSEEN_HOGS: Final[dict[str, tuple[float, float]]] = {"update": (50.0, 112.0), "scan": (95.0, 64.0)}
BUSY: Final[dict[str, Any]] = {"name": "busy"}
CORES: Final = 4
"""That run no tenant's host."""
HOG: Final = 0.85
"""Chance of a core to have one."""
BUSY_TOO: Final = 0.5
"""Chance of such a core to have a CPU-bound process as well."""
LEAST_HOGS: Final = 2
SLACK: Final = (1.1, 1.6)
"""Range of a frame's objective over its time alone."""
LOAD: Final = (0.4, 0.7)
"""Range of that time over the period of frames."""


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
    """Two to four, in any order."""
    first = list(rng.choice(UNSEEN, rng.integers(1, len(UNSEEN) + 1), replace=False)) if held_out else []
    least = max(0, 2 - len(first))
    others = rng.choice(SEEN, rng.integers(least, len(SEEN) + 1 - len(first)), replace=False)
    return [str(name) for name in rng.permutation([*first, *others])]


def _neighbours(rng: np.random.Generator, *, held_out: bool) -> list[list[dict[str, Any]]]:
    """Processes core by core; two hogs at least."""
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
