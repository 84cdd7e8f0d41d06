"""What a kernel's solo profile implies for its blocks: the one place where durations become physics.

A profile says how long a kernel ran alone. The simulated devices need, for one block, its latency, its
issue demand and its DRAM traffic, such that the kernel alone takes exactly its profiled duration.
Kernels without hardware counters get the last two from their class (:data:`CLASS_DEMAND`).

There are two versions of these laws, of which a scenario has one (:attr:`Scenario.physics
<gpusched_env.scenarios.scenario.Scenario.physics>`), so that what was played once can be played again:

1. What a kernel takes on another GPU follows from the demands of its class, which also stand for caches and loaded
   latencies. A grid with two blocks an SM, or three, always keeps to its SMs evenly.
2. What it takes there follows from the traffic that it waits for (:func:`_bytes_alone`), and products of vector units
   from rates of their own. Blocks of a grid that fits at once, as many on each SM, lie closer where others leave room.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.hardware.l2 import keeps
from gpusched_env.hardware.occupancy import ANY_RESIDENTS, MOST_RHO, BlockFootprint, block_record, footprint, gpu_record
from gpusched_env.hardware.solo import solo_duration_us
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.reading import LONGEST_US
from gpusched_env.workload.kernel import MOST_BYTES, Kernel, KernelClass, Physics


class Demand(NamedTuple):
    """What a kernel without counters is taken to need when it runs alone."""

    issue: float
    """Share of the issue slots of its SMs in use."""
    wait: float
    """Share of its latency that heavier co-residents can stretch."""
    dram: float
    """Share of the DRAM bandwidth of the SMs that it covers."""


CLASS_DEMAND: dict[KernelClass, Demand] = {
    "compute": Demand(issue=0.75, wait=0.30, dram=0.30),
    "memory": Demand(issue=0.35, wait=0.17, dram=0.70),
    "mixed": Demand(issue=0.45, wait=0.20, dram=0.50),
    "latency": Demand(issue=0.25, wait=0.17, dram=0.30),
}
"""Effective demands by class, for kernels without counters, with which networks replayed side by side slow as recorded.
They were chosen on a recording before ``data/measurements/h100/model_pairs.jsonl``, and predict that one better. They
lie above what Nsight Compute reports for five of the networks (compute 50 % of the SM's and 15 % of the DRAM's peak,
memory 45 and 30, mixed 15 and 15, latency 4 and 5), because they also stand for what the sharing laws leave out:
caches, loaded latencies and uneven blocks."""


COUNTED_DRAM: dict[KernelClass, float] = {"compute": 0.15, "memory": 0.30, "mixed": 0.15, "latency": 0.05}
"""Mean DRAM traffic by class, as Nsight Compute reports it for kernels of five networks (AlexNet, BERT twice,
ResNet-50, VGG-16 on an H100): the share of the DRAM bandwidth of the SMs that they cover."""


STREAMS: Final = re.compile(r"vectorized_elementwise|multi_tensor_apply|softmax|layer_?norm", re.IGNORECASE)
"""Names of kernels that read each element once, write it once and do little with it. Of those that are beyond the L2,
an H200 takes 0.70 to 0.74 of an H100's time, as the DRAM's bandwidth has it; other kernels of class ``memory`` (batch
norm, pooling, changes of layout) 0.9 to 1.0."""


WARP_RHO = 0.30
"""Most of its time for which one warp needs the issue slot: that of the recorded arithmetic kernel, whose
threads run four independent chains of multiply-adds. Few resident warps cannot use all slots. Where waves are even it
is no bound: libraries' kernels unroll further, or use tensor cores, and keep an SM busy with a block or two."""


UNUSED = 0.10
"""Most share of slots left empty: of 5, 10 and 20 % the one that predicts operators beside networks best."""


UNEVEN = 0.07
"""Relative standard deviation of the work of blocks that all fit at once, of long kernels of libraries: some of them
have a tile less than others, and leave their SM early. Of such kernels on an H200 the first SM is free after 0.79 of
the time, in the mean (``data/measurements/h200/ends.jsonl``); with evenly distributed work, after 0.78."""


LEAST_UNEVEN_US = 20.0
"""Shorter kernels than this were seen to leave all SMs at once."""


MOST_BLOCKS = 2**53
"""Most blocks of a grid: all that floats can count."""


SHORTEST_BLOCK_US = 1e-3
"""A thousand steps of the simulated clock: shorter ones would be rounded by more than a thousandth."""


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """A kernel on one GPU: footprint, per-block demands, and what a profiler would report there."""

    kernel: Kernel
    footprint: BlockFootprint
    block: NDArray[np.void]
    """One :data:`~gpusched_env.hardware.occupancy.BLOCK_DTYPE` record, shape ``(1,)``."""
    duration_us: float
    """Duration alone on this GPU."""
    issue: float
    """Share of issue slots of the SMs it uses, alone, 0 to 1."""
    dram: float
    """Share of the GPU's DRAM bandwidth, alone, 0 to 1."""
    sms: int
    """SMs that it uses on an empty GPU."""
    brought_bytes: float = 0.0
    """Bytes that it brings into the L2 and takes out of it again: its DRAM traffic as counters report it."""
    forms: tuple[int, ...] = ()
    """Identities of the kernels of the problem that do the same work."""


def profile_kernel(
    kernel: Kernel, recorded_on: GpuSpec, gpu: GpuSpec, *, l2_recorded: bool = False, physics: Physics = 1
) -> KernelProfile:
    """The block demands of ``kernel`` from its solo duration on ``recorded_on``, carried over to ``gpu``.

    Latency and issue demand scale with the SM clock, traffic stays in bytes. Where the L2 was recorded, a kernel that
    fits into it does not wait for the DRAM: its traffic stays as a share of its time. From the second version on that
    holds of all kernels, and demands are those of a kernel of its class that takes so long.

    Args:
        kernel: with its profile.
        recorded_on: where that was measured.
        gpu: where it is to run.
        l2_recorded: whether the recording says what the kernel's program leaves in the L2.
        physics: version of the laws.

    Raises:
        InputError: the kernel does not fit on one of the GPUs, or its blocks would take no time.
    """
    if gpu != recorded_on and physics > 1:
        there_us = _carried_us(kernel, recorded_on, gpu, physics)
        known = profile_kernel(msgspec.structs.replace(kernel, duration_us=there_us), gpu, gpu, physics=physics)
        return replace(known, kernel=kernel, brought_bytes=_counted_bytes(kernel, recorded_on))
    print_ = footprint(recorded_on, kernel.threads, kernel.registers, kernel.shared_bytes, kernel.name)
    block = _solve(kernel, print_, recorded_on, physics)
    duration = kernel.duration_us
    if gpu != recorded_on:
        own = block[0]
        clock = recorded_on.clock_mhz / gpu.clock_mhz
        print_ = footprint(gpu, kernel.threads, kernel.registers, kernel.shared_bytes, kernel.name)
        most = most_residents(kernel, print_, gpu, physics)
        dram_bytes = own["dram_bytes"] * (_traffic_ratio(kernel, recorded_on, gpu) if l2_recorded else 1.0)
        on_sm = min(most, print_.blocks_per_sm)
        spread = uneven(kernel, on_sm, gpu)
        block = block_record(
            print_, own["latency_us"] * clock, own["rho"], own["wait"], dram_bytes, spread, residents=most
        )
        duration = float(solo_duration_us(gpu_record(gpu)[0], block[0], kernel.blocks, on_sm))
        duration *= longest_work(spread, kernel.blocks)
    on_sm = min(int(block["residents"][0]), print_.blocks_per_sm, -(-kernel.blocks // gpu.sms))
    warps = on_sm * print_.warps / gpu.limits.sub_partitions
    return KernelProfile(
        kernel=kernel,
        footprint=print_,
        block=block,
        duration_us=duration,
        issue=1.0 - (1.0 - float(block[0]["rho"])) ** warps,
        dram=min(1.0, float(kernel.blocks * block[0]["dram_bytes"] / (duration * gpu.dram_bytes_per_us))),
        sms=min(gpu.sms, kernel.blocks),
        brought_bytes=_counted_bytes(kernel, recorded_on),
    )


def most_residents(kernel: Kernel, print_: BlockFootprint, gpu: GpuSpec, physics: Physics = 1) -> int:
    """Most blocks of the kernel that an SM holds at a time, besides what fits.

    Equal blocks in full waves would leave SMs idle in a last, partial wave, for others to hide in. On a GPU blocks
    start and end one by one, and no such wave is seen: what runs beside loops of one operator costs these as much as if
    their blocks were spread evenly (``data/measurements/h200/operators``). So the most is taken with which partial
    waves leave no more than :data:`UNUSED` of the SMs' slots empty. A grid that fits at once and has as many blocks for
    each SM has no partial wave: it needs no such limit (second version).
    """
    even = kernel.blocks / gpu.sms
    if kernel.waves == "full" or even <= 1.0:
        return ANY_RESIDENTS
    if physics > 1 and even.is_integer() and even <= print_.blocks_per_sm:
        return ANY_RESIDENTS
    return next(
        most
        for most in range(print_.blocks_per_sm, 0, -1)
        if most == 1 or -(-kernel.blocks // (gpu.sms * most)) * most <= (1.0 + UNUSED) * even
    )


def uneven(kernel: Kernel, on_sm: int, gpu: GpuSpec) -> float:
    """Relative standard deviation of the work of a kernel's blocks.

    Kernels of libraries that compute have as many blocks as SMs hold at once, which go through the tiles of the result.
    Where these do not come out even, some SMs are free long before the kernel ends, and short kernels run there.

    Args:
        kernel: with its duration.
        on_sm: blocks of it that an SM holds at a time.
        gpu: where it runs.
    """
    at_once = 1 < kernel.blocks <= on_sm * gpu.sms
    known = kernel.waves == "even" and kernel.kind == "compute"
    return UNEVEN if known and at_once and kernel.duration_us >= LEAST_UNEVEN_US else 0.0


def longest_work(spread: float, blocks: int) -> float:
    """Expected work of the block with the most, over the mean, where work is evenly distributed about the mean."""
    return 1.0 + math.sqrt(3.0) * spread * (blocks - 1) / (blocks + 1)


def _carried_us(kernel: Kernel, recorded_on: GpuSpec, gpu: GpuSpec, physics: Physics) -> float:
    """How long a kernel takes alone on another GPU than that of its recording, in microseconds."""
    known = msgspec.structs.replace(kernel, dram_bytes=_bytes_alone(kernel, recorded_on, gpu))
    print_ = footprint(recorded_on, kernel.threads, kernel.registers, kernel.shared_bytes, kernel.name)
    own = _solve(known, print_, recorded_on, physics)[0]
    print_ = footprint(gpu, kernel.threads, kernel.registers, kernel.shared_bytes, kernel.name)
    most = most_residents(kernel, print_, gpu, physics)
    on_sm = min(most, print_.blocks_per_sm)
    spread = uneven(kernel, on_sm, gpu)
    latency_us = own["latency_us"] * recorded_on.clock_mhz / gpu.clock_mhz
    block = block_record(print_, latency_us, own["rho"], own["wait"], own["dram_bytes"], spread, residents=most)
    alone_us = float(solo_duration_us(gpu_record(gpu)[0], block[0], kernel.blocks, on_sm))
    return alone_us * longest_work(spread, kernel.blocks)


def _bytes_alone(kernel: Kernel, recorded_on: GpuSpec, gpu: GpuSpec) -> float:
    """DRAM traffic that a kernel waits for when it runs alone, as far as its name, class and time say.

    Names of :data:`STREAMS` that bring in more than either L2 keeps move it at the DRAM's full speed. What products
    bring in, and what the L2 may keep, is what counters report of the class (:data:`COUNTED_DRAM`); beyond the L2
    others also wait for a loaded memory (:data:`CLASS_DEMAND`).
    """
    counted = _counted_bytes(kernel, recorded_on)
    if kernel.dram_bytes is not None or kernel.kind == "compute":
        return counted
    least, most = sorted((recorded_on.l2_bytes, gpu.l2_bytes))
    streamed = recorded_on.contention.dram_efficiency * kernel.duration_us * recorded_on.dram_bytes_per_us
    if STREAMS.search(kernel.name) and not keeps(most, streamed):
        return streamed
    return counted if keeps(least, counted) else counted * CLASS_DEMAND[kernel.kind].dram / COUNTED_DRAM[kernel.kind]


def _traffic_ratio(kernel: Kernel, recorded_on: GpuSpec, gpu: GpuSpec) -> float:
    """A block's traffic on ``gpu`` over that where it was recorded.

    Bytes that a counter has seen are the DRAM's, and stay. A class's traffic is taken to be served by the L2 where it
    would fit into that of both GPUs, and a cache's bandwidth follows the clock of the SMs.
    """
    fits = keeps(min(recorded_on.l2_bytes, gpu.l2_bytes), _counted_bytes(kernel, recorded_on))
    if kernel.dram_bytes is not None or not fits:
        return 1.0
    bandwidth = gpu.dram_bytes_per_us / gpu.sms / (recorded_on.dram_bytes_per_us / recorded_on.sms)
    return bandwidth * recorded_on.clock_mhz / gpu.clock_mhz


def _counted_bytes(kernel: Kernel, gpu: GpuSpec) -> float:
    """DRAM traffic of a kernel that was recorded on ``gpu``, as counters report it or would."""
    if kernel.dram_bytes is not None:
        return kernel.dram_bytes
    covered = min(gpu.sms, kernel.blocks) / gpu.sms
    return COUNTED_DRAM[kernel.kind] * kernel.duration_us * gpu.dram_bytes_per_us * covered


def _solve(kernel: Kernel, print_: BlockFootprint, gpu: GpuSpec, physics: Physics) -> NDArray[np.void]:
    """Demands on the GPU of the recording such that the solo duration comes out exactly.

    The issue share fixes ``rho`` (slots in use are ``1 - (1 - rho)^warps`` on a sub-partition), the DRAM
    share the traffic. With both given, the duration grows monotonically with the latency: bisection.
    """
    traffic = kernel.dram_bytes or 0.0
    if not (kernel.duration_us <= LONGEST_US and traffic <= MOST_BYTES):
        raise InputError(
            f"kernel {kernel.name}: takes {kernel.duration_us:g} us and moves {traffic:g} bytes, must be at most "
            f"{LONGEST_US:g} and {MOST_BYTES:g}"
        )
    record = gpu_record(gpu)[0]
    demand = CLASS_DEMAND[kernel.kind]
    issue = demand.issue if kernel.issue_fraction is None else kernel.issue_fraction
    most = most_residents(kernel, print_, gpu, physics)
    on_sm = min(most, print_.blocks_per_sm)
    warps = min(on_sm, -(-kernel.blocks // gpu.sms)) * print_.warps / gpu.limits.sub_partitions
    most_rho = WARP_RHO if kernel.waves == "full" else MOST_RHO
    rho = min(most_rho, 1.0 - (1.0 - min(issue, 0.999)) ** (1.0 / max(warps, 1.0)))
    if kernel.dram_bytes is not None:
        dram_bytes = kernel.dram_bytes / kernel.blocks
    else:
        covered = min(gpu.sms, kernel.blocks) / gpu.sms
        dram_bytes = demand.dram * kernel.duration_us * gpu.dram_bytes_per_us * covered / kernel.blocks

    spread = uneven(kernel, on_sm, gpu)
    longest = longest_work(spread, kernel.blocks)

    def make(latency_us: float) -> NDArray[np.void]:
        return block_record(print_, latency_us, rho, demand.wait, dram_bytes, spread, residents=most)

    def solo(latency_us: float) -> float:
        return longest * float(solo_duration_us(record, make(latency_us)[0], kernel.blocks, on_sm))

    waves = -(-kernel.blocks // (gpu.sms * on_sm))
    if kernel.blocks > MOST_BLOCKS or kernel.duration_us < SHORTEST_BLOCK_US * waves:
        raise InputError(
            f"kernel {kernel.name}: {kernel.blocks} blocks in {kernel.duration_us} us on {gpu.name}: a block would "
            f"last less than a nanosecond, or there are more than {MOST_BLOCKS}; grid or duration is wrong"
        )
    low, high = min(1e-6, 0.01 / waves) * kernel.duration_us, kernel.duration_us
    while solo(low) > kernel.duration_us:
        # The class's traffic alone takes longer (a partial last wave, say): the kernel asks for less.
        dram_bytes *= 0.9
    return make(bisect(solo, kernel.duration_us, low, high))


def bisect(function: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where an increasing ``function`` reaches ``target`` between ``low`` and ``high``, to a relative 1e-13."""
    while high - low > 1e-13 * high:
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if function(middle) < target:
            low = middle
        else:
            high = middle
    return high
