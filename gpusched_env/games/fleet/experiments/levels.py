"""How the GPUs of a fleet are simulated: by rates or block by block, in one piece or in shards; and small fleets that
both can run.

Programs are the five recorded ones that the rate model is fitted to: batches of inference as CUDA graphs with pauses,
and eager training. Their times alone are those of the simulated device.

Between reports GPUs are independent, so that shards change nothing: the same arithmetic in the same order, to the last
bit. They are objects of this process, or actors of a Ray cluster; transport and failures are Ray's.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import GpuschedError, InputError
from gpusched_env.experiments.lib.names import new_device, new_scheduler
from gpusched_env.experiments.lib.recorded import RECORDED_ON
from gpusched_env.games.fleet.blocks import BlockSimulatedFleet
from gpusched_env.games.fleet.co_location import NOW, shipped_rates
from gpusched_env.games.fleet.device import Fleet, FleetDispatcher, FleetRun, Wait
from gpusched_env.games.fleet.experiments.fit import INFERENCE, TRAINING, alone_us, utilisation
from gpusched_env.games.fleet.problem import FINISHED, TOP, WAITS, FleetProblem, FleetState, GpuKind, new_state
from gpusched_env.games.fleet.stepping.compiled import advance_compiled, pack_compiled
from gpusched_env.games.fleet.windows import PackingRule, in_use, remove_job
from gpusched_env.games.fleet.workload.jobs import JOB, SLO_STRETCH
from gpusched_env.scheduling.contract import OpenDevice, Scheduler

S: Final = 1_000_000
"""A second, in microseconds."""
SCHEDULERS: Final = {
    "shared": "mps",
    "gpucolo": "gpucolo(slope_ms=-0.6,period_s=0.25,outer=0,first_share=100,goal_of_served=true)",
}
"""What runs on each GPU for a control of the rate model. GPUColo's inner tier acts every quarter of a second, as jobs
stay for seconds; programs are some twenty times as short as the paper's. Its outer tier, every 100 s, does not act."""


@dataclass(frozen=True)
class BlockLevel:
    """Makes what simulates the GPUs of a fleet block by block; can be sent to other processes."""

    device: str = "compiled"
    seed: int = 0
    scheduler: str = ""
    """Scheduler on each GPU, whatever the control; else that of :data:`SCHEDULERS`."""

    def __call__(self, problem: FleetProblem) -> BlockSimulatedFleet:
        """The fleet for one run.

        Raises:
            InputError: a job has no program that its GPUs can run.
        """
        return BlockSimulatedFleet(problem, self._device, self._scheduler, self.seed)

    def _device(self) -> OpenDevice:
        return cast("OpenDevice", new_device(self.device))

    def _scheduler(self, control: str) -> Scheduler:
        if self.scheduler:
            return new_scheduler(self.scheduler)
        if control not in SCHEDULERS:
            raise InputError(
                f"block by block no scheduler stands for the control {control!r}; there are {', '.join(SCHEDULERS)}"
            )
        return new_scheduler(SCHEDULERS[control])


@dataclass(frozen=True)
class SmallFleet:
    """A fleet of seconds: the jobs of a seed."""

    gpus: int = 16
    jobs: int = 40
    seconds: float = 5.0
    report_us: int = S // 2
    restart_us: int = S // 2
    inference_to_training: float = 3.0
    device: str = "compiled"
    """Device whose times alone the jobs have."""
    rates: str = "block-level"
    """Rates, one of :func:`~gpusched_env.games.fleet.co_location.shipped_rates`."""

    def problem(self, seed: int) -> FleetProblem:
        """Half of the jobs are there at the start; the others come within two thirds of the time."""
        rng = np.random.default_rng(seed)
        horizon_us = round(self.seconds * S)
        arrival_us = np.sort(np.where(np.arange(self.jobs) < self.jobs // 2, 0.0, rng.random(self.jobs)))
        rows, programs = [], []
        for at in arrival_us.tolist():
            asked = rng.random() < self.inference_to_training / (1.0 + self.inference_to_training)
            program = str(rng.choice(INFERENCE if asked else TRAINING))
            step_us = alone_us(program, self.device)
            activity = float(rng.uniform(0.1, 0.5)) if asked else utilisation(program, self.device)
            work_us = self.seconds * S * float(rng.uniform(0.1, 0.5))
            memory_gb = float(rng.uniform(2.0, 10.0) if asked else rng.uniform(10.0, 30.0))
            slo_us = step_us * SLO_STRETCH if asked else 0.0
            arrives_us = int(at * horizon_us * 2.0 / 3.0)
            rows.append((arrives_us, int(not asked), work_us, activity, memory_gb, step_us, slo_us))
            programs.append(program)
        kinds = (GpuKind("H100", self.gpus, 80.0, spec=RECORDED_ON),)
        times = {"report_us": self.report_us, "restart_us": self.restart_us}
        rates = shipped_rates(self.rates)
        return FleetProblem(
            f"{self.jobs} jobs, seed {seed}", np.array(rows, JOB), kinds, rates, horizon_us, programs=tuple(programs),
            **times,
        )  # fmt: skip


JOB_COLUMNS: Final = ("left_us", "ready_us", "served_us", "ratio_us", "late_us")
"""Columns of a job that go with it from shard to shard."""
GPU_COLUMNS: Final = ("sleep_us", "share", "ratio", "used_us", "busy_us")
"""Columns of a GPU that a shard reports."""
Rows = dict[int, tuple[float, ...]]
MakeBlocks = Callable[[FleetProblem], BlockSimulatedFleet]


class Shard:
    """Some GPUs of a fleet."""

    def __init__(self, problem: FleetProblem, first: int, last: int, blocks: MakeBlocks | None = None) -> None:
        """GPUs ``first`` to ``last - 1``; ``blocks``: makes what simulates them, in place of rates."""
        self._advance: Any = advance_compiled if blocks is None else blocks(problem)
        self._problem, self._gpus = problem, slice(first, last)
        self._state = new_state(problem)
        self._state.clock[TOP] = last

    def rows(self, jobs: Sequence[int]) -> Rows:
        """Columns :data:`JOB_COLUMNS` of jobs."""
        return {job: tuple(getattr(self._state, name)[job].item() for name in JOB_COLUMNS) for job in jobs}

    def window(
        self, control: int, slots: dict[int, list[int]], rows: Rows
    ) -> tuple[list[int], list[int], list[NDArray[np.float64]]]:
        """Advance to the next report.

        Args:
            control: of each GPU.
            slots: jobs of the GPUs where these have changed.
            rows: of jobs that come from elsewhere, or restart.

        Returns:
            Jobs that have ended, when, and the columns :data:`GPU_COLUMNS` of its GPUs.
        """
        state, problem = self._state, self._problem
        for job, row in rows.items():
            for name, value in zip(JOB_COLUMNS, row, strict=True):
                getattr(state, name)[job] = value
        for gpu, jobs in slots.items():
            state.count[gpu] = len(jobs)
            state.slots[gpu, : len(jobs)] = jobs
        before = self._running()
        self._advance(state, control, problem.rates, problem.report_us, problem.restart_us)
        ended = [job for job in before if state.ended_us[job] >= 0]
        return ended, state.ended_us[ended].tolist(), [getattr(state, name)[self._gpus].copy() for name in GPU_COLUMNS]

    def _running(self) -> list[int]:
        state = self._state
        gpus = np.flatnonzero(state.count).tolist()
        return [job for gpu in gpus for job in state.slots[gpu, : state.count[gpu]].tolist()]


@dataclass(frozen=True)
class _Handle:
    """A shard, wherever it is: ``call`` begins a method, and what it gives is waited for by ``wait``."""

    name: str
    call: Callable[..., Any]
    wait: Callable[[Any], Any]


class Shards:
    """All shards of a fleet; takes the place of what advances it in one piece."""

    def __init__(self, problem: FleetProblem, handles: Sequence[_Handle], bounds: Sequence[int]) -> None:
        self._handles, self._bounds = handles, np.asarray(bounds)
        self._gpu_of = np.full(len(problem.jobs), -1)
        self._ready_us = np.zeros(len(problem.jobs), np.int64)
        self.home = np.full(len(problem.jobs), -1)
        """(jobs,) the shard that has a job or had it last."""

    def __call__(self, state: FleetState, control: int, rates: Any, report_us: int, restart_us: int) -> None:
        """Advance to the next report, as :func:`~gpusched_env.games.fleet.windows.advance` does."""
        # A job that was moved away and back is where it was, but last of its GPU, and restarts.
        other = (state.gpu_of != self._gpu_of) | (state.ready_us != self._ready_us)
        changed = np.flatnonzero(other & (state.gpu_of >= 0))
        homes = np.searchsorted(self._bounds, state.gpu_of[changed], side="right") - 1
        rows = self._rows(state, changed, self.home[changed])
        touched = {*state.gpu_of[changed].tolist(), *self._gpu_of[changed].tolist()} - {-1}
        self.home[changed] = homes
        calls = []
        for number, handle in enumerate(self._handles):
            first, last = self._bounds[number : number + 2]
            slots = {g: state.slots[g, : state.count[g]].tolist() for g in sorted(touched) if first <= g < last}
            own = {job: rows[job] for job in changed[homes == number].tolist() if job in rows}
            calls.append(handle.call("window", control, slots, own))
        for number, (handle, call) in enumerate(zip(self._handles, calls, strict=True)):
            ended, ended_us, columns = handle.wait(call)
            gpus = slice(*self._bounds[number : number + 2])
            for name, column in zip(GPU_COLUMNS, columns, strict=True):
                getattr(state, name)[gpus] = column
            for job, at_us in zip(ended, ended_us, strict=True):
                gpu = int(state.gpu_of[job])
                remove_job(state, gpu, state.slots[gpu].tolist().index(job))
                state.ended_us[job], state.gpu_of[job] = at_us, FINISHED
        self._gpu_of, self._ready_us = state.gpu_of.copy(), state.ready_us.copy()
        state.clock[NOW] += report_us

    def _rows(self, state: FleetState, jobs: NDArray[np.int64], homes: NDArray[np.int64]) -> Rows:
        """Rows of jobs that are moved, as they are where they were; the time of their restart is the dispatcher's."""
        rows: Rows = {
            job: tuple(getattr(state, name)[job].item() for name in JOB_COLUMNS) for job in jobs[homes < 0].tolist()
        }
        for number, handle in enumerate(self._handles):
            if (homes == number).any():
                rows |= handle.wait(handle.call("rows", jobs[homes == number].tolist()))
        ready = JOB_COLUMNS.index("ready_us")
        return {job: (*row[:ready], int(state.ready_us[job]), *row[ready + 1 :]) for job, row in rows.items()}

    def collect(self, state: FleetState) -> None:
        """Bring the columns of jobs into ``state``."""
        for number, handle in enumerate(self._handles):
            jobs = np.flatnonzero(self.home == number).tolist()
            for job, row in handle.wait(handle.call("rows", jobs)).items():
                for name, value in zip(JOB_COLUMNS, row, strict=True):
                    getattr(state, name)[job] = value


def run_in_shards(
    dispatcher: FleetDispatcher,
    problem: FleetProblem,
    shards: int,
    address: str | None = None,
    blocks: MakeBlocks | None = None,
) -> FleetRun:
    """Run a fleet as :func:`~gpusched_env.games.fleet.device.run_fleet` does, with the GPUs in shards.

    Args:
        dispatcher: decides in this process.
        problem: its GPUs and jobs.
        shards: how many, at most one a GPU.
        address: of a Ray cluster (``host:port``, ``auto``, ``local`` for one of this machine) whose actors they are;
            ``None``: objects of this process.
        blocks: simulate GPUs block by block, by what this makes in each shard (it is sent to actors).

    Raises:
        InputError: too many or no shards, or no cluster at ``address``.
        GpuschedError: an actor was lost.
    """
    if not 1 <= shards <= problem.gpus:
        raise InputError(f"{shards} shards of {problem.gpus} GPUs; must be at least 1 and at most one a GPU")
    bounds = [problem.gpus * number // shards for number in range(shards + 1)]
    if address is None:
        own = [Shard(problem, first, last, blocks) for first, last in itertools.pairwise(bounds)]
        handles = [_Handle("", _method(shard), lambda found: found) for shard in own]
        return _run(dispatcher, problem, handles, bounds, level_of(blocks))
    import ray

    from gpusched_env.experiments.lib.ray_cluster import connected

    with connected(address):
        shared, remote = ray.put(problem), ray.remote(Shard)
        pairs = list(itertools.pairwise(bounds))
        names = [
            f"shard {n} of {shards} (GPUs {first} to {last - 1})" for n, (first, last) in enumerate(pairs, start=1)
        ]
        actors = [remote.remote(shared, first, last, blocks) for first, last in pairs]
        handles = [
            _Handle(name, _remote_method(actor), _waited(name)) for name, actor in zip(names, actors, strict=True)
        ]
        return _run(dispatcher, problem, handles, bounds, level_of(blocks))


def _method(shard: Shard) -> Callable[..., Any]:
    return lambda name, *args: getattr(shard, name)(*args)


def _remote_method(actor: Any) -> Callable[..., Any]:
    return lambda name, *args: getattr(actor, name).remote(*args)


def _waited(name: str) -> Callable[[Any], Any]:
    """Waits for what an actor gives."""
    import ray

    def wait(call: Any) -> Any:
        try:
            return ray.get(call)
        except ray.exceptions.RayActorError as error:
            raise GpuschedError(
                f"{name} was lost, and with it what its jobs had done; run it again ({error})"
            ) from error

    return wait


def level_of(blocks: MakeBlocks | None) -> str:
    """What results call the level of simulation."""
    return "rates" if blocks is None else BlockSimulatedFleet.level


def _run(
    dispatcher: FleetDispatcher, problem: FleetProblem, handles: Sequence[_Handle], bounds: Sequence[int], level: str
) -> FleetRun:
    shards = Shards(problem, handles, bounds)
    fleet = Fleet(problem, dispatcher.control, advance=shards)
    rule: PackingRule | None = getattr(dispatcher, "rule", None)
    view, state = fleet.reset(), fleet.state
    reports = -(-problem.horizon_us // problem.report_us)
    counts = np.zeros((3, reports), np.int64)
    dispatcher.reset(problem.kinds)
    for report in range(reports):
        if rule is not None:
            pack_compiled(state, rule)
        else:
            while not isinstance(command := dispatcher.decide(view), Wait):
                view = fleet.apply(command)
        queued = np.count_nonzero((state.gpu_of == WAITS) & (state.arrival_us <= state.clock[NOW]))
        counts[:, report] = in_use(state, 0 if rule is None else rule.unit), state.count.sum(), queued
        later = fleet.advance()
        if later is None:
            break
        view = later
    shards.collect(state)
    used, running, waiting = counts
    return FleetRun(problem, state, fleet.log, used, running, waiting, level)
