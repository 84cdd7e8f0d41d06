"""Damage to files, drawn from a seed: to the values in them, and to their bytes."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import InputError

NASTY: list[Any] = [
    None, True, False, 0, -1, 1, 3, 2**31, 2**63, 2**70, -(2**63), 0.5, -0.0, 1e-300, 1e300, float("nan"), float("inf"),
    float("-inf"), "", "x", "soon", "../../x", "a b", "\0", "\ud800", "é" * 300, [], {}, [[]], {"": None}, [None],
    [1, 2, 3],
]  # fmt: skip


def places(data: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value below ``data``."""
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path for key, value in inside for path in ((*above, key), *places(value, (*above, key)))]


def damaged(data: Any, dice: random.Random) -> Any:
    """A copy of plain data with one to three things wrong, or unusual."""
    data = copy.deepcopy(data)
    for _ in range(dice.randint(1, 3)):
        paths = places(data)
        if not paths:
            break
        *above, last = dice.choice(paths)
        holder = data
        for key in above:
            holder = holder[key]
        kind = dice.randrange(6)
        if kind <= 2:
            holder[last] = copy.deepcopy(dice.choice(NASTY))
        elif kind == 3:
            del holder[last]
        elif kind == 4 and isinstance(holder, dict):
            holder[dice.choice([f"{last}x", "", "kind", "name", 5])] = holder.pop(last)
        elif isinstance(holder, list):
            holder.insert(dice.randrange(len(holder) + 1), copy.deepcopy(dice.choice(holder)))
    return data


def garbled(content: bytes, dice: random.Random) -> bytes:
    """Bytes cut, flipped, doubled or replaced."""
    at = dice.randrange(len(content))
    kind = dice.randrange(5)
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + bytes([content[at] ^ (1 << dice.randrange(8))]) + content[at + 1 :]
    if kind == 2:
        return content[:at] + bytes(dice.randrange(256) for _ in range(8)) + content[at:]
    if kind == 3:
        return content[:at] + content[max(0, at - 40) :]
    return dice.choice([b"", b"\x00" * 100, b"\xff\xfe", b"\x1f\x8b", b"[" * 5000, b"{}", b"null", content[at:]])


def loads_or_says_why(load: Callable[[], object], path: Path, seed: int) -> bool:
    """Whether a file loads; if not, it has to be an error about this very file.

    Any other exception fails the test, with the seed that makes the file again.
    """
    try:
        load()
    except InputError as error:
        refused = str(error)
    except Exception as error:
        pytest.fail(f"seed {seed}: {type(error).__name__}: {error}")
    else:
        return True
    assert path.name in refused, f"seed {seed}: {refused}"
    assert refused.isprintable(), f"seed {seed}: {refused!r}"
    return False
