"""Write the reference pages into a folder: ``python -m gpusched_env.experiments.reference docs``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gpusched_env.experiments.reference import interface, leaderboard, moved, schedulers

PAGES: Final[dict[str, Callable[[Path], str]]] = {
    "interface.md": lambda docs: interface.document(),
    "leaderboard.md": leaderboard.document,
    "moved.md": lambda docs: moved.document(),
    "schedulers.md": lambda docs: schedulers.document(),
}
"""By name: what makes the page, of the folder that it will be in."""

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m gpusched_env.experiments.reference FOLDER")
    folder = Path(sys.argv[1]).resolve()
    for name, document in PAGES.items():
        (folder / name).write_text(document(folder), encoding="utf-8")
