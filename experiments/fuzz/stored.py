"""What a fuzzer stores of any game as plain data, and how plain data is made simpler."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, Self, TypeVar

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.files import result_file
from gpusched_env.reading import decoded, read_bytes

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.outcome import Outcome

Share = Annotated[float, Meta(ge=0, le=1)]
E = TypeVar("E", bound="Counterexample")


class Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything that is stored."""


class GameCase(Stored, frozen=True, kw_only=True):
    """A case of a game whose problems are no scenarios."""

    def self_contained(self) -> Self:
        """The same: it names nothing that has to be looked up."""
        return self


class Difference(Stored, frozen=True, kw_only=True):
    """The place where two devices were first seen to differ."""

    kind: str
    """What was compared: ``time``, ``view``, ``costs``, ``timeline``, ..."""
    where: str
    """The table, column and row."""
    step: int
    """Commands given before; -1: in the episode that came first."""
    time_us: float
    expected: str
    """What the trusted device showed."""
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
    """The seed of the fuzzer."""
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


TreePath = tuple[str | int, ...]
Simpler = Callable[[Any], Iterable[Any]]
"""Values to try in place of one, the simplest first."""
C = TypeVar("C", bound=msgspec.Struct)

SECONDS = 60.0
DEFAULTED: Final = object()
"""Stands in place of a value that is to be left out, for its default."""


class TreeShrinker(Generic[C]):
    """Greedy: keeps every simplification after which the same kind of difference is found."""

    ROUNDS: ClassVar[int] = 5
    LISTS: ClassVar[tuple[str, ...]]
    """Fields that are shortened."""
    OPTIONS: ClassVar[str]
    """Places that are left out, as a regular expression for paths like ``forms/0/threshold``."""
    NUMBERS: ClassVar[str]
    """Places, likewise, of numbers that may become smaller or shorter."""

    def __init__(self, case: C, play: Callable[[C], Outcome], *, seconds: float = SECONDS) -> None:
        self.case = case
        """The simplest case so far."""
        self.difference: Difference | None = None
        """The difference that the case shows; ``None`` until :meth:`run`, or if it shows none."""
        self._play = play
        self._seconds = seconds
        self._ends = 0.0
        self._tree: dict[str, Any] = {}

    def run(self) -> None:
        """Simplify until nothing more can be left out, or the time is over."""
        self._ends = time.monotonic() + self._seconds
        self.difference = self._play(self.case).difference
        if self.difference is not None:
            self._tree = tree_of(self.case)
            self._simplify_all()

    def _simplify_all(self) -> None:
        """Round by round, until nothing changes."""
        for _ in range(self.ROUNDS):
            before = self._tree
            self._simplify_once()
            if self._tree == before:
                break

    def _simplify_once(self) -> None:
        for name in self.LISTS:
            self._shorten((name,))
        self._everywhere(self.OPTIONS, leave_out)
        self._everywhere(self.NUMBERS, simpler_numbers)

    def _bounded(self, case: C) -> bool:
        """Whether a case can be played in a short time."""
        return True

    # ---- trying ----------------------------------------------------------------------------------

    def _try(self, tree: dict[str, Any]) -> bool:
        """Keep ``tree`` if it still shows the same kind of difference."""
        if time.monotonic() > self._ends or tree == self._tree:
            return False
        try:
            case = msgspec.convert(tree, type(self.case))
        except (msgspec.ValidationError, InputError):
            return False
        return case != self.case and self._bounded(case) and self._try_case(case)

    def _try_case(self, case: C) -> bool:
        assert self.difference is not None
        try:
            difference = self._play(case).difference
        except InputError:
            return False
        if difference is None or difference.kind != self.difference.kind:
            return False
        self.case, self.difference, self._tree = case, difference, tree_of(case)
        return True

    def _value(self, path: TreePath) -> Any:
        """The value at ``path``; :data:`DEFAULTED` if it, or what it was a part of, was left out."""
        try:
            return get(self._tree, path)
        except (KeyError, IndexError, TypeError):  # TypeError: a part of null.
            return DEFAULTED

    def _first(self, path: TreePath, simpler: Simpler) -> bool:
        """Put the first of some simpler values that will do in place of one, if there is one."""
        value = self._value(path)
        if value is DEFAULTED:
            return False
        return any(self._try(put(self._tree, path, other)) for other in simpler(value))

    def _simplify(self, path: TreePath, simpler: Simpler) -> None:
        while self._first(path, simpler):
            pass

    # ---- passes ----------------------------------------------------------------------------------

    def _everywhere(self, places: str, simpler: Simpler) -> None:
        for path in places_in(self._tree, places):
            self._simplify(path, simpler)

    def _shorten(self, path: TreePath) -> None:
        """Drop elements of a list: halves, quarters, ... single ones, from the end."""
        items = self._value(path)
        size = 0 if items is DEFAULTED else len(items) // 2 or 1
        while size:
            start = len(get(self._tree, path)) - size
            while start > -size:
                items = get(self._tree, path)
                self._try(put(self._tree, path, items[: max(0, start)] + items[start + size :]))
                start -= size
            size //= 2


def leave_out(_: Any) -> list[Any]:
    """Only the default, whatever is there."""
    return [DEFAULTED]


def replace_by(value: Any, _: Any) -> list[Any]:
    """A single candidate, ``value``, whatever is there."""
    return [value]


def simpler_numbers(value: Any) -> list[float]:
    """Numbers to try in place of ``value``, the simplest first; each has fewer digits or is smaller."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    if isinstance(value, int):
        candidates: list[float] = [0, 1, value // 2, 3 * value // 4, value - 1]
        return [c for c in dict.fromkeys(candidates) if 0 <= c < value]
    rounded = [0.0, 1.0, *(short(value, digits) for digits in (1, 2, 3))]
    return [c for c in dict.fromkeys(rounded) if len(repr(c)) < len(repr(value))]


def short(number: float, digits: int = 1) -> float:
    return float(f"{number:.{digits - 1}e}")


def tree_of(case: msgspec.Struct) -> dict[str, Any]:
    """A case as nested dicts and lists."""
    tree: dict[str, Any] = json.loads(msgspec.json.encode(case))
    return tree


def get(tree: Any, path: TreePath) -> Any:
    for key in path:
        tree = tree[key]
    return tree


def put(tree: Any, path: TreePath, value: Any) -> Any:
    """A copy with another value at ``path`` (or without, see :data:`DEFAULTED`); the rest is shared."""
    if not path:
        return value
    copy = tree.copy()
    if len(path) == 1 and value is DEFAULTED:
        del copy[path[0]]
    else:
        copy[path[0]] = put(tree[path[0]], path[1:], value)
    return copy


def walk(tree: Any, path: TreePath = ()) -> Iterator[TreePath]:
    """All places below ``path``, outer ones first."""
    yield path
    items: Any = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from walk(value, (*path, key))


def places_in(tree: Any, pattern: str) -> list[TreePath]:
    """Paths in ``tree`` that, with slashes, match the regular expression ``pattern``."""
    return [path for path in walk(tree) if re.fullmatch(pattern, "/".join(map(str, path)))]
