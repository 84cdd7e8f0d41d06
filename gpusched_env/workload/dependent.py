"""Workloads of kernels that depend on each other tile by tile: matrix products and convolutions, one after the other.

``check_tiles`` says whether the tiles of a workload's kernels fit those that they need.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.workload.generated_names import parameters_of
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Marks, Op, OpKind, TileNeeds, Variant, Workload

THREADS = 256
"""Threads of a block, as matrix kernels of CUTLASS have them."""
NEEDS_BY_ROW = TileNeeds()
Launched = Literal["beside", "in-order", "waited-for"]
REGISTERS = {1: 255, 2: 128, 3: 80, 4: 64}
"""Registers of a thread, by how many blocks an SM is to hold: its register file has 65,536."""

FILTER = 9
"""Elements of a 3 x 3 filter: steps of a convolution's inner loop that read a tile."""
LEAD_US = 13.0
"""Time that its loads of the other operand take a product's block (cuSync, CGO 2024, Table V)."""


def lead_of(block_us: float) -> float:
    """The share of a block's work that it can do before it needs anything of the producer."""
    return min(0.9, LEAD_US / block_us)


@dataclass(frozen=True, slots=True)
class TiledKernel:
    """A kernel of a chain."""

    rows: int
    columns: int
    slices: int
    """Slices of each tile (split-K)."""
    duration_us: float
    """Duration alone on the GPU."""
    blocks_per_sm: int = 1
    """Blocks that an SM is to hold, 1 to 4."""
    needs: TileNeeds | None = None
    """What it needs of the kernel before it; ``None``: as all kernels of its chain."""
    whole: tuple[int, ...] = ()
    """Places of earlier kernels of which it needs everything besides."""
    forms: tuple[TiledKernel, ...] = ()
    """Forms of the same work in other tiles or slices: only the grid, the duration and the blocks an SM count."""

    @property
    def blocks(self) -> int:
        return self.rows * self.columns * self.slices

    def waves(self, sms: int) -> int:
        """Waves of blocks alone on so many SMs."""
        return -(-self.blocks // (self.blocks_per_sm * sms))


def dependent_workload(
    name: str,
    gpu: GpuSpec,
    kernels: Sequence[TiledKernel],
    needs: TileNeeds = NEEDS_BY_ROW,
    *,
    launched: Launched = "beside",
) -> Workload:
    """One iteration of kernels that each need the tiles of the one before.

    Args:
        name: of the workload.
        gpu: that it was measured on.
        kernels: in order.
        needs: what each needs of the one before, where it says nothing else.
        launched: ``beside``: each in a stream of its own. Otherwise no tiles can be synchronised, and all are in one
            stream: ``in-order`` at once, ``waited-for`` each when the host knows of the end of the one before.

    Raises:
        InputError: an SM is to hold more blocks than this knows of, or a kernel needs the whole of a later one.
    """
    beside, waited_for = launched == "beside", launched == "waited-for"
    ops: list[Op] = []
    for number, kernel in enumerate(kernels):
        late = [other for other in kernel.whole if not 0 <= other < number]
        if late:
            raise InputError(f"{name}: kernel {number} needs the whole of kernel {late[0]}, which is none before it")
        stream = number if beside else 0
        ops += [Op(OpKind.WAIT, index=other, stream=stream) for other in kernel.whole if beside]
        tiles = number - 1 if beside else -1
        ops.append(
            Op(OpKind.KERNEL, 0.0, number, kernel.duration_us, stream=stream, tiles=tiles, needs=kernel.needs or needs)
        )
        ops += [Op(OpKind.SYNC)] if waited_for else [Op(OpKind.RECORD, index=number, stream=stream)]
    return Workload(
        name=name,
        gpu=gpu.name,
        gpu_spec=gpu,
        source="made from grids of tiles and durations",
        kernels=_table(name, kernels),
        stream_priorities=(0,) * (len(kernels) if beside else 1),
        variants=(Variant(ops=(*ops, *([] if waited_for else [Op(OpKind.SYNC)]))),),
        iteration_us=(sum(kernel.duration_us for kernel in kernels),),
    )


def _table(name: str, kernels: Sequence[TiledKernel]) -> tuple[Kernel, ...]:
    """The kernels of a chain in order, and behind them their forms."""
    table = [_kernel(f"{name}-{number}", kernel) for number, kernel in enumerate(kernels)]
    for number, kernel in enumerate(kernels):
        first = len(table)
        table += [_kernel(f"{name}-{number}-form{place}", form) for place, form in enumerate(kernel.forms)]
        table[number] = msgspec.structs.replace(table[number], forms=tuple(range(first, len(table))))
    return tuple(table)


def _kernel(name: str, tiled: TiledKernel) -> Kernel:
    if tiled.blocks_per_sm not in REGISTERS:
        raise InputError(f"{name}: {tiled.blocks_per_sm} blocks an SM; must be 1 to {max(REGISTERS)}")
    return Kernel(
        name=name,
        grid=(tiled.columns, tiled.rows, tiled.slices),
        block=(THREADS, 1, 1),
        registers=REGISTERS[tiled.blocks_per_sm],
        duration_us=tiled.duration_us,
        kind="compute",
        issue_fraction=0.0,
        dram_bytes=0.0,
    )


def chain_per_job(name: str, workloads: Sequence[Workload]) -> Workload:
    """A program each of whose jobs is an iteration of one of several workloads of a GPU, drawn.

    Args:
        name: of the workload.
        workloads: of kernels without graphs.
    """
    kernels: list[Kernel] = []
    variants = []
    for workload in workloads:
        first = len(kernels)
        kernels += [
            msgspec.structs.replace(kernel, forms=tuple(first + form for form in kernel.forms))
            for kernel in workload.kernels
        ]
        for variant in workload.variants:
            ops = [
                msgspec.structs.replace(op, index=first + op.index) if op.kind is OpKind.KERNEL else op
                for op in variant.ops
            ]
            variants.append(Variant(ops=tuple(ops)))
    return msgspec.structs.replace(
        workloads[0],
        name=name,
        kernels=tuple(kernels),
        stream_priorities=max((workload.stream_priorities for workload in workloads), key=len),
        variants=tuple(variants),
        iteration_us=tuple(us for workload in workloads for us in workload.iteration_us),
    )


class Chain(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Random chains of kernels, from their name: ``chain(seed=3)``."""

    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)]
    kind: Literal["products", "convolutions"] = "products"
    count: Annotated[int, Meta(ge=1, le=256)] = 1
    """Number of different chains, of which each job is one, drawn."""
    gpu: str = "v100-sxm"
    """The GPU whose SMs its waves are drawn for."""


def is_chain(name: str) -> bool:
    """Whether a workload's name is that of random chains."""
    return name.partition("(")[0].strip() == "chain"


def chain_of(name: str) -> Chain:
    """What ``chain(seed=3)`` asks for.

    Raises:
        InputError: it cannot be read, or a parameter is unknown, missing or out of range.
    """
    return parameters_of(name, Chain, "chain(seed=3)")


@functools.lru_cache(maxsize=64)
def random_chain(name: str) -> Workload:
    """What a name asks for, the same in every process.

    Raises:
        InputError: as :func:`chain_of`, or there is no such GPU.
    """
    asked = chain_of(name)
    gpu, dice = load_gpu(asked.gpu), np.random.default_rng(asked.seed)
    draw = _products if asked.kind == "products" else _convolutions
    name = name.strip()
    chains = []
    for number in range(asked.count):
        kernels, needs = draw(gpu, dice)
        chains.append(dependent_workload(name if asked.count == 1 else f"{name}-{number}", gpu, kernels, needs))
    return chains[0] if asked.count == 1 else chain_per_job(name, chains)


def _products(gpu: GpuSpec, dice: np.random.Generator) -> tuple[list[TiledKernel], TileNeeds]:
    """Two to four products of 1 to 12 rows, 2 to 64 columns and 1 to 4 slices. Their blocks last 50 to 1,000
    microseconds, and one or two fit on an SM."""
    rows = int(dice.integers(1, 13))
    fold = int(dice.choice([1, 1, 1, 2]))
    kernels, longest_us = [], 0.0
    for _ in range(int(dice.choice([2, 2, 2, 3, 4]))):
        columns, slices = fold * int(dice.integers(2, 33)), int(dice.choice([1, 1, 2, 3, 4]))
        shape = TiledKernel(rows, columns, slices, 1.0, int(dice.integers(1, 3)))
        block_us = float(np.exp(dice.uniform(np.log(50.0), np.log(1000.0))))
        longest_us = max(longest_us, block_us)
        kernels.append(replace(shape, duration_us=shape.waves(gpu.sms) * block_us))
    return kernels, TileNeeds(fold=fold, lead=lead_of(longest_us))


def _convolutions(gpu: GpuSpec, dice: np.random.Generator) -> tuple[list[TiledKernel], TileNeeds]:
    """Two or four equal convolutions of 1 to 8 columns, 1 to 800 tiles and 1 to 4 slices. Their blocks last 15 to 110
    microseconds, and two or four fit on an SM."""
    columns, slices, fitting = int(dice.choice([1, 1, 2, 4, 8])), int(dice.integers(1, 5)), int(dice.choice([2, 4]))
    rows = int(np.ceil(np.exp(dice.uniform(0.0, np.log(800.0 / columns)))))
    block_us = float(np.exp(dice.uniform(np.log(15.0), np.log(110.0))))
    shape = TiledKernel(rows, columns, slices, 1.0, fitting)
    kernel = replace(shape, duration_us=shape.waves(gpu.sms) * block_us)
    return [kernel] * int(dice.choice([2, 2, 4])), TileNeeds(steps=FILTER)


def check_tiles(workload: Workload, variant: Variant, marks: Marks) -> None:
    """Check the kernels of a variant that need a producer's tiles.

    Raises:
        InputError: the producer is no kernel, or comes later, or the grids do not match.
    """
    for thread, ops in enumerate(variant.all_threads):
        for place, op in enumerate(ops):
            if op.tiles < 0:
                continue
            where = f"workload {workload.name}: operation {place} of host thread {thread}"
            producer = _producer(variant, marks, op, (thread, place), where)
            # Each kernel may be given any of its forms.
            for made, used in itertools.product(*(_in_forms(workload, one.index) for one in (producer, op))):
                wrong = mismatch(made, used, op.needs)
                if wrong:
                    raise InputError(f"{where}: {wrong}")


def _in_forms(workload: Workload, index: int) -> list[Kernel]:
    """A kernel of the table as it is, and in its forms."""
    own = workload.kernels[index]
    return [own, *(workload.kernels[form] for form in own.forms)]


def _producer(variant: Variant, marks: Marks, op: Op, here: tuple[int, int], where: str) -> Op:
    """The kernel whose tiles an operation needs."""
    behind = marks.standing_for(op.tiles)
    threads = variant.all_threads
    found = [threads[thread][place] for thread, place in behind]
    if len(found) != 1 or found[0].kind is not OpKind.KERNEL:
        raise InputError(f"{where}: event {op.tiles}, whose tiles it needs, must be recorded right behind one kernel")
    thread, place = behind[0]
    if thread == here[0] and place >= here[1]:
        raise InputError(
            f"{where} needs the tiles of operation {place}, which comes after it: a producer comes before its consumer"
        )
    return found[0]


def mismatch(producer: Kernel, consumer: Kernel, needs: TileNeeds) -> str:
    """Why the tiles of two kernels do not fit each other; empty: they do."""
    columns, rows, _ = producer.grid
    consumer_columns, consumer_rows, _ = consumer.grid
    grids = f"kernel {consumer.name} has {consumer_rows} x {consumer_columns} tiles, {producer.name} {rows} x {columns}"
    if needs.kind == "tile" and (rows, columns) != (consumer_rows, consumer_columns):
        return f"{grids}: where each tile needs the one at its place, both grids must be equal"
    if needs.kind == "row" and max(rows, consumer_rows) % min(rows, consumer_rows):
        return f"{grids}: the rows of one grid must be a multiple of the other's"
    sizes = rows, consumer_rows, consumer_columns
    if needs.kind == "product" and any(size % min(sizes) for size in sizes):
        return f"{grids}: a tile reads the row that is its column; the least of both rows and its columns divides them"
    if needs.kind == "product" and needs.fold < 2:
        return f"{grids}: a product takes two of the producer's matrices, which has {needs.fold} (fold)"
    if needs.kind in ("row", "product") and columns % needs.fold:
        return f"{grids}: the producer's columns must be a multiple of the {needs.fold} matrices that it has (fold)"
    return ""
