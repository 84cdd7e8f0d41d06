"""How much memory an environment needs, and where in it the tables lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.compiled import layout
from gpusched_env.devices.compiled.members import words_for
from gpusched_env.devices.compiled.memory import HEADER, LINE, lines, placed
from gpusched_env.devices.compiled.tables import ProblemTables, tile_pairs
from gpusched_env.hardware.queues import queue_count
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.legality import COMMAND_RECORD
from gpusched_env.scheduling.timeline import Detail

JOBS: Final = 64
"""First length of a tenant's ring of jobs: a power of two."""
AHEAD: Final = 128
"""First number of a tenant's operations behind the scheduler's window."""
LAUNCHES: Final = 16
"""First number of a tenant's launches, beyond what one event makes."""
EDGES: Final = 3
"""Edges for each slot of a launch."""
LOG_ROWS: Final = 64
"""Rows of the log beyond what one event may write."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the memory of an environment has room for."""

    tenants: int
    threads: int
    marks: int
    streams: int
    queues: int
    contexts: int
    channels: int
    grids: int
    sms: int
    rows: int
    """Rows of residents on an SM."""
    jobs: int
    """Jobs of a tenant in the system; a power of two."""
    launches: int
    """Unfinished launches of all tenants."""
    edges: int
    aheads: int
    """Operations that hosts have issued behind the scheduler's window."""
    log: int
    semaphores: int
    """Semaphores that a launch waits for at most."""
    slices: int
    """Tiles of several slices that a launch has at most."""
    saved: int
    """Records of saved blocks of a launch whose tiles are synchronised."""
    cores: int
    """Cores of the CPU."""
    processes: int
    """Processes on all cores."""

    @property
    def timers(self) -> int:
        """Number of timers, one an owner, see :mod:`~gpusched_env.devices.compiled.timing`."""
        return 1 + 2 * self.tenants + self.threads + self.cores + 2 * self.launches

    def with_room_for(self, other: Sizes) -> Sizes:
        """The larger of both, field by field."""
        return Sizes(*(max(getattr(self, name), getattr(other, name)) for name in self.__slots__))


def log_margin(problem: Problem, detail: Detail) -> int:
    """Most rows that one event may write to the log."""
    tenants = len(problem.programs)
    # A step of a serving engine may complete all requests that run, with two rows each.
    jobs = tenants + sum(2 * program.engine.max_batch for program in problem.programs if program.engine is not None)
    if detail in ("none", "jobs"):
        return jobs
    margin = jobs + 3 * tenants + 4 * problem.gpu.resident_grids + 16
    return margin + problem.gpu.sms * problem.gpu.limits.blocks if detail == "blocks" else margin


def needed(problem: Problem, tables: ProblemTables, detail: Detail) -> Sizes:
    gpu, tenants = problem.gpu, len(problem.programs)
    margin, edge_margin = (int(tables.problem[name][0]) for name in ("margin", "edge_margin"))
    return Sizes(
        tenants=tenants,
        threads=int(tables.problem["host_threads"][0]),
        marks=tables.marks + 1,
        streams=len(problem.streams),
        queues=len(problem.streams) * gpu.priorities,
        contexts=tenants if problem.scenario.contexts == "per-tenant" else 1,
        channels=queue_count(gpu, len(problem.streams)),
        grids=gpu.resident_grids,
        sms=gpu.sms,
        rows=gpu.limits.blocks + 1,
        jobs=JOBS,
        launches=LAUNCHES * tenants + margin,
        edges=EDGES * (LAUNCHES * tenants + margin) + edge_margin,
        aheads=AHEAD * tenants,
        log=LOG_ROWS + log_margin(problem, detail),
        **_tile_sizes(problem),
        **_core_sizes(problem),
    )


def _core_sizes(problem: Problem) -> dict[str, int]:
    cores = () if problem.scenario.cores is None else problem.scenario.cores.cores
    return {"cores": len(cores), "processes": sum(len(core.processes) for core in cores)}


def _tile_sizes(problem: Problem) -> dict[str, int]:
    """Sizes of what launches have for the synchronisation of tiles."""
    pairs = list(tile_pairs(problem))
    kernels = [kernel for pair in pairs for kernel in pair]
    resident = problem.gpu.sms * problem.gpu.limits.blocks
    return {
        "semaphores": max((producer.grid[0] * producer.grid[1] for producer, _ in pairs), default=0),
        "slices": max((kernel.grid[0] * kernel.grid[1] for kernel in kernels if kernel.grid[2] > 1), default=0),
        "saved": max((min(resident, kernel.blocks) for kernel in kernels), default=0),
    }


def class_count(sizes: Sizes) -> int:
    """Most classes of SMs: each SM one, the idle ones, and one being split off."""
    return sizes.sms + 2


def allocate(sizes: Sizes) -> dict[str, NDArray[Any]]:
    """Sections of one block of memory, all zero; what is used most lies in front."""
    words, count = words_for(sizes.sms), class_count(sizes)
    shapes: dict[str, tuple[np.dtype[Any], int]] = {
        "env": (layout.ENV, 1),
        "given": (COMMAND_RECORD, 1),
        "contexts": (layout.CONTEXT, sizes.contexts),
        "clients": (layout.CLIENT, sizes.tenants),
        "threads": (layout.THREAD, sizes.threads),
        "streams": (layout.STREAM, sizes.streams),
        "queues": (layout.QUEUE, sizes.queues),
        "randoms": (layout.RANDOM, 2 * sizes.tenants),
        "marks": (layout.MARK, sizes.marks),
        "sets": (layout.WORD, layout.SETS * words),
        "cores": (layout.CORE, sizes.cores),
        "processes": (layout.PROCESS, sizes.processes),
        "heap": (layout.NUMBER, sizes.timers),
        "timers": (layout.TIMER, sizes.timers),
    }
    for number in range(sizes.contexts):
        shapes |= {
            f"channels.{number}": (layout.CHANNEL, sizes.channels),
            f"heads.{number}": (layout.NUMBER, sizes.channels + 1),
            f"queue.{number}": (layout.NUMBER, sizes.grids + 1),
            f"used.{number}": (layout.NUMBER, sizes.grids),
            f"grids.{number}": (layout.GRID, sizes.grids),
        }
    shapes |= {
        "jobs": (layout.JOB, sizes.tenants * sizes.jobs),
        "launches": (layout.LAUNCH, sizes.launches),
        "flights": (layout.FLIGHT, sizes.launches),
        "tilings": (layout.TILING, sizes.launches),
        "semaphores": (layout.NUMBER, sizes.launches * sizes.semaphores),
        "ended_slices": (layout.NUMBER, sizes.launches * sizes.slices),
        "saved_blocks": (layout.SAVED_BLOCK, sizes.launches * sizes.saved),
        "aheads": (layout.AHEAD, sizes.aheads),
        "edges": (layout.EDGE, sizes.edges),
        "log": (layout.LOG, sizes.log),
        "outbox": (layout.NUMBER, sizes.launches),
    }
    for number in range(sizes.contexts):
        shapes |= {
            f"classes.{number}": (layout.SM_CLASS, count),
            f"class_ends.{number}": (layout.NUMBER, count),
            f"kinds.{number}": (layout.KIND, count),
            f"members.{number}": (layout.WORD, count * words),
            f"rows.{number}": (layout.ROW, count * sizes.rows),
        }
    places, end = {}, 0
    for name, (dtype, length) in shapes.items():
        places[name] = end
        end += HEADER - (-dtype.itemsize * length // LINE) * LINE
    memory = lines(end)
    return {name: placed(memory[places[name] :], dtype, length) for name, (dtype, length) in shapes.items()}


def copy_front(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Copy a table into the front of a longer one. As bytes: NumPy copies records field by field."""
    target.view(np.uint8)[: source.nbytes] = source.view(np.uint8)


def copy_table(source: NDArray[Any], width: int, target: NDArray[Any], wider: int) -> None:
    """Copy a flat table into one whose lines are longer."""
    if width == 0:
        return
    lines, whole = len(source) // width, f"V{source.dtype.itemsize}"
    target[: lines * wider].view(whole).reshape(lines, wider)[:, :width] = source.view(whole).reshape(lines, width)
