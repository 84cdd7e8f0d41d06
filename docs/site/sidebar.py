"""A Sphinx extension: what stands beside each page.

On the left, the navigation, from the titles of pages: Sphinx would copy the headings of all pages for each page, which
takes longer than everything else. On the right, the headings of the page, or a wide table.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from docutils import nodes
from sphinx.addnodes import toctree
from sphinx.application import Sphinx

Place = tuple[str, str, list[Any]]
"""A page's title, its name, and the places below it."""
WIDE, FEW = 9, 12
"""Columns of a table that gets the room of the headings, and how many of these there may be."""


def below(app: Sphinx, toc: nodes.Node) -> Iterator[Place]:
    """Pages of the tables of contents in a tree, with theirs."""
    for tree in toc.findall(toctree):
        for title, page in tree["entries"]:
            text = title or app.env.titles[page].astext()
            yield text, page, list(below(app, app.env.tocs[page]))


def parts(app: Sphinx) -> list[tuple[str, list[Place]]]:
    """Captions of the front page's tables of contents, with their places, which are found once a build."""
    builder: Any = app.builder
    if not hasattr(builder, "gpusched_parts"):
        tables = app.env.get_doctree(app.config.root_doc).findall(toctree)
        builder.gpusched_parts = [
            (tree["caption"] or "", [(a, b, list(below(app, app.env.tocs[b]))) for a, b in tree["entries"]])
            for tree in tables
        ]
    found: list[tuple[str, list[Place]]] = builder.gpusched_parts
    return found


def holds(places: list[Place], page: str) -> bool:
    """Whether a page is one of these places, or below."""
    return any(name == page or holds(children, page) for _, name, children in places)


def shown(app: Sphinx, places: list[Place], page: str, level: int = 1) -> str:
    """Places as a list of links, as seen from a page."""
    lines = []
    for place in places:
        title, name, children = place
        current = " current" if holds([place], page) else ""
        link = escape(app.builder.get_relative_uri(page, name))
        inner = shown(app, children, page, level + 1) if children else ""
        here = f'<a class="reference internal{current}" href="{link}">{escape(title)}</a>'
        lines.append(f'<li class="toctree-l{level}{current}">{here}{inner}</li>')
    return f"<ul>{''.join(lines)}</ul>"


def replace(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Give the theme this navigation."""

    def navigation(**options: Any) -> str:
        return "".join(
            f'<p class="caption"><span class="caption-text">{escape(caption)}</span></p>{shown(app, places, page)}'
            for caption, places in parts(app)
        )

    context["toctree"] = navigation


def make_room(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    """Leave out the headings of a page that has few of them, and a wide table."""
    if doctree is None:
        return
    columns = max((table["cols"] for table in doctree.findall(nodes.tgroup)), default=0)
    if columns >= WIDE and len(list(doctree.findall(nodes.section))) < FEW:
        context["furo_hide_toc"] = True


def setup(app: Sphinx) -> dict[str, Any]:
    # Before the theme asks for it.
    app.connect("html-page-context", replace, priority=400)
    # After it has said whether headings are shown.
    app.connect("html-page-context", make_room, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
