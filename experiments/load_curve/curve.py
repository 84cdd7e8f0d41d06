"""The outcome of a comparison over the values of a field, as it shows itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.display.words import counted
from gpusched_env.experiments.lib.shown import Shown
from gpusched_env.experiments.load_curve.figures import CurveFigures

if TYPE_CHECKING:
    from gpusched_env.display.table import Table
    from gpusched_env.experiments.load_curve.charts import LoadPlots


@dataclass(frozen=True, repr=False)
class LoadCurve(Shown, CurveFigures):
    """What schedulers come to as a field of their scenario grows, mostly its load.

    Shown as short tables. :meth:`to_frame` gives all figures, :meth:`capacity` up to where a scheduler keeps the
    objectives, :attr:`plot` the charts, :meth:`save` writes page, picture and data into a folder.
    """

    @property
    def plot(self) -> LoadPlots:
        """Charts, as Plotly figures: ``plot.goodput()``, ``plot.p99()``, ``plot.attainment()``, ``plot.cost()``."""
        from gpusched_env.experiments.load_curve.charts import LoadPlots

        return LoadPlots(self)

    def save(self, folder: Path | str, *, overwrite: bool = False) -> list[str]:
        """Write page, picture and data to ``folder``, at once when complete; returns the files' names.

        Raises:
            InputError: ``folder`` cannot be written, or holds a result and ``overwrite`` is not set.
        """
        from gpusched_env.experiments.load_curve.save import save_curve

        return save_curve(self, Path(folder), overwrite=overwrite)

    def headline(self) -> str:
        """Who is compared, and over which values."""
        first, last = self.values[0], self.values[-1]
        who = counted(len(self.schedulers), "scheduler")
        return f"LoadCurve of {who} on {self.scenario.name}, {self.axis.field} {first:g} to {last:g}"

    def printed(self) -> list[Table]:
        """What leads, and the tail."""
        from gpusched_env.experiments.load_curve.tables import tables

        return tables(self)
