"""Which GPU and process of a recording of several are imported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from gpusched_env.errors import InputError
from gpusched_env.hardware.products import Product
from gpusched_env.workload.workload import OpKind


@dataclass(frozen=True, slots=True)
class Selection:
    """What its user asks for; ``None``: whatever there is, if it is one."""

    device: int | None = None
    """Number of the GPU, as in the file."""
    process: int | None = None
    """Number of the process on its system."""


ANY: Final = Selection()


@dataclass(frozen=True, slots=True)
class Part:
    """A GPU and a process that uses it."""

    device: int
    process: int | None = None
    """``None``: unknown."""


def select(
    work: Iterable[tuple[Part, OpKind]], selection: Selection, product: Callable[[Part], Product], origin: str
) -> Part:
    """The part of a recording that is asked for.

    Args:
        work: whose each piece of device work is, and its kind.
        selection: what is asked for.
        product: the GPU of a part.
        origin: the file, for errors.

    Raises:
        InputError: there is none, or more than one; lists those that there are.
    """
    counts: dict[Part, Counter[str]] = {}
    for part, kind in work:
        counts.setdefault(part, Counter())[_LISTED.get(kind, "copies")] += 1
    fitting = [
        part for part in counts if selection.device in (None, part.device) and selection.process in (None, part.process)
    ]
    if len(fitting) == 1:
        return fitting[0]
    listed = "; ".join(_described(part, product(part), counts[part]) for part in sorted(counts, key=_place)[:_SHOWN])
    more = f"; and {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else ""
    raise InputError(
        f"{origin}: a workload is one process on one GPU; say which (device=, --device; process=, --process) of "
        f"{listed}{more}"
    )


_LISTED = {OpKind.KERNEL: "kernels", OpKind.MEMSET: "memsets"}
_SHOWN = 32
"""Parts that a message lists."""


def _place(part: Part) -> tuple[int, int]:
    return part.device, -1 if part.process is None else part.process


def _described(part: Part, product: Product, counts: Counter[str]) -> str:
    process = "" if part.process is None else f", process {part.process}"
    figures = ", ".join(f"{counts[what]} {what}" for what in ("kernels", "copies", "memsets"))
    return f"device {part.device} ({product.name or 'GPU not named'}{process}): {figures}"
