"""Notebooks as the site shows them: with what their cells put out, kept by the test that runs them."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "experiments" / "notebooks"
EXECUTED = ROOT / "build" / "notebooks"
"""Where ``tests/test_notebooks.py`` writes them after their last cell."""
PICTURE = 'src="../../_images/'
"""Of a page two folders below the site's first one."""


def shown(path: Path, executed: Path = EXECUTED) -> Path:
    """The executed copy of a notebook if there is one of the same cells, else the notebook."""
    copy = executed / path.name
    return copy if copy.exists() and _sources(copy) == _sources(path) else path


def bare(pages: Path, notebooks: Path = NOTEBOOKS) -> list[str]:
    """Names of the notebooks whose page in the folder ``pages`` has no picture."""
    names = sorted(path.stem for path in notebooks.glob("*.ipynb"))
    return [name for name in names if PICTURE not in (pages / f"{name}.html").read_text(encoding="utf-8")]


def _sources(path: Path) -> list[str]:
    """Text of all cells; files keep it as one string or as lines."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells]
