"""What a fuzzer stores of any game, as plain data that is readable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from gpusched_env.experiments.lib.files import result_file
from gpusched_env.reading import decoded, read_bytes

Share = Annotated[float, Meta(ge=0, le=1)]
E = TypeVar("E", bound="Counterexample")


class Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything that is stored."""


class Difference(Stored, frozen=True, kw_only=True):
    """Where two devices were first seen to differ."""

    kind: str
    """What was compared: ``time``, ``view``, ``costs``, ``timeline``, ..."""
    where: str
    """The table, column and row."""
    step: int
    """Commands given before; -1: in the episode that came first."""
    time_us: float
    expected: str
    """On the device that is trusted."""
    found: str

    def __str__(self) -> str:
        return (
            f"{self.where} after {self.step} commands, at {self.time_us:.6f} us: "
            f"expected {self.expected}, found {self.found}"
        )


class Counterexample(Stored, frozen=True, kw_only=True):
    """A case on which two devices differ; each game adds its format and its case."""

    device: str
    against: str
    seed: int
    """Of the fuzzer."""
    episode: int
    difference: Difference
    repeats: bool = True
    """Whether the case showed the difference again when it was played alone."""


def write_counterexample(example: Counterexample, path: Path) -> None:
    """Store ``example`` as indented JSON.

    Raises:
        InputError: ``path`` cannot be written.
    """
    with result_file(path, "--out") as staging:
        staging.write_bytes(msgspec.json.format(msgspec.json.encode(example), indent=1) + b"\n")


def read_counterexample(path: Path, kind: type[E]) -> E:
    """Read what :func:`write_counterexample` stored of a game's ``kind``.

    Raises:
        InputError: unreadable or invalid; names the file and the field.
    """
    return decoded(read_bytes(path), kind, str(path))
