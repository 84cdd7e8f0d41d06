"""A Sphinx extension: the page of the command line, from what ``gpusched --help`` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from sphinx.application import Sphinx
from typer.cli import get_docs_for_click

from gpusched_env.experiments.cli import app as gpusched

PAGE = Path("api") / "command-line.md"


def write_page(app: Sphinx) -> None:
    """Write the page, if it says something else than before."""
    command = typer.main.get_command(gpusched)
    with typer.Context(command, info_name="gpusched") as context:
        text = get_docs_for_click(obj=command, ctx=context, name="gpusched", title="The command line")
    path = Path(app.srcdir) / PAGE
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_page)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
