"""Papers and recordings, reproduced: a module or a folder each, whose ``Paper`` is what ``gpusched reproduce`` runs."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.display.table import NONE, Table
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.lib.criteria import counted_of, read_criteria, worst_of
from gpusched_env.scenarios.games import places_of

if TYPE_CHECKING:
    from gpusched_env.experiments.papers.reproduction import Reproduction

SHARED = ("reproduction",)
"""Modules of this folder that are no papers."""


def paper_names() -> list[str]:
    """What can be reproduced, sorted; no paper is imported for it."""
    return sorted(_places())


def find_paper(name: str) -> type[Reproduction]:
    """The class ``Paper`` of a module of this folder, or of the papers of a game.

    Raises:
        InputError: there is no such module.
    """
    places = _places()
    if name not in places:
        raise InputError(f"nothing to reproduce is called {name!r}; {did_you_mean(name, sorted(places))}")
    paper: type[Reproduction] = importlib.import_module(places[name]).Paper
    return paper


def stored_table(folder: Path) -> Table:
    """What came out of each paper by the criteria stored beside its page; nothing is simulated.

    Raises:
        InputError: the folder has none.
    """
    files = {name: folder / f"{name}-criteria.csv" for name in paper_names()}
    rows = []
    for name, path in files.items():
        if path.is_file():
            criteria = read_criteria(path)
            counted = counted_of(criteria, find_paper(name).marks)
            worst = worst_of(counted)
            missed = (worst.name, worst.ours, worst.within) if worst else (NONE, NONE, NONE)
            rows.append((name, len(counted), sum(bool(one.holds) for one in counted), len(criteria), *missed))
    if not rows:
        raise InputError(f"{folder}: no criteria of papers; gpusched reproduce NAME --docs writes them beside a page")
    heads = ("paper", "counted", "come out", "of criteria", "largest miss", "ours", "within")
    return Table("Predictions by paper", heads, [tuple(map(str, row)) for row in rows], NOTE)


NOTE = (
    "*Counted*: what was predicted, of all criteria of a page. *Largest miss*: of those, relative to the larger of our "
    "figure and the end of the range; none where verdicts are no numbers."
)


def _places() -> dict[str, str]:
    """Modules by the name of what they reproduce."""
    modules = (
        f"{package}.{module.name}"
        for package in (__name__, *places_of("papers").values())
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
        if module.name not in SHARED
    )
    return {module.rpartition(".")[2].replace("_", "-"): module for module in modules}
