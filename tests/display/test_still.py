"""Pictures of charts beside their Plotly figures."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gpusched_env.display.palette import look
from gpusched_env.display.plots import Bars, Estimate, Panel, Series, areas, curves, dots, scatter, timeline
from gpusched_env.errors import InputError
from tests.refusals import refused

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

RISING = np.array([1.0, 2.0, 40.0])
SHARES = np.array([0.2, 0.6, 1.0])


def drawn(chart: Figure) -> NDArray[np.int64]:
    from gpusched_env.display.still import WIDE_IN, picture

    return np.asarray(Image.open(io.BytesIO(picture(chart, "png", WIDE_IN, title=True))).convert("RGB"), np.int64)


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


@pytest.mark.parametrize("kind", CHARTS)
def test_charts_are_saved_as_wide_as_a_column(kind: str, tmp_path: Path) -> None:
    from gpusched_env.display.still import COLUMN_IN

    for ending in ("pdf", "svg", "png"):
        CHARTS[kind].save(tmp_path / f"x.{ending}")
    with Image.open(tmp_path / "x.png") as picture:
        assert picture.width == round(COLUMN_IN * 300)
    pdf, svg = (tmp_path / "x.pdf").read_bytes(), (tmp_path / "x.svg").read_text()
    assert pdf.startswith(b"%PDF-")
    assert b"/Type3" not in pdf, "publishers refuse such fonts"
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", pdf)
    assert box is not None
    assert float(box[1]) == pytest.approx(72 * COLUMN_IN)
    # Text stays text, and what axes mean stands there.
    assert CHARTS[kind].layout.xaxis.title.text in svg
    CHARTS[kind].savefig(tmp_path / "again.pdf", width_in=COLUMN_IN)
    assert (tmp_path / "again.pdf").read_bytes() == pdf


@pytest.mark.parametrize(
    ("name", "width_in", "named"), [("x.gif", 3.4, ".pdf"), ("x.pdf", 0.0, "inches"), ("no/x.pdf", 3.4, "no/x.pdf")]
)
def test_what_cannot_be_saved_is_said(
    name: str, width_in: float, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with refused(InputError, named):
        CHARTS["dots"].save(name, width_in=width_in)
    assert list(tmp_path.iterdir()) == []


def test_panels_beside_each_other_have_one_kind_of_axis() -> None:
    narrow = Panel("narrow", [Series("a", look(0), np.array([1.0, 2.0]), np.array([0.5, 1.0]))])
    chart = curves("t", [narrow, Panel("wide", [Series("a", look(0), RISING, SHARES)])], "ms", "share")
    assert chart.layout.xaxis.type == chart.layout.xaxis2.type == "log"
