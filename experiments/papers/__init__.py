"""Papers and recordings, reproduced: a module or a folder each, whose ``Paper`` is what ``gpusched reproduce`` runs."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from gpusched_env.experiments.papers.reproduction import Reproduction

SHARED = ("reproduction",)
"""Modules of this folder that are no papers."""


def paper_names() -> list[str]:
    """What can be reproduced, sorted; nothing is imported for it."""
    names = (module.name for module in pkgutil.iter_modules(__path__) if module.name not in SHARED)
    return sorted(name.replace("_", "-") for name in names)


def find_paper(name: str) -> type[Reproduction]:
    """The class ``Paper`` of a module of this folder.

    Raises:
        InputError: there is no such module.
    """
    if name not in paper_names():
        raise InputError(f"nothing to reproduce is called {name!r}; {did_you_mean(name, paper_names())}")
    paper: type[Reproduction] = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").Paper
    return paper
