"""What a comparison over the values of a field left behind, and the statistics over it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpusched_env.display.frame import frame
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.episodes import Run
from gpusched_env.experiments.lib.figures import GLOBAL_FIGURES, figure_value
from gpusched_env.experiments.lib.labels import labels, legend
from gpusched_env.experiments.lib.statistics import Interval, mean_interval, pooled_percentile
from gpusched_env.experiments.load_curve.axis import Axis
from gpusched_env.experiments.load_curve.capacity import Capacity, capacity
from gpusched_env.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

FrameOf = Literal["episodes", "tenants", "jobs"]
COUNTS = ("completed", "rejected", "unfinished")
UNKNOWN = Interval(math.nan, None, None, 0)


@dataclass(frozen=True)
class CurveFigures:
    """What schedulers come to as a field of their scenario grows, mostly its load.

    What tables, charts and pages are made of. :class:`~gpusched_env.experiments.load_curve.curve.LoadCurve` has these.
    """

    scenario: Scenario
    """As it is without the change."""
    axis: Axis
    share: float
    """Of each tenant's jobs that must be within its objective for it to be kept."""
    comparisons: dict[float, Comparison]
    """By value, ascending; after an interrupt some are missing, and the last one is partial."""

    @property
    def values(self) -> list[float]:
        """Of the field, with at least one finished episode."""
        return list(self.comparisons)

    @property
    def schedulers(self) -> list[str]:
        """In the order asked for."""
        finished = {name for comparison in self.comparisons.values() for name in comparison.schedulers}
        return [name for name in self._first.descriptions if name in finished]

    @property
    def interrupted(self) -> bool:
        """Whether values or episodes are missing."""
        last = list(self.comparisons.values())[-1]
        return last.interrupted or len(self.comparisons) < len(self.axis.values)

    @property
    def objectives(self) -> list[str]:
        """Tenants that have an objective."""
        return [tenant.name for tenant in self.scenario.tenants if tenant.slo_us is not None]

    @property
    def has_capacity(self) -> bool:
        """Whether higher values ask more, and tenants have objectives that may be missed."""
        return self.axis.asks_more and bool(self.objectives)

    def interval(self, scheduler: str, value: float, figure: str, tenant: str | None = None) -> Interval:
        """A figure at one value of the field, with its 95 % interval over seeds.

        Args:
            scheduler: one of :attr:`schedulers`.
            value: one of :attr:`values`.
            figure: as for ``Comparison.interval``, and for the whole GPU also ``turnaround_p99_us``, of the completed
                jobs of all tenants and seeds together, and ``slo_attainment``, of the tenant that has the lowest.
            tenant: for figures of a tenant.

        Raises:
            InputError: an unknown name.
        """
        if value not in self.comparisons:
            raise InputError(f"{self.axis.field}={value!r} was not compared; there are {self.values}")
        at = self.comparisons[value]
        if scheduler in self.schedulers and scheduler not in at.schedulers:
            return UNKNOWN  # Of an interrupt.
        if tenant is None and figure == "turnaround_p99_us":
            return pooled_percentile([_turnarounds_us(run) for run in at.of(scheduler)], 99.0)
        if tenant is None and figure == "slo_attainment":
            found = [at.interval(scheduler, figure, name) for name in self.objectives]
            return min((i for i in found if not math.isnan(i.mean)), key=lambda i: i.mean, default=mean_interval([]))
        return at.interval(scheduler, figure, tenant)

    def line(self, scheduler: str, figure: str, tenant: str | None = None) -> list[Interval]:
        """:meth:`interval` at every value."""
        return [self.interval(scheduler, value, figure, tenant) for value in self.values]

    def capacity(self, scheduler: str) -> Capacity:
        """The highest value at which each tenant with an objective has :attr:`share` of its jobs within it.

        Linear between the last point where that holds and the first where it does not.

        Raises:
            InputError: an unknown scheduler, or a field whose higher values do not ask more.
        """
        if not self.has_capacity:
            why = "no tenant has an objective (slo_us)" if self.axis.asks_more else f"{self.axis.field} is no load"
            raise InputError(f"there is no capacity: {why}")
        if scheduler not in self.schedulers:
            raise InputError(f"scheduler {scheduler!r} was not compared; {did_you_mean(scheduler, self.schedulers)}")
        found: Capacity = self._capacities[scheduler]
        return found

    def to_frame(self, of: FrameOf = "episodes") -> DataFrame:
        """A pandas frame; the column of the varied field is named after it.

        Args:
            of: ``episodes``: a row a value, scheduler and seed, with the figures of the whole GPU; ``slo_attainment``
                is that of the tenant with the lowest, ``turnaround_p99_us`` of the completed jobs of all tenants.
                ``tenants``: a row a tenant as well. ``jobs``: completed jobs.

        Raises:
            InputError: something else, or pandas is not installed.
        """
        if of == "episodes":
            return frame([self._row(value, run) for value, at in self.comparisons.items() for run in at.runs])
        if of not in ("tenants", "jobs"):
            raise InputError(f"no frame of {of!r}; {did_you_mean(of, ('episodes', 'tenants', 'jobs'))}")
        from pandas import concat

        parts = []
        for value, at in self.comparisons.items():
            part = at.to_frame("jobs" if of == "jobs" else "episodes")
            part.insert(0, self.axis.field, value)
            parts.append(part)
        return concat(parts, ignore_index=True)

    def label(self, scheduler: str) -> str:
        """A scheduler's name as it is shown."""
        return self._labels[scheduler]

    @property
    def legend(self) -> str:
        """What marks of schedulers mean; empty if there are none."""
        return legend(self.schedulers, self._first.clairvoyant)

    @property
    def _first(self) -> Comparison:
        return next(iter(self.comparisons.values()))

    @cached_property
    def _labels(self) -> dict[str, str]:
        return labels(self._first.descriptions, self._first.clairvoyant)

    @cached_property
    def _capacities(self) -> dict[str, Capacity]:
        attained = {name: [i.mean for i in self.line(name, "slo_attainment")] for name in self.schedulers}
        return {name: capacity(self.values, of, self.share) for name, of in attained.items()}

    def _row(self, value: float, run: Run) -> dict[str, Any]:
        tenants, turnarounds = run.metrics.tenants, _turnarounds_us(run)
        attained = [tenant.slo_attainment for tenant in tenants if not math.isnan(tenant.slo_attainment)]
        return {
            self.axis.field: value,
            "scheduler": run.scheduler,
            "clairvoyant": run.scheduler in self._first.clairvoyant,
            "seed": run.seed,
            **{f.key: figure_value(run.metrics, f) for f in GLOBAL_FIGURES},
            "turnaround_p99_us": float(np.percentile(turnarounds, 99)) if len(turnarounds) else math.nan,
            "slo_attainment": min(attained, default=math.nan),
            **{f"jobs_{count}": sum(getattr(tenant, count) for tenant in tenants) for count in COUNTS},
        }


def _turnarounds_us(run: Run) -> Any:
    """Of the completed jobs of all tenants, shape ``(jobs,)``."""
    return run.jobs[:, 4] - run.jobs[:, 2]
