"""What the device needs of a real GPU: streams that take work in order, a clock, and word of what has happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.cuda.real_time.tables import Tables
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp


@dataclass(frozen=True, slots=True)
class Work:
    """A kernel, copy or graph for the GPU."""

    launch: int
    """Id; unique in the episode."""
    op: HostOp
    """What it carries out (``kind``, ``identity``, ``scale``, ``bytes``, ``nodes``)."""
    stream: int
    """Row of the problem's streams."""
    priority: int
    """Of the stream, CUDA's convention: 0 is the default, lower is more urgent. A stream at a priority on some SMs is a
    queue: it starts its work in the order of submission."""
    sms: tuple[int, int] | None
    """First and number of the SMs that its blocks may run on; ``None``: all."""
    after: tuple[int, ...]
    """Ids of earlier work, of other queues, that must have ended before it starts."""
    blocks: int = -1
    """Of a kernel, that it has left to run after it was recalled; -1: all."""


class Report(NamedTuple):
    """Work has started or ended."""

    at_ps: int
    """When, by :meth:`Gpu.now_ps`."""
    launch: int
    ended: bool
    left: int = 0
    """Blocks of a kernel that was recalled that have not run: it has ended without them."""


class Gpu(Protocol):
    """A GPU that carries work out: ``prepare``, ``start``, then the others until ``stop``; ``close`` at the end."""

    def prepare(self, problem: Problem, *, blocks: bool = False) -> None:
        """Make kernels, buffers and streams for a problem; takes seconds the first time.

        Args:
            problem: whose work comes next.
            blocks: record where and when every block of a kernel runs.

        Raises:
            InputError: the GPU cannot do what the problem needs.
        """

    def start(self) -> None:
        """Time 0: nothing is on the GPU."""

    def now_ps(self) -> int:
        """Time since :meth:`start`, picoseconds."""

    def submit(self, work: Work) -> None:
        """Hand work to its queue; it is on its way when this returns.

        Raises:
            GpuError: the GPU or its driver has failed.
        """

    def recall(self, launches: list[int]) -> None:
        """Let no further block of kernels begin; blocks that run finish. The problem offers ``preempt``.

        A kernel ends then, as what waits for it finds; how many blocks have not run is in its report. None of them
        begins a block because another one has ended early.

        Args:
            launches: ids in the order in which they were submitted; all that waits for the first of them is among them.

        Raises:
            GpuError: the GPU or its driver has failed.
        """

    def poll(self) -> list[Report]:
        """What has happened since the last call, in order of time; the start of some work before its end. Of kernels
        that were recalled before any of their blocks began only the end.

        Raises:
            GpuError: a kernel has failed.
        """

    def pause(self, until_ps: int) -> None:
        """Return when it is ``until_ps``, or earlier when there may be something to poll."""

    def blocks(self) -> NDArray[np.int64]:
        """Blocks that were recorded since :meth:`start`, in the order of their ends: of kernels that have ended, not of
        those in graphs. Shape ``(blocks, 4)``: SM, launch, start and end in picoseconds."""

    def stop(self) -> None:
        """End the episode: nothing is left on the GPU when this returns."""

    def close(self) -> None:
        """Give everything back."""


@runtime_checkable
class DrivenGpu(Gpu, Protocol):
    """A GPU that compiled code can drive between two decisions for an interval."""

    def tables(self, problem: Problem, operations: Sequence[HostOp | None]) -> Tables:
        """What compiled code needs in an episode, before it begins (:meth:`start`).

        Args:
            problem: that was prepared.
            operations: rows of the arena's table.

        Raises:
            GpuError: the GPU or its driver.
        """

    @property
    def clock_ns(self) -> tuple[int, int]:
        """When the episode began by the host's clock, and how far the GPU's is ahead."""
