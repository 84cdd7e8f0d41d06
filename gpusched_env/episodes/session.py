"""Running a scheduler on a device for one episode, and the episode as tables and data frames."""

from __future__ import annotations

import math
import pickle
import time
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gpusched_env.display.frame import frame, named
from gpusched_env.display.table import NONE, Cell, Table
from gpusched_env.display.words import FEW, is_largest
from gpusched_env.episodes.metrics import Metrics, PlayedEpisode, episode_metrics
from gpusched_env.errors import InputError, did_you_mean, leaving_is_an_error
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import problem_for
from gpusched_env.scheduling.commands import Wait
from gpusched_env.scheduling.contract import Device, Scheduler, SelfDriving, is_clairvoyant, scheduler_rng
from gpusched_env.scheduling.guards import deep_copy
from gpusched_env.scheduling.timeline import Detail, Timeline

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame
    from gpusched_env.episodes.charts import EpisodePlots
    from gpusched_env.scheduling.view import View


MEANINGS = {
    "scheduler": "scheduler",
    "seed": "seed of the episode",
    "tenant": "name of the tenant",
    "job": "number of the job within its tenant, from 0",
    "arrived_us": "arrival, since the start of the episode",
    "completed_us": "end of its last operation",
    "turnaround_us": "completion minus arrival",
    "slowdown": "turnaround over turnaround alone",
    "launch_id": "order of issue in the episode",
    "name": "kernel function",
    "grid_x": "blocks of the grid in this dimension",
    "grid_y": "blocks of the grid in this dimension",
    "grid_z": "blocks of the grid in this dimension",
    "block_x": "threads of a block in this dimension",
    "block_y": "threads of a block in this dimension",
    "block_z": "threads of a block in this dimension",
    "registers": "registers a thread",
    "shared_bytes": "shared memory a block",
    "issued_us": "the host issued it",
    "launched_us": "the scheduler launched it",
    "started_us": "of a job: when the tenant's host took it up; of a kernel: start of its first block",
    "ended_us": "end of its last block",
    "stream_priority": "0, or negative: urgent",
    "preemptions": "times it was preempted",
}
"""What the columns mean; times are microseconds since the start of the episode."""


def jobs_frame(problem: Problem, jobs: NDArray[np.float64]) -> DataFrame:
    """Completed jobs, a row each; ``jobs`` has shape ``(jobs, 5)``, columns of ``Timeline.jobs``."""
    tenant, job, arrived, started, completed = jobs.T
    alone_us = np.array([program.alone_us for program in problem.programs])
    return frame(
        {
            "tenant": named(tenant, _tenants(problem)),
            "job": job.astype(np.int64),
            "arrived_us": arrived,
            "started_us": started,
            "completed_us": completed,
            "turnaround_us": completed - arrived,
            "slowdown": (completed - arrived) / alone_us[tenant.astype(int)],
        }
    )


def kernels_frame(problem: Problem, timeline: Timeline) -> DataFrame:
    """Finished kernels, a row each; the timeline has detail ``kernels`` or more."""
    table = timeline.kernels.dict()
    identity = table["identity"].astype(np.int64)
    kernels = [profile.kernel for profile in problem.kernels]
    shapes = np.array([(*k.grid, *k.block, k.registers, k.shared_bytes) for k in kernels], dtype=np.int64)[identity]
    names = list(dict.fromkeys(kernel.name for kernel in kernels))
    name_of = np.array([names.index(kernel.name) for kernel in kernels])
    shape = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "registers", "shared_bytes")
    return frame(
        {
            "tenant": named(table["tenant"], _tenants(problem)),
            "job": table["job"].astype(np.int64),
            "launch_id": table["id"].astype(np.int64),
            "name": named(name_of[identity], names),
            **{column: shapes[:, i] for i, column in enumerate(shape)},
            **{column: table[column] for column in ("issued_us", "launched_us", "started_us", "ended_us")},
            **{column: table[column].astype(np.int64) for column in ("stream_priority", "preemptions")},
        }
    )


def _tenants(problem: Problem) -> list[str]:
    return [program.tenant.name for program in problem.programs]


NOTE = f"Turnaround of completed jobs. {FEW} before a p99: of fewer than 100 jobs, hardly more than the longest."


@dataclass(frozen=True)
class Episode(PlayedEpisode):
    """What one run left behind, as it shows itself.

    Shown as a table of its figures. :meth:`to_frame` gives figures, jobs and kernels as data frames, :attr:`plot` the
    charts (``plot.timeline()``), :attr:`metrics` the figures.
    """

    @cached_property
    def metrics(self) -> Metrics:
        """The episode's figures."""
        return episode_metrics(self)

    @property
    def plot(self) -> EpisodePlots:
        """Charts, as Plotly figures: ``plot.timeline()``, ``plot.cdf()``, ``plot.utilisation()``."""
        from gpusched_env.episodes.charts import EpisodePlots

        return EpisodePlots(self)

    def animate(
        self,
        path: str | Path,
        *,
        window_us: tuple[float, float] | None = None,
        frames: int = 100,
        frames_per_s: float = 10.0,
        title: str = "",
    ) -> Path:
        """Write the episode as a film: who waits, what runs on which SM, who is done, rejected, late.

        Args:
            path: an animated ``.gif``; or ``.mp4``, which needs moviepy (the extra ``video``).
            window_us: start and end of what is shown; by default all from the start to the last kernel's end.
            frames: pictures, at equal distances of simulated time.
            frames_per_s: pictures a second of the film.
            title: above the pictures; by default the scenario's name.

        Returns:
            where it was written.

        Raises:
            InputError: kernels were not recorded (blocks fill the SMs: ``record="blocks"``), nothing ran in the window,
                or the path ends otherwise.
        """
        from gpusched_env.episodes.charts import animate

        return animate(self, Path(path), window_us, frames, frames_per_s, title)

    def to_frame(self, of: str = "tenants") -> DataFrame:
        """A pandas frame; units are in the columns' names, undefined figures are NaN.

        Args:
            of: ``tenants``: their figures, a row each. ``jobs``: completed jobs. ``kernels``: finished kernels, if
                they were recorded.

        Raises:
            InputError: something else, or pandas is not installed.
        """
        if of == "jobs":
            return jobs_frame(self.problem, self.timeline.jobs.array)
        if of == "kernels":
            return kernels_frame(self.problem, self.timeline)
        if of != "tenants":
            raise InputError(f"no frame of {of!r}; {did_you_mean(of, ('tenants', 'jobs', 'kernels'))}")
        return frame([asdict(tenant) for tenant in self.metrics.tenants])

    def _table(self) -> Table:
        heads = ["tenant", "completed", "rejected", "unfinished", "p50 ms", "p99 ms", "slowdown", "SLO"]
        serves = any(program.engine is not None for program in self.problem.programs)
        heads += [f"{figure} {which} ms" for figure in ("TTFT", "TPOT") for which in ("p50", "p99") if serves]
        rows = []
        for t in self.metrics.tenants:
            tail = _text(t.turnaround_p99_us, "{:.4g}", 1e-3)
            few = is_largest(99.0, t.completed) and tail != NONE
            rows.append(
                [
                    t.name,
                    *(str(jobs) for jobs in (t.completed, t.rejected, t.unfinished)),
                    _text(t.turnaround_p50_us, "{:.4g}", 1e-3),
                    Cell(f"{FEW}{tail}", faint=True) if few else tail,
                    _text(t.slowdown, "{:.3g}"),
                    _text(t.slo_attainment, "{:.1%}"),
                ]
            )
            if serves:
                token_us = (t.ttft_p50_us, t.ttft_p99_us, t.tpot_p50_us, t.tpot_p99_us)
                rows[-1] += [_text(us, "{:.4g}", 1e-3) for us in token_us]
        return Table(repr(self), heads, rows, note=NOTE)

    def __repr__(self) -> str:
        scenario, metrics = self.problem.scenario.name, self.metrics
        return f"<Episode of {scenario}, seed {self.seed}: {self.end_us / 1e3:.4g} ms, cost {metrics.cost:.4g}>"

    def __str__(self) -> str:
        return f"{self._table()}\n{NOTE}"

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()


def _text(value: float, form: str, scale: float = 1.0) -> str:
    return NONE if math.isnan(value) else form.format(value * scale)


def begin(scheduler: Scheduler, problem: Problem, seed: int) -> None:
    """Tell ``scheduler`` what it may know of the next episode; the truth only if it asks for that.

    It gets copies: whatever it does to them changes neither the episode nor what others are told. All that are
    clairvoyant share one of the truth, which takes long to copy.
    """
    if is_clairvoyant(scheduler):
        scheduler.see(problem.once(deep_copy), seed)
    scheduler.reset(pickle.loads(problem.once(_packed_knowledge)), scheduler_rng(seed))


def _packed_knowledge(problem: Problem) -> bytes:
    return pickle.dumps(problem.knowledge)


def run_episode(
    scheduler: Scheduler,
    problem: Problem,
    device: Device,
    seed: int,
    *,
    record: Detail = "jobs",
) -> Episode:
    """Run ``scheduler`` on ``device`` from reset to the end of the episode.

    The same seed gives the same arrivals and durations to every scheduler.

    Raises:
        InputError: the scheduler calls ``sys.exit``.
        IllegalCommand: the scheduler gave a command that is not legal.
        DeadlockError: work is left but nothing can happen any more.
    """
    began = time.perf_counter()
    problem = problem_for(scheduler, problem)
    decisions = 0
    with leaving_is_an_error(f"{type(scheduler).__name__} in the episode with seed {seed}"):
        begin(scheduler, problem, seed)
        if isinstance(device, SelfDriving) and device.drives(scheduler, problem):
            decisions, view = device.drive(scheduler, problem, seed, record=record), None
        else:
            view = device.reset(problem, seed, record=record)
        while view is not None:
            command = scheduler.decide(view)
            device.apply(command)
            decisions += not isinstance(command, Wait)
            view = device.advance()
    return Episode(
        problem=problem,
        seed=seed,
        timeline=device.timeline,
        costs=device.costs,
        end_us=device.time_us,
        done=device.done,
        decisions=decisions,
        wall_s=time.perf_counter() - began,
        last=last_view(device),
    )


def last_view(device: Device) -> View | None:
    """What :attr:`Episode.last` is: nothing where no kernels are recorded, since it takes time."""
    return device.view() if device.timeline.detail in ("kernels", "blocks") else None
