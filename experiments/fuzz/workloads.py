"""Random workloads: a few kernels and what is done with them."""

from __future__ import annotations

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.experiments.fuzz.programs import Style, draw_graph, draw_variant, kernels_of
from gpusched_env.hardware.occupancy import footprint
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.kernel import Kernel, KernelClass
from gpusched_env.workload.workload import Workload

SOURCE = "drawn by the fuzzer"
KINDS: tuple[KernelClass, ...] = ("compute", "memory", "mixed", "latency")

MOST_WAVES = 300
"""Waves of a grid alone, most of the time: each is several events where it cannot be jumped over."""


def draw_workload(dice: Dice, name: str, gpu: GpuSpec) -> Workload:
    """A workload recorded on ``gpu``: all its kernels fit there."""
    usual_us = dice.number(1.0, 300.0)
    kernels = [_kernel(dice, f"{name}_k{i}", gpu, usual_us) for i in range(dice.integer(1, 5))]
    if dice.chance(0.3):
        # Equal in everything but the name.
        kernels.append(msgspec.structs.replace(kernels[0], name=f"{name}_twin"))
    style = Style.draw(dice)
    graphs = tuple(draw_graph(dice, kernels) for _ in range(style.graphs))
    variants = [draw_variant(dice, style, kernels, len(graphs)) for _ in range(dice.weighted({1: 6, 2: 2, 3: 1}))]
    spread = [100.0 * dice.number(0.5, 2.0) for _ in range(dice.weighted({1: 4, 2: 1, 3: 1, 5: 1}))]
    return Workload(
        name=name,
        gpu=gpu.name,
        source=SOURCE,
        kernels=tuple(kernels),
        graphs=graphs,
        stream_priorities=tuple(dice.integer(1 - gpu.priorities, 0) for _ in range(style.streams)),
        variants=tuple(variants),
        iteration_us=tuple(spread),
    )


SHORTEST_BLOCK_US = 0.05
"""Blocks that are far shorter than any real one end within the rounding of the clock."""


def fits(workload: Workload, gpu: GpuSpec) -> bool:
    """Whether all kernels of ``workload`` can run on ``gpu``."""
    try:
        for kernel in workload.kernels:
            footprint(gpu, kernel.threads, kernel.registers, kernel.shared_bytes)
    except InputError:
        return False
    return True


def waves(workload: Workload, gpu: GpuSpec) -> int:
    """Waves of blocks of a job alone, on average over variants."""
    of_kernel = [kernel_waves(kernel, gpu) for kernel in workload.kernels]
    return -(-sum(of_kernel[row] for row, _ in kernels_of(workload)) // len(workload.variants))


def kernel_waves(kernel: Kernel, gpu: GpuSpec) -> int:
    """Waves of blocks of a kernel alone."""
    fitting = footprint(gpu, kernel.threads, kernel.registers, kernel.shared_bytes).blocks_per_sm
    return -(-kernel.blocks // (fitting * gpu.sms))


def _kernel(dice: Dice, name: str, gpu: GpuSpec, usual_us: float) -> Kernel:
    limits = gpu.limits
    threads = min(dice.pick((32, 64, 96, 128, 200, 256, 384, 512, 768, 1000, 1024)), limits.threads_per_block)
    registers = min(dice.pick((16, 24, 32, 40, 64, 96, 128, 200, 255)), limits.registers_per_thread)
    # Rounding up to whole warps and allocation units included.
    while (registers + 8) * (threads + 31) > limits.registers:
        registers //= 2
    shared = _shared(dice, gpu)
    fitting = footprint(gpu, threads, registers, shared).blocks_per_sm
    blocks = _blocks(dice, gpu.sms, fitting)
    duration_us = usual_us if dice.chance(0.3) else min(1000.0, max(0.5, usual_us * dice.number(0.1, 5.0)))
    duration_us = max(duration_us, SHORTEST_BLOCK_US * -(-blocks // (fitting * gpu.sms)))
    return Kernel(
        name=name,
        grid=_grid(dice, blocks),
        block=(threads, 1, 1),
        registers=registers,
        shared_bytes=shared,
        duration_us=duration_us,
        kind=dice.pick(KINDS),
        issue_fraction=0.0 if dice.tidy else dice.pick((None, 0.0, 0.0, 0.2, 0.8, 1.0, dice.uniform(0.0, 1.0))),
        dram_bytes=_traffic(dice, gpu, duration_us),
        idempotent=dice.chance(0.75),
    )


def _shared(dice: Dice, gpu: GpuSpec) -> int:
    """Shared memory of a block that fits even with the system's reserve."""
    limits = gpu.limits
    most = min(limits.shared_bytes_per_block, limits.shared_bytes - limits.shared_reserve)
    most -= most % limits.shared_unit
    some = dice.log_integer(1, most)
    return dice.weighted({0: 5, most: 1, most // 2: 1, min(most, 1000): 1, some: 3})


def _blocks(dice: Dice, sms: int, fitting: int) -> int:
    wave = sms * fitting
    if dice.chance(0.005):
        return 100_000
    if dice.chance(0.4):
        # Around the edge of an SM or a wave.
        edge = dice.pick((1, sms, wave, 2 * wave, dice.integer(1, 5) * wave))
        return max(1, min(100_000, edge + dice.pick((-1, 0, 0, 1))))
    return dice.log_integer(1, min(100_000, MOST_WAVES * wave, max(10, 40 * wave) if dice.chance(0.97) else 100_000))


def _grid(dice: Dice, blocks: int) -> tuple[int, int, int]:
    if blocks % 2 == 0 and dice.chance(0.3):
        return (blocks // 2, 2, 1)
    return (blocks, 1, 1)


def _traffic(dice: Dice, gpu: GpuSpec, duration_us: float) -> float | None:
    if dice.tidy:
        return 0.0
    full = gpu.dram_bytes_per_us * duration_us
    return dice.pick((None, 0.0, 0.0, full * dice.uniform(0.0, 0.5), full * dice.uniform(0.5, 1.0), full * 1.2))
