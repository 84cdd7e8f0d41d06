"""A generated workload, from its name."""

from __future__ import annotations

import functools
from typing import Final

from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.alone import recorded_threads
from gpusched_env.workload.idle_gpu import IdleGpu
from gpusched_env.workload.irregular.families import FAMILIES
from gpusched_env.workload.irregular.name import irregular_graph
from gpusched_env.workload.irregular.network import Network, Program
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload

GPU: Final = "h100-sxm"
"""Durations are in the range of recordings of it."""
INPUTS: Final = 3
"""Variants of a workload: inputs, for which dynamic networks take other branches."""


@functools.lru_cache(maxsize=64)
def irregular(name: str) -> Workload:
    """The workload called ``name``; the same in every process.

    Raises:
        InputError: as :func:`irregular_graph`.
    """
    graph = irregular_graph(name)
    network = Network(graph)
    programs = [Program(network, number) for number in range(INPUTS)]
    for program in programs:
        for _ in FAMILIES[graph.family](program):
            if program.launches >= network.kernels:
                break
    gpu = IdleGpu(load_gpu(GPU))
    variants = tuple(Variant(ops=(*program.ops, Op(OpKind.SYNC))) for program in programs)
    return Workload(
        name=name.strip(),
        summary=f"a random graph of {network.kernels} kernels",
        gpu=GPU,
        source="generated (gpusched_env.workload.irregular)",
        kernels=network.table(programs),
        variants=variants,
        iteration_us=tuple(
            round(gpu.play(recorded_threads(variant, (), gpu.spec.timing)).host_us, 3) for variant in variants
        ),
    )
