"""A GPU kernel as a scheduler's world knows it: identity, shape and solo profile."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gpusched_env.reading import Duration

Dim = Annotated[int, Meta(ge=1, le=2**31 - 1)]

MOST_BYTES = 1e18
"""Of DRAM traffic."""
MOST_FORMS = 3
"""That a kernel has besides its own."""

KernelClass = Literal["compute", "memory", "mixed", "latency"]
"""What bounds a kernel alone: arithmetic, DRAM traffic, both, or neither (tiny and latency-bound)."""

Waves = Literal["full", "even", "together"]
"""How the blocks of a grid that has more of them than the GPU has SMs are spread: ``full``: an SM holds as many as
fit, so that a last wave may be partial; ``even``: as on a GPU, where blocks end one by one, with hardly a partial wave
(:func:`~gpusched_env.workload.profile.most_residents`), and some blocks of a single wave leave early
(:func:`~gpusched_env.workload.profile.uneven`); ``together``: even, with blocks that all take the same time."""


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
