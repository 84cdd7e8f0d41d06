"""Running several schedulers on the same seeds."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.episodes import EpisodeTask, Run, run_task
from gpusched_env.experiments.plugins import (
    DeviceSource,
    SchedulerSource,
    check_scheduler,
    describe_scheduler,
    new_device,
    sees_truth,
)
from gpusched_env.experiments.window import interesting_window, same_start
from gpusched_env.experiments.workers import run_tasks
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from gpusched_env.scheduling.timeline import Detail

Record = Literal["jobs", "kernels", "blocks"]
Progress = Callable[[int, float], None]
"""Called with the number of finished episodes and the share done of all of them, 0 to 1."""


def compare(
    scenario: Scenario | str,
    schedulers: Sequence[str] | Mapping[str, SchedulerSource],
    seeds: int | Sequence[int] = 5,
    *,
    device: DeviceSource = "compiled",
    record: Record = "jobs",
    window_us: tuple[float, float] | None = None,
    workers: int | None = None,
    on_progress: Progress | None = None,
    command: str = "",
) -> Comparison:
    """Run every scheduler on every seed and gather the figures.

    An interrupt (Ctrl-C) stops the run and keeps the finished episodes; ``interrupted`` is then true.

    Args:
        scenario: an object, a shipped scenario's name, or a path to a ``.yaml`` file.
        schedulers: names (registered, ``package.module:Name`` or ``file.py:Name``), or a mapping from a
            label to a name, an object or a class. Differences are taken against the first.
        seeds: how many, counted from 0, or which.
        device: a device's name, or a factory.
        record: what to keep of the first seed besides its jobs: nothing more, ``kernels``, or kernels and
            the ``blocks`` on every SM within ``window_us``.
        window_us: start and end; by default a stretch in which tenants meet.
        workers: processes (default: one a CPU core). Schedulers that are defined in a notebook or script
            (``__main__``) run in this process.
        on_progress: called now and then.
        command: noted in the results.

    Raises:
        InputError: unknown names, repeated seeds or schedulers, invalid scenario.
        IllegalCommand, DeadlockError: from an episode; names scheduler and seed.
    """
    if isinstance(scenario, str):
        scenario = load_scenario(scenario)
    sources = _sources(schedulers)
    seeds = _seeds(seeds)
    processes = _workers(workers, [*sources.values(), device])
    _check_window(window_us, scenario)
    for source in sources.values():
        check_scheduler(source, scenario)
    if isinstance(device, str):
        new_device(device)
    problem = build_problem(scenario)
    detail: Detail = "jobs" if record == "jobs" else "kernels"
    # Seed by seed, so that an interrupt leaves the schedulers on equal footing.
    tasks = [
        EpisodeTask(name, source, seed, detail if seed == seeds[0] else "jobs")
        for seed in seeds
        for name, source in sources.items()
    ]
    started, began = datetime.now(UTC), time.perf_counter()
    task = functools.partial(run_task, problem=problem, device=device)
    runs, interrupted = _run_all(task, tasks, processes, on_progress)
    order = {name: i for i, name in enumerate(sources)}
    runs.sort(key=lambda run: (order[run.scheduler], seeds.index(run.seed)))
    block_runs: dict[str, Run] = {}
    if record == "blocks" and not interrupted:
        window_us = window_us or interesting_window(runs[0])
        zooms = [EpisodeTask(name, source, seeds[0], "blocks", window_us) for name, source in sources.items()]
        zoomed, interrupted = _run_all(task, zooms, processes, None)
        whole = {run.scheduler: run for run in runs if run.seed == seeds[0]}
        zoomed.sort(key=lambda run: order[run.scheduler])
        block_runs = {run.scheduler: run for run in zoomed if same_start(run, whole[run.scheduler])}
    return Comparison(
        problem=problem,
        device=device if isinstance(device, str) else getattr(device, "__name__", repr(device)),
        descriptions={name: describe_scheduler(source) for name, source in sources.items()},
        seeds=tuple(seeds),
        runs=tuple(runs),
        interrupted=interrupted,
        started=started,
        wall_s=time.perf_counter() - began,
        command=command,
        window_us=window_us if block_runs else None,
        block_runs=block_runs,
        clairvoyant=frozenset(name for name, source in sources.items() if sees_truth(source)),
    )


def _run_all(
    task: Callable[..., Run], tasks: Sequence[EpisodeTask], workers: int, on_progress: Progress | None
) -> tuple[list[Run], bool]:
    """The finished episodes, and whether an interrupt cut them short."""
    shares = [0.0] * len(tasks)
    runs: list[Run] = []

    def note(index: int, share: float) -> None:
        shares[index] = share
        if on_progress is not None:
            on_progress(len(runs), sum(shares) / len(shares))

    try:
        for index, run in run_tasks(task, tasks, workers, note):
            runs.append(run)
            note(index, 1.0)
    except KeyboardInterrupt:
        return runs, True
    return runs, False


def _sources(schedulers: Sequence[str] | Mapping[str, SchedulerSource]) -> dict[str, SchedulerSource]:
    if isinstance(schedulers, Mapping):
        sources = dict(schedulers)
    else:
        repeated = sorted({name for name in schedulers if list(schedulers).count(name) > 1})
        if repeated:
            raise InputError(f"schedulers named twice: {', '.join(repeated)}")
        sources = {name: name for name in schedulers}
    if not sources:
        raise InputError("no scheduler given; name at least one")
    return sources


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    chosen = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not chosen:
        raise InputError("no seed given; at least 1 is needed")
    if min(chosen) < 0 or len(set(chosen)) < len(chosen):
        raise InputError(f"seeds must be different and not negative, got {chosen}")
    return chosen


def _check_window(window_us: tuple[float, float] | None, scenario: Scenario) -> None:
    if window_us is not None and not 0 <= window_us[0] < window_us[1] <= scenario.horizon_us:
        start, end = window_us
        raise InputError(f"window {start:g} to {end:g} us: must lie within 0 and the horizon ({scenario.horizon_us:g})")


def _workers(workers: int | None, sources: Sequence[SchedulerSource | DeviceSource]) -> int:
    if workers is None:
        # Another process cannot import what a notebook or script defines.
        homes = [getattr(s, "__module__", None) for s in sources if not isinstance(s, str)]
        return 1 if "__main__" in homes else os.cpu_count() or 1
    if workers < 1:
        raise InputError(f"workers is {workers}, must be at least 1")
    return workers
