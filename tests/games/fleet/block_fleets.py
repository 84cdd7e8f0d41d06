"""Small fleets whose GPUs are simulated block by block, on the teaching GPU: two GPUs, three jobs, worked by hand."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np

from gpusched_env.devices import make_device
from gpusched_env.games.fleet.blocks import BlockSimulatedFleet
from gpusched_env.games.fleet.co_location import shipped_rates
from gpusched_env.games.fleet.device import WAIT, Command, FleetEvent, FleetView, Move, Place
from gpusched_env.games.fleet.problem import FleetProblem, GpuKind
from gpusched_env.games.fleet.workload.jobs import JOB
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling import commands
from gpusched_env.scheduling.contract import OpenDevice
from gpusched_env.scheduling.view import View
from tests.devices.problems import SYNC, K, launch_first, write_workload

MS = 1_000
REPORT_US = 100 * MS
PAUSE_US = 38.0 * MS
BATCHES, LONG, LATER = range(3)
KINDS = (GpuKind("toy", 2, 1.0, spec="toy-4sm"),)
LOG = [
    FleetEvent(0, "place", BATCHES, 0),
    FleetEvent(0, "place", LONG, 0),
    FleetEvent(100 * MS, "place", LATER, 1),
    FleetEvent(100 * MS, "sleep", -1, 0, 38 * MS),
    FleetEvent(190 * MS, "finish", LATER, 1),
    FleetEvent(200 * MS, "move", LONG, 1),
    FleetEvent(200 * MS, "sleep", -1, 0, 0),
    FleetEvent(200 * MS, "sleep", -1, 1, 38 * MS),
    FleetEvent(250 * MS, "finish", BATCHES, 0),
    FleetEvent(388 * MS, "finish", LONG, 1),
]
"""Kernels take the whole GPU, one after the other. Milliseconds:

* GPU 0, to 100: batches of 10, 10 after the last one, end at 10, 40, 70, 100 between iterations of 20, at 30, 60, 90.
* At 110 training is told to sleep for 38, the first time for 2 more: batches end at 130, 150, 170, 200, iterations at
  120 and 190.
* GPU 1, from 100: iterations of 30 end at 130, 160, 190, which is the last one.
* At 200 training is moved; it has ended 5 iterations of 8. The next one, which sleeps until 228, ends at 248 on GPU 0
  and counts for nothing. Batches end at 220 and, asked at 230, at 258; at 250 nobody asks any more.
* GPU 1, from 250: the 50 of the restart are over. Iterations end at 270, 330 and, sleeping for 38, at 388.
"""
RATIOS = [(17.5, 0.0), (15.0, 0.0), (19.0, 0.0), (0.0, 0.0)]
"""At each report: mean latency of batches of both GPUs, whose SLO is 12."""


def worked_by_hand(folder: Path) -> FleetProblem:
    """The problem of :data:`LOG`."""
    rows = [
        (0, 0, 250.0 * MS, 0.5, 0.4, 10.0 * MS, 12.0 * MS),
        (0, 1, 160.0 * MS, 1.0, 0.4, 20.0 * MS, 0.0),
        (100 * MS, 1, 90.0 * MS, 1.0, 0.4, 30.0 * MS, 0.0),
    ]
    programs = tuple(
        write_workload(folder, name, [K(4, ms * 1e3), SYNC])
        for name, ms in (("batches", 10.0), ("long", 20.0), ("later", 30.0))
    )
    times = {"report_us": REPORT_US, "restart_us": 50 * MS}
    jobs = np.array(rows, JOB)
    return FleetProblem("by hand", jobs, KINDS, shipped_rates(), 4 * REPORT_US, programs=programs, **times)


class Moving:
    """Places jobs as they come, the last one on GPU 1, and moves the longer training there at 200 ms."""

    control = "shared"

    def reset(self, kinds: tuple[GpuKind, ...]) -> None:
        self._moved = False

    def decide(self, view: FleetView) -> Command:
        for job in view.waiting[:1].tolist():
            return Place(job, int(job == LATER))
        if view.now_us == 200 * MS and not self._moved:
            self._moved = True
            return Move(LONG, 1)
        return WAIT


class Sleepy:
    """Launches everything, and lets the longer training sleep where it is, from the first decision after 100 ms on."""

    set_up = SetUp(commands=("throttle",))

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        pass

    def decide(self, view: View) -> commands.Command:
        there = view.tenants.jobs_waiting[LONG] > 0 and view.tenants.throttlable[LONG]
        if view.time_us > REPORT_US and there and view.tenants.pause_us[LONG] != PAUSE_US:
            return commands.Throttle(LONG, PAUSE_US)
        return launch_first(view)


def sleepy(control: str) -> Sleepy:
    return Sleepy()


def reference() -> OpenDevice:
    return cast("OpenDevice", make_device("reference"))


def compiled() -> OpenDevice:
    return cast("OpenDevice", make_device("compiled"))


DEVICES = {"reference": reference, "compiled": compiled}


def blocks(problem: FleetProblem, device: str) -> BlockSimulatedFleet:
    return BlockSimulatedFleet(problem, DEVICES[device], sleepy)
