"""From profiler timestamps to a host program: what the host did, in order, and how long it took between.

Host time is what passes between the returns of consecutive calls, except where the host waited for the
device: there the wait is left out, since it follows from the device's progress. What a waiting call took
longer than the GPU's synchronisation latency counts as host time of the next operation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import Timing
from gpusched_env.workload.importers.recording import DeviceEvent, HostCall, Recording
from gpusched_env.workload.workload import OpKind

_COPIES = (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST, OpKind.COPY_ON_DEVICE)
LOST_LAUNCHES = 0.05
"""Profilers drop a record now and then; a larger share of device events without a launch is an error."""

SET_UP_US = 150.0
"""A host interval that is longer than in all other iterations by more than this holds profiler set-up."""


@dataclass(slots=True)
class HostOp:
    """One operation of an iteration; ``event`` is ``None`` for synchronisations."""

    host_us: float
    event: DeviceEvent | None

    @property
    def kind(self) -> OpKind:
        """What it is."""
        return OpKind.SYNC if self.event is None else self.event.kind

    @property
    def device_us(self) -> float:
        """Recorded device time."""
        return 0.0 if self.event is None else self.event.duration_us


@dataclass(slots=True)
class Iteration:
    """The operations of one iteration and how long it took under the profiler."""

    ops: list[HostOp]
    recorded_us: float
    """From the iteration's start to the return of the synchronisation that closes it."""
    closed: bool
    """Whether the host itself synchronised at the end; if not, a synchronisation was added."""


def iterations(recording: Recording, timing: Timing) -> list[Iteration]:
    """The iterations of ``recording`` that launch a kernel.

    Args:
        recording: what the profiler saw.
        timing: latencies of the GPU of the recording.

    Raises:
        InputError: too many launches are missing, or no iteration launches a kernel.
    """
    launched = _launched(recording, timing)
    found = []
    for mark in recording.iterations or (_whole(launched, recording.syncs),):
        iteration = _iteration(mark, launched, recording, timing)
        if iteration is not None:
            found.append(iteration)
    if not found:
        raise InputError(f"{recording.origin}: none of its {len(recording.iterations)} iterations launches a kernel")
    _forget_set_up(found)
    return found


def _launched(recording: Recording, timing: Timing) -> list[tuple[HostCall, DeviceEvent]]:
    """Device events with their launch calls, in order of launch.

    A lost launch is taken to have returned as late as possible: just in time for the start on the device,
    but before the next launch in its stream.
    """
    lost = sum(event.call is None for event in recording.events)
    if lost > LOST_LAUNCHES * len(recording.events):
        raise InputError(
            f"{recording.origin}: {lost} of {len(recording.events)} kernels, copies and memsets have no launch call;"
            " profile with ProfilerActivity.CPU and ProfilerActivity.CUDA"
        )
    next_in_stream: dict[int, float] = {}
    launched = []
    for event in sorted(recording.events, key=lambda event: event.start_us, reverse=True):
        call = event.call
        if call is None:
            at = min(event.start_us - timing.launch_latency_us, next_in_stream.get(event.stream, math.inf))
            call = HostCall("lost", at, 0.0)
        next_in_stream[event.stream] = call.start_us
        launched.append((call, event))
    return sorted(launched, key=lambda pair: (pair[0].start_us, pair[1].start_us))


def _whole(launched: Sequence[tuple[HostCall, DeviceEvent]], syncs: Sequence[HostCall]) -> HostCall:
    start = min(call.start_us for call in [*(call for call, _ in launched), *syncs])
    return HostCall("trace", start, math.inf)


def _iteration(
    mark: HostCall, launched: Sequence[tuple[HostCall, DeviceEvent]], recording: Recording, timing: Timing
) -> Iteration | None:
    def inside(call: HostCall) -> bool:
        return mark.start_us <= call.start_us < mark.end_us

    actions: list[tuple[HostCall, DeviceEvent | None]] = [pair for pair in launched if inside(pair[0])]
    if not any(event is not None and event.kind is OpKind.KERNEL for _, event in actions):
        return None
    actions += [(call, None) for call in recording.syncs if inside(call)]
    actions.sort(key=lambda action: (action[0].start_us, action[1].start_us if action[1] else math.inf))
    before = (event.end_us for call, event in launched if call.start_us < mark.start_us)
    walk = _Walk(recording.overheads, timing, mark.start_us, max(before, default=-math.inf))
    for call, event in actions:
        if event is None:
            walk.synchronise(call)
        else:
            walk.launch(call, event)
    closed = walk.ops[-1].event is None
    if not closed:
        # A whole trace ends with its last call.
        end_us = max(mark.end_us, walk.returned_us) if math.isfinite(mark.end_us) else walk.returned_us
        walk.synchronise(HostCall("end", end_us, 0.0))
        walk.closed_us = max(end_us, walk.device_end_us + timing.sync_latency_us)
    return Iteration(walk.ops, walk.elapsed(mark.start_us, walk.closed_us), closed)


class _Walk:
    """Follows the host through its calls."""

    def __init__(self, overheads: Sequence[HostCall], timing: Timing, start_us: float, device_end_us: float) -> None:
        self.ops: list[HostOp] = []
        self.returned_us = start_us
        """When the previous operation returned."""
        self.closed_us = start_us
        """When the last synchronisation returned, as recorded."""
        self.device_end_us = device_end_us
        """When the device has finished everything launched so far."""
        self._overheads = [(o.start_us, o.end_us) for o in overheads]
        self._timing = timing

    def elapsed(self, start_us: float, end_us: float) -> float:
        """Host time from ``start_us`` to ``end_us`` without what the profiler took for itself."""
        lost = sum(max(0.0, min(end_us, end) - max(start_us, start)) for start, end in self._overheads)
        return max(0.0, end_us - start_us - lost)

    def launch(self, call: HostCall, event: DeviceEvent) -> None:
        """A launch; a copy that the call saw through to its end is followed by a synchronisation."""
        if event.kind in _COPIES and call.end_us >= event.end_us:
            issued = call.start_us
            if self.device_end_us <= call.start_us:
                issued = max(issued, event.start_us - self._timing.launch_latency_us)
            self._append(event, issued, issued)
            self.device_end_us = max(self.device_end_us, event.end_us)
            self._append(None, issued, self._seen(call))
            self.closed_us = call.end_us
        else:
            self._append(event, call.end_us, call.end_us)
            self.device_end_us = max(self.device_end_us, event.end_us)

    def synchronise(self, call: HostCall) -> None:
        """A synchronisation: it waits if the host could not know yet, when it called, that the device was done."""
        seen = self._seen(call)
        if seen > call.start_us:
            self._append(None, call.start_us, seen)
        else:
            self._append(None, call.end_us, call.end_us)
        self.closed_us = call.end_us

    def _seen(self, call: HostCall) -> float:
        """When a waiting call had seen the device finish."""
        return min(call.end_us, self.device_end_us + self._timing.sync_latency_us)

    def _append(self, event: DeviceEvent | None, until_us: float, returned_us: float) -> None:
        self.ops.append(HostOp(self.elapsed(self.returned_us, until_us), event))
        # Calls of different threads may overlap: the host program's clock never runs back.
        self.returned_us = max(self.returned_us, returned_us)


def _forget_set_up(found: list[Iteration]) -> None:
    """Limit host intervals of the first iteration that hold the profiler's set-up.

    The first launch under a profiler pays for its buffers, and so may a later one (0.3 to 2 ms each). The
    other iterations tell how long these intervals would have been: the first operation of each compares,
    and the later ones if all iterations run the same operations.
    """
    if len(found) == 1:
        return
    first, *others = found
    same = all(_sequence(other) == _sequence(first) for other in others)
    for k in range(len(first.ops) if same else 1):
        excess = first.ops[k].host_us - max(other.ops[k].host_us for other in others)
        if excess > SET_UP_US:
            first.ops[k].host_us -= excess
            first.recorded_us -= excess


def _sequence(iteration: Iteration) -> list[tuple[OpKind, str]]:
    return [(op.kind, op.event.name if op.event else "") for op in iteration.ops]
