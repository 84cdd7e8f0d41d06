"""Charts that stay visible where nothing runs Plotly's scripts: a notebook that was exported, a code host.

A notebook keeps a :class:`Chart` as Plotly's JSON and, beside it, as a PNG that Matplotlib draws of the same figure:
its panels, lines, dots, bars, intervals, titles and legend. What shows Plotly shows that, everything else the PNG.
"""

from __future__ import annotations

import base64
import contextlib
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from plotly.graph_objects import Figure

from gpusched_env.display.palette import LINES, MARKERS

PIXELS_AN_INCH: Final = 110
WIDTH_PX: Final = 900
"""Width of the PNG, where the figure has none of its own; fonts are as large as Plotly's."""
SYMBOLS: Final = {**MARKERS, "line-ns-open": "|"}
MIMETYPE: Final = "image/png"


class Chart(Figure):  # type: ignore[misc]  # Plotly has no types.
    """A Plotly figure that notebooks keep with a picture of it, if Matplotlib is installed."""

    def _repr_mimebundle_(self, *given: Any, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(*given, **options) or {}
        # Without any, it opens in a browser; HTML stays visible by itself.
        if bundle and not {MIMETYPE, "text/html"} & set(bundle):
            with contextlib.suppress(ImportError):
                bundle[MIMETYPE] = base64.b64encode(png(self)).decode()
        return bundle

    def _ipython_display_(self) -> None:
        """Plotly's own one, which notebooks prefer to the bundle, knows nothing of the picture."""
        from IPython.display import display

        bundle = self._repr_mimebundle_()
        if bundle:
            display(bundle, raw=True)  # type: ignore[no-untyped-call]
        else:
            super()._ipython_display_()


def png(figure: Figure) -> bytes:
    """The figure as Matplotlib draws it.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    from matplotlib.figure import Figure as Canvas

    plain = figure.to_plotly_json()
    layout = plain["layout"]
    # What waits in the legend to be chosen cannot be, here.
    traces = [trace for trace in plain["data"] if trace.get("visible", True) is True]
    height_px, margin = layout.get("height") or 450, layout.get("margin", {})
    canvas = Canvas(figsize=(WIDTH_PX / 100, height_px / 100), dpi=PIXELS_AN_INCH)
    canvas.suptitle(_text(layout.get("title")), x=0.01, y=0.995, ha="left", va="top", fontsize=11)
    # Plotly's room for labels grows by itself.
    left, bottom = 0.14, max(0.1, (margin.get("b", 80) + 12) / height_px)
    width, height = 0.84, 1.0 - bottom - margin.get("t", 80) / height_px - 0.02
    panels: dict[str, Any] = {}
    for name in sorted({trace.get("xaxis") or "x" for trace in traces} or {"x"}):
        number = name[1:]
        x, y = layout.get(f"xaxis{number}", {}), layout.get(f"yaxis{number}", {})
        (x0, x1), (y0, y1) = x.get("domain", (0, 1)), y.get("domain", (0, 1))
        place = (left + x0 * width, bottom + y0 * height, (x1 - x0) * width, (y1 - y0) * height)
        panels[name] = canvas.add_axes(place)
    for name, axes in panels.items():
        own = [trace for trace in traces if (trace.get("xaxis") or "x") == name]
        x, y = (layout.get(f"{letter}axis{name[1:]}", {}) for letter in ("x", "y"))
        rows = {letter: _categories(letter, of, own) for letter, of in (("x", x), ("y", y))}
        axes.margins(0.04)
        for trace in own:
            _draw(axes, {**trace, **{k: [rows[k].get(v, v) for v in _values(trace.get(k))] for k in rows}})
        _axis(axes, "x", x, rows["x"])
        _axis(axes, "y", y, rows["y"])
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e6e6e6", linewidth=0.7)
        axes.set_axisbelow(True)
    for shape in layout.get("shapes", ()):
        look = {"color": "#888", "linestyle": ":", "linewidth": 1}
        name = shape["xref"].removesuffix(" domain")
        if name == shape["xref"]:
            panels[name].axvline(shape["x0"], **look)
        else:
            panels[name].axhline(shape["y0"], **look)
    for note in layout.get("annotations", ()):
        if note.get("xref") == note.get("yref") == "paper":
            across, up = left + note["x"] * width, bottom + note["y"] * height + 0.01
            canvas.text(across, up, _plain(note["text"]), ha="center", va="bottom", fontsize=9)
    lines, labels = _legend(panels)
    if len(labels) > 1 and layout.get("showlegend") is not False:
        columns = min(4, len(labels))
        below = (layout.get("legend", {}).get("y") or 0.0) < 0.0
        style: dict[str, Any] = {"ncols": columns, "fontsize": 8, "frameon": False}
        if below:
            canvas.legend(lines, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), **style)
        else:
            canvas.legend(lines, labels, loc="upper right", **style)
    written = io.BytesIO()
    canvas.savefig(written, format="png", bbox_inches="tight", facecolor="white")
    return written.getvalue()


def _draw(axes: Any, trace: Mapping[str, Any]) -> None:
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
            axes.errorbar(x, y, fmt="none", ecolor=colour, elinewidth=1.5, **{f"{letter}err": sides})
    symbol = SYMBOLS.get(marker.get("symbol", "circle"), "o") if "markers" in mode else None
    axes.plot(
        x,
        y,
        color=(line if "lines" in mode else marker).get("color"),
        linestyle=LINES[line.get("dash") or "solid"] if "lines" in mode else "none",
        linewidth=line.get("width", 2) * 0.8,
        drawstyle="steps-post" if line.get("shape") == "hv" else "default",
        marker=symbol,
        markersize=0.7 * (marker.get("size") or 7),
        alpha=marker.get("opacity", opacity) if symbol else opacity,
        label=shown,
    )
    if trace.get("fill") == "tozeroy":
        axes.fill_between(x, [value or 0.0 for value in y], color=line.get("color"), alpha=0.3, linewidth=0)


def _categories(letter: str, of: Mapping[str, Any], traces: Sequence[Mapping[str, Any]]) -> dict[Any, int]:
    """Places of an axis' words: as the axis orders them, or as they come."""
    words = [value for trace in traces for value in _values(trace.get(letter)) if isinstance(value, str)]
    return {word: place for place, word in enumerate(dict.fromkeys([*(of.get("categoryarray") or ()), *words]))}


def _axis(axes: Any, letter: str, of: Mapping[str, Any], rows: Mapping[Any, int]) -> None:
    axis = getattr(axes, f"{letter}axis")
    axes.set(**{f"{letter}label": _text(of.get("title"))})
    axis.label.set_size(9)
    axis.set_tick_params(labelsize=8)
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
