"""A workload on another GPU than it was recorded on: as that GPU's libraries would run it, by estimate.

What is done, and why it may be off:

* **Blocks.** A block with more shared memory than the GPU allows becomes two with half of it, and so on: libraries
  choose a smaller tile where a large one does not fit. Where a block has too many threads, they are halved with it. A
  thread with too many registers gets as many as there are; that it then spills is left out. Grids stay otherwise,
  though a library would choose them by the number of SMs.
* **Matrix arithmetic.** Kernels bound by it (of class ``compute``, with a block for every SM at least) take longer or
  shorter by the ratio of the two GPUs' :class:`~gpusched_env.hardware.specs.MatrixRates`. Names tell whether factors
  have 32 bits, and whether tensor cores multiply them. Of vector units it is the ratio of what both boards were
  measured to sustain, where that is known: under their power limits that is far from what clocks and SMs promise (an
  A100 over an L4 1.9 times, where data sheets have 0.64). Of tensor cores, and of boards that were not measured,
  it is that of data sheets. (In the first version of the laws, as of tensor cores: vector units came out too slow by
  the ratio of an H100's TF32 to its single precision, eight times.)
* **The rest** is the simulator's business (:func:`~gpusched_env.workload.profile.profile_kernel`): a block's latency
  and issue demand scale with the SM clock, DRAM traffic stays, and waves of blocks follow from the SMs and what fits
  on them. Latencies of caches and memory are thereby taken to be equal in clocks. Traffic that no counter measured is
  estimated from class and duration, after the step before; so it grows with a matrix kernel's time, which is too
  much. Of workloads whose L2 was recorded, a kernel that fits into it does not wait for the DRAM.
* **Copies** between host and GPU go at the speed of its copy engines; those on the device, and memsets, keep their
  time, though they depend on its bandwidth. **Host times** stay as recorded: it is the same host.

Networks that were recorded on an H100 and on an H200 are carried over both ways and compared
(:mod:`gpusched_env.experiments.validate.carried`, ``docs/carry-over.md``); Gilman and Walls' and FIKIT's experiments
are reproduced this way on an RTX 3090 (``docs/concurrency.md``, ``docs/fikit.md``). Single products that were
measured on five boards of four generations are checked one by one (:mod:`gpusched_env.experiments.validate.products`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from gpusched_env.display.words import counted
from gpusched_env.hardware.occupancy import WARP_THREADS, round_up
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.dependent import is_chain
from gpusched_env.workload.generated_names import is_irregular
from gpusched_env.workload.kernel import Kernel, Physics
from gpusched_env.workload.profile import profile_kernel
from gpusched_env.workload.workload import Child, GraphNode, Op, OpKind, Workload

SINGLE = re.compile(r"tf32|f32f32|ffma|sgemm|s1688gemm_\d|<float", re.IGNORECASE)
"""Names of matrix kernels whose factors have 32 bits (cuBLAS, cuDNN, CUTLASS)."""
TENSOR: Final = re.compile(r"tf32|tensorop|s1688|s16816|hmma|imma|wgmma|nvjet", re.IGNORECASE)
"""Names of kernels that use tensor cores (cuBLAS, cuDNN, CUTLASS)."""

_Timed = TypeVar("_Timed", Op, GraphNode, Child)


NETWORK_OFF: Final = 0.031
KERNEL_OFF: Final = 0.08
"""Median errors of what was recorded on an H100, its L2 not, and carried over to an H200, or back, in the worse
direction (docs/carry-over.md)."""
PRODUCT_OFF: Final = 0.157
"""The same of single products between boards of four generations, in the worst of 36 pairs."""
HOW_FAR_OFF: Final = (
    f"Checked between an H100 and an H200, such estimates are off by {NETWORK_OFF:.0%} for a network and "
    f"{KERNEL_OFF:.0%} for a single kernel, in the median; between GPUs of two generations, where only products in "
    f"single precision were checked, by up to {PRODUCT_OFF:.0%}."
)


@dataclass(frozen=True, slots=True)
class CarriedOver:
    """A workload on another GPU, and what changed for that."""

    workload: str
    recorded_on: str
    gpu: str
    kernels: int
    """Number of distinct kernels."""
    split: int
    """Number of kernels with more blocks than recorded, since theirs do not fit on the GPU."""
    rescaled: int
    """Number of kernels bound by matrix arithmetic, with times by the ratio of matrix rates."""

    def __str__(self) -> str:
        changes = [(self.split, "split to fit"), (self.rescaled, "rescaled by matrix rates")]
        done = ", ".join(f"{count} {what}" for count, what in changes if count)
        made = "generated for" if is_irregular(self.workload) or is_chain(self.workload) else "recorded on"
        estimates = f"{self.workload} was {made} {self.recorded_on}: durations on {self.gpu} are estimates"
        return f"{estimates} (of {counted(self.kernels, 'kernel')}, {done})" if done else estimates


def carry_over(workload: Workload, gpu: GpuSpec, physics: Physics = 1) -> tuple[Workload, CarriedOver | None]:
    """``workload`` as the libraries of ``gpu`` would run it, and what was done; itself if it was recorded there.

    Durations are still those on the GPU of the recording, of a kernel that has the new shape and, if matrix arithmetic
    bounds it, the new length.
    """
    if workload.gpu == gpu.name:
        return workload, None
    factors = [_factor(kernel, workload.spec, gpu, physics) for kernel in workload.kernels]
    kernels = tuple(carried_kernel(kernel, workload.spec, gpu, physics) for kernel in workload.kernels)
    done = CarriedOver(
        workload=workload.name,
        recorded_on=workload.gpu,
        gpu=gpu.name,
        kernels=len(factors),
        split=sum(new.grid != old.grid for new, old in zip(kernels, workload.kernels, strict=True)),
        rescaled=sum(factor != 1.0 for factor in factors),
    )
    return msgspec.structs.replace(workload, kernels=kernels, **with_scaled_durations(workload, factors)), done


def carried_kernel(kernel: Kernel, recorded_on: GpuSpec, gpu: GpuSpec, physics: Physics = 1) -> Kernel:
    """A kernel as the libraries of ``gpu`` would run it; its duration is still that on the GPU of the recording, of a
    kernel that has the new shape and, if matrix arithmetic bounds it, the new length."""
    factor = _factor(kernel, recorded_on, gpu, physics)
    return msgspec.structs.replace(_fitted(kernel, gpu), duration_us=kernel.duration_us * factor)


def with_scaled_durations(workload: Workload, factors: Sequence[float]) -> dict[str, Any]:
    """The ``variants`` and ``graphs`` of a workload, each kernel taking as many times as long as ``factors`` say."""

    def longer(op: _Timed) -> _Timed:
        return msgspec.structs.replace(op, duration_us=op.duration_us * factors[op.index])

    def op_of(op: Op) -> Op:
        if op.children:
            op = msgspec.structs.replace(op, children=tuple(longer(child) for child in op.children))
        return longer(op) if op.kind is OpKind.KERNEL else op

    if all(factor == 1.0 for factor in factors):
        return {}
    variants = tuple(variant.mapped(op_of) for variant in workload.variants)
    graphs = tuple(
        tuple(longer(node) if node.kind is OpKind.KERNEL else node for node in nodes) for nodes in workload.graphs
    )
    return {"variants": variants, "graphs": graphs}


def _factor(kernel: Kernel, recorded_on: GpuSpec, gpu: GpuSpec, physics: Physics) -> float:
    """How many times as long a kernel's matrix arithmetic takes: grids that leave SMs idle are bound by latency."""
    bound = kernel.kind == "compute" and kernel.blocks >= recorded_on.sms
    before, there = recorded_on.matrix_rates, gpu.matrix_rates
    if not bound or before is None or there is None:
        return 1.0
    if uses_vector_units(kernel.name):
        if before.vector_tflops is not None and there.vector_tflops is not None:
            # A library would choose tiles that suit the SMs: waves of the recorded ones say nothing.
            alone = profile_kernel(_fitted(kernel, gpu), recorded_on, gpu, physics=physics)
            return before.vector_tflops / there.vector_tflops * kernel.duration_us / alone.duration_us
        if physics > 1 and before.vector is not None and there.vector is not None:
            return before.vector / there.vector
    return before.single / there.single if SINGLE.search(kernel.name) else before.half / there.half


def _fitted(kernel: Kernel, gpu: GpuSpec) -> Kernel:
    """The kernel in blocks that fit on the GPU, a power of two for each of its own."""
    limits = gpu.limits
    registers = min(kernel.registers, limits.registers_per_thread)
    warp_registers = round_up(registers * WARP_THREADS, limits.register_unit)
    warps = max(1, min(limits.warps, limits.registers // warp_registers))
    most_threads = min(limits.threads_per_block, limits.threads, WARP_THREADS * warps)
    unit = limits.shared_unit
    most_shared = min(limits.shared_bytes_per_block, (limits.shared_bytes - limits.shared_reserve) // unit * unit)
    parts, block = 1, list(kernel.block)
    while block[0] * block[1] * block[2] > most_threads:
        parts *= 2
        longest = block.index(max(block))
        block[longest] = -(-block[longest] // 2)
    while -(-kernel.shared_bytes // parts) > max(1, most_shared):
        parts *= 2
    x, y, z = kernel.grid
    return msgspec.structs.replace(
        kernel,
        grid=(x * parts, y, z),
        block=(block[0], block[1], block[2]),
        registers=registers,
        shared_bytes=-(-kernel.shared_bytes // parts),
    )


def uses_vector_units(name: str) -> bool:
    """Whether a kernel's name says that it multiplies 32-bit factors without tensor cores."""
    return bool(SINGLE.search(name)) and not TENSOR.search(name)
