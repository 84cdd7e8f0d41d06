"""Stream-K: the blocks of a matrix product share the steps of all its tiles evenly, so that no wave is partial.

Osama et al., *Stream-K: Work-Centric Parallel Decomposition for Dense Matrix-Matrix Multiplication on the GPU* (PPoPP
2023). In its hybrid form whole waves go tile by tile, and only the steps of the last one to two waves are divided. Here
one block a slot does all of it, which takes as long where blocks have constant rates.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from gpusched_env.hardware.occupancy import BlockFootprint
from gpusched_env.hardware.records import block_record, gpu_record
from gpusched_env.hardware.solo import solo_duration_us
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp, JobProgram
from gpusched_env.workload.profile import KernelProfile

ACCUMULATOR_BYTES = 4


def stream_k(problem: Problem) -> Problem:
    """With the matrix products of a problem divided evenly: kernels that need tiles or whose tiles are needed.

    Convolutions, whose steps are those of a filter, stay as they are. Nobody's tiles can be synchronised then.
    """
    jobs = [job for program in problem.programs for job in program.variants]
    products = {identity for job in jobs for identity in _products(job)}
    kernels = tuple(
        evenly(profile, problem.gpu) if identity in products else profile
        for identity, profile in enumerate(problem.kernels)
    )
    programs = tuple(
        replace(program, variants=tuple(_in_order(job) for job in program.variants)) for program in problem.programs
    )
    return replace(problem, kernels=kernels, programs=programs)


def _products(job: JobProgram) -> set[int]:
    """Identities of the matrix products of a job."""
    marked = {op.mark: op for op in job if op.mark >= 0}
    pairs = [(marked[op.tiles], op) for op in job if op.tiles >= 0 and op.needs.steps == 1]
    return {op.identity for pair in pairs for op in pair}


def _in_order(job: JobProgram) -> JobProgram:
    """A job whose kernels wait for whole producers."""
    ops: list[HostOp] = [replace(op, tiles=-1) if op.tiles >= 0 else op for op in job]
    return replace(job, ops=tuple(ops))


def evenly(profile: KernelProfile, gpu: GpuSpec) -> KernelProfile:
    """A kernel with a block a slot, each of which does an equal share of the work and one fix-up; itself, where its
    waves are whole."""
    print_, own, blocks = profile.footprint, profile.block[0], profile.kernel.blocks
    slots = gpu.sms * print_.blocks_per_sm
    if blocks % slots == 0:
        return profile
    share = blocks / slots
    latency_us = float(own["latency_us"]) * share + fix_up_us(print_, gpu)
    block = block_record(print_, latency_us, own["rho"], own["wait"], own["dram_bytes"] * share, own["spread"])
    duration_us = float(solo_duration_us(gpu_record(gpu)[0], block[0], slots, print_.blocks_per_sm))
    kernel = msgspec.structs.replace(profile.kernel, grid=(slots, 1, 1), duration_us=duration_us)
    sms = min(gpu.sms, slots)
    return replace(profile, kernel=kernel, block=block, duration_us=duration_us, sms=sms, forms=())


def fix_up_us(print_: BlockFootprint, gpu: GpuSpec) -> float:
    """What it takes to write a partial tile and to read one, when all slots do.

    A partial tile is as large as a block's registers, which hold its sums.
    """
    return 2.0 * ACCUMULATOR_BYTES * print_.registers * gpu.sms * print_.blocks_per_sm / gpu.dram_bytes_per_us
