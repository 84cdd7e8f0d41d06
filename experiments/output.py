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
    without it leaves ``path`` as it was.

    Raises:
        InputError: on entering, if ``path`` cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.staging = path
        """Where to write; valid within the context."""

    def __enter__(self) -> ResultFolder:
        try:
            target = self.path.resolve()
            if target.exists() and not target.is_dir():
                raise InputError(f"--out {self.path}: is a file; name a folder")
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                _probe(target)
            self.staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".partial", dir=target.parent))
        except OSError as error:
            raise InputError(f"--out {self.path}: cannot be written ({error.strerror}: {error.filename})") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.staging, ignore_errors=True)

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
def result_file(path: Path) -> Iterator[Path]:
    """A temporary sibling to write; it replaces ``path`` on leaving without an error, if it was written.

    Raises:
        InputError: on entering, if ``path`` cannot be written.
    """
    try:
        if path.is_dir():
            raise InputError(f"--json {path}: is a folder; name a file")
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    except OSError as error:
        raise InputError(f"--json {path}: cannot be written ({error.strerror}: {error.filename})") from error
    os.close(handle)
    staging = Path(name)
    try:
        yield staging
        if staging.stat().st_size > 0:
            os.chmod(staging, 0o666 & ~_umask())
            os.replace(staging, path)
    finally:
        staging.unlink(missing_ok=True)


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


def _probe(folder: Path) -> None:
    with tempfile.TemporaryFile(dir=folder):
        pass


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
