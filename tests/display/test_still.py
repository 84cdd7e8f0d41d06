"""Pictures of charts beside their Plotly figures."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gpusched_env.display.palette import look
from gpusched_env.display.plots import Bars, Estimate, Panel, Series, areas, curves, dots, scatter, timeline

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

RISING = np.array([1.0, 2.0, 40.0])
SHARES = np.array([0.2, 0.6, 1.0])


def drawn(chart: Figure) -> NDArray[np.int64]:
    from gpusched_env.display.still import png

    return np.asarray(Image.open(io.BytesIO(png(chart))).convert("RGB"), np.int64)


def middle(image: NDArray[np.int64], colour: str) -> tuple[float, float]:
    """Mean row and column of the pixels of a colour."""
    import matplotlib as mpl

    near = np.abs(image - np.array(mpl.colors.to_rgb(colour)) * 255).max(axis=2) <= 3
    rows, columns = np.nonzero(near)
    assert len(rows) > 20, f"{colour} is not drawn"
    return float(rows.mean()), float(columns.mean())


CHARTS = {
    "curves": curves("t", [Panel("p", [Series("a", look(0), RISING, SHARES)], limit=3.0)], "ms", "share", "SLO"),
    "dots": dots("t", {"p": {"a": Estimate(1.0, 0.9, 1.1, [0.9, 1.1]), "b": Estimate(2.0)}}, "cost", "scheduler"),
    "scatter": scatter("t", {"a": (Estimate(1.0, 0.9, 1.1), Estimate(2.0))}, "x", "y", {"a": look(0)}),
    "areas": areas("t", {"a": {"busy": Series("busy", look(0), RISING, SHARES)}}, 40.0, "share"),
}


@pytest.mark.parametrize("kind", CHARTS)
def test_notebooks_keep_a_picture_beside_the_figure(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import plotly.io

    monkeypatch.setattr(plotly.io.renderers, "default", "plotly_mimetype")
    bundle = CHARTS[kind]._repr_mimebundle_()
    assert "application/vnd.plotly.v1+json" in bundle
    with Image.open(io.BytesIO(base64.b64decode(bundle["image/png"]))) as picture:
        assert picture.width > 600
    middle(drawn(CHARTS[kind]), CHARTS[kind].data[0].line.color or CHARTS[kind].data[0].marker.color)


def test_bars_stand_in_the_rows_of_the_figure_and_at_their_times() -> None:
    early, late = np.array([0.0]), np.array([6.0])
    bars = [
        Bars("upper", late, np.array([2.0]), ["x"], look(0), legend="upper"),
        Bars("lower", early, np.array([2.0]), ["y"], look(1), legend="lower"),
    ]
    chart = timeline("t", bars, (0.0, 10.0), "tenant")
    image = drawn(chart)[60:]  # Below the legend.
    upper, lower = (middle(image, trace.marker.color) for trace in chart.data)
    assert upper[0] < lower[0]
    assert upper[1] > lower[1]
