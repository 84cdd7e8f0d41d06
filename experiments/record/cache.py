"""What the L2 is worth to a network: its kernels with what it left there, and behind something that empties it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from gpusched_env.errors import GpuError

CACHE: Final = "cache"
MISSED: Final = "missed"
"""Of a row in place of one of :data:`CACHE`: why there is none."""
MEBIBYTES: Final = (4, 8, 16, 24, 32, 48, 64, 96, 128, 256)
"""That something else reads before a replay."""


class KernelTime(NamedTuple):
    """A kernel of an iteration."""

    name: str
    warm_us: float
    """Median, one iteration after the other."""
    cold_us: float
    """Median, of an iteration behind something that empties the L2."""
    bare_us: float
    """Median, behind something that empties the L2 before every operator: nothing that those before it in the
    iteration left there is found either."""


class Cached(Protocol):
    """What runs networks on a GPU."""

    def kernel_times(self, name: str) -> list[KernelTime]:
        """Of the kernels of a network, in order."""

    def held_bytes(self, name: str) -> tuple[int, int]:
        """Bytes of a network's weights, and of what an iteration holds at most besides."""

    def behind_us(self, name: str, mebibytes: int) -> float:
        """A replay behind a read of so many MiB, median."""


def cache_rows(gpu: Cached, networks: Sequence[str], there: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows that are still missing: one a network.

    Args:
        gpu: has the networks.
        networks: their names.
        there: rows that are recorded.
    """
    done = {row["model"] for row in there}
    for name in networks:
        if name in done:
            continue
        try:
            weights, others = gpu.held_bytes(name)
            kernels = gpu.kernel_times(name)
        except GpuError as error:
            # One whose kernels are not the same every time says nothing; the others do.
            yield {"what": MISSED, "model": name, "error": str(error)}
            continue
        yield {
            "what": CACHE,
            "model": name,
            "weight_bytes": weights,
            "other_bytes": others,
            "behind_mib": [0, *MEBIBYTES],
            "behind_us": [round(gpu.behind_us(name, size), 3) for size in (0, *MEBIBYTES)],
            "warm_us": [round(kernel.warm_us, 3) for kernel in kernels],
            "cold_us": [round(kernel.cold_us, 3) for kernel in kernels],
            "bare_us": [round(kernel.bare_us, 3) for kernel in kernels],
        }
