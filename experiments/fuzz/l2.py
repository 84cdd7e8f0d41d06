"""Random workloads whose kernels take longer where the L2 has lost their data."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.workload import GraphNode, Op, OpKind, Workload

Part = TypeVar("Part", Op, GraphNode)


def with_cold_kernels(dice: Dice, workload: Workload, gpu: GpuSpec) -> Workload:
    """The workload with a footprint, from a trace of the L2 to twice of it, and kernels some of which are cold ones."""
    often = dice.pick((0.3, 1.0))

    def cold(one: Part) -> Part:
        if one.kind is not OpKind.KERNEL or not dice.chance(often):
            return one
        return replace(one, cold=dice.pick((0.05, 0.5, dice.uniform(0.0, 2.0))))

    return replace(
        workload,
        footprint_bytes=int(gpu.l2_bytes * dice.number(0.01, 2.0)),
        graphs=tuple(tuple(map(cold, graph)) for graph in workload.graphs),
        variants=tuple(
            replace(
                variant,
                ops=tuple(map(cold, variant.ops)),
                threads=tuple(tuple(map(cold, thread)) for thread in variant.threads),
            )
            for variant in workload.variants
        ),
    )
