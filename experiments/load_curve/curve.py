"""The outcome of a comparison over the values of a field, as it shows itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusched_env.display.words import counted
from gpusched_env.experiments.lib.terminal import as_text
from gpusched_env.experiments.load_curve.figures import CurveFigures

if TYPE_CHECKING:
    from gpusched_env.experiments.load_curve.charts import LoadPlots


@dataclass(frozen=True)
class LoadCurve(CurveFigures):
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

    def __repr__(self) -> str:
        first, last = self.values[0], self.values[-1]
        who = counted(len(self.schedulers), "scheduler")
        return f"<LoadCurve of {who} on {self.scenario.name}, {self.axis.field} {first:g} to {last:g}>"

    def __str__(self) -> str:
        return as_text(self.__rich__())

    def __rich__(self) -> Any:
        from gpusched_env.display.table import printed
        from gpusched_env.experiments.load_curve.tables import tables

        return printed(tables(self))

    def _repr_html_(self) -> str:
        from gpusched_env.experiments.load_curve.tables import tables

        return "".join(table._repr_html_() for table in tables(self))
