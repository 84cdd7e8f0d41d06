"""Saved states that are pickled with a checksum, so that a damaged one is refused instead of gone on from."""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

from gpusched_env.errors import InputError


class Sealed:
    """Base of dataclasses with slots. Compiled code trusts what it goes on from: numbers there are places in memory."""

    __slots__: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        content = pickle.dumps([getattr(self, name) for name in self.__slots__])
        return _open, (type(self), content, hashlib.sha256(content).digest())


def _open(kind: type[Any], content: bytes, seal: bytes) -> Any:
    if hashlib.sha256(content).digest() != seal:
        raise InputError(f"a saved state ({kind.__name__}) was damaged or changed since it was pickled; save it again")
    return kind(*pickle.loads(content))
