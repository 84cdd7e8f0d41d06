"""Several schedulers on the same seeds: comparisons, for Python and notebooks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args, overload

from gpusched_env.baselines.registered import split_specs
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.games.game import game_of
from gpusched_env.experiments.lib.episodes import EpisodeTask, Run, checked_seeds, run_task
from gpusched_env.experiments.lib.names import (
    DeviceSource,
    SchedulerSource,
    check_scheduler,
    default_schedulers,
    describe_scheduler,
    expanded,
    is_own_or_listed,
    name_of,
    new_device,
    sees_truth,
)
from gpusched_env.experiments.lib.trained import LEARNED, is_learned
from gpusched_env.experiments.lib.workers import Progress, Shared, counting, run_grid
from gpusched_env.experiments.load_curve.curve import compare_over
from gpusched_env.experiments.load_curve.figures import SHARE, LoadCurve
from gpusched_env.experiments.report.charts import interesting_window, same_start
from gpusched_env.reading import read_bytes
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.workload.workload import is_workload_path

Record = Literal["jobs", "kernels", "blocks"]
QUICK_US = 600_000.0
"""Simulated time in all, a few seconds of work, up to which episodes run here: worker processes take as long to
start."""


Schedulers = str | Sequence[SchedulerSource] | Mapping[str, SchedulerSource] | None
Sweep = Mapping[str, Sequence[float]]


@overload
def compare(
    scenario: Scenario | str | Path,
    schedulers: Schedulers = None,
    seeds: int | Sequence[int] = 5,
    *,
    sweep: None = None,
    **options: Any,
) -> Comparison: ...


@overload
def compare(
    scenario: Scenario | str | Path,
    schedulers: Schedulers = None,
    seeds: int | Sequence[int] = 5,
    *,
    sweep: Sweep,
    share: float = SHARE,
    **options: Any,
) -> LoadCurve: ...


def compare(
    scenario: Scenario | str | Path,
    schedulers: Schedulers = None,
    seeds: int | Sequence[int] = 5,
    *,
    sweep: Sweep | None = None,
    share: float = SHARE,
    device: DeviceSource = "compiled",
    record: Record = "jobs",
    window_us: tuple[float, float] | None = None,
    workers: int | None = None,
    on_progress: Progress | None = None,
    command: str = "",
    **fields: Any,
) -> Comparison | LoadCurve:
    """Run every scheduler on every seed and gather the figures.

    An interrupt (Ctrl-C) stops the run and keeps the finished episodes; ``interrupted`` is then true.

    Args:
        scenario: an object, a shipped scenario's name, or a path to a ``.yaml`` file.
        schedulers: names (registered, ``package.module:Name`` or ``file.py:Name``), classes or objects, or a
            mapping from labels to these. Differences are taken against the first. By default a dozen that
            differ, the best with tuned options, and the agent that is shipped for the scenario.
        seeds: how many, counted from 0, or which.
        sweep: a field of the scenario and its values, ``{"load": [0.6, 0.8, 1.0]}``: the comparison is repeated at
            each, and the result is a :class:`~gpusched_env.experiments.load_curve.figures.LoadCurve`.
        share: of a sweep: what share of a tenant's jobs must be within its objective for it to be kept.
        device: a device's name, or a factory.
        record: what to keep of the first seed besides its jobs: nothing more, ``kernels``, or kernels and
            the ``blocks`` on every SM within ``window_us``.
        window_us: start and end; by default a stretch in which tenants meet.
        workers: processes (default: one a CPU core, or 1 for up to :data:`QUICK_US`); 1 runs everything in this
            process.
        on_progress: called with the number of finished episodes and their share of all.
        command: noted in the results.
        fields: of the scenario, to replace: ``gpu="h200-sxm"``, ``horizon_us=20_000``.

    Raises:
        InputError: unknown names or fields, repeated seeds or schedulers, invalid scenario.
        IllegalCommand, DeadlockError: from an episode; names scheduler and seed.
        GpuschedError: a scheduler of one's own failed; names scheduler, seed and line.
    """
    scenario = load_scenario(scenario, **fields)
    if sweep is not None:
        options = {"device": device, "record": record, "window_us": window_us, "workers": workers, "command": command}
        common = {"schedulers": schedulers, "seeds": seeds, **options}
        return compare_over(compare, sweep, scenario, share=share, on_progress=on_progress, **common)
    sources = _sources(schedulers, scenario)
    seeds = checked_seeds(seeds)
    _check_window(window_us, scenario)
    for source in sources.values():
        check_scheduler(source, scenario)
    # A mistake in the scenario is found before a device is waited for that has to be compiled.
    problem = build_problem(scenario)
    if isinstance(device, str):
        new_device(device)
    episodes = _ComparedEpisodes(sources, seeds, Shared(problem), device)
    if record not in get_args(Record):
        raise InputError(f"record is {record!r}; {did_you_mean(record, get_args(Record))}")
    own_workloads = _own_workloads(scenario)
    if workers is None and len(sources) * len(seeds) * scenario.horizon_us <= QUICK_US:
        workers = 1
    started, began = datetime.now(UTC).replace(microsecond=0), time.perf_counter()
    runs, complete = episodes.run("jobs" if record == "jobs" else "kernels", workers, on_progress)
    block_runs: dict[str, Run] = {}
    if record == "blocks" and complete:
        window_us = window_us or interesting_window([run for run in runs if run.seed == seeds[0]])
        block_runs, complete = episodes.run_blocks(window_us, runs, workers)
    return Comparison(
        problem=episodes.problem.value,
        device=device if isinstance(device, str) else getattr(device, "__name__", repr(device)),
        descriptions={name: describe_scheduler(source) for name, source in sources.items()},
        seeds=tuple(seeds),
        runs=tuple(runs),
        interrupted=not complete,
        started=started,
        wall_s=time.perf_counter() - began,
        command=command,
        window_us=window_us if block_runs else None,
        block_runs=block_runs,
        own_workloads=own_workloads,
        clairvoyant=frozenset(name for name, source in sources.items() if sees_truth(source)),
        named=frozenset(name for name, source in sources.items() if name == source),
    )


@dataclass(frozen=True)
class _ComparedEpisodes:
    """The episodes of a comparison."""

    sources: dict[str, SchedulerSource]
    seeds: list[int]
    problem: Shared[Problem]
    device: DeviceSource

    def run(self, detail: Detail, workers: int | None, on_progress: Progress | None) -> tuple[list[Run], bool]:
        """All of them, the first seed with ``detail``: those that finished, in order, and whether all did."""
        return self._run([*self._tasks(self.seeds[:1], detail), *self._tasks(self.seeds[1:])], workers, on_progress)

    def run_blocks(
        self, window_us: tuple[float, float], runs: Sequence[Run], workers: int | None
    ) -> tuple[dict[str, Run], bool]:
        """The blocks of the first seed within a window, by scheduler; of those that repeat what is in ``runs``."""
        zoomed, complete = self._run(self._tasks(self.seeds[:1], "blocks", window_us), workers, None)
        whole = {run.scheduler: run for run in runs if run.seed == self.seeds[0]}
        return {run.scheduler: run for run in zoomed if same_start(run, whole[run.scheduler])}, complete

    def _tasks(
        self, seeds: list[int], detail: Detail = "jobs", window_us: tuple[float, float] | None = None
    ) -> list[EpisodeTask]:
        """Seed by seed, so that an interrupt leaves the schedulers on equal footing."""
        return [
            EpisodeTask(name, source, self.problem, self.device, seed, detail, window_us)
            for seed in seeds
            for name, source in self.sources.items()
        ]

    def _run(
        self, tasks: list[EpisodeTask], workers: int | None, on_progress: Progress | None
    ) -> tuple[list[Run], bool]:
        runs: list[Run] = []
        tell = counting(on_progress, len(tasks))

        def keep(found: list[Run]) -> None:
            runs.extend(found)
            tell(len(found))

        complete = run_grid(run_task, [[task] for task in tasks], workers, keep)
        order = list(self.sources)
        return sorted(runs, key=lambda run: (order.index(run.scheduler), self.seeds.index(run.seed))), complete


def evaluate(
    model: str | Path,
    scenario: Scenario | str | Path,
    schedulers: Sequence[str] | None = None,
    seeds: int | Sequence[int] = 5,
    **options: Any,
) -> Comparison:
    """Compare a trained scheduler with others; differences are taken against pass-through, or without it the agent.

    Args:
        model: folder of a training, the file of a policy, or ``learned``: the one that is shipped for the scenario.
        scenario, seeds, options: as for :func:`compare`.
        schedulers: what to compare with; by default what :func:`compare` has, without the shipped agent.

    Raises:
        InputError: ``model`` is no trained model; and as for :func:`compare`.
    """
    scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
    found: Comparison = compare(scenario, with_agent(model, scenario, schedulers), seeds, **options)
    return found


def with_agent(model: str | Path, scenario: Scenario, schedulers: Sequence[str] | None) -> list[str]:
    """What :func:`evaluate` compares: the agent first, but for the plain GPU, the baseline wherever it takes part.

    Raises:
        InputError: ``model`` is a scheduler, or there is no such file.
    """
    if is_own_or_listed(model):
        name = str(model) if isinstance(model, Path) else name_of(model)
        raise InputError(
            f"{name!r} is a scheduler, and evaluate takes a trained model: the folder of a training, a .npz, "
            "a .zip, or learned; compare takes schedulers (gpusched compare SCENARIO --schedulers A,B,...)"
        )
    # It takes longer to import than a short comparison to run.
    from gpusched_env.agents.training.folder import policy_file

    agent = str(model) if is_learned(str(model)) else f"{LEARNED}:{policy_file(Path(model))}"
    others = expanded(schedulers or ["default"], scenario)
    if not schedulers:
        others = [name for name in others if name != LEARNED]
    plain = game_of(scenario).plain_gpu
    return [*(name for name in others if name == plain), agent, *(name for name in others if name != plain)]


def _own_workloads(scenario: Scenario) -> dict[str, bytes]:
    """Files of one's own that tenants run, as they are now."""
    files = [tenant.workload for tenant in scenario.tenants if is_workload_path(tenant.workload)]
    return {file: read_bytes(Path(file)) for file in files}


def _sources(schedulers: Schedulers, scenario: Scenario) -> dict[str, SchedulerSource]:
    if isinstance(schedulers, str):
        schedulers = expanded(split_specs(schedulers), scenario)
    elif schedulers is None:
        schedulers = default_schedulers(scenario)
    if isinstance(schedulers, Mapping):
        sources = dict(schedulers)
    else:
        names = [name_of(source) for source in schedulers]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InputError(f"schedulers named twice: {', '.join(repeated)}")
        sources = dict(zip(names, schedulers, strict=True))
    if not sources:
        raise InputError("no scheduler given; name at least one")
    return sources


def _check_window(window_us: tuple[float, float] | None, scenario: Scenario) -> None:
    if window_us is not None and not 0 <= window_us[0] < window_us[1] <= scenario.horizon_us:
        start, end = window_us
        raise InputError(f"window {start:g} to {end:g} us: must lie within 0 and the horizon ({scenario.horizon_us:g})")
