"""Kernel windows: launches are released out of order, by the memory that they touch instead of their stream.

A window is how a runtime (ACS-SW) or a GPU (ACS-HW; Durvasula et al., arXiv 2401.12377) finds concurrency in one
program: launches enter it in order, each is checked against those in it, and whatever waits for none of them may be
launched into any stream of the scheduler's that has room. What nobody may have for free is charged here: the
application's time for each launch, the check, the launch itself, and the synchronisation without which nobody knows
that one has ended (:mod:`gpusched_env.scenarios.windowed`).
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from gpusched_env.reading import Time


class KernelWindow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a window works and what it costs."""

    size: Annotated[int, Meta(ge=1, le=1024)] = 32
    """Launches that the window holds at most, N: entered and not left. Schedulers see those that wait."""
    streams: Annotated[int, Meta(ge=1, le=1024)] = 8
    """Streams of the scheduler's, each with a thread that launches kernels and waits for their ends."""
    depth: Annotated[int, Meta(ge=1, le=1024)] = 1
    """Launches that a stream holds, from when they are launched until they are known to have ended. With more than one
    (ACS has one), a launch may be queued behind others, and then what these write is there in time: it need not wait
    for a hazard with any of them to be over and known."""
    launch_us: Time = 4.0
    """Time from a thread's decision to launch until the kernel starts on an idle GPU. The thread does nothing else."""
    sync_us: Time = 5.0
    """Time from a kernel's end until its thread knows: then it leaves the window and its stream, and what waited for it
    may be launched. Launch and synchronisation together took 5 to 20 us where the paper profiled them, and 9.3 us (with
    an empty kernel between them, median of 2,000) on the host of an H200."""
    insert_us: Time = 0.0
    """Time of an entry besides the check."""
    transfer_us: Time = 0.0
    """Time from a hand-over by the application to the window, one behind another: only the first launch behind a
    synchronisation is held up by it."""
    newer: Annotated[int, Meta(ge=1)] | None = None
    """Launches that may have entered since the oldest one that is not known to have ended: M, the length of the list of
    what has been scheduled, by which an entry is checked; ``None``: any number."""
    checked_by: Literal["window", "application", "nobody"] = "window"
    """Whose thread does the check: one of the window's own, or the application's between two launches; ``nobody``: what
    waits for what is known beforehand."""
