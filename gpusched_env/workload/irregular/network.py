"""What is random about a generated workload besides its structure: kernels, their sizes and times, and memory."""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Generator, Iterable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from gpusched_env.workload.classify import classify
from gpusched_env.workload.graph_figures import SMALL_BLOCKS
from gpusched_env.workload.irregular.name import IrregularGraph
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Segment

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
    """In what families differ besides their structure, from the recordings."""

    typical_us: tuple[float, float]
    """Range of the median duration, log-uniform."""
    spread: tuple[float, float]
    """Standard deviation of its logarithm."""
    small: tuple[float, float]
    """Share of small kernels."""


_FAMILIES: Final = {
    "physics": _Family((1.3, 1.8), (0.15, 0.35), (0.3, 1.0)),
    "dynamic": _Family((1.1, 2.5), (0.2, 0.6), (0.1, 0.8)),
    "cells": _Family((0.9, 4.5), (0.15, 0.6), (0.05, 1.0)),
    "wired": _Family((0.9, 4.5), (0.15, 0.6), (0.05, 1.0)),
}
Role = Literal["elementwise", "reduce", "norm", "conv", "gemm"]
_PARAMETERS: Final = {"elementwise": (0, 0), "reduce": (0, 0), "norm": (0, 8), "conv": (1, 4), "gemm": (1, 3)}
"""Tensors of the model that a kernel reads."""
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
"""Largest shared memory of a block, bytes."""

Steps = Generator[None, None, None]
"""A part of a program: goes on by a launch with each step."""
Chain = Generator[None, None, Tensor]
"""The same, with what it computed."""


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
        """By role and blocks, with their rows."""
        self.parameters = {role: rng.randint(*between) for role, between in _PARAMETERS.items()}
        """By role, tensors of the model that a kernel reads besides."""
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
