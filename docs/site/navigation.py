"""A Sphinx extension: the navigation is the list of pages in ``docs/README.md``, and generated pages behind it.

Pages of the reference are made here. In ``docs`` a few lines stand in for each, which say how.

On a code host that file is the index of the folder. On the site pages of its first section stand beside the front page,
and each other section is a page that lists its own, folded up in the navigation.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from links import ROOT
from pictures import NOTEBOOKS, bare, shown
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from gpusched_env.experiments.reference.__main__ import PAGES

LIST = ROOT / "docs" / "README.md"
TOP = {name: ROOT / f"{name.upper()}.md" for name in ("architecture", "contributing")}
"""Pages whose text lies at the top of the checkout."""
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", flags=re.DOTALL | re.MULTILINE)
PAGE = re.compile(r"\[([^\]]+)\]\(([\w-]+)\.md\)")
GENERATED = {"Reference": ["Command line </api/command-line>", "Python API </api/modules>"]}
"""Pages of a section that are made while the site is built."""
MADE = Path("api")
"""Folder of pages that are made while the site is built, below that of pages."""
COPIES = MADE / "notebooks"
"""Where they are copied, with what they read, below the folder of pages."""
OUT = re.compile(r"\]\((?!https?:|#)")
"""A link of a page in ``docs/`` to another."""


def sections() -> dict[str, str]:
    """Titles and texts of the list of pages."""
    return dict(SECTION.findall(LIST.read_text(encoding="utf-8")))


def contents(entries: Iterable[str], caption: str = "") -> str:
    """A table of contents that only the navigation shows."""
    lines = "\n".join(entries)
    said = f":caption: {caption}\n" if caption else ""
    return f"\n```{{toctree}}\n{said}:hidden:\n\n{lines}\n```\n"


def section_page(title: str, text: str) -> str:
    """The page of a section: its list, from a folder below."""
    pages = [f"{name} </{page}>" for name, page in PAGE.findall(text)]
    return f"# {title}\n{OUT.sub('](../', text)}{contents([*pages, *GENERATED.get(title, [])])}"


def write_sections(app: Sphinx) -> None:
    """Write pages of sections that say something else than before."""
    folder = Path(app.srcdir) / MADE
    folder.mkdir(parents=True, exist_ok=True)
    for title, text in list(sections().items())[1:]:
        path, page = folder / f"{title.lower()}.md", section_page(title, text)
        if not path.exists() or path.read_text(encoding="utf-8") != page:
            path.write_text(page, encoding="utf-8")


def read_source(app: Sphinx, name: str, source: list[str]) -> None:
    """Fill in pages whose text is elsewhere, and the notebooks on their page."""
    if name == "index":
        (first, text), *others = sections().items()
        source[0] += contents([f"{name} <{page}>" for name, page in PAGE.findall(text)], first)
        source[0] += contents([f"{title} <{(MADE / title.lower()).as_posix()}>" for title, _ in others], "More")
        app.env.note_dependency(str(LIST))
    if name in TOP:
        text = TOP[name].read_text(encoding="utf-8")
        source[0] = re.sub(r"\]\((?!https?:|#|docs/)", "](../", text).replace("](docs/", "](")
        app.env.note_dependency(str(TOP[name]))
    if name in PAGES:
        source[0] = PAGES[name]()
    if name == "notebooks":
        entries = "\n".join(f"{COPIES.as_posix()}/{path.stem}" for path in sorted(NOTEBOOKS.glob("*.ipynb")))
        source[0] += f"\n```{{toctree}}\n:maxdepth: 1\n\n{entries}\n```\n"


def outdated(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """Pages that are made from sources, of which no file tells whether they changed."""
    return list(PAGES)


def copy_notebooks(app: Sphinx) -> None:
    """Copy notebooks, executed ones where there are, that have changed."""
    folder = Path(app.srcdir) / COPIES
    folder.mkdir(parents=True, exist_ok=True)
    for path in (*map(shown, NOTEBOOKS.glob("*.ipynb")), *NOTEBOOKS.glob("*.gz")):
        copy = folder / path.name
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            shutil.copyfile(path, copy)


def check_pictures(app: Sphinx, error: Exception | None) -> None:
    """Fail if a notebook shows none, unless it was asked for."""
    if error is None and os.environ.get("GPUSCHED_DOCS_EXECUTE") != "off":
        found = bare(Path(app.outdir) / COPIES)
        if found:
            raise ExtensionError(f"notebooks without pictures: {', '.join(found)}; make docs runs them")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", copy_notebooks)
    app.connect("builder-inited", write_sections)
    app.connect("env-get-outdated", outdated)
    app.connect("source-read", read_source, priority=400)
    app.connect("build-finished", check_pictures)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
