"""The structures of generated workloads: which kernel reads what which other one wrote."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Final

from gpusched_env.workload.irregular.network import BLOCK_BYTES, Program, Role, Steps, Tensor

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
