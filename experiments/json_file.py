"""Result files that grow by rows: JSON with a line for each, so that versions of one can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from gpusched_env.errors import InputError


class HasSchema(Protocol):
    """A struct that says what it is."""

    @property
    def schema(self) -> str:
        """Name and version of the file's format."""
        ...


T = TypeVar("T", bound=HasSchema)


def encode_rows(head: msgspec.Struct, rows: Sequence[msgspec.Struct]) -> bytes:
    """JSON of ``head``, whose last field is an empty list, with ``rows`` in that, a line each."""
    lines = b",\n".join(msgspec.json.encode(row) for row in rows)
    return msgspec.json.encode(head).removesuffix(b"[]}") + b"[\n" + lines + b"\n]}\n"


def read_struct(path: Path, kind: type[T], schema: str, refusal: str, how: str) -> T:
    """What :func:`encode_rows` wrote.

    Args:
        path: of the file.
        kind: the struct that it holds.
        schema: that it must name.
        refusal: what to say of another file ("not a ranking").
        how: what writes such a file.

    Raises:
        InputError: it cannot be read, or is none.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: {refusal} ({error}); {how}") from error
    if found.schema != schema:
        raise InputError(f"{path}: schema {found.schema!r}, expected {schema!r}")
    return found
