"""Networks in larger batches than recorded, so that they fill the GPU as much as the paper's.

The paper says of one network how full it makes the GPU in one stream: of InstaNAS-A, 39 %. Its networks run in batch 1,
ours as well, but theirs are in 32 bits in the libraries of another GPU, and ours fill it far less. No recording says
what theirs look like, so the batch stands in for it. The rule, which uses no time and no speed-up: of 1, 2, 4, ... 64
times the recorded batch each network runs in the one with which its occupancy in one stream comes nearest to 39 %, or
in the smallest of those that come as near but for two points (dynamic routing stays at 38 % from 4 times on).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from gpusched_env.hardware.occupancy import gpu_record
from gpusched_env.hardware.solo import solo_duration_us
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.carry_over import with_scaled_durations
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import profile_kernel
from gpusched_env.workload.workload import Workload

TRIED: Final = (1, 2, 4, 8, 16, 32, 64)
"""Batches that are tried, over the recorded one."""
AS_NEAR: Final = 0.02
"""Occupancies that differ by no more are taken as equally near."""
TIMES: Final = {
    "dynamic_routing_input0_b4": 4,
    "dynamic_routing_input1_b4": 4,
    "dynamic_routing_input2_b4": 4,
    "condconv_b0_infer_b1": 2,
    "instanas_infer_b1": 4,
    "nasnetalarge_infer_b1": 2,
    "amoebanet_infer_b1": 8,
    "randwire_infer_b1": 4,
}
"""What the rule comes to: the batch of each network over the recorded one. All other programs run as recorded."""


def nearest(occupancies: Mapping[int, float], published: float) -> int:
    """The smallest batch whose occupancy is as near to a published one as any, but for :data:`AS_NEAR`.

    Args:
        occupancies: shares from 0 to 1, by batch over the recorded one.
        published: the share that is looked for.
    """
    off = {times: abs(share - published) for times, share in occupancies.items()}
    return min(times for times in off if off[times] <= min(off.values()) + AS_NEAR)


def in_batches(workload: Workload, times: int) -> Workload:
    """``workload`` in a batch ``times`` as large as recorded: of every kernel so many times the blocks, each as it was.

    A kernel takes as long as so many blocks do on the GPU of the recording. Its dependencies stay, and so do copies and
    memsets, which are shorter than the shortest kernels.
    """
    if times == 1:
        return workload
    kernels = [_larger(kernel, times, workload.spec) for kernel in workload.kernels]
    factors = [new.duration_us / old.duration_us for new, old in zip(kernels, workload.kernels, strict=True)]
    return msgspec.structs.replace(workload, kernels=tuple(kernels), **with_scaled_durations(workload, factors))


def _larger(kernel: Kernel, times: int, gpu: GpuSpec) -> Kernel:
    """A kernel of ``times`` as many blocks, whose demands alone are those of so many such blocks."""
    profile = profile_kernel(kernel, gpu, gpu)
    block, blocks = profile.block[0], times * kernel.blocks
    on_sm = min(int(block["residents"]), profile.footprint.blocks_per_sm)
    warps = min(on_sm, -(-blocks // gpu.sms)) * profile.footprint.warps / gpu.limits.sub_partitions
    x, y, z = kernel.grid
    return msgspec.structs.replace(
        kernel,
        grid=(times * x, y, z),
        duration_us=float(solo_duration_us(gpu_record(gpu)[0], block, blocks, on_sm)),
        issue_fraction=1.0 - (1.0 - float(block["rho"])) ** max(warps, 1.0),
        dram_bytes=blocks * float(block["dram_bytes"]),
    )
