"""Launch requests as environments and learned schedulers see and answer them: the columns of
``gpusched/DynamicParallelism-v0``, their one encoder, in Python and in compiled code, and an application under way
on a device.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import native, procedure
from gpusched_env.envs.features import FLAG, RATIO, SHARE, Feature
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.child_launches.device import SERIALISE, SPAWN, LaunchDevice, RequestView
from gpusched_env.games.child_launches.devices import make_launch_device
from gpusched_env.games.child_launches.devices.compiled.device import (
    ASKS,
    DEADLOCK,
    CompiledWarpDevice,
    decide_and_run_on,
)
from gpusched_env.games.child_launches.hardware.warp_machine import WarpMachine
from gpusched_env.games.child_launches.problem import LaunchProblem, launch_problem
from gpusched_env.games.child_launches.workload.suite import BENCHMARKS, benchmark, random_benchmark
from gpusched_env.hardware.occupancy import WARP_THREADS

LOG_TOP: Final = 1e8
"""What a column of :data:`LOG` shows as 1."""
LOG: Final = "log"
"""Unit of counts and of times in core cycles: ``log1p(x) / log1p(10^8)``, at most 1."""
COLUMNS_NOTE: Final = """\
### Columns
Sources are fields of `gpusched_env.games.child_launches.device.RequestView`. `log`: log1p(x) / log1p(10^8) of a count
or of a time in core cycles, at most 1.
"""
WORST: Final = 8.0
"""Estimates that are further apart than ``exp`` of this count as that."""


class LaunchFeature(Feature):
    """The request, what SPAWN's hardware counts, the queues of the GPU, and what a launch costs."""

    WORK = ("serial iterations of the thread's loop", LOG, 0, 1, "work")
    ITEMS = ("threads of the child", LOG, 0, 1, "items")
    BLOCKS = ("its blocks", LOG, 0, 1, "blocks")
    LARGEST = ("largest work among the lanes that call", LOG, 0, 1, "largest_work")
    SERIAL = (
        "largest work that a lane of the warp does itself in this turn, as decided so far",
        LOG,
        0,
        1,
        "serial_work",
    )
    CALLS = ("lanes of the warp that call now, of 32", SHARE, 0, 1, "calls")
    LEFT = ("of these, asked about after this one, of 32", SHARE, 0, 1, "calls, position")
    SPAWNED = ("of these, that will launch, of 32", SHARE, 0, 1, "spawned")
    NESTING = ("0: a thread of the host's kernel asks; 1: one of a child, and so on", RATIO, 0, 1, "nesting")
    KNOWN = ("1 if a child block has ended, so that there are times", FLAG, 0, 1, "blocks_ended")
    ENDED = ("child blocks that ended", LOG, 0, 1, "blocks_ended")
    INSIDE = ("child blocks between the decision to launch them and their end", LOG, 0, 1, "inside")
    RUNNING = ("child blocks on SMs", LOG, 0, 1, "running")
    MEAN_RUNNING = ("the same, mean over all windows in which any ran", LOG, 0, 1, "busy_running")
    LAST_RUNNING = ("the same, mean of the last window in which any ran", LOG, 0, 1, "last_running")
    BLOCK = ("mean residency of child blocks that ended, cycles", LOG, 0, 1, "block_ps")
    RECENT_BLOCK = ("the same, an exponential mean of the last 16 or so", LOG, 0, 1, "recent_block_ps")
    WARP = ("mean residency of child warps of the last window in which any ended, cycles", LOG, 0, 1, "warp_ps")
    WARP_4096 = ("the same, each counted as 4,096 cycles at most", LOG, 0, 1, "warp_4096_ps")
    WAITING = ("children without a hardware queue", LOG, 0, 1, "waiting")
    QUEUES = ("hardware queues in use", SHARE, 0, 1, "queues")
    RESIDENT_BLOCKS = ("blocks on SMs, of those that these have slots for", SHARE, 0, 1, "resident_blocks")
    RESIDENT_WARPS = ("warps on SMs, of those that these have slots for", SHARE, 0, 1, "resident_warps")
    PARENT_BLOCKS = ("blocks of the host's kernel that are not on an SM yet", LOG, 0, 1, "parent_blocks")
    ROOM = ("launches until the pool is full; 1: there is none", LOG, 0, 1, "room")
    OVERHEAD = ("what the launch call takes if all lanes that call launch, cycles", LOG, 0, 1, "calls")
    PER_CHILD = ("of that, for each child, cycles", LOG, 0, 1, "machine.launches.per_child_cycles")
    PER_CALL = ("of that, whatever is launched, cycles", LOG, 0, 1, "machine.launches.per_call_cycles")
    DISPATCH = (
        "from when a child has a hardware queue to its first block, cycles",
        LOG,
        0,
        1,
        "machine.launches.dispatch_cycles",
    )
    HARDWARE_QUEUES = ("kernels that can have blocks running", LOG, 0, 1, "machine.launches.hardware_queues")
    ADVANTAGE = (
        "SPAWN's estimates: log of the thread's time over the child's, over 8; 0 as long as there are no times",
        "-",
        -1,
        1,
        "work, warp_4096_ps, calls, blocks, inside, recent_block_ps, busy_running",
    )


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
    """The fields of the same name of :class:`~gpusched_env.games.child_launches.device.RequestView`."""

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
    """A count, or a time in cycles, in the unit :data:`~gpusched_env.games.child_launches.environment.requests.LOG`."""
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
        request: a view, or a row of :data:`~gpusched_env.games.child_launches.device.REQUEST`.
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


@native()
def step(state, spawn, costs, out):
    """Answer the present request and go on to the next one, whose columns are written; gives the loop's status."""
    status = decide_and_run_on(state, spawn)
    if status == ASKS:
        encode(state.request[0], monitored(state.monitor[0]), costs, out)
    return status


RANDOM: Final = "random"
"""Stands in place of a benchmark's name: another random application for each seed."""
KEPT: Final = 16
"""Problems that are kept, so that an episode of the same is not made again."""


def check_benchmark(name: str) -> str:
    """``name``, if it is that of a benchmark or :data:`RANDOM`.

    Raises:
        InputError: it is not.
    """
    if name not in (RANDOM, *BENCHMARKS):
        raise InputError(f"benchmark is {name!r}; {did_you_mean(name, (RANDOM, *BENCHMARKS))}")
    return name


@functools.lru_cache(KEPT)
def episode_problem(name: str, seed: int, machine: WarpMachine) -> tuple[LaunchProblem, int]:
    """A benchmark on the input of ``seed``, and how long its flat version takes, ps.

    Raises:
        InputError: no such benchmark.
    """
    made = random_benchmark(seed) if name == RANDOM else benchmark(name, seed)
    problem = launch_problem(made, machine)
    return problem, flat_ps(problem)


def flat_ps(problem: LaunchProblem) -> int:
    """How long the application takes if it launches nothing."""
    device = CompiledWarpDevice()
    device.reset(problem.flat())
    return device.time_ps


class PlayedApplication:
    """An application played on any device: views are made and encoded in Python."""

    def __init__(self, device: LaunchDevice) -> None:
        self.device = device
        self.asks = False
        """Whether a request waits for its answer."""

    def begin(self, problem: LaunchProblem, out: Singles) -> None:
        """Start, and run to the first request, whose columns are written."""
        self._costs = costs_of(problem.machine)
        self._show(self.device.reset(problem), out)

    def answer(self, spawn: bool, out: Singles) -> None:
        """Run to the next request.

        Raises:
            DeadlockError: nothing can happen any more.
        """
        self.device.apply(SPAWN if spawn else SERIALISE)
        self._show(self.device.advance(), out)

    def _show(self, view: RequestView | None, out: Singles) -> None:
        self.asks = view is not None
        if view is not None:
            encode(view, view, self._costs, out)


class CompiledApplication(PlayedApplication):
    """An application on the compiled device: one call a decision."""

    device: CompiledWarpDevice

    def __init__(self) -> None:
        super().__init__(CompiledWarpDevice())

    def answer(self, spawn: bool, out: Singles) -> None:
        status = step(self.device.state, spawn, self._costs, out)
        self.asks = status == ASKS
        if status == DEADLOCK:
            self.device.reached(status)


def make_application(device: str) -> PlayedApplication:
    """An application on the device of that name.

    Raises:
        InputError: there is none.
    """
    return CompiledApplication() if device == "compiled" else PlayedApplication(make_launch_device(device))
