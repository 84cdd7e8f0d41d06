"""What a recording of the L2 says of a workload: how much longer its kernels take where the L2 has lost their data."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError
from gpusched_env.hardware.l2 import keeps
from gpusched_env.workload.workload import Op, OpKind, Workload

SCATTER: Final = 0.02
"""Medians of a kernel's times differ by so much of themselves without any cause: smaller differences count as none."""
Times = tuple[Annotated[float, Meta(gt=0)], ...]


class CacheRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of ``gpusched record DIR --sets cache``: what of it is read here."""

    model: str
    weight_bytes: Annotated[int, Meta(ge=0)]
    """Of a network's weights and inputs."""
    other_bytes: Annotated[int, Meta(ge=0)]
    """That an iteration holds at most besides."""
    warm_us: Times
    """Of an iteration's kernels in order, one iteration after the other."""
    cold_us: Times
    """The same, each iteration behind something that empties the L2."""

    @property
    def footprint_bytes(self) -> int:
        """That an iteration touches."""
        return self.weight_bytes + self.other_bytes


def with_cache(workload: Workload, row: CacheRow) -> Workload:
    """The workload with its footprint, and by how much each of its kernels is longer in a cold L2.

    A network that does not fit into the L2 of its GPU finds nothing there when it is alone either: its kernels lose
    nothing to others.

    Args:
        workload: with kernels launched one by one.
        row: of the same network.

    Raises:
        InputError: the network fits, and the row is of an iteration with another number of kernels.
    """
    if not keeps(workload.spec.l2_bytes, row.footprint_bytes):
        return msgspec.structs.replace(without_cache(workload), footprint_bytes=row.footprint_bytes)
    cold = [
        share if (share := colder / warm - 1.0) > SCATTER else 0.0
        for warm, colder in zip(row.warm_us, row.cold_us, strict=True)
    ]
    variants = []
    for v, variant in enumerate(workload.variants):
        kernels = sum(op.kind is OpKind.KERNEL for op in variant.all_ops)
        if kernels != len(cold) or variant.threads:
            raise InputError(
                f"{workload.name}: variants[{v}] has {kernels} kernels in {1 + len(variant.threads)} host threads, "
                f"the recording of the L2 {len(cold)} in one; record both of the same network and batch"
            )
        left = iter(cold)
        variants.append(
            msgspec.structs.replace(
                variant, ops=tuple(_with(op, next(left)) if op.kind is OpKind.KERNEL else op for op in variant.ops)
            )
        )
    return msgspec.structs.replace(workload, variants=tuple(variants), footprint_bytes=row.footprint_bytes)


def loses(workload: Workload) -> bool:
    """Whether any of a workload's kernels takes longer where the L2 has lost its data."""
    nodes = (node for graph in workload.graphs for node in graph)
    return any(op.cold > 0.0 for variant in workload.variants for op in variant.all_ops) or any(n.cold for n in nodes)


def without_cache(workload: Workload) -> Workload:
    """The workload as if nothing of it were lost in the L2; one with kernels launched one by one in a host thread."""
    variants = tuple(
        msgspec.structs.replace(variant, ops=tuple(_with(op, 0.0) for op in variant.ops))
        for variant in workload.variants
    )
    return msgspec.structs.replace(workload, variants=variants, footprint_bytes=0)


def _with(op: Op, cold: float) -> Op:
    return msgspec.structs.replace(op, cold=round(cold, 4))
