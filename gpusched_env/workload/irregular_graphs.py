"""Random irregular kernel graphs to train on: workloads of the recorded kinds, each from a seed.

A family says which kernel reads what which other one wrote. Kernels, their sizes and times, and memory are random.
"""

from __future__ import annotations

import functools
import itertools
import random
import statistics
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.alone import recorded_threads
from gpusched_env.workload.generated_names import IrregularGraph, irregular_graph
from gpusched_env.workload.idle_gpu import IdleGpu
from gpusched_env.workload.kernel import Kernel, classify
from gpusched_env.workload.memory import SMALL_BLOCKS
from gpusched_env.workload.workload import Op, OpKind, Segment, Variant, Workload

HOST_US: Final = 11.0
"""Median host time of a launch: PyTorch's, as recorded. A tenant's ``host_us`` sets another one."""
BLOCK_BYTES: Final = 1024
"""Bytes that a block writes (a recorded elementwise kernel: 256 elements of 4 bytes)."""
_SHORTEST_US, _LONGEST_US = 0.8, 120.0


class Tensor(NamedTuple):
    """Memory of the program."""

    storage: int
    first: int
    end: int


class _Family(NamedTuple):
    """What families differ in besides their structure, from the recordings."""

    typical_us: tuple[float, float]
    """Range of the median duration, log-uniform."""
    spread: tuple[float, float]
    """Range of the standard deviation of the durations' logarithm."""
    small: tuple[float, float]
    """Range of the share of small kernels."""


_FAMILIES: Final = {
    "physics": _Family((1.3, 1.8), (0.15, 0.35), (0.3, 1.0)),
    "dynamic": _Family((1.1, 2.5), (0.2, 0.6), (0.1, 0.8)),
    "cells": _Family((0.9, 4.5), (0.15, 0.6), (0.05, 1.0)),
    "wired": _Family((0.9, 4.5), (0.15, 0.6), (0.05, 1.0)),
}
Role = Literal["elementwise", "reduce", "norm", "conv", "gemm"]
_PARAMETERS: Final = {"elementwise": (0, 0), "reduce": (0, 0), "norm": (0, 8), "conv": (1, 4), "gemm": (1, 3)}
"""Range of the number of the model's tensors that a kernel reads, by role."""
_THREADS: Final = {
    "elementwise": (128,),
    "reduce": (512,),
    "norm": (128, 256),
    "conv": (64, 128, 256),
    "gemm": (128, 256),
}
_REGISTERS: Final = {
    "elementwise": (16, 32),
    "reduce": (32, 54),
    "norm": (24, 48),
    "conv": (64, 160),
    "gemm": (90, 168),
}
_SHARED: Final = {"elementwise": 0, "reduce": 16, "norm": 0, "conv": 49_152, "gemm": 65_536}
"""Largest shared memory of a block by role, in bytes."""

Steps = Generator[None, None, None]
"""A part of a program: goes on by a launch with each step."""
Chain = Generator[None, None, Tensor]
"""A part of a program as :data:`Steps`, which gives what it computed."""


class Network:
    """What all inputs have in common: the kernels, and what is drawn of the structure."""

    def __init__(self, graph: IrregularGraph) -> None:
        self._key = f"{graph.family}/{graph.seed}"
        family, rng = _FAMILIES[graph.family], self.at("network")
        self._typical_us, self._spread = _log_uniform(rng, *family.typical_us), rng.uniform(*family.spread)
        kernels, width = round(_log_uniform(rng, 100, 450)), round(_log_uniform(rng, 0.6, 8.4))
        small = rng.uniform(*family.small)
        self.kernels = kernels if graph.kernels is None else graph.kernels
        self.width = width if graph.width is None else graph.width
        self._small = small if graph.small is None else graph.small
        self.reuse = rng.random()
        """How often a tensor gets memory that was freed."""
        self.stay = rng.choice((1.0, 1.0, rng.random()))
        """How often the program goes on with the strand that it was in; 1: strands come one after the other."""
        self.reads_back = rng.random() < 0.5
        """Whether the host reads what a dynamic layer chose."""
        large = SMALL_BLOCKS + 1
        self._sizes = tuple(
            [round(_log_uniform(rng, *between)) for _ in range(rng.randint(3, 8))]
            for between in ((1, SMALL_BLOCKS), (large, 2500 if graph.family != "physics" else 4 * SMALL_BLOCKS))
        )
        self._kernels: dict[tuple[Role, int], tuple[int, Kernel]] = {}
        """Kernels with their rows, by role and blocks."""
        self.parameters = {role: rng.randint(*between) for role, between in _PARAMETERS.items()}
        """Number of the model's tensors that a kernel reads besides, by role."""
        self.again = rng.uniform(0.0, 0.4)
        """How often a kernel of a chain reads the further inputs of the chain."""

    def at(self, *place: object) -> random.Random:
        """What is drawn at a place of the network, whatever was drawn elsewhere."""
        return random.Random("/".join([self._key, *map(str, place)]))

    def kernel(self, role: Role, rng: random.Random, tiny: bool) -> tuple[int, Kernel]:
        """Row and kernel for a place of the network."""
        sizes = self._sizes[rng.random() >= self._small]
        blocks = 1 if tiny else rng.choice(sizes)
        if (role, blocks) not in self._kernels:
            self._kernels[role, blocks] = len(self._kernels), self._drawn(role, blocks)
        return self._kernels[role, blocks]

    def _drawn(self, role: Role, blocks: int) -> Kernel:
        rng = self.at(role, blocks)
        duration_us = self._typical_us * rng.lognormvariate(0.0, self._spread) * max(1.0, blocks / 132) ** 0.4
        duration_us = round(min(max(duration_us, _SHORTEST_US), _LONGEST_US), 3)
        name = f"{role}_kernel<{blocks}>"
        return Kernel(
            name=name,
            grid=(blocks, 1, 1),
            block=(rng.choice(_THREADS[role]), 1, 1),
            registers=rng.randint(*_REGISTERS[role]),
            shared_bytes=rng.randint(0, _SHARED[role]) // 16 * 16,
            duration_us=duration_us,
            kind=classify(name, blocks, duration_us),
        )

    def table(self, programs: Iterable[Program]) -> tuple[Kernel, ...]:
        """All kernels, with the mean durations of their launches."""
        durations: list[list[float]] = [[] for _ in self._kernels]
        for program in programs:
            for op in program.ops:
                if op.kind is OpKind.KERNEL:
                    durations[op.index].append(op.duration_us)
        return tuple(
            msgspec.structs.replace(kernel, duration_us=round(statistics.fmean(durations[row]), 3))
            for row, kernel in self._kernels.values()
        )


class Program:
    """The operations for one input, as they are written."""

    def __init__(self, network: Network, number: int) -> None:
        self.network = network
        self.input = network.at("input", number)
        """What differs from input to input: times, and what dynamic networks choose."""
        self._order, self._memory = network.at("order"), network.at("memory")
        self.ops: list[Op] = []
        self.launches = 0
        self._freed: list[int] = []
        self._storages = itertools.count(1)

    def tensor(self, blocks: int) -> Tensor:
        """New memory, or some that was freed."""
        again = self._freed and self._memory.random() < self.network.reuse
        storage = self._freed.pop() if again else next(self._storages)
        return Tensor(storage, 0, blocks * BLOCK_BYTES)

    def free(self, *tensors: Tensor) -> None:
        """What is not needed any more."""
        self._freed += [tensor.storage for tensor in tensors]

    def launch(
        self,
        role: Role,
        rng: random.Random,
        reads: Sequence[Tensor],
        writes: Tensor | None = None,
        tiny: bool = False,
    ) -> Tensor:
        """A kernel that writes ``writes``, or else a new tensor.

        Args:
            role: what it is.
            rng: of its place in the network.
            reads: what it reads besides parameters.
            writes: memory that it changes.
            tiny: whether it is of one block.
        """
        row, kernel = self.network.kernel(role, rng, tiny)
        target = self.tensor(kernel.blocks) if writes is None else writes
        parameters = [Segment(next(self._storages), 0, 4096) for _ in range(self.network.parameters[role])]
        segments = (*(Segment(*read) for read in reads), *parameters)
        duration_us = round(kernel.duration_us * self.input.lognormvariate(0.0, 0.03), 3)
        host_us = round(HOST_US * self.input.lognormvariate(0.0, 0.3), 3)
        self.ops.append(Op(OpKind.KERNEL, host_us, row, duration_us, reads=segments, writes=(Segment(*target),)))
        self.launches += 1
        return target

    def read_back(self, tensor: Tensor) -> None:
        """The host copies a tensor and waits for it."""
        host_us = round(HOST_US * self.input.lognormvariate(0.0, 0.3), 3)
        copied = (Segment(tensor.storage, 0, 16),)
        self.ops += [
            Op(OpKind.COPY_TO_HOST, host_us, duration_us=1.4, bytes=16, reads=copied, writes=()),
            Op(OpKind.SYNC),
        ]

    def chain(self, inputs: Sequence[Tensor], roles: Sequence[Role], rng: random.Random, tiny: bool = False) -> Chain:
        """Kernels one behind the other; some read the further inputs too, some change their tensor in place."""
        tensor, *others = inputs
        own = False
        for role in roles:
            in_place = own and role in ("elementwise", "norm") and rng.random() < 0.3
            reads = [tensor, *others] if not own or rng.random() < self.network.again else [tensor]
            result = self.launch(role, rng, reads, tensor if in_place else None, tiny)
            yield
            if own and not in_place:
                self.free(tensor)
            tensor, own = result, True
        return tensor

    def side_by_side(self, strands: Sequence[Steps]) -> Steps:
        """Strands in the order in which the program comes to them: one after the other, or mixed."""
        left = list(strands)
        current = left[0]
        while left:
            if self.network.stay < 1.0 and self._order.random() >= self.network.stay:
                current = self._order.choice(left)
            try:
                next(current)
            except StopIteration:
                left.remove(current)
                current = left[0] if left else current
            else:
                yield


def _log_uniform(rng: random.Random, low: float, high: float) -> float:
    return float(low * (high / low) ** rng.random())


_SEPARABLE: Final[tuple[Role, ...]] = ("elementwise", "conv", "conv", "norm")
_CELL_SIDES: Final[tuple[tuple[Role, ...], ...]] = (_SEPARABLE, _SEPARABLE * 2, _SEPARABLE * 2, ("reduce",))
_LAYERS: Final[tuple[tuple[Role, ...], ...]] = (("elementwise", "conv", "norm"), _SEPARABLE, ("gemm", "norm"))


def _physics(program: Program) -> Steps:
    """Steps: joint after joint, a chain on the positions of two bodies that ends in the forces of both; then all bodies
    move. Rows of bodies lie side by side, so that neighbours' memory overlaps."""
    rng = program.network.at("bodies")
    bodies, lengths = rng.randint(4, 24), (rng.randint(2, 4), rng.randint(5, 9))
    row, size = 12, rng.choice((16, 24, 48)) * BLOCK_BYTES * bodies
    positions, speeds = Tensor(-1, 0, size), Tensor(-2, 0, size)
    forces = [Tensor(-3 - place, 0, size) for place in range(program.network.width)]

    def part(whole: Tensor, body: int) -> Tensor:
        return Tensor(whole.storage, row * body, whole.end - row * (bodies - body))

    def joint(step: int, number: int) -> Steps:
        rng = program.network.at("joint", step, number)
        roles: list[Role] = [rng.choice(("elementwise", "elementwise", "reduce")) for _ in range(rng.randint(*lengths))]
        near = [part(positions, number), part(positions, number + 1)]
        temporary = yield from program.chain(near, roles, rng)
        for body in (number, number + 1)[: rng.randint(1, 2)]:
            force = part(forces[number % len(forces)], body)
            program.launch("elementwise", rng, [force, temporary], force)
            yield
        program.free(temporary)

    for step in itertools.count():
        for force in forces:
            program.launch("elementwise", rng, [], force)
            yield
        yield from program.side_by_side([joint(step, number) for number in range(bodies)])
        for reads, moved in (([speeds, *forces], speeds), ([positions, speeds], positions)):
            program.launch("elementwise", rng, reads, moved)
            yield


def _dynamic(program: Program) -> Steps:
    """Layers: tiny kernels weigh the branches, the input takes some of them, their results are added up."""
    network, state = program.network, Tensor(-1, 0, 64 * BLOCK_BYTES)
    for layer in itertools.count():
        rng = network.at("layer", layer)
        gating: list[Role] = ["reduce", "gemm", "elementwise", "elementwise", "elementwise"]
        gate = yield from program.chain([state], gating[: rng.randint(2, 5)], rng, tiny=True)
        if network.reads_back:
            program.read_back(gate)
        taken = program.input.sample(range(network.width), rng.randint(1, network.width))
        results: list[Tensor] = []
        layer_input = [state, gate]

        def branch(number: int, rng: random.Random, inputs: list[Tensor], results: list[Tensor]) -> Steps:
            roles: list[Role] = ["conv", *rng.choices(("norm", "elementwise", "conv"), k=rng.randint(1, 7))]
            results.append((yield from program.chain(inputs, roles, rng)))

        strands = [branch(n, network.at("branch", layer, n), layer_input, results) for n in sorted(taken)]
        yield from program.side_by_side(strands)
        yield from _joined(program, results, rng)
        program.free(state, gate, *results[1:])
        state = results[0]


def _joined(program: Program, results: Sequence[Tensor], rng: random.Random) -> Steps:
    """One result after the other is added to the first."""
    for result in results[1:] or results[:1]:
        program.launch("elementwise", rng, [results[0], result], results[0])
        yield


def _cells(program: Program) -> Steps:
    """Cells: two chains prepare the last two cells' results; pairs of separable convolutions of any of what is there
    are added; all pairs are put together."""
    network = program.network
    before, last = Tensor(-1, 0, 64 * BLOCK_BYTES), Tensor(-2, 0, 64 * BLOCK_BYTES)

    def prepare(cell: int, number: int, source: Tensor, there: list[Tensor]) -> Steps:
        rng = network.at("prepare", cell, number)
        there.append((yield from program.chain([source], ("elementwise", "conv", "norm"), rng)))

    def pair(cell: int, number: int, there: list[Tensor], pairs: list[Tensor]) -> Steps:
        rng = network.at("pair", cell, number)
        left = yield from program.chain([rng.choice((*there, *pairs))], rng.choice(_CELL_SIDES), rng)
        right = yield from program.chain([rng.choice((*there, *pairs))], rng.choice(_CELL_SIDES), rng)
        pairs.append(program.launch("elementwise", rng, [left, right]))
        yield
        program.free(left, right)

    for cell in itertools.count():
        there: list[Tensor] = []
        yield from program.side_by_side([prepare(cell, n, source, there) for n, source in enumerate((before, last))])
        pairs: list[Tensor] = []
        yield from program.side_by_side([pair(cell, number, there, pairs) for number in range(network.width)])
        result = program.launch("elementwise", network.at("cell", cell), pairs)
        yield
        program.free(before, *there, *pairs)
        before, last = last, result


def _wired(program: Program) -> Steps:
    """Layers: each sums one to three of the latest ``width`` results and goes through a few kernels of its own."""
    network = program.network
    reach = [Tensor(-1, 0, 64 * BLOCK_BYTES)]
    for layer in itertools.count():
        rng = network.at("layer", layer)
        sources = rng.sample(reach, min(len(reach), rng.choice((1, 1, 2, 2, 3))))
        reach.append((yield from program.chain(sources, rng.choice(_LAYERS), rng)))
        if len(reach) > network.width:
            program.free(reach.pop(0))


FAMILIES: Final[dict[str, Callable[[Program], Steps]]] = {
    "physics": _physics,
    "dynamic": _dynamic,
    "cells": _cells,
    "wired": _wired,
}


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
