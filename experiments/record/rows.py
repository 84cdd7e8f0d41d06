"""Rows of a recording about what the L2 is worth to a network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpusched_env.errors import GpuError

if TYPE_CHECKING:
    from gpusched_env.experiments.record.torch_gpu import TorchGpu

CACHE: Final = "cache"
SKIP_REASON: Final = "missed"
"""Name of a row in place of one of :data:`CACHE`: why there is none."""
MEBIBYTES: Final = (4, 8, 16, 24, 32, 48, 64, 96, 128, 256)
"""Sizes that something else reads before a replay, MiB."""


class KernelTime(NamedTuple):
    """A kernel of an iteration."""

    name: str
    warm_us: float
    """Median time, one iteration after the other."""
    cold_us: float
    """Median time of an iteration behind something that empties the L2."""
    bare_us: float
    """Median, behind something that empties the L2 before every operator: nothing that those before it in the
    iteration left there is found either."""


def cache_rows(gpu: TorchGpu, networks: Sequence[str], there: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
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
            yield {"what": SKIP_REASON, "model": name, "error": str(error)}
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
