"""The one encoder of launch requests, for environments and learned schedulers, in Python and in compiled code."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import procedure
from gpusched_env.games.child_launches.environment.features import LOG_TOP, WORST, LaunchFeature
from gpusched_env.games.child_launches.hardware.warp_machine import WarpMachine
from gpusched_env.hardware.occupancy import WARP_THREADS

Singles = NDArray[np.float32]

WIDTH: Final = len(LaunchFeature)
LOG_SCALE: Final = math.log1p(LOG_TOP)
SHORTEST: Final = 1e-3
"""No estimate counts as shorter, cycles: both may be 0."""


class EncodedMachine(NamedTuple):
    """What the encoder needs to know of a machine."""

    ps_per_cycle: float
    per_child_cycles: float
    per_call_cycles: float
    dispatch_cycles: float
    hardware_queues: float
    block_slots: float
    warp_slots: float


def costs_of(machine: WarpMachine) -> EncodedMachine:
    """The costs of ``machine``."""
    launches, gpu = machine.launches, machine.gpu
    return EncodedMachine(
        machine.ps_per_cycle,
        float(launches.per_child_cycles),
        float(launches.per_call_cycles),
        float(launches.dispatch_cycles),
        float(launches.hardware_queues),
        float(gpu.sms * gpu.limits.blocks),
        float(gpu.sms * gpu.limits.warps),
    )


class Monitored(NamedTuple):
    """The fields of the same name of :class:`~gpusched_env.games.child_launches.view.RequestView`."""

    inside: int
    running: int
    blocks_ended: int
    block_ps: float
    recent_block_ps: float
    last_running: float
    busy_running: float
    warp_ps: float
    warp_4096_ps: float


@procedure
def monitored(monitor: Any) -> Monitored:
    """What a view shows of a :data:`~gpusched_env.games.child_launches.monitors.MONITOR`."""
    block_ps, busy_running = 0.0, 0.0
    if monitor.blocks > 0:
        block_ps = monitor.blocks_ps / monitor.blocks
    if monitor.busy_windows > 0:
        busy_running = monitor.busy_running / monitor.busy_windows
    return Monitored(
        monitor.inside,
        monitor.running,
        monitor.blocks,
        block_ps,
        monitor.recent_ps,
        monitor.last_running,
        busy_running,
        monitor.warp_ps,
        monitor.warp_4096_ps,
    )


@procedure
def log_of(value: float) -> float:
    """A count, or a time in cycles, in the unit :data:`~gpusched_env.games.child_launches.environment.features.LOG`."""
    return min(math.log1p(value) / LOG_SCALE, 1.0)


@procedure
def advantage(request: Any, seen: Any, costs: EncodedMachine) -> float:
    """Log of SPAWN's estimate of the thread's time over that of the child's (Algorithm 1); 0: no child has ended."""
    if seen.blocks_ended == 0:
        return 0.0
    running = seen.busy_running if seen.busy_running > 0.0 else 1.0
    cycle_ps = costs.ps_per_cycle
    child = costs.per_child_cycles * request.calls + costs.per_call_cycles
    child += (request.blocks + seen.inside) * seen.recent_block_ps / cycle_ps / running
    parent = request.work * seen.warp_4096_ps / cycle_ps
    return math.log(max(parent, SHORTEST) / max(child, SHORTEST))


@procedure
def encode(request: Any, seen: Any, costs: EncodedMachine, out: Singles) -> None:
    """Write the columns of a request.

    Args:
        request: a view, or a row of :data:`~gpusched_env.games.child_launches.view.REQUEST`.
        seen: the view again, or :class:`Monitored`.
        costs: of the machine.
        out: shape ``(WIDTH,)``.
    """
    cycle_ps = costs.ps_per_cycle
    calls = float(request.calls)
    out[LaunchFeature.WORK] = log_of(float(request.work))
    out[LaunchFeature.ITEMS] = log_of(float(request.items))
    out[LaunchFeature.BLOCKS] = log_of(float(request.blocks))
    out[LaunchFeature.LARGEST] = log_of(float(request.largest_work))
    out[LaunchFeature.SERIAL] = log_of(float(request.serial_work))
    out[LaunchFeature.CALLS] = calls / WARP_THREADS
    out[LaunchFeature.LEFT] = (calls - 1.0 - request.position) / WARP_THREADS
    out[LaunchFeature.SPAWNED] = request.spawned / WARP_THREADS
    out[LaunchFeature.NESTING] = request.nesting / (1.0 + request.nesting)
    out[LaunchFeature.KNOWN] = 1.0 if seen.blocks_ended > 0 else 0.0
    out[LaunchFeature.ENDED] = log_of(float(seen.blocks_ended))
    out[LaunchFeature.INSIDE] = log_of(float(seen.inside))
    out[LaunchFeature.RUNNING] = log_of(float(seen.running))
    out[LaunchFeature.MEAN_RUNNING] = log_of(seen.busy_running)
    out[LaunchFeature.LAST_RUNNING] = log_of(seen.last_running)
    out[LaunchFeature.BLOCK] = log_of(seen.block_ps / cycle_ps)
    out[LaunchFeature.RECENT_BLOCK] = log_of(seen.recent_block_ps / cycle_ps)
    out[LaunchFeature.WARP] = log_of(seen.warp_ps / cycle_ps)
    out[LaunchFeature.WARP_4096] = log_of(seen.warp_4096_ps / cycle_ps)
    out[LaunchFeature.WAITING] = log_of(float(request.waiting))
    out[LaunchFeature.QUEUES] = min(request.queues / costs.hardware_queues, 1.0)
    out[LaunchFeature.RESIDENT_BLOCKS] = request.resident_blocks / costs.block_slots
    out[LaunchFeature.RESIDENT_WARPS] = request.resident_warps / costs.warp_slots
    out[LaunchFeature.PARENT_BLOCKS] = log_of(float(request.parent_blocks))
    out[LaunchFeature.ROOM] = log_of(float(request.room))
    out[LaunchFeature.OVERHEAD] = log_of(costs.per_child_cycles * calls + costs.per_call_cycles)
    out[LaunchFeature.PER_CHILD] = log_of(costs.per_child_cycles)
    out[LaunchFeature.PER_CALL] = log_of(costs.per_call_cycles)
    out[LaunchFeature.DISPATCH] = log_of(costs.dispatch_cycles)
    out[LaunchFeature.HARDWARE_QUEUES] = log_of(costs.hardware_queues)
    out[LaunchFeature.ADVANTAGE] = min(max(advantage(request, seen, costs) / WORST, -1.0), 1.0)
