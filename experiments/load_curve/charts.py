"""Load curves as Plotly figures, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from gpusched_env.experiments.load_curve.figures import CurveFigures


class LoadPlots:
    """Charts of one load curve: a line a scheduler, a band for its 95 % interval over seeds."""

    def __init__(self, curve: CurveFigures) -> None:
        self._curve = curve

    def goodput(self) -> Figure:
        """Jobs within their objective a second."""
        return self._lines("goodput_per_s", None, "jobs within their objective a second")

    def p99(self, tenant: str | None = None) -> Figure:
        """99th percentile of the turnaround of completed jobs, of one tenant or of all together."""
        who = f" of {tenant}" if tenant else ""
        return self._lines("turnaround_p99_us", tenant, f"p99 of turnaround{who}, ms", 1e-3)

    def attainment(self, tenant: str | None = None) -> Figure:
        """Share of jobs within the objective, of one tenant or of the lowest; dotted: what is asked."""
        chart = self._lines("slo_attainment", tenant, f"within the objective, {tenant or 'lowest tenant'}")
        chart.add_hline(self._curve.share, line={"dash": "dot", "color": "#888"})
        return chart.update_yaxes(tickformat=".0%")

    def cost(self) -> Figure:
        """The scenario's weighted cost."""
        return self._lines("cost", None, "cost")

    def _lines(self, figure: str, tenant: str | None, axis: str, scale: float = 1.0) -> Figure:
        from gpusched_env.experiments.load_curve.tables import looks

        try:
            from gpusched_env.display.still import Chart
        except ImportError as error:
            raise InputError("charts need plotly: pip install 'gpusched-env[experiments]'") from error
        chart, values = Chart(), self._curve.values
        for name, look in looks(self._curve).items():
            line = self._curve.line(name, figure, tenant)
            group: dict[str, Any] = {"legendgroup": name, "name": self._curve.label(name)}
            band = [
                (value, own.low * scale, own.high * scale)
                for value, own in zip(values, line, strict=True)
                if own.low is not None and own.high is not None
            ]
            x = [v for v, _, _ in band] + [v for v, _, _ in reversed(band)]
            y = [high for _, _, high in band] + [low for _, low, _ in reversed(band)]
            area = {"fill": "toself", "fillcolor": look.colour, "opacity": 0.15, "mode": "none"}
            chart.add_scatter(x=x, y=y, hoverinfo="skip", showlegend=False, **area, **group)
            means = [i.mean * scale for i in line]
            marked = {"line": {"color": look.colour, "dash": look.dash}, "marker": {"symbol": look.symbol, "size": 7}}
            chart.add_scatter(x=values, y=means, mode="lines+markers", **marked, **group)
        chart.update_xaxes(title=self._curve.axis.field)
        chart.update_yaxes(title=axis, rangemode="tozero")
        return chart.update_layout(
            title=self._curve.scenario.name,
            template="plotly_white",
            height=460,
            legend={"orientation": "h", "y": -0.2, "yanchor": "top"},
            # As in other charts: in the right margin it covers nothing.
            modebar={"orientation": "v", "bgcolor": "rgba(0,0,0,0)"},
            margin_r=40,
        )
