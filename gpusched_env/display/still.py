"""Charts as pictures: files for papers, and what stays visible where nothing runs Plotly's scripts.

Matplotlib draws a :class:`Chart` again: its panels, lines, dots, bars, intervals, titles and legend. A notebook keeps
that as a PNG beside Plotly's JSON, for exported pages and code hosts. :meth:`Chart.save` writes it as a file.
"""

from __future__ import annotations

import base64
import contextlib
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plotly.graph_objects import Figure

from gpusched_env.display.palette import LINES, MARKERS
from gpusched_env.errors import InputError, needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

PIXELS_AN_INCH: Final = 110
"""Of the PNG in a notebook."""
WIDE_IN: Final = 9.0
"""Width of the picture in a notebook; its fonts are as large as Plotly's."""
COLUMN_IN: Final = 3.4
"""Width of a column of a paper on two columns."""
PAGE_IN: Final = 7.0
"""Pictures up to the width of a page of a paper have its small fonts."""
SMALL: Final = 0.55
"""Height of a picture for a paper, as a share of the chart's: small fonts need less."""
SHARP: Final = 300
"""Pixels an inch of a PNG for a paper."""
STYLE: Final[dict[Any, Any]] = {
    # Letters stay letters, in fonts that publishers accept; equal charts give equal files.
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "gpusched",
    "legend.frameon": False,
}
DATES: Final = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
"""What says when a file was written, by kind of file, is left out."""
SYMBOLS: Final = {**MARKERS, "line-ns-open": "|"}
MIMETYPE: Final = "image/png"


class Chart(Figure):  # type: ignore[misc]  # Plotly has no types.
    """A Plotly figure that notebooks keep with a picture of it, if Matplotlib is installed."""

    def save(self, path: str | Path, *, width_in: float = COLUMN_IN, title: bool = False) -> None:
        """Write a picture for a paper, in place of what is there.

        Args:
            path: a file that ends in ``.pdf``, ``.svg`` or ``.png``.
            width_in: its width in inches; by default a column's. The height is the chart's.
            title: also draw the title, which a caption says elsewhere.

        Raises:
            InputError: another ending, no such width, Matplotlib is not installed, or the file cannot be written.
        """
        path = Path(path)
        kind = path.suffix.removeprefix(".").lower()
        if kind not in DATES:
            raise InputError(f"{path}: a chart is saved as .pdf, .svg or .png; name a file that ends so")
        if not 1.0 <= width_in <= 100.0:
            raise InputError(f"width_in is {width_in!r}: give the picture's width in inches, 1 to 100")
        try:
            content = picture(self, kind, width_in, title=title)
        except ImportError as error:
            raise InputError(needs("saving a chart", "matplotlib")) from error
        try:
            path.write_bytes(content)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror})") from error

    savefig = save

    def _repr_mimebundle_(self, *given: Any, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(*given, **options) or {}
        # Without any, it opens in a browser; HTML stays visible by itself.
        if bundle and not {MIMETYPE, "text/html"} & set(bundle):
            with contextlib.suppress(ImportError):
                bundle[MIMETYPE] = base64.b64encode(picture(self, "png", WIDE_IN, title=True)).decode()
        return bundle

    def _ipython_display_(self) -> None:
        """Plotly's own one, which notebooks prefer to the bundle, knows nothing of the picture."""
        from IPython.display import display

        bundle = self._repr_mimebundle_()
        if bundle:
            display(bundle, raw=True)  # type: ignore[no-untyped-call]
        else:
            super()._ipython_display_()


def picture(figure: Figure, kind: str, width_in: float, *, title: bool) -> bytes:
    """The figure as Matplotlib draws it: ``pdf``, ``svg`` or ``png``.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    from matplotlib import rc_context

    written = io.BytesIO()
    with rc_context(STYLE):
        canvas = _canvas(figure.to_plotly_json(), width_in, title=title)
        dpi = SHARP if width_in <= PAGE_IN else PIXELS_AN_INCH
        canvas.savefig(written, format=kind, dpi=dpi, facecolor="white", metadata=DATES[kind])
    return written.getvalue()


def _canvas(plain: Mapping[str, Any], width_in: float, *, title: bool) -> Canvas:
    from matplotlib.figure import Figure as Canvas

    layout = plain["layout"]
    # What waits in the legend to be chosen cannot be, here.
    traces = [trace for trace in plain["data"] if trace.get("visible", True) is True]
    small = width_in <= PAGE_IN
    fonts = 0.8 if small else 1.0
    named = {trace["name"] for trace in traces if trace.get("name") and trace.get("showlegend") is not False}
    columns = max(1, min(len(named), int(width_in / (0.075 * fonts * (max(map(len, named), default=0) + 6)))))
    below_in = 0.2 * fonts * -(-len(named) // columns) if small and layout.get("showlegend") is not False else 0.0
    height_in = (layout.get("height") or 450) / 100 * (SMALL if small else 1.0) + below_in
    canvas = Canvas(figsize=(width_in, height_in), layout="constrained")
    if title:
        canvas.suptitle(_text(layout.get("title")), x=0.01, ha="left", fontsize=11 * fonts)
    panels = _panels(canvas, layout, sorted({trace.get("xaxis") or "x" for trace in traces} or {"x"}))
    for shape in layout.get("shapes", ()):
        look = {"color": "#888", "linestyle": ":", "linewidth": 1}
        name = shape["xref"].removesuffix(" domain")
        if name == shape["xref"]:
            panels[name].axvline(shape["x0"], **look)
        else:
            panels[name].axhline(shape["y0"], **look)
    for name, axes in panels.items():
        own = [trace for trace in traces if (trace.get("xaxis") or "x") == name]
        x, y = (layout.get(f"{letter}axis{name[1:]}", {}) for letter in ("x", "y"))
        rows = {letter: _categories(letter, of, own) for letter, of in (("x", x), ("y", y))}
        axes.margins(0.04)
        for trace in own:
            _draw(axes, {**trace, **{k: [rows[k].get(v, v) for v in _values(trace.get(k))] for k in rows}}, fonts)
        _axis(axes, "x", x, rows["x"], fonts)
        _axis(axes, "y", y, rows["y"], fonts)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e6e6e6", linewidth=0.7 * fonts)
        axes.set_axisbelow(True)
    for note in layout.get("annotations", ()):
        if note.get("xref") == note.get("yref") == "paper":
            _nearest(panels, layout, note).set_title(_plain(note["text"]), fontsize=9 * fonts)
        elif (axes := panels.get(note.get("xref"))) is not None:
            at = 10.0 ** note["x"] if axes.get_xscale() == "log" else note["x"]
            axes.text(at, note["y"], _plain(note["text"]), ha=note.get("xanchor", "center"), fontsize=8 * fonts)
    lines, labels = _legend(panels)
    if len(labels) > 1 and layout.get("showlegend") is not False:
        canvas.legend(lines, labels, loc="outside lower center", ncols=columns, fontsize=8 * fonts)
    return canvas


def _panels(canvas: Canvas, layout: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Axes by the name of their x axis, in the grid that the figure's domains make."""
    places = {name: _corner(layout, name) for name in names}
    columns = sorted({x for x, _ in places.values()})
    rows = sorted({y for _, y in places.values()}, reverse=True)
    grid = canvas.add_gridspec(len(rows), len(columns))
    return {name: canvas.add_subplot(grid[rows.index(y), columns.index(x)]) for name, (x, y) in places.items()}


def _corner(layout: Mapping[str, Any], name: str) -> tuple[float, float]:
    """Where the panel of an x axis begins, as shares of the figure."""
    x, y = (layout.get(f"{letter}axis{name[1:]}", {}).get("domain", (0, 1)) for letter in ("x", "y"))
    return float(x[0]), float(y[0])


def _nearest(panels: Mapping[str, Any], layout: Mapping[str, Any], note: Mapping[str, Any]) -> Any:
    """The panel that a title stands above."""

    def off(name: str) -> float:
        x, y = (layout.get(f"{letter}axis{name[1:]}", {}).get("domain", (0, 1)) for letter in ("x", "y"))
        return float(abs((x[0] + x[1]) / 2 - note["x"]) + abs(y[1] - note["y"]))

    return panels[min(panels, key=off)]


def _draw(axes: Any, trace: Mapping[str, Any], scale: float) -> None:
    shown = _plain(trace["name"]) if trace.get("name") and trace.get("showlegend") is not False else None
    x, y = _values(trace.get("x")), _values(trace.get("y"))
    opacity, marker, line = trace.get("opacity", 1.0), trace.get("marker", {}), trace.get("line", {})
    if trace["type"] == "bar":
        across = trace.get("orientation") == "h"
        draw, along, length = (axes.barh, y, x) if across else (axes.bar, x, y)
        base = _values(trace.get("base")) or 0
        draw(along, length, trace.get("width") or 0.8, base, color=marker.get("color"), alpha=opacity, label=shown)
        return
    mode = trace.get("mode", "lines")
    if trace.get("fill") == "toself":
        axes.fill(x, y, color=trace.get("fillcolor"), alpha=opacity, linewidth=0)
        return
    for letter in ("x", "y"):
        arms = trace.get(f"error_{letter}") or {}
        if arms.get("array") is not None:
            sides = [_values(arms.get("arrayminus", arms["array"])), _values(arms["array"])]
            colour = arms.get("color") or marker.get("color")
            axes.errorbar(x, y, fmt="none", ecolor=colour, elinewidth=1.5 * scale, **{f"{letter}err": sides})
    symbol = SYMBOLS.get(marker.get("symbol", "circle"), "o") if "markers" in mode else None
    axes.plot(
        x,
        y,
        color=(line if "lines" in mode else marker).get("color"),
        linestyle=LINES[line.get("dash") or "solid"] if "lines" in mode else "none",
        linewidth=line.get("width", 2) * 0.8 * scale,
        drawstyle="steps-post" if line.get("shape") == "hv" else "default",
        marker=symbol,
        markersize=0.7 * (marker.get("size") or 7) * scale,
        alpha=marker.get("opacity", opacity) if symbol else opacity,
        label=shown,
    )
    if trace.get("fill") == "tozeroy":
        axes.fill_between(x, [value or 0.0 for value in y], color=line.get("color"), alpha=0.3, linewidth=0)


def _categories(letter: str, of: Mapping[str, Any], traces: Sequence[Mapping[str, Any]]) -> dict[Any, int]:
    """Places of an axis' words: as the axis orders them, or as they come."""
    words = [value for trace in traces for value in _values(trace.get(letter)) if isinstance(value, str)]
    return {word: place for place, word in enumerate(dict.fromkeys([*(of.get("categoryarray") or ()), *words]))}


def _axis(axes: Any, letter: str, of: Mapping[str, Any], rows: Mapping[Any, int], scale: float) -> None:
    axis = getattr(axes, f"{letter}axis")
    axes.set(**{f"{letter}label": _text(of.get("title"))})
    axis.label.set_size(9 * scale)
    axis.set_tick_params(labelsize=8 * scale)
    if of.get("type") == "log":
        axes.set(**{f"{letter}scale": "log"})
    if of.get("tickvals") is not None:
        seen = getattr(axes, f"get_{letter}lim")()
        ticks = [float(tick) for tick in of["tickvals"]]
        axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_ticks([], minor=True)
        axes.set(**{f"{letter}lim": seen})
    if str(of.get("tickformat", "")).endswith("%"):
        axis.set_major_formatter(lambda value, _: f"{value:.0%}")
    given = of.get("range")
    if given is not None:
        axes.set(**{f"{letter}lim": [10.0**end for end in given] if of.get("type") == "log" else given})
    elif of.get("rangemode") == "tozero":
        axes.set(**{f"{letter}lim": (0, None)})
    if rows:
        axis.set_ticks(list(rows.values()), [_plain(row) for row in rows])
        axes.set(**{f"{letter}lim": (-0.6, len(rows) - 0.4)})
    if of.get("autorange") == "reversed":
        axis.set_inverted(True)
    if of.get("showticklabels") is False:
        axis.set_tick_params(**{f"label{side}": False for side in (("bottom",) if letter == "x" else ("left",))})


def _legend(panels: Mapping[str, Any]) -> tuple[list[Any], list[str]]:
    """Lines and labels of the legend, each label once."""
    found: dict[str, Any] = {}
    for axes in panels.values():
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, line)
    return list(found.values()), list(found)


def _text(title: Any) -> str:
    return _plain((title or {}).get("text") if isinstance(title, Mapping) else title)


def _plain(text: Any) -> str:
    """A text without marks: Plotly writes a little HTML."""
    return re.sub(r"<[^>]*>", "", str(text or "").replace("<br>", "\n"))


def _values(values: Any) -> list[Any]:
    return [] if values is None else list(values)
