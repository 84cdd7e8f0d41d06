"""Random workloads: a few kernels, and programs of host threads that launch them in streams, with copies, events,
synchronisations, graphs, tiles and children."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from gpusched_env.errors import InputError
from gpusched_env.experiments.fuzz.dice import Dice, with_cold_kernels
from gpusched_env.hardware.occupancy import footprint
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.dependent import mismatch
from gpusched_env.workload.kernel import Kernel, KernelClass
from gpusched_env.workload.profile import most_residents
from gpusched_env.workload.workload import COPIES, Child, GraphNode, Op, OpKind, TileNeeds, Variant, Workload

SOURCE = "drawn by the fuzzer"
KINDS: tuple[KernelClass, ...] = ("compute", "memory", "mixed", "latency")
NEVER_RECORDED = 99
"""An event that nothing records."""
MOST_NODES = 8
"""Nodes of a graph, at most."""
MOST_WAVES = 300
"""Waves of a grid alone, most of the time: each is several events where it cannot be jumped over."""
SHORTEST_BLOCK_US = 0.05
"""Blocks that are far shorter than any real one end within the rounding of the clock."""


def draw_workload(dice: Dice, name: str, gpu: GpuSpec, *, tiled: bool = False) -> Workload:
    """A workload recorded on ``gpu``: all its kernels fit there; ``tiled``: most need the tiles of others."""
    usual_us = dice.number(1.0, 300.0)
    kernels = [_kernel(dice, f"{name}_k{i}", gpu, usual_us) for i in range(dice.integer(1, 5))]
    if dice.chance(0.3):
        # Equal in everything but the name.
        kernels.append(replace(kernels[0], name=f"{name}_twin"))
    programs = _Programs.tiled(dice, kernels) if tiled else _Programs.draw(dice, kernels)
    if programs.tiles > 0.0:
        programs.kernels = kernels = [_as_tiles(dice, kernel, gpu) for kernel in kernels]
    graphs = tuple(programs.graph() for _ in range(programs.graphs))
    variants = tuple(programs.variant() for _ in range(dice.weighted({1: 6, 2: 2, 3: 1})))
    iterations = dice.weighted({1: 4, 2: 1, 3: 1, 5: 1})
    workload = Workload(
        name=name,
        gpu=gpu.name,
        source=SOURCE,
        kernels=tuple(kernels),
        graphs=graphs,
        variants=variants,
        iteration_us=tuple(100.0 * dice.number(0.5, 2.0) for _ in range(iterations)),
        # A consumer that goes before its producer takes its slots.
        stream_priorities=(0,) * programs.streams
        if tiled and dice.chance(0.7)
        else tuple(dice.integer(1 - gpu.priorities, 0) for _ in range(programs.streams)),
    )
    return with_cold_kernels(dice, workload, gpu) if dice.chance(0.3) else workload


def evenly(workload: Workload, recorded_on: GpuSpec) -> Workload:
    """The workload with blocks that fill SMs evenly, where that leaves them long enough."""

    def even(kernel: Kernel) -> Kernel:
        changed = replace(kernel, waves="even")
        return changed if kernel.duration_us >= SHORTEST_BLOCK_US * kernel_waves(changed, recorded_on) else kernel

    return replace(workload, kernels=tuple(map(even, workload.kernels)))


# ---- kernels -------------------------------------------------------------------------------------


def _kernel(dice: Dice, name: str, gpu: GpuSpec, usual_us: float) -> Kernel:
    limits = gpu.limits
    threads = min(dice.pick((32, 64, 96, 128, 200, 256, 384, 512, 768, 1000, 1024)), limits.threads_per_block)
    registers = min(dice.pick((16, 24, 32, 40, 64, 96, 128, 200, 255)), limits.registers_per_thread)
    # Rounding up to whole warps and allocation units included.
    while (registers + 8) * (threads + 31) > limits.registers:
        registers //= 2
    # Shared memory of a block that fits even with the system's reserve.
    most = min(limits.shared_bytes_per_block, limits.shared_bytes - limits.shared_reserve)
    most -= most % limits.shared_unit
    some = dice.log_integer(1, most)
    shared = dice.weighted({0: 5, most: 1, most // 2: 1, min(most, 1000): 1, some: 3})
    wave = gpu.sms * footprint(gpu, threads, registers, shared).blocks_per_sm
    blocks = _blocks(dice, gpu.sms, wave)
    duration_us = usual_us if dice.chance(0.3) else min(1000.0, max(0.5, usual_us * dice.number(0.1, 5.0)))
    duration_us = max(duration_us, SHORTEST_BLOCK_US * -(-blocks // wave))
    full = gpu.dram_bytes_per_us * duration_us
    return Kernel(
        name=name,
        grid=(blocks // 2, 2, 1) if blocks % 2 == 0 and dice.chance(0.3) else (blocks, 1, 1),
        block=(threads, 1, 1),
        registers=registers,
        shared_bytes=shared,
        duration_us=duration_us,
        kind=dice.pick(KINDS),
        issue_fraction=0.0 if dice.tidy else dice.pick((None, 0.0, 0.0, 0.2, 0.8, 1.0, dice.uniform(0.0, 1.0))),
        dram_bytes=0.0
        if dice.tidy
        else dice.pick((None, 0.0, 0.0, full * dice.uniform(0.0, 0.5), full * dice.uniform(0.5, 1.0), full * 1.2)),
        idempotent=dice.chance(0.75),
    )


def _blocks(dice: Dice, sms: int, wave: int) -> int:
    if dice.chance(0.005):
        return 100_000
    if dice.chance(0.4):
        # Around the edge of an SM or a wave.
        edge = dice.pick((1, sms, wave, 2 * wave, dice.integer(1, 5) * wave))
        return max(1, min(100_000, edge + dice.pick((-1, 0, 0, 1))))
    return dice.log_integer(1, min(100_000, MOST_WAVES * wave, max(10, 40 * wave) if dice.chance(0.97) else 100_000))


def _as_tiles(dice: Dice, kernel: Kernel, gpu: GpuSpec) -> Kernel:
    """The kernel with a grid of few rows, columns and slices of tiles."""
    grid = dice.integer(1, 8), dice.weighted({1: 3, 2: 2, 3: 1, 4: 2, 6: 1}), dice.weighted({1: 5, 2: 2, 3: 1})
    tiled = replace(kernel, grid=grid)
    return replace(tiled, duration_us=max(kernel.duration_us, SHORTEST_BLOCK_US * kernel_waves(tiled, gpu)))


# ---- programs ------------------------------------------------------------------------------------


@dataclass
class _Programs:
    """What the programs of a workload are like; draws its graphs and variants."""

    dice: Dice
    kernels: Sequence[Kernel]
    idle: float
    """Share of operations without host time."""
    streams: int = 1
    threads: int = 1
    event_weight: float = 0.0
    """How often operations are records and waits, where kernels have 7."""
    shortest: int = 1
    """Operations that a thread has at least."""
    tiles: float = 0.0
    """Share of kernels that need tiles, where there is a producer."""
    children: float = 0.0
    """Share of kernels with children."""
    graphs: int = 0
    events: int = 0
    """Events recorded so far in this variant."""
    producers: dict[int, int] = field(default_factory=dict)
    """Events right behind a kernel, and its row."""

    @classmethod
    def draw(cls, dice: Dice, kernels: Sequence[Kernel]) -> _Programs:
        """Half of the time one stream and thread, and nothing but kernels, copies and synchronisations."""
        idle = dice.pick((0.0, 0.3, 1.0))
        if dice.chance(0.4):
            return cls(dice, kernels, idle)
        streams, threads = dice.weighted({1: 2, 2: 3, 3: 2, 4: 1}), dice.weighted({1: 6, 2: 2, 3: 1})
        return cls(
            dice,
            kernels,
            idle,
            streams,
            threads,
            event_weight=dice.pick((0.0, 3.0, 10.0) if streams > 1 or threads > 1 else (0.0, 0.0, 1.0)),
            tiles=dice.weighted({0.0: 3, 0.3: 1, 0.7: 1}) if streams > 1 else 0.0,
            children=dice.weighted({0.0: 4, 0.2: 1, 0.6: 1}),
            graphs=dice.weighted({0: 3, 1: 2, 2: 1}),
        )

    @classmethod
    def tiled(cls, dice: Dice, kernels: Sequence[Kernel]) -> _Programs:
        """Several streams of one thread, and kernels most of which need the tiles of others."""
        idle, streams = dice.pick((0.3, 1.0, 1.0)), dice.integer(2, 4)
        events, tiles = dice.pick((0.0, 1.0)), dice.pick((0.6, 0.9))
        return cls(dice, kernels, idle, streams, shortest=3, event_weight=events, tiles=tiles)

    def graph(self) -> tuple[GraphNode, ...]:
        """A few nodes, in chains, branches and joins."""
        dice = self.dice
        count = dice.log_integer(1, MOST_NODES)
        width = dice.pick((0.1, 0.5, 0.9))
        a_kernel = dice.integer(0, count - 1)
        nodes: list[GraphNode] = []
        for number in range(count):
            after = {number - 1} if number and not dice.chance(width) else set()
            while number and dice.chance(0.3):
                after.add(dice.integer(0, number - 1))
            is_kernel = number == a_kernel or dice.chance(0.8)
            kind, index, duration_us, size = (OpKind.KERNEL, *self._kernel(), 0) if is_kernel else self._copy()
            nodes.append(GraphNode(kind, index, duration_us, size, tuple(sorted(after))))
        return tuple(nodes)

    def variant(self) -> Variant:
        """One iteration; its threads wait for events of earlier ones."""
        self.events, self.producers = 0, {}
        first, *others = [self._thread(first=i == 0) for i in range(self.threads)]
        return Variant(ops=first, threads=tuple(others))

    def _thread(self, *, first: bool) -> tuple[Op, ...]:
        """The operations of the next thread; the first one has a kernel."""
        dice = self.dice
        ops: list[Op] = []
        length = max(self.shortest, dice.log_integer(1, 12 if self.threads == 1 else 8))
        a_kernel = dice.integer(0, length - 1) if first else -1
        weights = {"kernel": 7.0, "copy": 2.0, "sync": 1.0, "graph": 2.0 * self.graphs}
        weights |= {"record": self.event_weight, "wait": self.event_weight, "host": 0.2}
        for place in range(length):
            kind = dice.weighted(weights) if place != a_kernel else "kernel"
            ops += self._ops(kind, 0.0 if dice.chance(self.idle) else dice.number(0.1, 50.0))
        if dice.chance(0.7):
            ops.append(Op(OpKind.SYNC))
        return tuple(ops)

    def _ops(self, kind: str, host_us: float) -> list[Op]:
        dice = self.dice
        stream = dice.integer(0, self.streams - 1)
        match kind:
            case "kernel":
                chained = self.tiles > 0.0 and dice.chance(self.tiles)
                return self._chain(host_us, stream) if chained else self._launch(host_us, stream)
            case "copy":
                which, index, duration_us, size = self._copy()
                return [Op(which, host_us, index, duration_us, size, stream)]
            case "graph":
                return [Op(OpKind.GRAPH, host_us, dice.integer(0, self.graphs - 1), stream=stream)]
            case "record":
                before = self._launch(host_us, stream) if dice.chance(0.5) else []
                return [*before, self._record(stream)]
            case "wait":
                behind = self._launch(host_us, stream) if dice.chance(0.7) else []
                return [Op(OpKind.WAIT, host_us, self._event(), stream=stream), *behind]
            case "host":
                return [Op(OpKind.HOST, host_us)]
            case _:
                sync = dice.pick((OpKind.SYNC, OpKind.SYNC_STREAM, OpKind.SYNC_EVENT))
                if sync is OpKind.SYNC_EVENT:
                    return [Op(sync, host_us, self._event())]
                return [Op(sync, host_us, stream=stream)]

    def _launch(self, host_us: float, stream: int) -> list[Op]:
        """A kernel; where others may wait for its tiles, an event behind it."""
        dice = self.dice
        index, duration_us = self._kernel()
        tiles, needs = -1, TileNeeds()
        if self.producers and dice.chance(self.tiles):
            tiles = dice.pick(list(self.producers))
            needs = self._needs(self.kernels[self.producers[tiles]], self.kernels[index])
        count = dice.integer(1, 3) if dice.chance(self.children) else 0
        children = tuple(Child(*self._kernel()) for _ in range(count))
        ops = [Op(OpKind.KERNEL, host_us, index, duration_us, 0, stream, tiles, children, needs=needs)]
        if dice.chance(self.tiles):
            ops.append(self._record(stream))
            self.producers[ops[-1].index] = index
        return ops

    def _chain(self, host_us: float, stream: int) -> list[Op]:
        """Kernels that each need the tiles of the one before, issued at once in one stream after the other."""
        ops = self._launch(host_us, stream)
        producer = ops[0]
        for place in range(1, self.dice.integer(2, 3)):
            if ops[-1].kind is OpKind.KERNEL:
                ops.append(self._record(producer.stream))
            index, duration_us = self._kernel()
            needs = self._needs(self.kernels[producer.index], self.kernels[index])
            beside = (stream + place) % self.streams
            producer = Op(OpKind.KERNEL, 0.0, index, duration_us, 0, beside, ops[-1].index, needs=needs)
            ops.append(producer)
        return ops

    def _needs(self, producer: Kernel, consumer: Kernel) -> TileNeeds:
        """What tiles need that fit: mostly their row, if the grids match."""
        dice = self.dice
        fold = dice.pick([fold for fold in range(1, producer.grid[0] + 1) if producer.grid[0] % fold == 0])
        steps, lead = dice.weighted({1: 4, 9: 1}), 0.0 if dice.chance(0.5) else dice.number(0.05, 0.9)
        fitting = [
            needs
            for needs in (
                TileNeeds("row", fold if dice.chance(0.5) else 1, steps, lead),
                TileNeeds("tile", lead=lead),
                *([TileNeeds("product", fold, lead=lead)] if self.shortest > 1 else []),
            )
            if not mismatch(producer, consumer, needs)
        ]
        return dice.pick(fitting) if fitting and dice.chance(0.8) else TileNeeds("share", lead=lead)

    def _record(self, stream: int) -> Op:
        self.events += 1
        return Op(OpKind.RECORD, index=self.events - 1, stream=stream)

    def _event(self) -> int:
        """Mostly one that was recorded before; nobody gets past one that is recorded later in its own thread."""
        dice = self.dice
        if dice.chance(0.02):
            return NEVER_RECORDED
        return dice.integer(0, self.events - 1) if self.events and not dice.chance(0.02) else self.events

    def _kernel(self) -> tuple[int, float]:
        """A row, and a duration of one launch."""
        dice = self.dice
        index = dice.integer(0, len(self.kernels) - 1)
        factor = 1.0 if dice.chance(0.7) else dice.pick((0.5, 2.0, dice.number(0.5, 2.0)))
        return index, self.kernels[index].duration_us * factor

    def _copy(self) -> tuple[OpKind, int, float, int]:
        """Kind, no row, duration and bytes."""
        dice = self.dice
        kind, duration_us = dice.pick(COPIES), 0.0 if dice.chance(0.1) else dice.number(0.5, 50.0)
        return kind, -1, duration_us, dice.log_integer(1, 1_000_000)


# ---- what a workload amounts to --------------------------------------------------------------------


class WorkloadSize(NamedTuple):
    """The size of a job alone, on average over variants."""

    kernels: float
    job_us: float
    """About how long the job takes."""
    kernel_us: float
    """About how long a kernel takes."""
    blocks: float
    """Blocks of a kernel, on average."""
    waves: int
    """Waves of blocks."""


def size_of(workload: Workload, gpu: GpuSpec) -> WorkloadSize:
    """The size of a job of ``workload`` on ``gpu``."""
    launched, variants = list(kernels_of(workload)), workload.variants
    ops = [op for variant in variants for op in variant.all_ops]
    busy_us = sum(op.host_us for op in ops) + sum(op.duration_us for op in ops if op.kind in COPIES)
    job_us = (busy_us + sum(duration_us for _, duration_us in launched)) / len(variants)
    waves = [kernel_waves(kernel, gpu) for kernel in workload.kernels]
    return WorkloadSize(
        kernels=len(launched) / len(variants),
        job_us=job_us,
        kernel_us=job_us * len(variants) / len(launched),
        blocks=sum(workload.kernels[row].blocks for row, _ in launched) / len(launched),
        waves=-(-sum(waves[row] for row, _ in launched) // len(variants)),
    )


def kernels_of(workload: Workload) -> Iterator[tuple[int, float]]:
    """Row and duration of all kernels in all variants of a workload: launched, children, and nodes of graphs."""
    for variant in workload.variants:
        for op in variant.all_ops:
            if op.kind is OpKind.KERNEL:
                yield op.index, op.duration_us
                yield from ((child.index, child.duration_us) for child in op.children)
            elif op.kind is OpKind.GRAPH:
                nodes = workload.graphs[op.index]
                yield from ((node.index, node.duration_us) for node in nodes if node.kind is OpKind.KERNEL)


def kernel_waves(kernel: Kernel, gpu: GpuSpec) -> int:
    """Waves of blocks of a kernel alone."""
    print_ = footprint(gpu, kernel.threads, kernel.registers, kernel.shared_bytes)
    fitting = min(print_.blocks_per_sm, most_residents(kernel, print_, gpu))
    return -(-kernel.blocks // (fitting * gpu.sms))


def fits(workload: Workload, gpu: GpuSpec) -> bool:
    """Whether all kernels of ``workload`` can run on ``gpu``."""
    try:
        for kernel in workload.kernels:
            kernel_waves(kernel, gpu)
    except InputError:
        return False
    return True
