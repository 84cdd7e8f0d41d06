"""Problems as tables of plain numbers, for compiled code."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.compiled.layout import (
    COPY,
    KERNEL,
    NUMBER,
    OP,
    PROBLEM,
    PROGRAM,
    REAL,
    STREAM_ROW,
    VARIANT,
)
from gpusched_env.devices.compiled.memory import in_lines
from gpusched_env.devices.rules.numbers import kernel_numbers, problem_numbers, program_numbers
from gpusched_env.hardware.clock import to_ps
from gpusched_env.hardware.occupancy import BLOCK_DTYPE
from gpusched_env.hardware.placement import sm_order
from gpusched_env.hardware.timing import state_bytes
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import ChildOp, HostOp, JobProgram, NodeOp
from gpusched_env.scheduling.synchronising import NEEDS
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import KernelProfile
from gpusched_env.workload.workload import DEVICE_OPS, OpKind

Record = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class ProblemTables:
    """A problem in numbers. The record ``problem`` holds the addresses of the other tables."""

    problem: Record
    programs: Record
    kernels: Record
    ops: Record
    copies: Record
    variants: Record
    thread_ops: Record
    factors: Record
    afters: Record
    sm_ids: Record
    stream_rows: Record
    forms: Record
    lengths: Record
    recorded: Record
    marks: int
    """Marks of all tenants."""
    operations: tuple[HostOp | None, ...]
    """What stands in the rows of ``ops``; none for nodes and children."""
    starts: dict[tuple[str, Hashable], NDArray[np.uint8]]
    """Bytes of sections of an environment at the start of an episode, by the section's name and the sizes of all."""


def tabulate(problem: Problem) -> ProblemTables:
    """The tables of a problem; made once, shared by all environments that run it: their memory has addresses of it."""
    tables = _KNOWN.get(id(problem))
    if tables is None:
        made = _Tabulation(problem).tables()
        # Another thread may have been first.
        tables = _KNOWN.setdefault(id(problem), made)
        if tables is made:
            weakref.finalize(problem, _KNOWN.pop, id(problem), None)
    return tables


_KNOWN: dict[int, ProblemTables] = {}


class _Tabulation:
    """The tables of one problem while they are made."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._ops: list[tuple[Any, ...]] = []
        self._operations: list[HostOp | None] = []
        self._copies: list[tuple[int, int]] = []
        self._variants: list[tuple[int, ...]] = []
        self._thread_ops: list[int] = []
        self._afters: list[int] = []
        self._most_offspring = self._most_edges = 0

    def tables(self) -> ProblemTables:
        problem = self._problem
        kernels = np.zeros(len(problem.kernels) + len(problem.graphs), KERNEL)
        for row, known in enumerate(problem.knowledge.kernels):
            _fill(kernels[row], kernel_numbers(known))
            if row < len(problem.kernels):
                _fill_blocks(kernels[row], problem.kernels[row])
        forms = [form for profile in problem.kernels for form in profile.forms]
        counts = [len(profile.forms) for profile in problem.kernels]
        kernels["forms"][: len(counts)] = counts
        kernels["first_form"][: len(counts)] = np.cumsum(counts) - counts
        programs = np.zeros(len(problem.programs), PROGRAM)
        factors: list[float] = []
        lengths: list[NDArray[np.int64]] = []
        recorded: list[NDArray[np.int64]] = []
        threads = marks = 0
        for row, program in enumerate(problem.programs):
            _fill(programs[row], program_numbers(program, problem.knowledge.tenants[row]))
            record = programs[row]
            record["first_variant"], record["first_factor"] = len(self._variants), len(factors)
            record["first_thread"], record["first_mark"] = threads, marks
            record["threads"] = max(len(job.threads) for job in program.variants)
            factors += program.host_spread
            threads += int(record["threads"])
            marks += max(job.marks for job in program.variants)
            for job, size in zip(program.variants, program.sizes, strict=True):
                self._add_variant(job, int(record["threads"]), size)
            if program.engine is not None:
                for name in ("prompts", "answers"):
                    record[f"first_{name}"] = sum(map(len, lengths))
                    lengths.append(getattr(program.engine.asked, name))
            if program.replay is not None:
                record["first_recorded"] = sum(map(len, recorded))
                recorded.append(program.replay.times_ps)
        held = {
            op.stream
            for program in problem.programs
            for job in program.variants
            for op in job.ops
            if op.after or op.mark >= 0 or self._has_forms(op)
        }
        # No table is empty.
        nothing = np.zeros(1, np.int64)
        tables = {
            "programs": programs,
            "kernels": kernels,
            "ops": np.array(self._ops, OP),
            "copies": np.array(self._copies or [(0, 0)], COPY),
            "variants": np.array(self._variants, VARIANT),
            "thread_ops": _numbers(self._thread_ops),
            "factors": np.array([(factor,) for factor in factors], REAL),
            "afters": _numbers(self._afters or [0]),
            "forms": _numbers(forms or [0]),
            "lengths": _numbers(np.concatenate([*lengths, nothing])),
            "recorded": _numbers(np.concatenate([*recorded, nothing])),
            "sm_ids": _numbers(sm_order(problem.gpu).tolist()),
            "stream_rows": np.array(
                [
                    (s.tenant, s.priority, row not in held and not s.windowed, s.windowed, *(s.mask or (0, 0)))
                    for row, s in enumerate(problem.streams)
                ],
                STREAM_ROW,
            ),
        }
        tables = {name: in_lines(table) for name, table in tables.items()}
        record = in_lines(_problem(problem))
        record["host_threads"] = threads
        record["margin"] = 2 + self._most_offspring
        record["edge_margin"] = 10 + self._most_edges
        for name, table in tables.items():
            record[f"{name}_at"] = table.ctypes.data
        return ProblemTables(problem=record, marks=marks, operations=tuple(self._operations), starts={}, **tables)

    def _has_forms(self, op: HostOp) -> bool:
        kernels = self._problem.kernels
        return 0 <= op.identity < len(kernels) and bool(kernels[op.identity].forms)

    def _add_variant(self, job: JobProgram, threads: int, size: tuple[int, int]) -> None:
        """A job's operations; the nodes and children of one lie behind all of them; ``size``: of an engine's step."""
        first = len(self._ops)
        device_ops = sum(op.kind in DEVICE_OPS for op in job.ops)
        self._variants.append((first, device_ops, job.marks, len(self._thread_ops), *size))
        self._thread_ops += [*job.threads, *[0] * (threads - len(job.threads))]
        next_node = first + len(job.ops)
        for op in job.ops:
            self._ops.append(self._op(op, next_node))
            next_node += len(op.nodes) + len(op.children)
            self._most_edges = max(self._most_edges, 2 + len(op.after))
        self._operations += [*job.ops, *[None] * (next_node - first - len(job.ops))]
        for op in job.ops:
            for node in op.nodes:
                self._ops.append(self._node(op, node))
            for child in op.children:
                self._ops.append(self._child(op, child))
            grids = self._problem.gpu.resident_grids
            self._most_offspring = max(self._most_offspring, len(op.nodes), grids * len(op.children))
            self._most_edges = max(self._most_edges, sum(len(node.after) for node in op.nodes))

    def _op(self, op: HostOp, first_node: int) -> tuple[Any, ...]:
        return (
            to_ps(op.gap_us), op.host_us, op.scale, op.left_us, op.needs.lead, op.cold, op.identity, op.mark, op.tiles,
            self._after(op.after), first_node if op.identity >= 0 else self._copy(op),
            len(op.nodes) + len(op.children), op.needs.fold, op.needs.steps, op.stream, len(op.after), 0, op.kind,
            NEEDS.index(op.needs.kind),
        )  # fmt: skip

    def _node(self, graph: HostOp, node: NodeOp) -> tuple[Any, ...]:
        gap_ps = to_ps(self._problem.gpu.timing.graph_gap_us)
        return (
            gap_ps, 0.0, node.scale, 0.0, 0.0, node.cold, node.identity, -1, -1, self._after(node.after),
            -1 if node.identity >= 0 else self._copy(node), 0, 1, 1, graph.stream, len(node.after), node.branch,
            node.kind, 0,
        )  # fmt: skip

    def _child(self, kernel: HostOp, child: ChildOp) -> tuple[Any, ...]:
        return (
            0, 0.0, child.scale, kernel.left_us, 0.0, child.cold, child.identity, -1, -1, 0, -1, 0, 1, 1, -1, 0, 0,
            OpKind.KERNEL, 0,
        )  # fmt: skip

    def _after(self, after: tuple[int, ...]) -> int:
        first = len(self._afters)
        self._afters += after
        return first

    def _copy(self, op: HostOp | NodeOp) -> int:
        self._copies.append((op.bytes, to_ps(op.device_us)))
        return len(self._copies) - 1


def tile_pairs(problem: Problem) -> Iterator[tuple[Kernel, Kernel]]:
    """Kernels that need the tiles of others, behind those, in all their forms."""
    for program in problem.programs:
        for job in program.variants:
            marked = {op.mark: op for op in job.ops if op.mark >= 0}
            for op in job.ops:
                if op.tiles >= 0:
                    yield from itertools.product(*(_in_forms(problem, row) for row in (marked[op.tiles], op)))


def _in_forms(problem: Problem, op: HostOp) -> list[Kernel]:
    own = problem.kernels[op.identity]
    return [own.kernel, *(problem.kernels[form].kernel for form in own.forms)]


def _numbers(values: list[int] | NDArray[np.int64]) -> Record:
    return np.array(values, np.int64).view(NUMBER)


def _problem(problem: Problem) -> Record:
    record = np.zeros(1, PROBLEM)
    _fill(record[0], problem_numbers(problem))
    return record


def _fill(row: np.void, numbers: Mapping[str, float]) -> None:
    for name, value in numbers.items():
        row[name] = value


def _fill_blocks(row: np.void, profile: KernelProfile) -> None:
    """What a kernel's blocks need."""
    block = profile.block[0]
    for name in BLOCK_DTYPE.names or ():
        row[name] = block[name]
    row["state_bytes"] = state_bytes(profile.footprint.registers, profile.footprint.shared_bytes, 1)
    row["brought_bytes"] = profile.brought_bytes
    row["log_idle"] = math.log1p(-float(block["rho"]))
