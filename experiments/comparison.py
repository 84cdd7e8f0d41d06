"""The outcome of running several schedulers on the same seeds, as it shows itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from gpusched_env.display.words import counted
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments import compared
from gpusched_env.experiments.compared import ComparedRuns
from gpusched_env.experiments.lib.terminal import as_text

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame
    from gpusched_env.experiments.report.charts import ComparisonPlots

FrameOf = Literal["episodes", "schedulers", "jobs", "kernels"]


@dataclass(frozen=True)
class Comparison(ComparedRuns):
    """Episodes of several schedulers on one problem; equal seeds mean equal arrivals and durations.

    Shown as tables on a terminal and in a notebook. :meth:`to_frame` gives the figures, jobs and kernels as data
    frames, :attr:`plot` the charts (``plot.cdf()``), :meth:`interval` one figure with its confidence interval, and
    :meth:`save` writes report, data and traces into a folder.
    """

    @property
    def plot(self) -> ComparisonPlots:
        """Charts, as Plotly figures: ``plot.cdf()``, ``plot.cost()``, ``plot.timeline()`` and others."""
        from gpusched_env.experiments.report.charts import ComparisonPlots

        return ComparisonPlots(self)

    def to_frame(self, of: FrameOf = "episodes") -> DataFrame:
        """A pandas frame, the cheapest scheduler first; units are in the columns' names, undefined figures are NaN.

        Args:
            of: ``episodes``: a row a scheduler, seed and tenant, with the figures of the whole GPU and of the tenant.
                ``schedulers``: a row a scheduler and tenant (none for the whole GPU) and figure, with its interval.
                In both, ``same_as`` names the first of the schedulers that came to the same.
                ``jobs``: completed jobs. ``kernels``: finished kernels of the seed whose kernels were recorded.

        Raises:
            InputError: something else, or pandas is not installed.
        """
        if of not in get_args(FrameOf):
            raise InputError(f"no frame of {of!r}; {did_you_mean(of, get_args(FrameOf))}")
        made: DataFrame = getattr(compared, f"frame_of_{of}")(self)
        return made

    def save(self, folder: Path | str, *, traces: bool = False, overwrite: bool = False) -> list[str]:
        """Write report, tables and ``result.json`` to ``folder``, at once when complete; returns the files' names.

        Args:
            traces: also a Perfetto trace of each scheduler whose kernels were recorded.
            overwrite: replace a result that ``folder`` holds.

        Raises:
            InputError: ``folder`` cannot be written, or holds a result.
        """
        from gpusched_env.experiments.report.save import save_results

        return save_results(self, folder, traces=traces, overwrite=overwrite)

    def __repr__(self) -> str:
        best = self.groups[0] if self.runs else None
        lowest = f", lowest cost {self.label_of(best)} {self.interval(best[0], 'cost')}" if best is not None else ""
        what = f"{counted(len(self.schedulers), 'scheduler')} on {self.problem.scenario.name}"
        return f"<Comparison of {what}, {counted(len(self.seeds), 'seed')}{lowest}>"

    def __str__(self) -> str:
        from gpusched_env.experiments.report.tables import comparison_tables

        return as_text(comparison_tables(self, coloured=False)) if self.runs else repr(self)

    def _repr_html_(self) -> str:
        from gpusched_env.experiments.report.tables import html_tables

        return html_tables(self)

    def __rich__(self) -> Any:
        from gpusched_env.experiments.report.tables import comparison_tables

        return comparison_tables(self)
