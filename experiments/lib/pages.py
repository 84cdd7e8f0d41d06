"""Pages from Jinja templates in ``experiments/templates``: Markdown for the documentation, HTML that is one file."""

from __future__ import annotations

import base64
import functools
import gzip
import json
from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from gpusched_env.display.table import Table
from gpusched_env.display.words import counted


def page(template: str, **values: Any) -> str:
    """The file ``template`` with ``values`` filled in; values of HTML pages are escaped, except for tables and SVG."""
    return _environment().get_template(template).render(**values).rstrip() + "\n"


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
