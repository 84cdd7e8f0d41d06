"""Reading of trace files: decompression, JSON and typed fields, with errors that name file, event and field."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.reading import MOST_TIMES, read_bytes, unzipped

FORMATS = (
    "accepted are a trace of the PyTorch profiler (Kineto JSON, plain or gzipped) and a report of Nsight Systems that "
    "was exported to SQLite (nsys export --type sqlite)"
)


def load_json(path: Path) -> Any:
    """The JSON value in ``path``, plain or gzipped.

    Raises:
        InputError: unreadable, damaged or truncated gzip data, or not JSON.

    Profilers write names as they find them: what is no UTF-8 is replaced.
    """
    packed = read_bytes(path)
    data = unzipped(packed, str(path)).removeprefix(codecs.BOM_UTF8)
    if len(data) > max(SMALL_BYTES, MOST_TIMES * len(packed)):
        raise InputError(f"{path}: more than {MOST_TIMES} times its size once it is unzipped, as no recording is")
    if data.startswith(b"SQLite format 3\0"):
        raise InputError(f"{path}: unzip it first, for Nsight Systems' SQLite is read from the disk")
    if not data[:100].lstrip().startswith((b"{", b"[")):
        raise InputError(f"{path}: no recording; {FORMATS}")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _as_profilers_write(data, path)


def _as_profilers_write(data: bytes, path: Path) -> Any:
    """JSON with what profilers put into it: bytes of names that are no UTF-8, control characters, NaN and Infinity."""
    try:
        return json.loads(data.decode(errors="replace"), strict=False)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}); is the file complete?") from error


MOST_BYTES = 2**53
"""Most bytes of a copy or memset."""
SMALL_BYTES = 2**24
"""Most bytes that may be zipped to any size."""
_DECIMAL = re.compile(r"\d{1,20}(\.\d{1,20})?")
LATEST_US = 1e18
"""Latest time in a file: profilers count from 1970, which is 2e15 microseconds ago."""


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object of a file, read field by field."""

    values: Mapping[str, Any]
    where: str
    """File and position of the object, for messages."""

    @classmethod
    def of(cls, value: Any, where: str) -> Fields:
        """``value`` as an object.

        Raises:
            InputError: it is something else.
        """
        if not isinstance(value, dict):
            raise InputError(f"{where} is {shown(value)}, expected an object")
        return cls(value, where)

    def fail(self, name: str, expected: str) -> InputError:
        """An error about field ``name`` (to raise)."""
        if name not in self.values:
            return InputError(f"{self.where} has no field {name!r}, expected {expected}")
        return InputError(f"{self.where}: field {name!r} is {shown(self.values[name])}, expected {expected}")

    def text(self, name: str) -> str:
        """The string in field ``name``; half characters (surrogates) are replaced."""
        value = self.values.get(name)
        if not isinstance(value, str):
            raise self.fail(name, "a string")
        return value if value.isascii() else value.encode(errors="replace").decode()

    def microseconds(self, name: str) -> float:
        """The time or duration in field ``name``, a number or its text, not negative and at most :data:`LATEST_US`."""
        value = self.values.get(name)
        if isinstance(value, str) and _DECIMAL.fullmatch(value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LATEST_US:
            raise self.fail(name, f"microseconds, not negative and at most {LATEST_US:g}")
        return float(value)

    def integer(self, name: str, least: int = 0, most: int = 2**63 - 1) -> int:
        """The integer in field ``name``, of at least ``least`` and at most ``most``."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.fail(
                name, f"an integer of at least {least}" + (f" and at most {most}" if most < 2**63 - 1 else "")
            )
        return value

    def dimensions(self, name: str) -> tuple[int, int, int]:
        """The three positive integers in field ``name``."""
        value = self.values.get(name)
        if (
            not isinstance(value, list)
            or len(value) != 3
            or any(isinstance(v, bool) or not isinstance(v, int) or not 1 <= v < 2**31 for v in value)
        ):
            raise self.fail(name, "three integers of at least 1")
        return (value[0], value[1], value[2])

    def array(self, name: str) -> list[Any]:
        """The list in field ``name``."""
        value = self.values.get(name)
        if not isinstance(value, list):
            raise self.fail(name, "a list")
        return value

    def inside(self, name: str) -> Fields:
        """The object in field ``name``."""
        if name not in self.values:
            raise self.fail(name, "an object")
        return Fields.of(self.values[name], f"{self.where}.{name}")


def shown(value: Any) -> str:
    """A value in a message."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
