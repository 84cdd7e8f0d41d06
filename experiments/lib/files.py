"""Result files and folders: checked before the simulation, written aside, and moved into place when complete.

Nothing that was found before is replaced unasked. A folder that nobody named gets a name that is free; a named one that
holds a result, or a named result file that is there, is refused unless ``--overwrite`` is given. Pages (``--docs``) are
made from result files and are replaced.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

try:
    import fcntl
except ModuleNotFoundError:  # Not on Windows.
    fcntl = None  # type: ignore[assignment]

from gpusched_env.errors import InputError
from gpusched_env.reading import read_bytes

RESULT = "result.json"
TRACE_SUFFIX = ".perfetto-trace"
PARTIAL = ".partial"
RESULT_OPTIONS = ("--json", "--out")
"""Options that name results; what others name is made from them."""
Made = bytes | str | dict[str, Any] | msgspec.Struct
"""Content of a file: as it is, text, or what becomes JSON."""
Content = Made | Callable[[], Made]
"""Or what makes it."""


class HasSchema(Protocol):
    """A struct that says what it is."""

    @property
    def schema(self) -> str:
        """Name and version of the file's format."""
        ...


T = TypeVar("T", bound=HasSchema)


class ResultFolder:
    """A folder for results that changes only when all of them are complete.

    Use as a context manager around the simulation: entering creates a hidden sibling of ``path`` (and so
    finds out whether it can be written), :meth:`publish` moves what lies there to ``path``, leaving
    without it leaves everything as it was.

    Args:
        path: of the folder.
        overwrite: replace a result that it holds.
        numbered: where it is there already, take the next free name instead: ``Toy-2``, ``Toy-3``.

    Raises:
        InputError: ``path`` cannot be written, on entering or later, or holds a result that is to stay.
    """

    def __init__(self, path: Path, *, overwrite: bool = False, numbered: bool = False) -> None:
        self._asked = path
        self._overwrite, self._numbered = overwrite, numbered
        self.path = free_folder(path) if numbered else path
        """Where results go; if numbered, settled when they are published."""
        self.staging = self.path
        """Where to write; valid within the context."""
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> ResultFolder:
        target = _resolved(self.path, "--out")
        with contextlib.ExitStack() as undo, _told("--out", self.path):
            if target.exists() and not target.is_dir():
                raise InputError(f"--out {self.path}: is a file; name a folder")
            if not self._numbered:
                undo.enter_context(held(self.path, "--out"))
            refuse_existing(target / RESULT, "--out", self.path, overwrite=self._overwrite)
            undo.enter_context(_parents(target))
            if target.exists():
                with tempfile.TemporaryFile(dir=target):
                    pass
            self.staging = Path(tempfile.mkdtemp(prefix=_hidden(target), suffix=PARTIAL, dir=target.parent))
            undo.callback(shutil.rmtree, self.staging, ignore_errors=True)
            self._cleanup = undo.pop_all()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._cleanup.close()
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            with _told("--out", self.path):
                raise error

    def publish(self) -> None:
        """Move everything into place; ``result.json`` comes last, so a folder with it is complete.

        Of an earlier result, the files of the same names and all traces are replaced; other files stay.
        """
        os.chmod(self.staging, 0o777 & ~_umask())
        while self._numbered:
            with contextlib.suppress(OSError):
                os.rename(self.staging, self.path.resolve())
                return
            if not self.path.exists():
                break
            # Another run was faster.
            self.path = free_folder(self._asked)
        target = self.path.resolve()
        if not target.exists():
            os.replace(self.staging, target)
            return
        (target / RESULT).unlink(missing_ok=True)
        for stale in target.glob(f"*{TRACE_SUFFIX}"):
            stale.unlink()
        for file in sorted(self.staging.iterdir(), key=lambda f: f.name == RESULT):
            os.replace(file, target / file.name)


def result_folder(out: Path | None, default: Path, *, overwrite: bool) -> ResultFolder:
    """The folder that ``--out`` names, or one of the name ``default`` that is free."""
    return ResultFolder(default, numbered=True) if out is None else ResultFolder(out, overwrite=overwrite)


def free_folder(folder: Path) -> Path:
    """``folder``, or if it is there the next of its name that is not: ``Toy-2``, ``Toy-3``."""
    names = itertools.chain([folder], (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2)))
    return next(name for name in names if not name.exists())


def refuse_existing(file: Path | None, option: str, named: Path | None = None, *, overwrite: bool) -> None:
    """Nothing happens if ``file`` is not there, or to be replaced; ``named``: the folder that was named.

    Raises:
        InputError: it is there.
    """
    if file is None or overwrite or not file.is_file():
        return
    what = f"{file}: is there" if named is None else f"{named}: holds a result"
    other = "file" if named is None else "folder"
    raise InputError(f"{option} {what} already; name another {other}, or replace it with --overwrite")


@contextlib.contextmanager
def held(path: Path, option: str) -> Iterator[None]:
    """``path`` is this process's to write as long as the context lasts; a process that ends, however, lets go of it.

    Raises:
        InputError: it is another's.
    """
    with contextlib.ExitStack() as undo, _told(option, path):
        target = _resolved(path, option)
        if fcntl is None or (target.exists() and not (target.is_file() or target.is_dir())):
            yield
            return
        undo.enter_context(_parents(target))
        lock = target.with_name(f".{target.name}.lock")
        while True:
            file = undo.enter_context(lock.open("w"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{option} {path}: is being written by another run; name another one") from None
            # It is another file by now if the one who had it has just let go.
            if lock.exists() and lock.stat().st_ino == os.fstat(file.fileno()).st_ino:
                break
        undo.callback(lock.unlink, missing_ok=True)
        yield


@contextlib.contextmanager
def result_file(path: Path, option: str) -> Iterator[Path]:
    """A temporary sibling to write; it replaces ``path`` on leaving without an error, if it was written.

    ``option`` is named in errors.

    Raises:
        InputError: ``path`` cannot be written, on entering or later.
    """
    with contextlib.ExitStack() as undo, _told(option, path):
        if path.is_dir():
            raise InputError(f"{option} {path}: is a folder; name a file")
        if path.exists() and not path.is_file():
            yield from _passed_on(path)
            return
        target = _resolved(path, option)
        undo.enter_context(_parents(target))
        handle, name = tempfile.mkstemp(prefix=_hidden(target), suffix=PARTIAL, dir=target.parent)
        os.close(handle)
        staging = Path(name)
        undo.callback(staging.unlink, missing_ok=True)
        yield staging
        if staging.stat().st_size > 0:
            os.chmod(staging, 0o666 & ~_umask())
            os.replace(staging, target)


def _passed_on(path: Path) -> Iterator[Path]:
    """A temporary file whose content goes through a pipe or to a device, which stays what it is."""
    with tempfile.TemporaryDirectory() as folder:
        staging = Path(folder) / "content"
        staging.touch()
        yield staging
        with path.open("wb") as sink:
            sink.write(staging.read_bytes())


def _resolved(path: Path, option: str) -> Path:
    """Where a path leads.

    Raises:
        InputError: nowhere, its links lead back to themselves.
    """
    try:
        return path.resolve()
    except RuntimeError as error:
        raise InputError(f"{option} {path}: its links lead back to themselves") from error


@contextlib.contextmanager
def writing(*targets: tuple[str, Path | None], overwrite: bool = False) -> Iterator[Callable[[str, Content], None]]:
    """Find out early whether result files can be written.

    Args:
        targets: options and the files that they name; ``None`` if the option was not given.
        overwrite: replace result files (:data:`RESULT_OPTIONS`) that are there.

    Yields:
        what writes the files of an option, if it was given, when everything is done.

    Raises:
        InputError: a file cannot be written, or is a result that is to stay.
    """
    for option, path in targets:
        if option in RESULT_OPTIONS:
            refuse_existing(path, option, overwrite=overwrite)
    with contextlib.ExitStack() as stack:
        files = [(name, stack.enter_context(result_file(path, name))) for name, path in targets if path is not None]

        def write(option: str, content: Content) -> None:
            for file in [staging for name, staging in files if name == option]:
                made = content() if callable(content) else content
                file.write_bytes(made if isinstance(made, bytes) else encoded(made))

        yield write


def write_file(path: Path, content: Content, option: str) -> None:
    """Write one file at once, in place of an earlier one.

    Raises:
        InputError: it cannot be written.
    """
    with writing((option, path), overwrite=True) as write:
        write(option, content)


def encoded(content: str | dict[str, Any] | msgspec.Struct) -> bytes:
    """Text as UTF-8, anything else as indented JSON with a final newline."""
    if isinstance(content, str):
        return content.encode()
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def encode_rows(head: msgspec.Struct, rows: Sequence[msgspec.Struct]) -> bytes:
    """JSON of ``head``, whose last field is an empty list, with ``rows`` in that, a line each.

    Versions of such a file can be compared line by line.
    """
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
        found = msgspec.json.decode(read_bytes(path), type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InputError(f"{path}: {refusal} ({error}); {how}") from error
    if found.schema != schema:
        raise InputError(f"{path}: schema {found.schema!r}, expected {schema!r}")
    return found


def file_name(scheduler: str) -> str:
    """A scheduler's specification as part of a file name: ``path/own.py:Greedy`` becomes ``path-own.py-Greedy``."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in scheduler).strip("-.")


@contextlib.contextmanager
def _told(option: str, path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # Of whoever reads the output, not of a file.
    except OSError as error:
        # The file at fault may be a temporary one, whose name would tell nothing: the reason is enough.
        reason = "a file is in the way" if isinstance(error, FileExistsError) else error.strerror or str(error)
        raise InputError(f"{option} {path}: cannot be written ({reason})") from error


def _hidden(target: Path) -> str:
    """How names of what is written for ``target`` begin; what dead processes left of it is removed."""
    prefix, home = f".{target.name}.", f"{socket.gethostname()}-"
    for stale in target.parent.glob(f"{prefix}{home}*{PARTIAL}"):
        process = stale.name.removeprefix(prefix + home).partition(".")[0]
        if process.isdigit() and not _alive(int(process)):
            shutil.rmtree(stale, ignore_errors=True) if stale.is_dir() else stale.unlink(missing_ok=True)
    return f"{prefix}{home}{os.getpid()}."


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextlib.contextmanager
def _parents(path: Path) -> Iterator[None]:
    """Create the folders above ``path``; on leaving, those that were created and are still empty go again."""
    missing = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        for folder in missing:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
