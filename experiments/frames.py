"""A comparison as data frames: of episodes, schedulers, jobs and kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.display.frame import frame, named
from gpusched_env.episodes.session import jobs_frame, kernels_frame
from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.episodes import Run
from gpusched_env.experiments.lib.figures import GLOBAL_FIGURES, TENANT_FIGURES, figure_value

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


DIFFERENCE = "cost_difference"
"""Name of the column of relative differences of a cost from the first scheduler's."""


def frame_of_episodes(comparison: Comparison) -> DataFrame:
    """A row a scheduler, seed and tenant; ``cost_difference`` is from the first scheduler's cost on the same seed."""
    baseline = {run.seed: run.metrics.cost for run in comparison.of(comparison.schedulers[0])}
    cost, *others = GLOBAL_FIGURES
    same = _same_as(comparison)
    return frame(
        [
            {
                "scheduler": run.scheduler,
                "seed": run.seed,
                cost.key: figure_value(run.metrics, cost),
                DIFFERENCE: _relative(run.metrics.cost, baseline.get(run.seed)),
                **{f.key: figure_value(run.metrics, f) for f in others},
                "tenant": tenant.name,
                **{f.key: figure_value(tenant, f) for f in TENANT_FIGURES},
                "same_as": same[run.scheduler],
                "clairvoyant": run.scheduler in comparison.clairvoyant,
            }
            for scheduler in comparison.by_cost
            for run in comparison.of(scheduler)
            for tenant in run.metrics.tenants
        ]
    )


def frame_of_schedulers(comparison: Comparison) -> DataFrame:
    """A row a scheduler, tenant (none: the whole GPU) and figure, with its interval over seeds."""
    same = _same_as(comparison)
    rows: list[dict[str, Any]] = []
    for name in comparison.by_cost:
        cost, *others = (((None, f.key), comparison.interval(name, f.key)) for f in GLOBAL_FIGURES)
        of_tenants = [
            ((tenant, f.key), comparison.interval(name, f.key, tenant))
            for tenant in comparison.tenants
            for f in TENANT_FIGURES
        ]
        difference = ((None, DIFFERENCE), comparison.difference(name).relative)
        rows += [
            {"scheduler": name, "tenant": tenant, "figure": figure, **interval.as_dict(), "same_as": same[name]}
            for (tenant, figure), interval in (cost, difference, *others, *of_tenants)
        ]
    return frame(rows)


def frame_of_jobs(comparison: Comparison) -> DataFrame:
    """Completed jobs of all episodes."""
    runs = [run for scheduler in comparison.by_cost for run in comparison.of(scheduler)]
    return _joined(comparison, [(run, jobs_frame(comparison.problem, run.jobs)) for run in runs])


def frame_of_kernels(comparison: Comparison) -> DataFrame:
    """Finished kernels of the seed whose kernels were recorded.

    Raises:
        InputError: none was.
    """
    recorded = [run for run in map(comparison.recorded, comparison.by_cost) if run is not None]
    if not recorded:
        raise InputError("kernels were not recorded: compare(..., record='kernels')")
    parts = [(r, kernels_frame(comparison.problem, r.timeline)) for r in recorded if r.timeline is not None]
    return _joined(comparison, parts)


def _same_as(comparison: Comparison) -> dict[str, str]:
    """For each scheduler, the first of those that came to the same."""
    return {name: group[0] for group in comparison.groups for name in group}


def _relative(cost: float, baseline: float | None) -> float:
    return cost / baseline - 1.0 if baseline else np.nan


def _joined(comparison: Comparison, parts: list[tuple[Run, DataFrame]]) -> DataFrame:
    """Frames of episodes below each other, with scheduler and seed in front."""
    from pandas import concat

    names = comparison.by_cost
    for run, part in parts:
        part.insert(0, "scheduler", named(np.full(len(part), names.index(run.scheduler)), names))
        part.insert(1, "seed", run.seed)
    return concat([part for _, part in parts], ignore_index=True)
