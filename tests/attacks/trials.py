"""An input that is damaged and loaded, once for each seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from tests.attacks.mutations import damaged, garbled

Trial = Callable[[random.Random], object]
"""Damages an input and loads it."""
Load = Callable[[], object]


def content(folder: Path) -> dict[Path, bytes]:
    """Every file below a folder."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def loaded(folder: Path, load: Load) -> object:
    """What ``load`` gives; where it refuses, nothing in ``folder`` has changed."""
    before = content(folder)
    try:
        return load()
    except InputError:
        after = content(folder)
        changed = [path.name for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
        assert not changed, f"refused, and yet changed or left behind: {changed}"
        raise


def of_values(path: Path, data: Any, form: Callable[[Any], bytes], load: Load) -> Trial:
    """Values damaged three times of four, else bytes."""
    whole = form(data)

    def trial(dice: random.Random) -> object:
        path.write_bytes(form(damaged(data, dice)) if dice.randrange(4) else garbled(whole, dice))
        try:
            return loaded(path.parent, load)
        finally:
            path.write_bytes(whole)

    return trial


def of_bytes(path: Path, load: Load) -> Trial:
    whole = path.read_bytes()

    def trial(dice: random.Random) -> object:
        path.write_bytes(garbled(whole, dice))
        try:
            return loaded(path.parent, load)
        finally:
            path.write_bytes(whole)

    return trial
