"""Running schedulers on the GPU of this machine, and in simulation on the same seeds with decisions that take as
long.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gpusched_env.closure import modules_of
from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.devices.cuda.cupy_gpu import CupyGpu
from gpusched_env.devices.cuda.device import RealDevice, check, offered
from gpusched_env.devices.cuda.fitting import NEAR, Fit, launched
from gpusched_env.episodes.metrics import Metrics
from gpusched_env.errors import GpuError, GpuschedError, InputError
from gpusched_env.experiments.games.kernels import made_of_one
from gpusched_env.experiments.lib.episodes import EpisodeTask, checked_seeds, run_task
from gpusched_env.experiments.lib.files import write_file
from gpusched_env.experiments.lib.names import SchedulerSource, expanded, new_scheduler
from gpusched_env.experiments.lib.play import play
from gpusched_env.experiments.lib.workers import Progress, Shared, run_grid
from gpusched_env.experiments.live.result import KernelFits, Live, LiveEpisode, LiveFigures, encode_live, figures_of
from gpusched_env.experiments.ranking.made import Fingerprints, closure_of, merged
from gpusched_env.experiments.settings import apply_settings
from gpusched_env.hardware.clock import to_ps
from gpusched_env.hardware.specs import GpuSpec, load_gpu, match_gpu
from gpusched_env.planning.dispatcher import DecidesForIntervals, IntervalDispatcher
from gpusched_env.scenarios.adapting import with_durations
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.scenarios.set_up import SetUp, problem_for, set_up, set_up_of
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.contract import Scheduler, is_clairvoyant
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View
from gpusched_env.sources import hash_of
from gpusched_env.versions import versions


class TimedDecisions(CompiledDevice):
    """The compiled device with recorded times of decisions, on a problem whose own decisions take none."""

    def __init__(self, decisions_us: Sequence[float]) -> None:
        """
        Args:
            decisions_us: host time of the first decision, the second, and so on; later ones take their mean.
        """
        super().__init__()
        self._times_ps = [to_ps(us) for us in decisions_us]
        self._mean_ps = sum(self._times_ps) // max(1, len(self._times_ps))

    def reset(self, problem: Problem, seed: int, *, record: Detail = "jobs", snapshots: bool = False) -> View | None:
        """Reset the compiled device; the first recorded time comes first again."""
        self._left = iter(self._times_ps)
        return super().reset(problem, seed, record=record, snapshots=snapshots)

    def drives(self, scheduler: Scheduler, problem: Problem) -> bool:
        """No: each launch takes its recorded time."""
        return False

    def apply(self, command: Command) -> None:
        """Apply a command as the compiled device does; it takes effect when the recorded time is over."""
        env = self.arena.env
        begins_ps = max(int(env["busy_until_ps"]), int(env["now_ps"]))
        env["busy_until_ps"] = begins_ps + next(self._left, self._mean_ps)
        super().apply(command)


class TimedIntervals:
    """A scheduler that decides for intervals, with recorded times of these decisions, which keep no launch waiting."""

    def __init__(self, scheduler: Scheduler, intervals_us: Sequence[float]) -> None:
        """
        Args:
            scheduler: it.
            intervals_us: one or more: how long the first decision took, the second, and so on; later ones take their
                mean.
        """
        self._scheduler, self._intervals_us = scheduler, intervals_us
        self.set_up = set_up_of(scheduler)
        self.dispatcher: IntervalDispatcher | None = None

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Begin an episode, with the recorded times."""
        self._scheduler.reset(knowledge, rng)
        assert isinstance(self._scheduler, DecidesForIntervals)
        self.dispatcher = self._scheduler.dispatcher
        assert self.dispatcher is not None
        self.dispatcher.latencies_us = chain(self._intervals_us, repeat(float(np.mean(self._intervals_us))))

    def decide(self, view: View) -> Command:
        """The scheduler's own decision."""
        return self._scheduler.decide(view)


def timed_intervals(name: str, scenario: Scenario, intervals_us: Sequence[float]) -> TimedIntervals:
    """The scheduler of a name with recorded times of its intervals, for worker processes."""
    return TimedIntervals(new_scheduler(name, scenario), intervals_us)


OTHER = {"synthetic": "library", "library": "synthetic"}
"""The other kind of stand-in for each kind."""
REAL_SHARE = 0.7
"""Share of the progress that episodes on the GPU are; the others are simulated."""


@dataclass(frozen=True)
class _Real:
    """One episode on the GPU."""

    scheduler: str
    seed: int
    metrics: Metrics
    decisions_us: tuple[float, ...]
    launches_us: tuple[float, ...]
    intervals_us: tuple[float, ...]
    """How long decisions for an interval took, where compiled code launches meanwhile."""


def run_live(
    scenarios: Sequence[str],
    schedulers: Sequence[str] | None = None,
    seeds: int | Sequence[int] = 3,
    path: Path | None = None,
    *,
    gpu: str | None = None,
    settings: Sequence[str] = (),
    workers: int | None = None,
    on_progress: Progress | None = None,
    command: str = "",
) -> Live:
    """Run every scheduler on the GPU and in simulation.

    Simulated decisions take as long as those of the same episode on the GPU, one by one: how fast a host is, which
    differs from one minute to the next where others share it, is measured and not predicted.

    Args:
        scenarios: names, or files; they offer nothing but launches and rejections, on the GPU at hand.
        schedulers: names and groups; by default a dozen that differ.
        seeds: how many, counted from 0, or which.
        path: of a result file, written after every scenario.
        gpu: specification of the GPU at hand.
        settings: fields of the scenarios, as ``path=value``.
        workers: processes for the simulation.
        on_progress: called with the number of finished episodes and their share.
        command: noted in the result.

    Raises:
        InputError: unknown names, no GPU, no CuPy.
        GpuError: the GPU or its driver has failed; what was compared before stands in ``path``.
    """
    seeds = checked_seeds(seeds)
    loaded = [apply_settings(load_scenario(name), settings) for name in scenarios]
    behind = CupyGpu()
    spec = load_gpu(gpu) if gpu is not None else match_gpu(behind.name, "this machine")
    live = Live(
        command=command, versions=versions(), product=behind.name, gpu=spec.name, settings=list(settings), seeds=seeds
    )
    with RealDevice(behind) as device:
        for number, scenario in enumerate(loaded):

            def told(finished: int, share: float, number: int = number) -> None:
                if on_progress is not None:
                    on_progress(len(live.episodes) + finished, (number + share) / len(loaded))

            try:
                _compare(_LiveScenario(live, scenario, device, behind, spec), schedulers, workers, told)
            finally:
                if path is not None:
                    write_file(path, encode_live(live), "--json")
    return live


class _LiveScenario:
    """One scenario of a comparison under way."""

    def __init__(self, live: Live, scenario: Scenario, device: RealDevice, behind: CupyGpu, spec: GpuSpec) -> None:
        self.live, self.device, self.behind = live, device, behind
        self.scenario = msgspec.structs.replace(scenario, commands=offered(scenario), gpu=spec.name, decision_us=0.0)
        self.problem = behind.as_launched(build_problem(self.scenario, gpu=spec))
        live.tenants[scenario.name] = [tenant.name for tenant in scenario.tenants]
        self.refused = live.left_out.setdefault(scenario.name, {})
        """Schedulers that were refused, and why."""
        self.durations_us: dict[int, float] = {}
        """Times of kernels whose stand-ins take another time alone than the recorded ones, by identity: the shortest
        ones' can be no shorter. Simulation has them so, too; schedulers are told the recorded ones."""

    def fits(self) -> KernelFits:
        """How well stand-ins are fitted; notes what they take.

        Raises:
            GpuError: the GPU or its driver.
        """
        self.behind.prepare(self.problem)
        fits = self.behind.fits
        off = {
            identity: fit.took_us
            for (identity, kind), fit in fits.items()
            if abs(fit.took_us / self.problem.kernels[identity].duration_us - 1.0) > NEAR
        }
        # Of kernels that tenants share of whom only some have a library's there are two.
        twice = {identity for identity, kind in fits if (identity, OTHER[kind]) in fits}
        self.durations_us = {identity: us for identity, us in off.items() if identity not in twice}
        return _fits(self.problem, fits)

    def runnable(self, schedulers: Sequence[str]) -> list[str]:
        """The schedulers that ask for nothing that the GPU does not do here."""
        found = []
        for scheduler in expanded(schedulers, self.scenario):
            try:
                made = new_scheduler(scheduler, self.scenario)
                if is_clairvoyant(made):
                    raise InputError("it is told durations before they are known")
                check(problem_for(made, self.problem))
                found.append(scheduler)
            except InputError as error:
                self.refused[scheduler] = str(error)
        return found

    def on_gpu(self, names: list[str], on_progress: Progress) -> tuple[list[_Real], BaseException | None]:
        """Seed by seed; what ended them, a failure of the GPU or an interrupt, if they did not come to their end."""
        real: list[_Real] = []
        todo = [(scheduler, seed) for seed in self.live.seeds for scheduler in names]
        for scheduler, seed in todo:
            if scheduler in self.refused:
                continue
            try:
                if seed == todo[0][1]:
                    # What it compiles, and keeps for later episodes, is not to be paid for while the clock runs.
                    play(scheduler, self.problem, seed)
                real.append(_on_gpu(scheduler, self.problem, seed, self.device))
            except GpuError as error:
                self.refused[scheduler] = f"the GPU failed: {error}"
                return real, error
            except GpuschedError as error:
                self.refused[scheduler] = f"failed: {error}"
            except KeyboardInterrupt as error:
                return real, error
            on_progress(len(real), REAL_SHARE * len(real) / len(todo))
        return real, None

    def simulated(
        self, real: list[_Real], workers: int | None, on_progress: Progress
    ) -> dict[tuple[str, int], LiveFigures]:
        """The same episodes in simulation, by scheduler and seed.

        Raises:
            KeyboardInterrupt: an interrupt.
        """
        problem = with_durations(self.problem, self.durations_us)
        tasks = [_simulation(problem, episode) for episode in real if episode.scheduler not in self.refused]
        found: dict[tuple[str, int], LiveFigures] = {}
        done = 0

        def keep(outcomes: list[tuple[str, int, LiveFigures | str]]) -> None:
            nonlocal done
            for scheduler, seed, outcome in outcomes:
                done += 1
                if isinstance(outcome, str):
                    self.refused[scheduler] = f"failed in simulation: {outcome}"
                else:
                    found[scheduler, seed] = outcome
            on_progress(len(real), REAL_SHARE + (1.0 - REAL_SHARE) * done / len(tasks))

        if not run_grid(_simulated, [[task] for task in tasks], workers, keep):
            raise KeyboardInterrupt
        return found


def _compare(running: _LiveScenario, schedulers: Sequence[str] | None, workers: int | None, told: Progress) -> None:
    """One scenario: all that is real first, so that nothing else keeps the machine busy meanwhile.

    Where the GPU fails, or at an interrupt, what it did before is compared all the same.
    """
    live, name = running.live, running.scenario.name
    names = running.runnable(schedulers or ["default"])
    live.made = merged(live.made, _made(running, names))
    real, failure = running.on_gpu(names, told)
    if failure is None:
        live.fits[name] = running.fits()
    simulated = running.simulated(real, workers, told)
    live.episodes += [
        LiveEpisode(
            scenario=name,
            scheduler=episode.scheduler,
            seed=episode.seed,
            decisions=len(episode.decisions_us),
            decision_us=float(np.mean(episode.decisions_us)),
            decision_p99_us=float(np.quantile(episode.decisions_us, 0.99)),
            real=figures_of(episode.metrics),
            simulated=simulated[episode.scheduler, episode.seed],
            launch_us=float(np.median(episode.launches_us)) if episode.launches_us else None,
            launch_p99_us=float(np.quantile(episode.launches_us, 0.99)) if episode.launches_us else None,
            interval_us=float(np.mean(episode.intervals_us)) if episode.intervals_us else None,
        )
        for episode in real
        if episode.scheduler not in running.refused
    ]
    if failure is not None:
        raise failure


def _made(running: _LiveScenario, schedulers: Sequence[str]) -> Fingerprints:
    named = ", ".join([running.scenario.name, *running.live.settings])
    made = made_of_one(running.scenario, "compiled", schedulers, named)
    real = hash_of(closure_of(modules_of("devices/cuda")))
    return msgspec.structs.replace(made, physics={**made.physics, "cuda": real})


@contextlib.contextmanager
def _no_collections() -> Iterator[None]:
    """Keep Python from collecting garbage, whose pauses can be as long as a hundred decisions."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _on_gpu(scheduler: str, problem: Problem, seed: int, device: RealDevice) -> _Real:
    with _no_collections():
        episode = play(scheduler, problem, seed, device=lambda: device)
    times = (device.decisions_us, device.launches_us, device.intervals_us)
    return _Real(scheduler, seed, episode.metrics, *(tuple(of) for of in times))


def _simulation(problem: Problem, real: _Real) -> EpisodeTask:
    """An episode in simulation: each decision takes as long as it took; what partitions take is part of that."""
    device = partial(TimedDecisions, real.decisions_us)
    scheduler: SchedulerSource = real.scheduler
    if real.intervals_us:
        scheduler = partial(timed_intervals, real.scheduler, problem.scenario, real.intervals_us)
    return EpisodeTask(real.scheduler, scheduler, Shared(set_up(problem, SetUp(masks=True))), device, real.seed)


def _simulated(task: EpisodeTask) -> tuple[str, int, LiveFigures | str]:
    """Scheduler and seed of an episode with its figures, or why there are none."""
    try:
        return task.name, task.seed, figures_of(run_task(task).metrics)
    except GpuschedError as error:
        return task.name, task.seed, str(error)


def _fits(problem: Problem, fits: Mapping[tuple[int, str], Fit[Any]]) -> KernelFits:
    ratios = {key: fit.took_us / problem.kernels[key[0]].duration_us for key, fit in fits.items()}
    errors = [abs(ratio - 1.0) for ratio in ratios.values()]
    weights_us = dict.fromkeys(ratios, 0.0)
    for program in problem.programs:
        for identity, scale in launched([program.variants[0]]):
            weights_us[identity, program.tenant.kernels] += problem.kernels[identity].duration_us * scale
    return KernelFits(
        kernels=len(errors),
        median=float(np.median(errors)),
        p90=float(np.quantile(errors, 0.9)),
        within=float(np.mean(np.array(errors) <= 0.05)),
        time=float(np.average(list(ratios.values()), weights=list(weights_us.values()))),
    )
