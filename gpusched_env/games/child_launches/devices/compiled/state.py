"""The tables of a run, and how they are filled at its beginning."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.child_launches.device import LAUNCH, NO_LIMIT, REQUEST, TOTALS
from gpusched_env.games.child_launches.monitors import MONITOR, WINDOW_CYCLES
from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.hardware.occupancy import WARP_THREADS

Table = NDArray[np.void]
Saved = dict[str, NDArray[Any]]
"""Tables of a state by name, as far as they are in use."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def _whole(*names: str) -> list[tuple[str, type]]:
    return [(name, np.int64) for name in names]


def _real(*names: str) -> list[tuple[str, type]]:
    return [(name, np.float64) for name in names]


RULES: Final = np.dtype(
    _real(
        *("ps_per_cycle", "gpu_lines", "sm_lines", "prologue_cycles", "prologue_lines", "prologue_issue_cycles"),
        *("iteration_cycles", "iteration_issue_cycles", "parent_lines", "child_lines"),
        *("per_child_cycles", "per_call_cycles", "spill_cycles"),
    )
    + _whole(
        *("dispatch_ps", "interval_ps", "window_ps", "hardware_queues", "pool", "fails", "threshold"),
        *("queue_of_block", "waits", "held_until_children", "aggregated"),
    )
)
"""The machine, the application's loop, and the switches of the problem as 0 and 1."""
CORE: Final = np.dtype(
    _whole(
        *("now_ps", "kernel", "kernel_grid", "grids", "finished", "changed", "lines", "live_warps", "free_blocks"),
        *("free_warps", "stalls", "serial"),
        *("waiting_first", "waiting_end", "handing_first", "handing_end", "in_use", "children", "ready_ps"),
        *("asking", "lane", "calls", "position", "largest_work"),
    )
)
"""``asking``: the warp that is asked about, -1: none; ``lane``: the lane that is."""
SM: Final = np.dtype(
    _whole("threads", "warps", "blocks", "registers", "shared", "running", "lines", "issue", "since_ps", "next_ps")
    + _real("clock", "rate")
)
BLOCK: Final = np.dtype(_whole("grid", "sm", "started_ps", "warps", "children", "last_child"))
WARPS: Final = np.dtype(
    _whole(
        *("block", "first_thread", "lanes", "count", "turn", "lines", "issue"),
        *("serial_most", "serial_total", "spawned", "spilled"),
    )
)
GRID: Final = np.dtype(
    _whole(
        *("first_thread", "iterations", "threads", "blocks", "nesting", "block", "handed_out", "unended", "children"),
        *("ready_ps", "ready", "next_in_queue", "leader", "next_member", "handing", "unended_members"),
        *("unfinished_members", "finished"),
    )
)
"""The columns of :class:`gpusched_env.games.child_launches.devices.parts.LaunchedGrid`. ``leader``: itself, if it is
one; only leaders use ``handing`` (whose blocks are handed out), ``unended_members``, ``unfinished_members`` and what
concerns queues."""


class MachineState(NamedTuple):
    """All that changes during a run, and what the application is."""

    rules: Table
    core: Table
    monitor: Table
    totals: Table
    request: Table
    sms: Table
    targets: Floats
    """(SMs, warps) the SM's clock when each running warp's phase ends, ascending."""
    running: Ints
    """(SMs, warps) which warps the running ones are."""
    room: Ints
    """(2, SMs) blocks of the present kernel, and of its children, that each SM can still take."""
    blocks: Table
    free_blocks: Ints
    warps: Table
    free_warps: Ints
    spawned: Ints
    """(warps, 32) children that a warp launches in its turn."""
    stall_ends: Ints
    """(warps, 3) a heap of time, number and warp."""
    grids: Table
    launches: Table
    waiting: Ints
    """(grids,) those that came to the hardware queues, in order; the core says which still wait."""
    handing: Ints
    """(grids,) children that got a hardware queue, in order."""
    kernels: Table
    base: Ints
    first_request: Ints
    items: Ints
    work: Ints
    iterations: Ints
    first_child: Ints


def new_state(problem: LaunchProblem) -> MachineState:
    """The tables of ``problem``, before anything has happened."""
    gpu, tables = problem.machine.gpu, problem.tables
    limits = gpu.limits
    blocks, warps, grids = gpu.sms * limits.blocks, gpu.sms * limits.warps, problem.asking + len(tables.kernels)
    core = np.zeros(1, CORE)
    core["kernel"], core["finished"], core["asking"] = -1, 1, -1
    core["free_blocks"], core["free_warps"] = blocks, warps
    sms = np.zeros(gpu.sms, SM)
    for name in ("threads", "warps", "blocks", "registers"):
        sms[name] = getattr(limits, name)
    sms["shared"] = limits.shared_bytes
    return MachineState(
        rules=_rules(problem),
        core=core,
        monitor=np.zeros(1, MONITOR),
        totals=np.zeros(1, TOTALS),
        request=np.zeros(1, REQUEST),
        sms=sms,
        targets=np.zeros((gpu.sms, limits.warps)),
        running=np.zeros((gpu.sms, limits.warps), np.int64),
        room=np.zeros((2, gpu.sms), np.int64),
        blocks=np.zeros(blocks, BLOCK),
        free_blocks=np.arange(blocks)[::-1].copy(),
        warps=np.zeros(warps, WARPS),
        free_warps=np.arange(warps)[::-1].copy(),
        spawned=np.zeros((warps, WARP_THREADS), np.int64),
        stall_ends=np.zeros((warps, 3), np.int64),
        grids=np.empty(grids, GRID),
        launches=np.empty(grids, LAUNCH),
        waiting=np.empty(grids, np.int64),
        handing=np.empty(grids, np.int64),
        kernels=tables.kernels,
        base=tables.base,
        first_request=tables.first_request,
        items=tables.items,
        work=tables.work,
        iterations=tables.iterations,
        first_child=tables.first_child,
    )


IN_USE: Final = {"grids": "grids", "launches": "grids", "waiting": "waiting_end", "handing": "handing_end"}
"""Tables that fill up in the course of a run, and what in the core says how far."""
CHANGING: Final = MachineState._fields[MachineState._fields.index("core") : MachineState._fields.index("kernels")]


def save(state: MachineState) -> Saved:
    """A copy of all that changes in a run."""
    core = state.core[0]
    used = {name: int(core[end]) for name, end in IN_USE.items()}
    return {name: getattr(state, name)[: used.get(name)].copy() for name in CHANGING}


def load(state: MachineState, saved: Saved) -> None:
    """Make ``state``, one of the same problem, what it was when ``saved`` was copied."""
    for name, table in saved.items():
        getattr(state, name)[: len(table)] = table


def _rules(problem: LaunchProblem) -> Table:
    machine, launches, loop = problem.machine, problem.machine.launches, problem.costs
    values = {name: getattr(machine, name) for name in (RULES.names or ())[:6]}
    values |= {name: getattr(loop, name) for name in (RULES.names or ())[6:10]}
    values |= {name: getattr(launches, name) for name in (RULES.names or ())[10:13]}
    values |= {
        "dispatch_ps": machine.ps(launches.dispatch_cycles),
        "interval_ps": machine.ps(launches.interval_cycles),
        "window_ps": machine.ps(WINDOW_CYCLES),
        "hardware_queues": launches.hardware_queues,
        "pool": NO_LIMIT if launches.pool is None else launches.pool,
        "fails": launches.overflow == "fail",
        "threshold": problem.threshold,
        "queue_of_block": problem.queue_of == "block",
        "waits": problem.parents == "wait",
        "held_until_children": problem.held_until == "children",
        "aggregated": problem.aggregated,
    }
    return np.array([tuple(values[name] for name in RULES.names or ())], RULES)
