"""Files that people write: text, YAML, and data that is checked against a structure.

Every error is an :class:`~gpusched_env.errors.InputError` that names the file and the field and says what would be
right: the closest known name, the kinds there are with their fields, the values there are.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import re
import stat
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypeVar

import msgspec
import yaml
from msgspec import Meta, inspect

from gpusched_env.errors import InputError, did_you_mean

T = TypeVar("T")

Label = Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f-\x9f\ud800-\udfff]*\Z")]
"""What is shown to people: no control characters, which a terminal would obey."""
_INNER = r"/\\\x00-\x1f\x7f-\x9f\ud800-\udfff"
FileName = Annotated[str, Meta(max_length=120, pattern=rf"^[^\s.{_INNER}][^{_INNER}]*\Z")]
"""What files and folders are called by."""

LONGEST_US = 1e12
"""The longest time of anything, in microseconds: eleven days. Clocks count picoseconds, and end after fifty."""
Duration = Annotated[float, Meta(gt=0, le=LONGEST_US)]
"""A duration in microseconds."""
Time = Annotated[float, Meta(ge=0, le=LONGEST_US)]
"""A time in microseconds, which may be 0."""

GZIPPED = b"\x1f\x8b"
"""How compressed content begins."""
MOST_UNZIPPED = 2**30
"""Most bytes that a small file may expand to: more is refused before all of it is in memory."""
MOST_TIMES = 64
"""Most times the size of a large archive when unzipped: what we write is compressed to more than a hundredth."""
MOST_READ = 2**30
"""Most bytes of a file that is read."""

ARCHIVE_ERRORS = (
    zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, OverflowError, RuntimeError, MemoryError, OSError,
    SyntaxError, tokenize.TokenError,
)  # fmt: skip
"""What reading a damaged archive raises. ``RuntimeError``: flipped bits say that a member is encrypted, or compressed
in a way that is not known; the last two: heads of arrays."""

_PLACE = re.compile(r" - at `(.*)`$")
_PATTERN = re.compile(r"Expected `str` matching regex '.*'", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


class _Loader(yaml.SafeLoader):
    """YAML in which ``64e9`` is a number, as in YAML 1.2 (1.1 wants ``64.0e+9``), and a whole one."""

    def whole(self, node: yaml.ScalarNode) -> float:
        """A number, as an integer if it is one."""
        value = float(self.construct_yaml_float(node))
        return int(value) if value.is_integer() and abs(value) < 2**63 else value


_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.whole)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file to read from; leaving closes it.

    Raises:
        InputError: it cannot be opened, or read meanwhile; or it is a device or a pipe, which may have no end.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise _not_read(path, error) from error
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(f"{path}: is a device or a pipe; name a file")
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise _not_read(path, error) from error


def _not_read(path: Path, error: OSError | ValueError) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else None
    return InputError(f"{path}: cannot be read ({reason or error})")


def read_bytes(path: Path) -> bytes:
    """What is in a file.

    Raises:
        InputError: as :func:`opened`, or larger than :data:`MOST_READ`.
    """
    with opened(path) as file:
        data = file.read(MOST_READ + 1)
    if len(data) > MOST_READ:
        raise InputError(f"{path}: more than {MOST_READ} bytes")
    return data


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        InputError: it cannot be read, or is no UTF-8 text.
    """
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: no UTF-8 text ({error})") from error


def unzipped(data: bytes, where: str, most: int | None = None) -> bytes:
    """``data`` as it was before gzip, or as it is if it is not gzipped.

    Raises:
        InputError: damaged, truncated, or larger than ``most`` (:data:`MOST_UNZIPPED`) bytes; ``where`` names the file.
    """
    most = MOST_UNZIPPED if most is None else most
    if not data.startswith(GZIPPED):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            whole = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{where}: damaged or truncated gzip data ({error})") from error
    if len(whole) > most:
        raise InputError(f"{where}: more than {most} bytes once it is unzipped")
    return whole


def table_rows(data: bytes, where: str) -> Iterator[tuple[int, list[str]]]:
    """Lines of comma-separated values, each with its number, without empty ones; what is no UTF-8 is replaced.

    Raises:
        InputError: a field is longer than Python's 131,072 characters, or quoted wrongly; names file and line.
    """
    rows = csv.reader(io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", "replace", newline=""))
    try:
        for cells in rows:
            if cells:
                yield rows.line_num, cells
    except csv.Error as error:
        raise InputError(f"{where}: line {rows.line_num}: no comma-separated values ({error})") from error


def check_unzipped(archive: zipfile.ZipFile, size: int, where: str) -> None:
    """Nothing happens if the members of an archive of ``size`` bytes can be read.

    Raises:
        InputError: they are larger than :data:`MOST_UNZIPPED` and than :data:`MOST_TIMES` the archive, together.
    """
    whole, most = sum(member.file_size for member in archive.infolist()), max(MOST_UNZIPPED, MOST_TIMES * size)
    if whole > most:
        raise InputError(f"{where}: {whole} bytes once it is unzipped, must be at most {most}")


def parse_yaml(text: str, where: str) -> Any:
    """The value of a YAML text; ``where`` names its source in errors.

    Raises:
        InputError: it is no valid YAML.
    """
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{where}: not valid YAML ({' '.join(str(error).split())})") from error


def checked(data: Any, kind: type[T], where: str) -> T:
    """``data``, plain values as in YAML, as an object of the structure ``kind``.

    Raises:
        InputError: something in it is not as ``kind`` has it.
    """
    try:
        return msgspec.convert(data, kind)
    except (msgspec.ValidationError, RecursionError, UnicodeError) as error:
        raise InputError(f"{where}: {_explained(str(error), data, kind)}") from error


def decoded(text: bytes, kind: type[T], where: str) -> T:
    """JSON as an object of the structure ``kind``.

    Raises:
        InputError: it is no valid JSON, or something in it is not as ``kind`` has it.
    """
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError as error:
        raise InputError(f"{where}: {_explained(str(error), _plain(text), kind)}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{where}: not valid JSON ({error}); is the file complete?") from error


def _plain(text: bytes) -> Any:
    """JSON without a structure, if it can be had."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _explained(message: str, data: Any, kind: type) -> str:
    """msgspec's message with its place as people write it, and what would be right."""
    place = _PLACE.search(message)
    steps = [name or index for name, index in _STEP.findall(place[1])] if place else []
    what = _PATTERN.sub("is no name", _PLACE.sub("", message))
    structures, names = _walk(inspect.type_info(kind), data, steps)
    hint = _hint(what, structures)
    path = "".join(f"[{name}]" if name.isdigit() else f".{name}" for name in names).lstrip(".")
    return (f"{path}: " if path else "") + what + (f"; {hint}" if hint else "")


def _walk(kind: inspect.Type, data: Any, steps: Sequence[str]) -> tuple[list[inspect.Type], list[str]]:
    """The structures from the whole to the place that ``steps`` lead to, and the steps with their fields' names."""
    found, names = [_chosen(kind, data)], []
    for step in steps:
        here = found[-1]
        inner: inspect.Type = inspect.AnyType()
        if isinstance(here, inspect.StructType):
            fields = list(here.fields)
            by_place = here.array_like and step.isdigit() and int(step) < len(fields)
            field = fields[int(step)] if by_place else next((f for f in fields if f.encode_name == step), None)
            if field is not None:
                inner, step = field.type, field.encode_name if by_place else step
        elif isinstance(here, inspect.VarTupleType | inspect.ListType):
            inner = here.item_type
        elif isinstance(here, inspect.DictType):
            inner = here.value_type
        data = _inside(data, step)
        names.append(step)
        found.append(_chosen(inner, data))
    return found, names


def _inside(data: Any, step: str) -> Any:
    if isinstance(data, dict):
        return data.get(step)
    if isinstance(data, list | tuple) and step.isdigit() and int(step) < len(data):
        return data[int(step)]
    return None


def _chosen(kind: inspect.Type, data: Any) -> inspect.Type:
    """``kind`` without its constraints; of several structures the one whose tag ``data`` has."""
    if not isinstance(kind, inspect.UnionType):
        return kind
    options = _structures(kind)
    if not options:
        return next((t for t in kind.types if not isinstance(t, inspect.NoneType)), kind)
    if len(options) == 1:
        return options[0]
    return next((t for t in options if isinstance(data, dict) and data.get(t.tag_field) == t.tag), kind)


def _structures(kind: inspect.Type) -> list[inspect.StructType]:
    types = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return [t for t in types if isinstance(t, inspect.StructType)]


def _hint(what: str, structures: Sequence[inspect.Type]) -> str:
    """What would be right where the last of ``structures`` is."""
    here = structures[-1]
    if unknown := re.search(r"unknown field `(.*)`", what):
        return did_you_mean(unknown[1], [f.encode_name for s in _structures(here) for f in s.fields])
    if missing := re.search(r"missing required field `(.*)`", what):
        if missing[1] in {s.tag_field for s in _structures(here)}:
            return _kinds(here)
        needed = [f.encode_name for s in _structures(here) for f in s.fields if f.required]
        return f"required are {', '.join(needed)}"
    if what == "is no name":
        return "a name has no control characters; that of a scenario no slash either, and begins with no dot or space"
    if value := re.search(r"Invalid (?:enum )?value '(.*)'", what):
        if isinstance(here, inspect.LiteralType):
            return did_you_mean(value[1], [str(known) for known in here.values])
        above = structures[-2] if len(structures) > 1 else here
        if isinstance(above, inspect.UnionType):
            return _kinds(above, value[1])
    return ""


def _kinds(union: inspect.Type, given: str | None = None) -> str:
    """The structures of a union by tag, each with its fields, required ones first."""
    options = {str(s.tag): s for s in _structures(union)}
    shown = []
    for tag, structure in options.items():
        fields = sorted(structure.fields, key=lambda f: not f.required)
        shown.append(f"{tag} ({', '.join(f.encode_name for f in fields)})")
    closest = f"{did_you_mean(given, options)} " if given is not None else ""
    return f"{closest if closest.startswith('did') else ''}kinds and their fields: {', '.join(shown)}"
