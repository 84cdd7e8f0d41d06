"""A GPU kernel as a scheduler's world knows it: identity, shape and solo profile.

Where no hardware counters are known, what bounds a kernel alone is guessed from its name and shape.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gpusched_env.reading import Duration

Dim = Annotated[int, Meta(ge=1, le=2**31 - 1)]

MOST_BYTES = 1e18
"""Most bytes of DRAM traffic."""
MOST_FORMS = 3
"""Most forms that a kernel has besides its own."""

KernelClass = Literal["compute", "memory", "mixed", "latency"]
"""What bounds a kernel alone: arithmetic, DRAM traffic, both, or neither (tiny and latency-bound)."""

Waves = Literal["full", "even", "together"]
"""How the blocks of a grid that has more of them than the GPU has SMs are spread: ``full``: an SM holds as many as
fit, so that a last wave may be partial; ``even``: as on a GPU, where blocks end one by one, with hardly a partial wave
(:func:`~gpusched_env.workload.kernel.most_residents`), and some blocks of a single wave leave early
(:func:`~gpusched_env.workload.kernel.uneven`); ``together``: even, with blocks that all take the same time."""

Physics = Literal[1, 2]
"""A version of the laws by which kernels run (:mod:`gpusched_env.workload.profile`)."""


class Kernel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One kernel: what a launch call says of it, and what a profile run alone on a GPU measured.

    Two launches with equal name, grid and block have the same *identity* (FIKIT's kernel id); their
    profiles are averaged when a recording is imported.
    """

    name: str
    grid: tuple[Dim, Dim, Dim]
    block: tuple[Dim, Dim, Dim]
    registers: Annotated[int, Meta(ge=1, le=255)]
    """32-bit registers a thread."""
    shared_bytes: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    """Static and dynamic shared memory a block, bytes."""
    duration_us: Duration
    """Mean duration alone on the GPU of the recording, first block start to last block end."""
    kind: KernelClass = "mixed"
    issue_fraction: Annotated[float, Meta(ge=0, le=1)] | None = None
    """Share of the issue slots of the SMs it runs on that it uses alone; ``None``: estimated by class."""
    dram_bytes: Annotated[float, Meta(ge=0, le=MOST_BYTES)] | None = None
    """DRAM traffic of the whole kernel, bytes; ``None``: estimated by class."""
    waves: Waves = "full"
    idempotent: bool = True
    """Whether the kernel may be killed and run again from the start (reset preemption)."""
    forms: Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(max_length=MOST_FORMS)] = ()
    """Rows of the kernel table that do the same work with another tile shape or split-K."""

    @property
    def blocks(self) -> int:
        """Thread blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def identity(self) -> tuple[str, tuple[int, int, int], tuple[int, int, int]]:
        """(name, grid, block): what a launch interceptor sees of a kernel."""
        return (self.name, self.grid, self.block)


LATENCY_US = 4.0
"""Kernels shorter than this are bound by latency, whatever they compute (median SM throughput 3 %)."""
LATENCY_BLOCKS = 4
"""Kernels of so few blocks are bound by one block's chain of dependent instructions."""
MATRIX_US = 10.0
"""Matrix kernels shorter than this spend their time filling the pipeline: neither bound dominates."""
SKINNY_TILE = 16
"""A matrix kernel whose output tile is at most this narrow streams one operand from memory."""

_MOVES_DATA = re.compile(
    r"gemv|gemm[ks]n_|nchwtonhwc|nhwctonchw|splitk_?reduce|reducesplitk|reduce_wgrad|addpadding", re.IGNORECASE
)
"""Kernels of matrix libraries that only stream, though their names say gemm or conv."""
_MATRIX = re.compile(
    r"gemm|conv|nvjet|cutlass|xmma|winograd|wgrad|dgrad|fprop|wmma|flash|fmha|sdpa|attention", re.IGNORECASE
)
_TILE = re.compile(r"(?:nvjet_[a-z0-9]+_[a-z]+_|tilesize|gemm_(?:[a-z]+\d+_)?)(\d+)x(\d+)")
_MEMORY = re.compile(
    r"elementwise|norm|bn_fw|bn_bw|pool|copy|concat|catarray|softmax|reduce|reduction|fill|im2col|col2im|transform"
    r"|nchw|nhwc|transpose|padding|gather|scatter|index|embedding|upsample|dropout|multi_tensor|adam|sgd|scan"
    r"|moments|gammabeta|loss|convert_|compute_dot|scal_kernel|radix|sort",
    re.IGNORECASE,
)


def classify(name: str, blocks: int, duration_us: float) -> KernelClass:
    """The class of a kernel called ``name`` with ``blocks`` thread blocks that took ``duration_us`` alone."""
    if duration_us < LATENCY_US or blocks <= LATENCY_BLOCKS:
        return "latency"
    if _MOVES_DATA.search(name):
        return "memory"
    if _MATRIX.search(name):
        tile = _TILE.search(name)
        if tile and min(int(tile[1]), int(tile[2])) <= SKINNY_TILE:
            return "memory"
        return "compute" if duration_us >= MATRIX_US else "mixed"
    return "memory" if _MEMORY.search(name) else "mixed"
