"""The outcome of running several schedulers on the same seeds, and the statistics over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from gpusched_env.experiments.bootstrap import Interval, PairedDifference, mean_interval, paired_difference
from gpusched_env.experiments.episodes import Run
from gpusched_env.experiments.figures import GLOBAL_FIGURES, TENANT_FIGURES, Figure, figure_value
from gpusched_env.experiments.marks import legend, marked
from gpusched_env.scenarios.problem import Problem


@dataclass(frozen=True)
class Comparison:
    """Episodes of several schedulers on one problem; equal seeds mean equal arrivals and durations."""

    problem: Problem
    device: str
    descriptions: dict[str, str]
    """One line a scheduler, in the order asked for."""
    seeds: tuple[int, ...]
    """Seeds asked for; after an interrupt some runs are missing."""
    runs: tuple[Run, ...]
    """Finished episodes, by scheduler in the order asked for, then by seed."""
    interrupted: bool
    started: datetime
    wall_s: float
    command: str
    """How it was called, for the record."""
    window_us: tuple[float, float] | None = None
    """The stretch of the first seed that was also run at block detail."""
    block_runs: dict[str, Run] = field(default_factory=dict)
    """By scheduler: the first seed up to the end of the window, at block detail."""
    clairvoyant: frozenset[str] = frozenset()
    """Schedulers that were told the truth."""

    @property
    def schedulers(self) -> list[str]:
        """Schedulers with at least one finished episode, in the order asked for."""
        finished = {run.scheduler for run in self.runs}
        return [name for name in self.descriptions if name in finished]

    def label(self, scheduler: str) -> str:
        """A scheduler's name as it is shown: marked if it was told the truth."""
        return marked(scheduler, self.clairvoyant)

    @property
    def legend(self) -> str:
        """What marks of schedulers mean; empty if there are none."""
        return legend(self.schedulers, self.clairvoyant)

    @property
    def tenants(self) -> list[str]:
        return [program.tenant.name for program in self.problem.programs]

    @property
    def interruption(self) -> str:
        """What an interrupt left; empty without one."""
        if not self.interrupted:
            return ""
        asked = len(self.descriptions) * len(self.seeds)
        what = "only the SMs' timeline is missing" if len(self.runs) == asked else "the figures are partial"
        return f"interrupted: {len(self.runs)} of {asked} episodes finished, {what}"

    @cached_property
    def _by_scheduler(self) -> dict[str, list[Run]]:
        groups: dict[str, list[Run]] = {name: [] for name in self.schedulers}
        for run in self.runs:
            groups[run.scheduler].append(run)
        return groups

    def of(self, scheduler: str) -> list[Run]:
        """Finished episodes of one scheduler, by seed."""
        return self._by_scheduler[scheduler]

    def recorded(self, scheduler: str) -> Run | None:
        """The episode whose kernels were recorded, if it finished."""
        return next((run for run in self.of(scheduler) if run.timeline is not None), None)

    def values(self, scheduler: str, figure: Figure, tenant: int | None = None) -> list[float]:
        """One value a finished seed; ``tenant`` is a row of the scenario's tenants."""
        records = (r.metrics if tenant is None else r.metrics.tenants[tenant] for r in self.of(scheduler))
        return [figure_value(record, figure) for record in records]

    def interval(self, scheduler: str, figure: Figure, tenant: int | None = None) -> Interval:
        """Mean over seeds with its confidence interval."""
        return mean_interval(self.values(scheduler, figure, tenant))

    def against_first(self, scheduler: str, figure: Figure) -> PairedDifference:
        """The paired difference from the first scheduler, over the seeds that both have finished."""
        first = {r.seed: figure_value(r.metrics, figure) for r in self.of(self.schedulers[0])}
        own = {r.seed: figure_value(r.metrics, figure) for r in self.of(scheduler)}
        shared = [seed for seed in self.seeds if seed in first and seed in own]
        return paired_difference([own[s] for s in shared], [first[s] for s in shared])

    def rows(self) -> Iterator[dict[str, Any]]:
        """Flat records, one a scheduler, seed and tenant, as a data frame takes them.

        Columns: ``scheduler``, ``clairvoyant`` (told the truth), ``seed``, the figures of the whole GPU, ``tenant``
        and its figures.
        """
        for run in self.runs:
            whole = {f.key: figure_value(run.metrics, f) for f in GLOBAL_FIGURES}
            for tenant in run.metrics.tenants:
                own = {f.key: figure_value(tenant, f) for f in TENANT_FIGURES}
                told = run.scheduler in self.clairvoyant
                yield {
                    "scheduler": run.scheduler,
                    "clairvoyant": told,
                    "seed": run.seed,
                    **whole,
                    "tenant": tenant.name,
                    **own,
                }

    def __rich__(self) -> Any:
        from gpusched_env.experiments.tables import comparison_tables

        return comparison_tables(self)
