"""A Sphinx extension: what leads out of ``docs/`` leads to pages of the site.

On a code host ``[text](../agents/policies/rule.py)`` opens the file. On the site it opens a page that shows the file.
Such a page is made for each file that a page links to, and no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
OUTWARD = re.compile(r"\]\(\.\./([^)#\s]+)(?:#[^)]*)?\)")
"""A link of a page in ``docs/`` to what is beside that folder."""
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "experiments/notebooks": "notebooks.md",
}
"""Pages of the site that stand for what is outside of ``docs/``."""
DOWNLOADS = (".npz", ".gz")
"""Files that are there to be downloaded, not to be looked at."""


def read_source(app: Sphinx, name: str, source: list[str]) -> None:
    """Turn links of a page outwards into ones to pages of the site."""
    if "/" in name:
        # A notebook, copied from a folder as deep: what it links to in ``docs/`` is two folders above here.
        source[0] = source[0].replace("](../../docs/", "](../../").replace("](../../README.md", "](../../index.md")
        return
    wanted: set[str] = app.env.gpusched_sources  # type: ignore[attr-defined]  # Made by ``prepare``.

    def inside(found: re.Match[str]) -> str:
        path = found[1].rstrip("/")
        if path in PAGES:
            return f"]({PAGES[path]})"
        if not (ROOT / path).is_file():
            raise ExtensionError(f"docs/{name}.md links to ../{path}, which is no file of the repository")
        if path.endswith(".ipynb"):
            return f"](api/notebooks/{Path(path).name})"
        if path.endswith(DOWNLOADS):
            return found[0]
        wanted.add(path)
        return f"](source:{path})"

    source[0] = OUTWARD.sub(inside, source[0])


def prepare(app: Sphinx) -> None:
    """Remember, from one build to the next, which files pages link to, of those that are still there."""
    linked: set[str] = getattr(app.env, "gpusched_sources", set())
    app.env.gpusched_sources = {path for path in linked if (ROOT / path).is_file()}  # type: ignore[attr-defined]


def source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page each for the files that pages link to."""
    formatter = HtmlFormatter(linenos="inline")
    for path in sorted(app.env.gpusched_sources):  # type: ignore[attr-defined]  # Made by ``prepare``.
        try:
            lexer = get_lexer_for_filename(path)
        except ClassNotFound:
            lexer = TextLexer()
        text = highlight((ROOT / path).read_text(encoding="utf-8"), lexer, formatter)
        body = f"<h1>{escape(path)}</h1>\n{text}"
        yield f"sources/{path}", {"title": path, "body": body}, "page.html"


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", prepare)
    app.connect("source-read", read_source)
    app.connect("html-collect-pages", source_pages)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
