"""What ran where and when, kept in compact columns; how much of it is up to the caller."""

from __future__ import annotations

from array import array
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from gpusched_env.hardware.clock import NEVER, PS_PER_US

Detail = Literal["none", "jobs", "kernels", "blocks"]
DETAILS: Final[tuple[Detail, ...]] = ("none", "jobs", "kernels", "blocks")
"""Details that are recorded, from the least to the most."""


class Columns:
    """Growing named columns of whole numbers, and of floats behind them; 8 bytes a cell.

    Times are kept as whole picoseconds and read as microseconds; :meth:`ps` reads them as they are.
    """

    def __init__(self, *whole: str, times: tuple[str, ...] = (), floats: tuple[str, ...] = ()) -> None:
        """``whole``: names of whole numbers, ``times`` those among them that are times; then those of floats."""
        self.names = (*whole, *floats)
        self.whole, self.floats = len(whole), len(floats)
        self._times = times
        self._whole = array("q")
        self._floats = array("d")

    def add(self, *row: float) -> None:
        """Append a row, times in picoseconds."""
        self._whole.extend(row[: self.whole])  # type: ignore[arg-type]
        self._floats.extend(row[self.whole :])

    def extend(self, whole: NDArray[np.int64], floats: NDArray[np.float64]) -> None:
        """Append rows: arrays of shape ``(rows, whole columns)`` and ``(rows, float columns)``."""
        self._whole.frombytes(np.ascontiguousarray(whole, np.int64).tobytes())
        self._floats.frombytes(np.ascontiguousarray(floats, np.float64).tobytes())

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows that are false in ``rows``."""
        whole, floats = self.exact[rows], self._float_rows[rows]
        self._whole, self._floats = array("q"), array("d")
        self.extend(whole, floats)

    def __len__(self) -> int:
        return len(self._whole) // self.whole

    @property
    def _float_rows(self) -> NDArray[np.float64]:
        return np.array(self._floats, np.float64).reshape(len(self), self.floats)

    @property
    def exact(self) -> NDArray[np.int64]:
        """A copy of the whole numbers, times in picoseconds; shape ``(rows, whole columns)``."""
        return np.array(self._whole, np.int64).reshape(-1, self.whole)

    @property
    def array(self) -> NDArray[np.float64]:
        """A copy, shape ``(rows, columns)``; times in microseconds, ``inf`` where there is none."""
        exact = self.exact
        found = np.empty((len(exact), len(self.names)))
        found[:, : self.whole] = exact
        for name in self._times:
            found[:, self.names.index(name)] /= PS_PER_US
        found[:, : self.whole][exact >= NEVER] = np.inf
        found[:, self.whole :] = self._float_rows
        return found

    def column(self, name: str) -> NDArray[np.float64]:
        """A copy of one column."""
        return self.array[:, self.names.index(name)]

    def ps(self, name: str) -> NDArray[np.int64]:
        """A copy of one column of whole numbers as it is kept: times in picoseconds."""
        return self.exact[:, self.names.index(name)]

    def dict(self) -> dict[str, NDArray[np.float64]]:
        table = self.array
        return {name: table[:, i] for i, name in enumerate(self.names)}


class Timeline:
    """Record of one episode. Times in microseconds since the reset."""

    def __init__(self, detail: Detail = "jobs") -> None:
        self.detail = detail
        self.jobs = Columns(
            "tenant", "job", "arrived_us", "started_us", "completed_us",
            times=("arrived_us", "started_us", "completed_us"),
        )  # fmt: skip
        """Completed jobs: when they arrived, were taken up by the host, completed (detail ``jobs``)."""
        self.rejections = Columns("tenant", "job", "arrived_us", "rejected_us", times=("arrived_us", "rejected_us"))
        """Rejected jobs (detail ``jobs``)."""
        self.requests = Columns("tenant", "job", "first_token_us", "tokens", "preemptions", times=("first_token_us",))
        """Completed jobs of serving engines, in the order of :attr:`jobs`: when the first token was there, how many the
        answer has, how often the request lost its cache (detail ``jobs``)."""
        self.kernels = Columns(
            "id", "tenant", "job", "identity", "issued_us", "launched_us", "started_us", "ended_us", "stream_priority",
            "preemptions", "stream", "parent",
            times=("issued_us", "launched_us", "started_us", "ended_us"),
        )  # fmt: skip
        """Finished kernels, those in graphs too (detail ``kernels``). ``started_us``: of the first block ever;
        ``preemptions``: how often it or some of its blocks left; ``parent``: id of the graph that it is a node of, or
        of the kernel that launched it, else -1. A graph's nodes are issued and launched when the graph is."""
        self.blocks = Columns("sm", "kernel", "blocks", "started_us", "ended_us", times=("started_us", "ended_us"))
        """Residencies (detail ``blocks``): ``blocks`` equal blocks of launch id ``kernel`` on one SM."""
        self.sms = Columns("time_us", "busy_sms", times=("time_us",), floats=("dram_bytes_per_us", "power_w"))
        """Steps of the device's state (detail ``kernels``): value from this time to the next row."""
        self.decisions = Columns("time_us", "command", "kernel", times=("time_us",))
        """Commands (detail ``kernels``): code (:data:`~gpusched_env.scheduling.commands.COMMANDS`); launch id or -1."""
        self.turns = Columns("time_us", "context", times=("time_us",))
        """Whose turn it is where processes are time-sliced (detail ``kernels``): from this time to the next row, the
        tenant that has the GPU, -1 while it changes hands. Tenant 0 has it before the first row."""
        self.copies = Columns("engine", "tenant", "bytes", "started_us", "ended_us", times=("started_us", "ended_us"))
        """Copies and memsets (detail ``kernels``); engine 0 to device, 1 to host, 2 on device."""

    def answer_us(self, tenant: int) -> NDArray[np.float64]:
        """:func:`answers_us` of a tenant's completed jobs, in order."""
        jobs, requests = self.jobs.array, self.requests.array
        return answers_us(jobs[jobs[:, 0] == tenant], requests[requests[:, 0] == tenant])

    def parts(self, tenant: int, start_us: float, end_us: float) -> list[tuple[float, float, bool]]:
        """A stretch of time of a time-sliced tenant in parts: start, end, and whether it had the GPU.

        Without time slicing it is one part.
        """
        turns = self.turns.array
        changes = np.concatenate([[-np.inf], turns[:, 0]])
        owners = np.concatenate([[0.0 if len(turns) else tenant], turns[:, 1]])
        first, last = np.searchsorted(changes, [start_us, end_us], side="right") - 1
        found: list[tuple[float, float, bool]] = []
        for row in range(first, last + 1):
            begin = max(start_us, float(changes[row]))
            until = min(end_us, float(changes[row + 1])) if row < last else end_us
            mine = bool(owners[row] == tenant)
            if found and found[-1][2] == mine:
                begin = found.pop()[0]
            if until > begin:
                found.append((begin, until, mine))
        return found


def answers_us(jobs: NDArray[np.float64], requests: NDArray[np.float64]) -> NDArray[np.float64]:
    """Time of each completed job from its arrival to what its objective is about, which is its completion, or the first
    token of a serving engine's request.

    Args:
        jobs, requests: rows of :attr:`Timeline.jobs` and :attr:`Timeline.requests`, of one tenant.
    """
    answered: NDArray[np.float64] = (requests[:, 2] if len(requests) else jobs[:, 4]) - jobs[:, 2]
    return answered
