"""What ran where and when, kept in compact columns; how much of it is up to the caller."""

from __future__ import annotations

from array import array
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Detail = Literal["jobs", "kernels", "blocks"]


class Columns:
    """Growing columns of float64 with names; 8 bytes a cell."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self._data = array("d")

    def add(self, *row: float) -> None:
        self._data.extend(row)

    def __len__(self) -> int:
        return len(self._data) // len(self.names)

    @property
    def array(self) -> NDArray[np.float64]:
        """A copy, shape ``(rows, columns)``."""
        return np.array(self._data).reshape(-1, len(self.names))

    def column(self, name: str) -> NDArray[np.float64]:
        """A copy of one column."""
        return self.array[:, self.names.index(name)]

    def dict(self) -> dict[str, NDArray[np.float64]]:
        table = self.array
        return {name: table[:, i] for i, name in enumerate(self.names)}


class Timeline:
    """Record of one episode. Times in microseconds since the reset."""

    def __init__(self, detail: Detail = "jobs") -> None:
        self.detail = detail
        self.jobs = Columns("tenant", "job", "arrived_us", "started_us", "completed_us")
        """Completed jobs: when they arrived, were taken up by the host, completed."""
        self.kernels = Columns(
            "id",
            "tenant",
            "job",
            "identity",
            "issued_us",
            "launched_us",
            "started_us",
            "ended_us",
            "stream_priority",
            "preemptions",
        )
        """Finished kernels (detail ``kernels``); ``preemptions``: how often it or some of its blocks left."""
        self.blocks = Columns("sm", "kernel", "blocks", "started_us", "ended_us")
        """Residencies (detail ``blocks``): ``blocks`` equal blocks of launch id ``kernel`` on one SM."""
        self.sms = Columns("time_us", "busy_sms", "dram_bytes_per_us", "power_w")
        """Steps of the device's state (detail ``kernels``): value from this time to the next row."""
        self.decisions = Columns("time_us", "command", "kernel")
        """Commands (detail ``kernels``): 0 launch, 1 preempt, 2 set partition; launch id or -1."""
        self.copies = Columns("engine", "tenant", "bytes", "started_us", "ended_us")
        """Copies and memsets (detail ``kernels``); engine 0 to device, 1 to host, 2 on device."""
