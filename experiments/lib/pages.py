"""Pages from Jinja templates, and pictures with matplotlib: equal content gives equal bytes."""

from __future__ import annotations

import base64
import contextlib
import functools
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from gpusched_env.display.palette import COLOURS, log_ticks
from gpusched_env.display.table import Table
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError, needs
from gpusched_env.experiments.lib.files import PAGE_OPTION, command_of, writing

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


def page(template: str, **values: Any) -> str:
    """The file ``template`` with ``values`` filled in; values of HTML pages are escaped, except for tables and SVG."""
    return _environment().get_template(template).render(**values).rstrip() + "\n"


def write_page(docs: Path, contents: Mapping[str, bytes | str], inputs: Iterable[Path] = ()) -> None:
    """Write a page and what belongs beside it, in place of an earlier page of the same command.

    Args:
        docs: the page.
        contents: by file name, the page among them.
        inputs: files that it was made from.

    Raises:
        InputError: a file cannot be written, or is an input or what something else made.
    """
    if docs.suffix != ".md":
        raise InputError(f"{PAGE_OPTION} {docs}: a page is written as Markdown; name a file that ends in .md")
    made = {docs.parent / name: text.encode() if isinstance(text, str) else text for name, text in contents.items()}
    before, now = command_of(docs) if docs.is_file() else None, command_of(made[docs])
    if docs.is_file() and before != now:
        what = "no page of a command" if before is None else f"a page of {before}"
        raise InputError(f"{PAGE_OPTION} {docs}: is there already and {what}; name another file")
    given = {path.resolve() for path in inputs}
    for path in made:
        if path.resolve() in given:
            raise InputError(
                f"{PAGE_OPTION} {docs}: {path} is one of the files that it is made from; name another file"
            )
        if path != docs and path.exists() and before is None:
            raise InputError(
                f"{PAGE_OPTION} {docs}: {path}, which belongs beside it, is there already; name another file"
            )
    with writing(*((_option(path, docs), path) for path in made), overwrite=True) as write:
        for path, content in made.items():
            write(_option(path, docs), content)


def _option(path: Path, docs: Path) -> str:
    return PAGE_OPTION if path == docs else f"{path.name} beside {PAGE_OPTION}"


def about(text: str | None) -> str:
    """A module's docstring after its first line, as Markdown."""
    return "\n".join((text or "").splitlines()[2:]).strip().replace("``", "`")


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("gpusched_env.experiments", "templates"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "markdown": Table.markdown,
        "html": lambda table: Markup(table.html()),
        "svg": Markup,
        "counted": counted,
        "about": about,
        "section": section,
        "packed": lambda data: packed(json.dumps(data, separators=(",", ":"))),
    }
    environment.filters |= filters
    environment.globals["asset"] = lambda name: Markup(_source(name))
    environment.globals["plotly"] = _plotly
    return environment


def section(tables: Table | Sequence[Table], level: int = 2) -> str:
    """Tables in Markdown under their titles, with their notes; empty ones are left out."""
    parts = []
    for table in [tables] if isinstance(tables, Table) else tables:
        if table.rows:
            note = [table.note.strip(), ""] if table.note else []
            parts.append("\n".join([f"{'#' * level} {table.title}", "", *note, table.markdown()]))
    return "\n".join(parts)


def packed(text: str) -> Markup:
    """Gzip in base64, which may stand inside a script element and takes a third of the room."""
    return Markup(base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode())


def _source(name: str) -> str:
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _plotly() -> Markup:
    """The library that draws charts, whole and packed: pages are read without a network."""
    from plotly.offline import get_plotlyjs

    return packed(get_plotlyjs())


STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    # Names of the file's elements are made of this and its content, so that equal pictures are equal files.
    "svg.hashsalt": "gpusched",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


@contextlib.contextmanager
def drawing(size_in: tuple[float, float]) -> Iterator[tuple[Figure, Callable[[], bytes]]]:
    """An empty figure, and what makes SVG of it when it is drawn.

    Args:
        size_in: width and height, inches.

    Raises:
        InputError: matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError(needs("a picture", "matplotlib")) from error
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size_in, layout="constrained")

        def finished() -> bytes:
            target = io.BytesIO()
            figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
            return b"\n".join(line.rstrip() for line in target.getvalue().splitlines()) + b"\n"

        yield figure, finished


def label_log(axis: Axis, low: float, high: float) -> None:
    """Plain numbers (1, 2, 5 times powers of ten) along a logarithmic axis that shows ``low`` to ``high``."""
    ticks = [tick for tick in log_ticks(low, high) if 0.8 * low <= tick <= 1.25 * high]
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


OURS, THEIRS = COLOURS[0], "#c9c9c9"
PANEL_IN: Final = (7.5, 1.9)


def bars_svg(panels: Mapping[str, tuple[Mapping[str, float], Mapping[str, float]]], unit: str = "speed-up") -> bytes:
    """Bars of our figures beside the published ones, as SVG; equal figures give equal bytes.

    Args:
        panels: by title, our figures and the published ones, by case.
        unit: of all.

    Raises:
        InputError: matplotlib is not installed.
    """

    with drawing((PANEL_IN[0], PANEL_IN[1] * len(panels))) as (figure, finished):
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axis, (title, (ours, theirs)) in zip(axes, panels.items(), strict=True):
            places = np.arange(len(theirs))
            for shift, values, colour, label in ((-0.2, theirs, THEIRS, "paper"), (0.2, ours, OURS, "ours")):
                axis.bar(places + shift, [values[case] for case in theirs], 0.4, color=colour, label=label)
            axis.axhline(1.0, color="black", linewidth=0.6)
            axis.set_title(title, loc="left", fontsize=9.0)
            axis.set_ylabel(unit)
            axis.set_xticks(places, list(theirs), rotation=35, ha="right")
        axes[0].legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1.0, 1.0))
        return finished()
