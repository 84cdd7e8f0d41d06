"""Which figure of a column is the best: of those only that did the work.

A scheduler that rejects or starves jobs has less to do: its energy, its percentiles and the slowdowns of what it serves
look good. Such columns are won by schedulers that completed at least :data:`WORK` of the jobs that the baseline, the
first scheduler, completed: of the tenant whose table it is, or in the table of the whole GPU of every tenant. Whoever
completed none wins none of them. Cost, goodput and SLO attainment count what was not done, and are open to all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from gpusched_env.experiments.compared import ComparedRuns
from gpusched_env.experiments.lib.figures import Figure, find_figure, show
from gpusched_env.experiments.lib.statistics import Interval

WORK = 0.95
"""Share of the baseline's completed jobs."""
RULE = (
    f"Best: of those that completed at least {WORK:.0%} of each tenant's jobs that {{baseline}} completed; "
    "cost, goodput and SLO, which count what was not done, of all."
).replace("%", " %")
"""What is said below tables."""


def did_the_work(comparison: ComparedRuns, scheduler: str, tenant: str | None = None) -> bool:
    """Whether a scheduler completed enough jobs of a tenant, or of every tenant, over the seeds that it finished."""
    completed = find_figure("completed", of_tenant=True)
    rows = range(len(comparison.tenants)) if tenant is None else [comparison.tenants.index(tenant)]
    seeds = [run.seed for run in comparison.of(scheduler)]
    baseline = comparison.schedulers[0]
    known = [run.seed for run in comparison.of(baseline)]
    done = 0.0
    for row in rows:
        asked = dict(zip(known, comparison.values(baseline, completed, row), strict=True))
        own = sum(comparison.values(scheduler, completed, row))
        if own < WORK * sum(asked.get(seed, 0.0) for seed in seeds):
            return False
        done += own
    return done > 0.0


def best_mean(column: Mapping[str, Interval], figure: Figure, workers: set[str]) -> float:
    """The best mean of a column; NaN where nothing is better or all look the same.

    Args:
        column: by scheduler.
        workers: those that did the work.
    """
    # A figure that is undefined in some seeds is that of the seeds in which it looks good.
    seeds = max((interval.seeds for interval in column.values()), default=0)
    defined = {n: i.mean for n, i in column.items() if math.isfinite(i.mean) and i.seeds == seeds}
    if not figure.better or len({show(mean, figure) for mean in defined.values()}) < 2:
        return math.nan
    means = [mean for name, mean in defined.items() if figure.counts_undone or name in workers]
    best = min if figure.better == "low" else max
    return best(means, default=math.nan)
