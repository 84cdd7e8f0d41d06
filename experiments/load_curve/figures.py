"""What a comparison over the values of a field left behind: the field, the figures, and up to which load objectives
hold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpusched_env.display.frame import frame
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.episodes import Run
from gpusched_env.experiments.lib.figures import GLOBAL_FIGURES, figure_value
from gpusched_env.experiments.lib.files import ResultFolder
from gpusched_env.experiments.lib.statistics import Interval, mean_interval, pooled_percentile
from gpusched_env.experiments.lib.terminal import DisplayedResult
from gpusched_env.experiments.lib.trained import labels, legend
from gpusched_env.experiments.settings import replace_fields
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scenarios.variants import RATES

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame
    from gpusched_env.display.table import Table
    from gpusched_env.experiments.load_curve.tables import LoadPlots


OPTION = "--sweep"
RIGHT = "expected FIELD=START:STOP:STEP, such as load=0.6:1.5:0.1, or FIELD=A,B,..., such as load=0.6,0.8,1.0"
MOST = 200
"""Values at most: a step that is much too small is a slip of the pen."""
ASKS_MORE = ("load", *RATES)
"""Fields whose higher values ask more of the GPU."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A field and its values, ascending, at least two."""

    field: str
    """A path as ``--set`` takes it: ``load``, ``tenants.search.arrivals.rate_per_s``."""
    values: tuple[float, ...]

    @property
    def asks_more(self) -> bool:
        """Whether higher values ask more of the GPU, so that there is a capacity."""
        return self.field.rpartition(".")[2] in ASKS_MORE

    def at(self, scenario: Scenario, value: float) -> Scenario:
        """``scenario`` with the field at ``value``.

        Raises:
            InputError: it has no such field, or not with such a value.
        """
        number: float = int(value) if value.is_integer() else value
        return replace_fields(scenario, [(self.field, number)], OPTION)


def parse_axis(text: str) -> Axis:
    """The field and values that stand behind ``--sweep``.

    Raises:
        InputError: it is of another form.
    """
    field, equals, values = text.partition("=")
    if not equals or not field:
        raise InputError(f"{OPTION} {text}: {RIGHT}")
    if ":" not in values:
        return _axis(field, [_number(part, text) for part in values.split(",")], f"{OPTION} {text}")
    parts = values.split(":")
    if len(parts) != 3:
        missing = "the step is missing" if len(parts) == 2 else f"{len(parts)} parts where 3 belong"
        raise InputError(f"{OPTION} {text}: {missing}; {RIGHT}")
    start, stop, step = (_number(part, text) for part in parts)
    if step <= 0.0 or stop < start:
        raise InputError(f"{OPTION} {text}: the step must be above 0 and STOP not below START; {RIGHT}")
    steps = math.floor((stop - start) / step + 1e-9)
    # As it would be written by hand: 0.6 and twice 0.1 are 0.8, not 0.8000000000000000444.
    found = [round(start + step * i, 10) for i in range(min(steps, MOST) + 1)]
    return _axis(field, found, f"{OPTION} {text}")


def axis_of(sweep: Mapping[str, Sequence[float]]) -> Axis:
    """What ``compare(sweep={"load": [0.6, 0.8]})`` means.

    Raises:
        InputError: it is of another form.
    """
    right = 'expected one field with its values, such as sweep={"load": [0.6, 0.8, 1.0]}'
    if len(sweep) != 1:
        raise InputError(f"sweep={sweep!r}: {right}")
    ((field, values),) = sweep.items()
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError) as error:
        raise InputError(f"sweep={sweep!r}: {right} ({error})") from error
    return _axis(field, numbers, f"sweep={sweep!r}")


def _axis(field: str, values: Sequence[float], where: str) -> Axis:
    if not all(map(math.isfinite, values)) or len(set(values)) < max(2, len(values)):
        raise InputError(f"{where}: at least two values are needed, all of them finite and different")
    if len(values) > MOST:
        raise InputError(f"{where}: more than {MOST} values; take a larger step")
    return Axis(field, tuple(sorted(values)))


def _number(part: str, text: Any) -> float:
    try:
        return float(part)
    except ValueError as error:
        raise InputError(f"{OPTION} {text}: {part!r} is no number; {RIGHT}") from error


SHARE = 0.95
"""Share of a tenant's jobs that must be within its objective."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The highest value at which the objective is kept."""

    value: float
    """The value between two points of the grid, by linear interpolation; its end where ``where`` is not ``within``."""
    where: Literal["within", "above", "below", "unknown"]
    """``above``: kept at every point. ``below``: at none, not even the lowest. ``unknown``: no job's outcome is."""

    def __str__(self) -> str:
        if self.where == "unknown":
            return "–"
        return f"{self.value:.3g}" if self.where == "within" else f"{self.where} {self.value:.3g}"


def capacity(values: Sequence[float], attained: Sequence[float], share: float = SHARE) -> Capacity:
    """The value at which ``attained`` first falls below ``share``.

    Args:
        values: ascending.
        attained: at each of them, 0 to 1; NaN where it is not known, such points are left out.
        share: that must be attained.
    """
    points = [(v, a) for v, a in zip(values, attained, strict=True) if math.isfinite(a)]
    if not points:
        return Capacity(math.nan, "unknown")
    first = next((i for i, (_, a) in enumerate(points) if a < share), None)
    if first is None:
        return Capacity(points[-1][0], "above")
    if first == 0:
        return Capacity(points[0][0], "below")
    (kept, high), (broken, low) = points[first - 1], points[first]
    return Capacity(kept + (high - share) / (high - low) * (broken - kept), "within")


FrameOf = Literal["episodes", "tenants", "jobs"]
COUNTS = ("completed", "rejected", "unfinished")
UNKNOWN = Interval(math.nan, None, None, 0)


@dataclass(frozen=True, repr=False)
class LoadCurve(DisplayedResult):
    """What schedulers come to as a field of their scenario grows, mostly its load.

    Shown as short tables. :meth:`to_frame` gives all figures, :meth:`capacity` up to where a scheduler keeps the
    objectives, :attr:`plot` the charts, :meth:`save` writes page, picture and data into a folder.
    """

    scenario: Scenario
    """The scenario without the change."""
    axis: Axis
    share: float
    """Share of each tenant's jobs that must be within its objective for it to be kept."""
    comparisons: dict[float, Comparison]
    """Comparisons by value, ascending; after an interrupt some are missing, and the last one is partial."""

    @property
    def values(self) -> list[float]:
        """The values of the field with at least one finished episode."""
        return list(self.comparisons)

    @property
    def schedulers(self) -> list[str]:
        """The schedulers with a finished episode, in the order asked for."""
        finished = {name for comparison in self.comparisons.values() for name in comparison.schedulers}
        return [name for name in self._first.descriptions if name in finished]

    @property
    def interrupted(self) -> bool:
        """Whether values or episodes are missing."""
        last = list(self.comparisons.values())[-1]
        return last.interrupted or len(self.comparisons) < len(self.axis.values)

    @property
    def interruption(self) -> str:
        """What an interrupt left; empty without one."""
        return "interrupted: some episodes are missing" if self.interrupted else ""

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
    def plot(self) -> LoadPlots:
        """Charts, as Plotly figures: ``plot.goodput()``, ``plot.p99()``, ``plot.attainment()``, ``plot.cost()``."""
        from gpusched_env.experiments.load_curve.tables import LoadPlots

        return LoadPlots(self)

    def save(self, folder: Path | str, *, overwrite: bool = False) -> list[str]:
        """Write page, picture and data to ``folder``, at once when complete; returns the files' names.

        Raises:
            InputError: ``folder`` cannot be written, or holds a result and ``overwrite`` is not set.
        """
        from gpusched_env.experiments.load_curve.curve import write_curve

        with ResultFolder(Path(folder), overwrite=overwrite) as results:
            files = write_curve(self, results.staging)
            results.publish()
        return files

    def headline(self) -> str:
        """Who is compared, and over which values."""
        first, last = self.values[0], self.values[-1]
        who = counted(len(self.schedulers), "scheduler")
        return f"LoadCurve of {who} on {self.scenario.name}, {self.axis.field} {first:g} to {last:g}"

    def printed(self) -> list[Table]:
        """The tables of the load curve: what leads, and the tail."""
        from gpusched_env.experiments.load_curve.tables import tables

        return tables(self)

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
    """Turnarounds of the completed jobs of all tenants, shape ``(jobs,)``."""
    return run.jobs[:, 4] - run.jobs[:, 2]
