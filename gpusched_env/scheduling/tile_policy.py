"""For which tiles of its producer a kernel waits, and in which order blocks take tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

PolicyKind = Literal["share", "row", "tile", "strided", "matrix"]
POLICIES: Final = ("kernel", "share", "row", "tile", "strided", "matrix")
"""Policies by code (:mod:`gpusched_env.hardware.tiles`); ``kernel`` is stream order, which needs no command."""
TileOrder = Literal["native", "row-major", "grouped", "column-major"]
ORDERS: Final[tuple[TileOrder, ...]] = ("native", "row-major", "grouped", "column-major")
"""By code."""


@dataclass(frozen=True, slots=True)
class TilePolicy:
    """For which posts of its producer a block waits."""

    kind: PolicyKind
    """``row``: for all tiles of its row, once; ``tile``: before each step for the tiles that this reads; ``strided``:
    for all tiles of the row that are ``stride`` apart, group by group; ``matrix``: for all tiles of its row of each
    matrix that it reads, of those that the producer has side by side; ``share``: for so many tiles, whichever they
    are."""
    stride: int = 1
    """Of ``strided``: divides the steps through a row."""
    steps: int = 1
    """Of ``tile``: steps of the consumer's inner loop that read one tile (see :func:`conv2d`)."""
    reorder: bool = False
    """Whether a block first does what needs nothing of the producer, such as loads of its other operand."""

    def numbers(self) -> tuple[int, int, int]:
        """Place in :data:`POLICIES`; steps of ``tile``, or else the stride; 1 where it reorders."""
        return POLICIES.index(self.kind), self.steps if self.kind == "tile" else self.stride, int(self.reorder)

    @classmethod
    def of(cls, policy: int, policy_size: int, reorder: int) -> TilePolicy:
        """The inverse of :meth:`numbers`."""
        kind: Any = POLICIES[policy]
        size = {"strided": {"stride": policy_size}, "tile": {"steps": policy_size}}.get(kind, {})
        return cls(kind, **size, reorder=reorder == 1)

    def __str__(self) -> str:
        size = {"strided": f"({self.stride})", "tile": f"({self.steps} steps)" if self.steps > 1 else ""}
        return self.kind + size.get(self.kind, "") + (", loads reordered" if self.reorder else "")


def conv2d(rows: int, columns: int, *, reorder: bool = False) -> TilePolicy:
    """The policy by tiles of a convolution as a matrix product: ``rows * columns`` steps read a tile, and the first of
    them waits (cuSync's Conv2DTileSync)."""
    return TilePolicy("tile", steps=rows * columns, reorder=reorder)
