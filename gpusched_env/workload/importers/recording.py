"""A profiler's recording of one host process, independent of the file format it came from."""

from __future__ import annotations

from dataclasses import dataclass

from gpusched_env.workload.workload import OpKind

SYNC_CALLS = frozenset(
    f"{prefix}{what}Synchronize"
    for prefix, whats in (
        ("cuda", ("Device", "Stream", "Event", "Thread")),
        ("cu", ("Ctx", "Stream", "Event")),
        ("hip", ("Device", "Stream", "Event")),
    )
    for what in whats
)
"""Runtime and driver calls that block the host until device work has finished."""


@dataclass(frozen=True, slots=True)
class HostCall:
    """A runtime or driver call of the host, or an annotated interval (microseconds)."""

    name: str
    start_us: float
    duration_us: float

    @property
    def end_us(self) -> float:
        """When the call returned."""
        return self.start_us + self.duration_us


@dataclass(frozen=True, slots=True)
class Shape:
    """Launch configuration of a kernel."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    """32-bit registers a thread."""
    shared_bytes: int
    """Static and dynamic shared memory a block, bytes, without the system's reserve."""


@dataclass(frozen=True, slots=True)
class DeviceEvent:
    """A kernel, copy or memset as it ran on the device."""

    kind: OpKind
    name: str
    start_us: float
    duration_us: float
    stream: int
    call: HostCall | None
    """The launch call; ``None`` if the profiler lost it."""
    shape: Shape | None = None
    """Set for kernels."""
    bytes: int = 0
    """Bytes moved by a copy or memset."""

    @property
    def end_us(self) -> float:
        """When it finished on the device."""
        return self.start_us + self.duration_us


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that :func:`~gpusched_env.workload.importers.build.build_workload` needs.

    Host and device times share one clock (microseconds, any origin).
    """

    name: str
    origin: str
    """Where it comes from, for error messages: the path of the file."""
    recorder: str
    """Profiler and library versions, as far as the file tells."""
    device: str
    """Name of the GPU as its driver reports it, empty if unknown."""
    events: tuple[DeviceEvent, ...]
    """In any order."""
    syncs: tuple[HostCall, ...]
    """Host synchronisations (:data:`SYNC_CALLS`), in any order."""
    iterations: tuple[HostCall, ...]
    """Host intervals, one an iteration; empty: the whole recording is one iteration."""
    overheads: tuple[HostCall, ...] = ()
    """Intervals that the profiler took for itself on the host."""
    unprofiled_us: tuple[float, ...] = ()
    """Wall times of iterations timed without a profiler; empty if unknown."""
