"""A Sphinx extension: docstrings of this package as Sphinx wants them."""

from __future__ import annotations

import builtins
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.ext.napoleon import Config, GoogleDocstring

SECTIONED = ("module", "class", "exception", "function", "method")
"""What has docstrings with sections. A colon in the line below an attribute says nothing of a type."""
CONFIG = Config(napoleon_use_rtype=False)


def written_for_sphinx(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Turn sections such as ``Raises:`` into fields; of Markdown, which Gymnasium wants, leave the first words."""
    if any(line.startswith("### ") for line in lines):
        end = next(row for row, line in enumerate(lines) if line.startswith("### "))
        lines[end:] = ["The :doc:`data sheets </environments>` have the rest.", ""]
    if what in SECTIONED:
        lines[:] = GoogleDocstring(list(lines), CONFIG).lines()


def without_builtins(app: Sphinx, tree: nodes.document) -> None:
    """Builtin types of signatures lead nowhere: not to an attribute that happens to be called ``bytes``."""
    for link in list(tree.findall(pending_xref)):
        if link.get("refdomain") == "py" and hasattr(builtins, link["reftarget"]):
            link.replace_self(nodes.Text(link["reftarget"]))


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", written_for_sphinx)
    app.connect("doctree-read", without_builtins)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
