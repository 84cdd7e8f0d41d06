"""Write the reference pages into a folder: ``python -m gpusched_env.experiments.reference FOLDER``.

They are made anew whenever the site is built. In ``docs`` a short page of the same name stands in for each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gpusched_env.experiments.reference import environments, interface, moved, schedulers
from gpusched_env.scenarios import catalogue

PAGES: Final[dict[str, Callable[[], str]]] = {
    "environments": environments.document,
    "interface": interface.document,
    "moved": moved.document,
    "scenarios": catalogue.scenarios_page,
    "schedulers": schedulers.document,
}
"""Functions that make a page, as Markdown that may stand in ``docs``, by its name."""

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m gpusched_env.experiments.reference FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, document in PAGES.items():
        (folder / f"{name}.md").write_text(document(), encoding="utf-8")
