"""Random programs: what host threads do in an iteration, in streams, with events, graphs, tiles and children."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gpusched_env.experiments.fuzz.dice import Dice
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Child, GraphNode, Op, OpKind, Variant, Workload

NEVER_RECORDED = 99
"""An event that nothing records."""
MOST_NODES = 8


@dataclass
class Style:
    """What the programs of a workload are like."""

    streams: int = 1
    threads: int = 1
    idle: float = 0.0
    """Share of operations without host time."""
    events: float = 0.0
    """Records and waits, to a weight of 7 for kernels."""
    tiles: float = 0.0
    """Share of kernels that wait for tiles, where there is a producer."""
    children: float = 0.0
    """Share of kernels with children."""
    graphs: int = 0

    @classmethod
    def draw(cls, dice: Dice) -> Style:
        """Half of the time one stream and thread, and nothing but kernels, copies and synchronisations."""
        idle = dice.pick((0.0, 0.3, 1.0))
        if dice.chance(0.4):
            return cls(idle=idle)
        streams, threads = dice.weighted({1: 2, 2: 3, 3: 2, 4: 1}), dice.weighted({1: 6, 2: 2, 3: 1})
        return cls(
            streams=streams,
            threads=threads,
            idle=idle,
            events=dice.pick((0.0, 3.0, 10.0)) if streams > 1 or threads > 1 else dice.pick((0.0, 0.0, 1.0)),
            tiles=dice.weighted({0.0: 3, 0.3: 1, 0.7: 1}) if streams > 1 else 0.0,
            children=dice.weighted({0.0: 4, 0.2: 1, 0.6: 1}),
            graphs=dice.weighted({0: 3, 1: 2, 2: 1}),
        )


def draw_graph(dice: Dice, kernels: Sequence[Kernel]) -> tuple[GraphNode, ...]:
    """A few nodes, in chains, branches and joins."""
    count = dice.log_integer(1, MOST_NODES)
    width = dice.pick((0.1, 0.5, 0.9))
    a_kernel = dice.integer(0, count - 1)
    nodes: list[GraphNode] = []
    for number in range(count):
        after = {number - 1} if number and not dice.chance(width) else set()
        while number and dice.chance(0.3):
            after.add(dice.integer(0, number - 1))
        if number == a_kernel or dice.chance(0.8):
            index, duration_us = _kernel(dice, kernels)
            nodes.append(GraphNode(OpKind.KERNEL, index, duration_us, 0, tuple(sorted(after))))
        else:
            kind, duration_us, size = _copy(dice)
            nodes.append(GraphNode(kind, -1, duration_us, size, tuple(sorted(after))))
    return tuple(nodes)


def draw_variant(dice: Dice, style: Style, kernels: Sequence[Kernel], graphs: int) -> Variant:
    """One iteration."""
    threads = _Threads(dice, style, kernels, graphs)
    return Variant(ops=threads.draw(first=True), threads=tuple(threads.draw() for _ in range(style.threads - 1)))


@dataclass
class _Threads:
    """Draws the threads of a variant one after the other; they wait for events of earlier ones."""

    dice: Dice
    style: Style
    kernels: Sequence[Kernel]
    graphs: int
    events: int = 0
    producers: list[int] = field(default_factory=list)
    """Events right behind a kernel."""

    def draw(self, *, first: bool = False) -> tuple[Op, ...]:
        """The operations of the next thread; the first one has a kernel."""
        dice, style = self.dice, self.style
        ops: list[Op] = []
        length = dice.log_integer(1, 12 if style.threads == 1 else 8)
        a_kernel = dice.integer(0, length - 1) if first else -1
        weights = {"kernel": 7.0, "copy": 2.0, "sync": 1.0, "graph": 2.0 * self.graphs}
        weights |= {"record": style.events, "wait": style.events, "host": 0.2}
        for place in range(length):
            kind = dice.weighted(weights) if place != a_kernel else "kernel"
            ops += self._ops(kind, 0.0 if dice.chance(style.idle) else dice.number(0.1, 50.0))
        if dice.chance(0.7):
            ops.append(Op(OpKind.SYNC))
        return tuple(ops)

    def _ops(self, kind: str, host_us: float) -> list[Op]:
        dice = self.dice
        stream = dice.integer(0, self.style.streams - 1)
        match kind:
            case "kernel":
                return self._launch(host_us, stream)
            case "copy":
                which, duration_us, size = _copy(dice)
                return [Op(which, host_us, -1, duration_us, size, stream)]
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
                return [self._sync(host_us, stream)]

    def _launch(self, host_us: float, stream: int) -> list[Op]:
        """A kernel; where others may wait for its tiles, an event behind it."""
        dice, style = self.dice, self.style
        index, duration_us = _kernel(dice, self.kernels)
        tiles = dice.pick(self.producers) if self.producers and dice.chance(style.tiles) else -1
        children: tuple[Child, ...] = ()
        if dice.chance(style.children):
            children = tuple(Child(*_kernel(dice, self.kernels)) for _ in range(dice.integer(1, 3)))
        ops = [Op(OpKind.KERNEL, host_us, index, duration_us, 0, stream, tiles, children)]
        if dice.chance(style.tiles):
            ops.append(self._record(stream))
            self.producers.append(ops[-1].index)
        return ops

    def _record(self, stream: int) -> Op:
        self.events += 1
        return Op(OpKind.RECORD, index=self.events - 1, stream=stream)

    def _event(self) -> int:
        """Mostly one that was recorded before; nobody gets past one that is recorded later in its own thread."""
        dice = self.dice
        if dice.chance(0.02):
            return NEVER_RECORDED
        return dice.integer(0, self.events - 1) if self.events and not dice.chance(0.02) else self.events

    def _sync(self, host_us: float, stream: int) -> Op:
        kind = self.dice.pick((OpKind.SYNC, OpKind.SYNC_STREAM, OpKind.SYNC_EVENT))
        if kind is OpKind.SYNC_EVENT:
            return Op(kind, host_us, self._event())
        return Op(kind, host_us, stream=stream)


def _kernel(dice: Dice, kernels: Sequence[Kernel]) -> tuple[int, float]:
    """A row, and a duration of one launch."""
    index = dice.integer(0, len(kernels) - 1)
    factor = 1.0 if dice.chance(0.7) else dice.pick((0.5, 2.0, dice.number(0.5, 2.0)))
    return index, kernels[index].duration_us * factor


def _copy(dice: Dice) -> tuple[OpKind, float, int]:
    """Kind, duration and bytes."""
    kind = dice.pick((OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST, OpKind.COPY_ON_DEVICE, OpKind.MEMSET))
    return kind, 0.0 if dice.chance(0.1) else dice.number(0.5, 50.0), dice.log_integer(1, 1_000_000)


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


def capturable(workload: Workload) -> bool:
    """Whether its iterations can be launched as graphs."""
    ops = [op for variant in workload.variants for op in variant.all_ops]
    return not any(op.kind is OpKind.GRAPH or op.children or op.tiles >= 0 for op in ops)
