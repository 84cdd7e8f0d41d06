"""Papers and recordings, reproduced: a module or a folder each, whose ``Paper`` is what ``gpusched reproduce`` runs."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError, did_you_mean
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


def _places() -> dict[str, str]:
    """Modules by the name of what they reproduce."""
    modules = (
        f"{package}.{module.name}"
        for package in (__name__, *places_of("papers").values())
        for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
        if module.name not in SHARED
    )
    return {module.rpartition(".")[2].replace("_", "-"): module for module in modules}
