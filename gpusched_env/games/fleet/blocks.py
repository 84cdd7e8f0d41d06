"""A fleet whose GPUs are simulated block by block: what happens between two reports, in place of the rate model.

Each GPU is a simulated device with a scheduler of kernels. Training ends with its last iteration, inference at the time
at which it leaves. A job that is moved comes to its new GPU when its restart is over; a step that is on the old one
ends there, and counts for nothing.

What a GPU reports is measured. The latency of an inference job is the mean turnaround of the batches that completed
since the last report. Where none did, it is the age of the one in the system, but at least the latency before.

Each GPU is a problem of its own, in which each of the fleet's jobs is a tenant that comes when it is placed there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.episodes.session import begin
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.co_location import CONTROLS, NOW
from gpusched_env.games.fleet.problem import FINISHED, TOP, FleetProblem, FleetState, GpuKind
from gpusched_env.games.fleet.windows import TOLERANCE, remove_job
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import make_scenario
from gpusched_env.scenarios.set_up import problem_for
from gpusched_env.scheduling.commands import Wait
from gpusched_env.scheduling.contract import OpenDevice, Scheduler
from gpusched_env.scheduling.timeline import Timeline
from gpusched_env.scheduling.view import View

AFTER_US: Final = 1.0
"""Time from the end of a fleet to that of its GPUs: nothing happens there any more."""


def gpu_problem(fleet: FleetProblem, kind: GpuKind) -> Problem:
    """What a GPU of ``kind`` may have to run.

    Inference is a closed loop of batches, each launched as one CUDA graph, that pauses so that its activity alone is
    its utilisation; training is one of iterations, kernel by kernel. None of them begins by itself, and none varies
    from iteration to iteration: work is counted in those of ``step_us``. They are clients of MPS, so that each has
    hardware queues of its own.

    Args:
        fleet: whose jobs have programs.
        kind: whose ``spec`` is simulated.

    Raises:
        InputError: a job has no program, there is no such program, or the GPU cannot run it.
    """
    check_programs(fleet)
    reports = -(-fleet.horizon_us // fleet.report_us)
    horizon_us = float(reports * fleet.report_us) + AFTER_US
    scenario = make_scenario(
        {
            "name": "fleet",
            "gpu": kind.spec,
            "tenants": [_tenant(fleet, job, 2.0 * horizon_us) for job in range(len(fleet.jobs))],
            "horizon_us": horizon_us,
            "restart_us": float(fleet.restart_us),
            "variation": False,
        }
    )
    where = f"{fleet.name}: GPUs of kind {kind.name}"
    try:
        built = build_problem(scenario)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    has_gb = built.gpu.memory_bytes / 1e9
    if kind.memory_gb > has_gb:
        raise InputError(f"{where}: memory_gb is {kind.memory_gb:g}, {kind.spec} has {has_gb:g}; claims must fit there")
    channels = max(built.gpu.channels, len(built.streams))
    return replace(built, gpu=msgspec.structs.replace(built.gpu, channels=channels))


def check_programs(fleet: FleetProblem) -> None:
    """Whether each job can be run block by block.

    Raises:
        InputError: names the first job without a program.
    """
    programs, jobs = len(fleet.programs), len(fleet.jobs)
    if programs != jobs or "" in fleet.programs:
        first = fleet.programs.index("") if "" in fleet.programs else min(programs, jobs)
        raise InputError(
            f"{fleet.name}: job {first} has no program; block by block each of the {jobs} jobs needs the name of a "
            f"workload in programs"
            if first < jobs
            else f"{fleet.name}: there are {programs} programs for {jobs} jobs; must be one for each"
        )


def _tenant(fleet: FleetProblem, job: int, dormant_us: float) -> dict[str, Any]:
    row = fleet.jobs[job]
    pause_us = 0.0 if row["training"] else float(row["step_us"] * (1.0 / row["utilisation"] - 1.0))
    own: dict[str, Any] = {} if row["training"] else {"launch": "graph", "slo_us": float(row["slo_us"])}
    arrivals = {"kind": "closed-loop", "think_us": pause_us, "start_us": dormant_us}
    return {
        "name": f"job {job}",
        "workload": fleet.programs[job],
        "priority": int(row["training"]),
        "arrivals": arrivals,
        **own,
    }


class BlockGpu:
    """A device that stands still at the time up to which it was run; nobody is there at first."""

    def __init__(self, problem: Problem, device: OpenDevice, scheduler: Scheduler, seed: int) -> None:
        """
        Args:
            problem: all that may come (:func:`~gpusched_env.games.fleet.blocks.gpu_problem`).
            device: it runs on.
            scheduler: of kernels.
            seed: of what varies from job to job, and of the scheduler.
        """
        self._device, self._scheduler = device, scheduler
        own = problem_for(scheduler, problem)
        begin(scheduler, own, seed)
        self.sms = own.gpu.sms
        self.decisions = 0
        """Commands of its scheduler, without those to wait."""
        self._shown = 0
        device.stop_us = 0.0
        self._decide(device.reset(own, seed))

    @property
    def time_us(self) -> float:
        """The time up to which it was run."""
        return self._device.time_us

    @property
    def timeline(self) -> Timeline:
        """What has happened on the GPU."""
        return self._device.timeline

    @property
    def busy_us(self) -> float:
        """Time that its SMs had blocks, mean over all SMs."""
        return self._device.costs.busy_sm_us / self.sms

    def run(self, until_us: float) -> None:
        """Run up to a time, which is not past; what is due then has happened."""
        self._device.stop_us = until_us
        self._decide(self._device.advance())

    def come(self, job: int, steps: int | None) -> None:
        """A job begins now, and ends by itself after so many steps; ``None``: when it is told to."""
        self._device.come(job, steps)

    def go(self, job: int) -> None:
        """A job ends; its step on the GPU goes on."""
        self._device.go(job)

    def steps(self) -> NDArray[np.float64]:
        """Steps that have ended since the last call: job, number, arrival, begin on the host and end (us)."""
        rows = self.timeline.jobs.array
        new, self._shown = rows[self._shown :], len(rows)
        return new

    def view(self) -> View:
        """The view that the GPU's scheduler would have now."""
        return self._device.view()

    def _decide(self, view: View | None) -> None:
        device, scheduler = self._device, self._scheduler
        while view is not None:
            command = scheduler.decide(view)
            device.apply(command)
            self.decisions += not isinstance(command, Wait)
            view = device.advance()


@dataclass
class _Stay:
    """A job on a GPU."""

    ready_us: int
    """The time at which its restart is over, or 0."""
    since_us: float
    """The time at which it comes to the device."""
    came: bool = False
    gone: bool = False
    left_us: float = 0.0
    """Work that is left of training, when it came."""
    steps: int = 0
    """Iterations that training has from when it came."""
    ended: int = 0
    """Iterations that have ended since it came."""
    took_us: list[float] = field(default_factory=list)
    """Batches since the last report."""
    ended_us: float = math.inf
    """The time at which its work was done."""


class BlockSimulatedFleet:
    """Advances a fleet to the next report, as :func:`~gpusched_env.games.fleet.windows.advance`; GPUs are devices."""

    level = "blocks"

    def __init__(
        self,
        problem: FleetProblem,
        new_device: Callable[[], OpenDevice],
        new_scheduler: Callable[[str], Scheduler],
        seed: int = 0,
    ) -> None:
        """
        Args:
            problem: with a program for each job.
            new_device: makes the device of a GPU.
            new_scheduler: makes what runs on a GPU, for one of :data:`~gpusched_env.games.fleet.co_location.CONTROLS`.
            seed: of GPU 0; the others have the next ones.

        Raises:
            InputError: as from :func:`~gpusched_env.games.fleet.blocks.gpu_problem`.
        """
        self._new_device, self._new_scheduler, self._seed = new_device, new_scheduler, seed
        built = [gpu_problem(problem, kind) for kind in problem.kinds]
        self._problems = [own for own, kind in zip(built, problem.kinds, strict=True) for _ in range(kind.count)]
        self.gpus: dict[int, BlockGpu] = {}
        """GPUs that ever had a job."""
        self._stays: dict[int, dict[int, _Stay]] = {}

    @property
    def decisions(self) -> int:
        """Commands of all GPUs' schedulers so far, without those to wait."""
        return sum(gpu.decisions for gpu in self.gpus.values())

    def __call__(self, fleet: FleetState, control: int, rates: Any, report_us: int, restart_us: int) -> None:
        """Run to the next report; ``rates`` say nothing here."""
        now_us = int(fleet.clock[NOW])
        if now_us == 0:
            self.gpus.clear()
            self._stays.clear()
        for gpu in range(int(fleet.clock[TOP])):
            fleet.ratio[gpu] = 0.0
            if fleet.count[gpu] == 0 and not self._stays.get(gpu):
                continue
            if gpu not in self.gpus:
                scheduler = self._new_scheduler(CONTROLS[control])
                self.gpus[gpu] = BlockGpu(self._problems[gpu], self._new_device(), scheduler, self._seed + gpu)
                self._stays[gpu] = {}
            self._place(fleet, gpu, now_us)
            if fleet.count[gpu]:
                self._window(fleet, gpu, now_us, report_us)
        fleet.clock[NOW] = now_us + report_us

    def _place(self, fleet: FleetState, gpu: int, now_us: int) -> None:
        """What the dispatcher has changed: jobs that went, and those that are to come."""
        device, stays = self.gpus[gpu], self._stays[gpu]
        device.run(now_us)
        there = fleet.slots[gpu, : fleet.count[gpu]].tolist()
        for job in list(stays):
            if job not in there or stays[job].ready_us != fleet.ready_us[job]:
                if stays[job].came and not stays[job].gone:
                    device.go(job)
                del stays[job]
        for job in there:
            if job not in stays:
                ready_us = int(fleet.ready_us[job])
                stays[job] = _Stay(ready_us, float(max(now_us, ready_us)))
                fleet.pace[job] = fleet.lost[job] = 0.0

    def _window(self, fleet: FleetState, gpu: int, now_us: int, report_us: int) -> None:
        """One GPU, to the next report."""
        device, stays, end_us = self.gpus[gpu], self._stays[gpu], now_us + report_us
        device.steps()
        busy_us = device.busy_us
        for at_us, leaves, job in sorted(self._due(fleet, gpu, now_us, end_us)):
            device.run(at_us)
            if leaves:
                stays[job].gone = True
                if stays[job].came:
                    device.go(job)
            else:
                self._come(fleet, gpu, job)
        device.run(end_us)
        self._hear(fleet, gpu)
        fleet.used_us[gpu] += report_us
        fleet.busy_us[gpu] += device.busy_us - busy_us
        self._report(fleet, gpu, now_us, end_us)

    def _due(self, fleet: FleetState, gpu: int, now_us: int, end_us: int) -> list[tuple[float, bool, int]]:
        """When jobs come, and inference leaves, before the next report: time, whether it leaves, job."""
        found = []
        for job, stay in self._stays[gpu].items():
            leaves_us = math.inf if fleet.training[job] else now_us + float(fleet.left_us[job])
            if not stay.came and stay.since_us < min(leaves_us, end_us):
                found.append((stay.since_us, False, job))
            if leaves_us <= end_us:
                found.append((leaves_us, True, job))
        return found

    def _come(self, fleet: FleetState, gpu: int, job: int) -> None:
        stay = self._stays[gpu][job]
        stay.came, stay.left_us = True, float(fleet.left_us[job])
        if fleet.training[job]:
            # What is left was computed from whole iterations: a rounding error is none more.
            stay.steps = max(1, math.ceil(stay.left_us / float(fleet.step_us[job]) - 1e-9))
        self.gpus[gpu].come(job, stay.steps if fleet.training[job] else None)

    def _hear(self, fleet: FleetState, gpu: int) -> None:
        """Steps that have ended since the last report."""
        stays = self._stays[gpu]
        for row, _, arrived_us, _, ended_us in self.gpus[gpu].steps().tolist():
            stay = stays.get(int(row))
            # Those of a stay before this one count for nothing.
            if stay is None or not stay.came or arrived_us < stay.since_us:
                continue
            stay.took_us.append(ended_us - arrived_us)
            stay.ended += 1
            if fleet.training[int(row)] and stay.ended == stay.steps:
                stay.ended_us = ended_us

    def _report(self, fleet: FleetState, gpu: int, now_us: int, end_us: int) -> None:
        """What the jobs of a GPU did; those that have ended are gone."""
        tenants = self.gpus[gpu].view().tenants
        sleep_us, share = 0.0, 1.0
        for slot in range(int(fleet.count[gpu]) - 1, -1, -1):
            job = int(fleet.slots[gpu, slot])
            stay = self._stays[gpu][job]
            if fleet.training[job]:
                sleep_us = max(sleep_us, float(tenants.pause_us[job]))
                share = min(share, float(tenants.partition_sms[job]) / self.gpus[gpu].sms)
                self._train(fleet, job, stay, now_us, end_us)
            else:
                oldest_us = float(tenants.oldest_arrived_us[job])
                self._serve(fleet, job, stay, now_us, end_us, end_us - max(oldest_us, stay.since_us))
                fleet.ratio[gpu] = max(fleet.ratio[gpu], fleet.pace[job])
            stay.took_us.clear()
            if fleet.ended_us[job] >= 0:
                remove_job(fleet, gpu, slot)
                fleet.gpu_of[job] = FINISHED
                del self._stays[gpu][job]
        fleet.sleep_us[gpu], fleet.share[gpu] = sleep_us, share

    def _train(self, fleet: FleetState, job: int, stay: _Stay, now_us: int, end_us: int) -> None:
        if not stay.came:
            return
        left_us = max(0.0, stay.left_us - stay.ended * float(fleet.step_us[job]))
        if stay.ended_us < math.inf:
            left_us, fleet.ended_us[job] = 0.0, int(stay.ended_us)
        until_us = min(float(end_us), stay.ended_us)
        began_us = max(float(now_us), stay.since_us)
        fleet.pace[job] = (fleet.left_us[job] - left_us) / (until_us - began_us) if until_us > began_us else 0.0
        fleet.left_us[job] = left_us

    def _serve(self, fleet: FleetState, job: int, stay: _Stay, now_us: int, end_us: int, age_us: float) -> None:
        """``age_us``: of the batch in the system; not above 0 without one."""
        if stay.took_us:
            fleet.pace[job] = sum(stay.took_us) / len(stay.took_us) / fleet.slo_us[job]
        elif stay.came:
            fleet.pace[job] = max(fleet.pace[job], age_us / fleet.slo_us[job])
        stays_us = min(float(fleet.left_us[job]), float(end_us - now_us))
        waited_us = min(max(0.0, stay.since_us - now_us), stays_us)
        served_us = stays_us - waited_us
        fleet.served_us[job] += served_us
        fleet.ratio_us[job] += served_us * fleet.pace[job]
        fleet.late_us[job] += stays_us if fleet.pace[job] > TOLERANCE else waited_us
        fleet.left_us[job] -= stays_us
        if fleet.left_us[job] <= 0.0:
            fleet.ended_us[job] = now_us + int(stays_us)
