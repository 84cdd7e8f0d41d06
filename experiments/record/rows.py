"""Files of a recording, one JSON object a line, and the rows about what the L2 is worth to a network."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from gpusched_env.errors import GpuError, InputError
from gpusched_env.reading import decoded, read_bytes, unzipped

if TYPE_CHECKING:
    from gpusched_env.experiments.record.torch_gpu import TorchGpu

SUFFIX = ".jsonl"


class Rows:
    """One file of a recording. A row is complete or not in it, whatever interrupts the recording."""

    def __init__(self, folder: Path, name: str, head: dict[str, Any], *, resume: bool) -> None:
        """
        Args:
            folder: of the recording.
            name: of the file, without its suffix.
            head: its first line, what the rows are of.
            resume: whether a file that is there is continued.

        Raises:
            InputError: it cannot be written, is there already, or is of something else.
        """
        self.path = folder / f"{name}{SUFFIX}"
        self.rows: list[dict[str, Any]] = []
        self._head: dict[str, Any] | None = head
        """Written with the first row, since a file without rows is no recording; ``None``: it is written."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                return
            if not resume:
                raise InputError(f"{self.path}: is there already; continue it with --resume, or name another folder")
            self._read(head)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from error

    def _read(self, head: dict[str, Any]) -> None:
        """The rows that are there; half a row, which an interrupted process has left, goes."""
        lines, size = read_lines(self.path)
        differ = [key for key, value in head.items() if lines and lines[0].get(key) != value]
        if differ:
            was, now = ({key: of.get(key) for key in differ} for of in (lines[0], head))
            raise InputError(f"{self.path}: was recorded with {was}, not {now}; name another folder")
        os.truncate(self.path, size)
        if lines:
            self.rows, self._head = lines[1:], None

    def add(self, row: dict[str, Any]) -> None:
        """Write a row to the file.

        Raises:
            InputError: it cannot be written.
        """
        try:
            lines = [row] if self._head is None else [self._head, row]
            with self.path.open("ab") as file:
                file.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from error
        self._head = None
        self.rows.append(row)


def read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The complete lines of a file of a recording, the first of them its head, and how many bytes they are.

    Raises:
        InputError: it cannot be read, or is no recording.
    """
    complete, end, _ = unzipped(read_bytes(path), str(path)).rpartition(b"\n")
    where = f"{path}: is no recording, name another folder"
    return [decoded(line, dict[str, Any], where) for line in complete.splitlines()], len(complete + end)


CACHE: Final = "cache"
SKIP_REASON: Final = "missed"
"""Name of a row in place of one of :data:`CACHE`: why there is none."""
MEBIBYTES: Final = (4, 8, 16, 24, 32, 48, 64, 96, 128, 256)
"""Sizes that something else reads before a replay, MiB."""


class KernelTime(NamedTuple):
    """A kernel of an iteration."""

    name: str
    warm_us: float
    """Median time, one iteration after the other."""
    cold_us: float
    """Median time of an iteration behind something that empties the L2."""
    bare_us: float
    """Median, behind something that empties the L2 before every operator: nothing that those before it in the
    iteration left there is found either."""


def cache_rows(gpu: TorchGpu, networks: Sequence[str], there: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows that are still missing: one a network.

    Args:
        gpu: has the networks.
        networks: their names.
        there: rows that are recorded.
    """
    done = {row["model"] for row in there}
    for name in networks:
        if name in done:
            continue
        try:
            weights, others = gpu.held_bytes(name)
            kernels = gpu.kernel_times(name)
        except GpuError as error:
            # One whose kernels are not the same every time says nothing; the others do.
            yield {"what": SKIP_REASON, "model": name, "error": str(error)}
            continue
        yield {
            "what": CACHE,
            "model": name,
            "weight_bytes": weights,
            "other_bytes": others,
            "behind_mib": [0, *MEBIBYTES],
            "behind_us": [round(gpu.behind_us(name, size), 3) for size in (0, *MEBIBYTES)],
            "warm_us": [round(kernel.warm_us, 3) for kernel in kernels],
            "cold_us": [round(kernel.cold_us, 3) for kernel in kernels],
            "bare_us": [round(kernel.bare_us, 3) for kernel in kernels],
        }
