"""Result folders: prepared before the simulation, filled aside, and moved into place at the end."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison

RESULT = "result.json"
TRACE_SUFFIX = ".perfetto-trace"


class ResultFolder:
    """A folder for results that changes only when all of them are complete.

    Use as a context manager around the simulation: entering creates a hidden sibling of ``path`` (and so
    finds out whether it can be written), :meth:`publish` moves what lies there to ``path``, leaving
    without it leaves everything as it was.

    Raises:
        InputError: on entering, if ``path`` cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.staging = path
        """Where to write; valid within the context."""
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> ResultFolder:
        target = self.path.resolve()
        with contextlib.ExitStack() as undo, _writing("--out", self.path):
            if target.exists() and not target.is_dir():
                raise InputError(f"--out {self.path}: is a file; name a folder")
            undo.enter_context(_parents(target))
            if target.exists():
                with tempfile.TemporaryFile(dir=target):
                    pass
            name = tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent)
            self.staging = Path(name)
            undo.callback(shutil.rmtree, self.staging, ignore_errors=True)
            self._cleanup = undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cleanup.close()

    def publish(self) -> None:
        """Move everything into place; ``result.json`` comes last, so a folder with it is complete.

        Of an earlier result, the files of the same names and all traces are replaced; other files stay.
        """
        target = self.path.resolve()
        os.chmod(self.staging, 0o777 & ~_umask())
        if not target.exists():
            os.replace(self.staging, target)
            return
        (target / RESULT).unlink(missing_ok=True)
        for stale in target.glob(f"*{TRACE_SUFFIX}"):
            stale.unlink()
        for file in sorted(self.staging.iterdir(), key=lambda f: f.name == RESULT):
            os.replace(file, target / file.name)


@contextlib.contextmanager
def result_file(path: Path, option: str) -> Iterator[Path]:
    """A temporary sibling to write; it replaces ``path`` on leaving without an error, if it was written.

    ``option`` is named in errors.

    Raises:
        InputError: on entering, if ``path`` cannot be written.
    """
    with contextlib.ExitStack() as undo:
        with _writing(option, path):
            if path.is_dir():
                raise InputError(f"{option} {path}: is a folder; name a file")
            undo.enter_context(_parents(path.resolve()))
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
        os.close(handle)
        staging = Path(name)
        undo.callback(staging.unlink, missing_ok=True)
        yield staging
        if staging.stat().st_size > 0:
            os.chmod(staging, 0o666 & ~_umask())
            os.replace(staging, path)


@contextlib.contextmanager
def _writing(option: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # The file at fault may be a temporary one, whose name would tell nothing: the reason is enough.
        reason = "a file is in the way" if isinstance(error, FileExistsError) else error.strerror
        raise InputError(f"{option} {path}: cannot be written ({reason})") from error


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


def save_results(comparison: Comparison, folder: Path | str) -> list[str]:
    """Write everything about ``comparison`` to ``folder``, at once when complete; returns the files' names.

    Raises:
        InputError: ``folder`` cannot be written.
    """
    with ResultFolder(Path(folder)) as results:
        files = write_results(comparison, results.staging)
        results.publish()
    return files


def write_results(comparison: Comparison, folder: Path) -> list[str]:
    """Write report, tables, traces and ``result.json`` of ``comparison`` into the existing ``folder``.

    Returns:
        the names of the files.
    """
    from gpusched_env.experiments.parquet import write_jobs, write_kernels
    from gpusched_env.experiments.perfetto_trace import write_trace
    from gpusched_env.experiments.report import write_report
    from gpusched_env.experiments.result_json import encode_result, result_dict

    write_jobs(comparison, folder / "jobs.parquet")
    write_kernels(comparison, folder / "kernels.parquet")
    for name in comparison.schedulers:
        run = comparison.recorded(name)
        if run is not None:
            write_trace(comparison, run, folder / f"{file_name(name)}{TRACE_SUFFIX}")
    result = result_dict(comparison)
    write_report(comparison, result, folder / "report.html")
    (folder / RESULT).write_bytes(encode_result(result))
    return sorted(file.name for file in folder.iterdir())


def file_name(scheduler: str) -> str:
    """A scheduler's name as part of a file name: ``path/to/own.py:Greedy`` becomes ``own.py-Greedy``."""
    return "".join(c if c.isalnum() or c in "-_." else "-" for c in scheduler.rsplit("/", 1)[-1])


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
