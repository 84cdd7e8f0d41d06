"""Making a host program of profiler timestamps: what the host did, in order, and how long it took between.

Waiting for a place in the queue of launches is no work of the host, nor is what overlaps the iteration before.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import Timing
from gpusched_env.workload.idle_gpu import LAUNCH_DEPTH
from gpusched_env.workload.importers.ordering import Action, host_programs, resolved_actions, usual_threads
from gpusched_env.workload.importers.recording import DeviceEvent, HostCall, Recording
from gpusched_env.workload.workload import OpKind

NEARLY: Final = 0.9
"""The queue is full from this share of its places on (V100, PyTorch 2.2: calls block at 1,022 launches that the
profiler counts; what it does not count may take places too)."""


def find_blocked(actions: Sequence[Action]) -> None:
    """Set :attr:`.ordering.Action.returns_us` of launches that blocked: they would have returned as soon as others.

    A call has blocked if the queue was full when it began, and a place came free before it returned.

    Args:
        actions: in order of the calls.
    """
    launches = [action for action in actions if action.events]
    ends = sorted(launch.end_us for launch in launches)
    pending = [before - bisect_right(ends, launch.call.start_us) for before, launch in enumerate(launches)]
    most = max(pending, default=0)
    if most < NEARLY * LAUNCH_DEPTH:
        return
    usual: defaultdict[str, list[float]] = defaultdict(list)
    blocked = []
    for launch, others in zip(launches, pending, strict=True):
        call = launch.call
        if others < NEARLY * most:
            usual[call.name].append(call.duration_us)
        elif bisect_right(ends, call.end_us) > bisect_right(ends, call.start_us):
            blocked.append(launch)
    usual_us = {name: statistics.median(found) for name, found in usual.items()}
    for launch in blocked:
        launch.returns_us = launch.call.start_us + usual_us.get(launch.call.name, launch.call.duration_us)


LOST_LAUNCHES = 0.05
"""Profilers drop a record now and then; a larger share of device events without a launch is an error."""

SET_UP_US = 150.0
"""A host interval that is longer than in all other iterations by more than this holds profiler set-up."""


_SYNCS = (OpKind.SYNC, OpKind.SYNC_STREAM, OpKind.SYNC_EVENT)


@dataclass(slots=True)
class ImportedOp:
    """One operation of an iteration."""

    kind: OpKind
    host_us: float
    ahead_us: float
    """Part of the host time in which the device was still busy with what was launched before the iteration."""
    stream: int | None
    """Stream as recorded; ``None`` for what concerns no stream."""
    action: Action | None
    """What was recorded of it; ``None`` for synchronisations that no call of their own made."""


@dataclass(slots=True)
class Iteration:
    """The operations of one iteration and how long it took under the profiler."""

    threads: list[list[ImportedOp]]
    """Operations by host program, the main one first."""
    recorded_us: float
    """Time from the iteration's start, or the end of the device's work for those before, to the return of the
    synchronisation that closes it."""
    closed: bool
    """Whether the host itself synchronised at the end; if not, a synchronisation was added."""
    left_out: int
    """Waits for events that nothing of the iteration records, or no record whose times fit; and guessed ones for what
    was done before the iteration began."""

    @property
    def ops(self) -> Iterator[ImportedOp]:
        """Operations of all host programs."""
        return (op for thread in self.threads for op in thread)


def iterations(recording: Recording, timing: Timing) -> list[Iteration]:
    """The iterations of ``recording`` that launch a kernel.

    Args:
        recording: what the profiler saw.
        timing: latencies of the GPU of the recording.

    Raises:
        InputError: too many launches are missing, or no iteration launches a kernel.
    """
    actions = resolved_actions(recording, _launched(recording, timing))
    find_blocked(actions)
    programs = host_programs(recording, actions)
    found = []
    for mark in recording.iterations or (_whole(actions),):
        iteration = _iteration(mark, actions, programs, recording, timing)
        if iteration is not None:
            found.append(iteration)
    if not found:
        raise InputError(f"{recording.origin}: none of its {len(recording.iterations)} iterations launches a kernel")
    _forget_set_up(found)
    return found


def _launched(recording: Recording, timing: Timing) -> list[tuple[HostCall, DeviceEvent]]:
    """Device events with their launch calls, in order of launch.

    A lost launch is taken to have returned as late as possible: just in time for the start on the device,
    but before the next launch in its stream, and to be of the thread that launches most there.
    """
    lost = sum(event.call is None for event in recording.events)
    if lost > LOST_LAUNCHES * len(recording.events):
        raise InputError(
            f"{recording.origin}: {lost} of {len(recording.events)} kernels, copies and memsets have no launch call; "
            f"{recording.advice}"
        )
    threads = usual_threads(recording)
    next_in_stream: dict[int, float] = {}
    launched = []
    for event in sorted(recording.events, key=lambda event: event.start_us, reverse=True):
        call = event.call
        if call is None:
            at = min(event.start_us - timing.launch_latency_us, next_in_stream.get(event.stream, math.inf))
            call = HostCall("lost", at, 0.0, threads.get(event.stream, 0))
        next_in_stream[event.stream] = call.start_us
        launched.append((call, event))
    return sorted(launched, key=lambda pair: (pair[0].start_us, pair[1].start_us))


def _whole(actions: Sequence[Action]) -> HostCall:
    start = min(action.call.start_us for action in actions if action.events or action.kind in _SYNCS)
    return HostCall("trace", start, math.inf)


def _iteration(
    mark: HostCall, actions: Sequence[Action], programs: Mapping[int, int], recording: Recording, timing: Timing
) -> Iteration | None:
    first, last = (bisect_left(actions, at_us, key=_called_us) for at_us in (mark.start_us, mark.end_us))
    own = actions[first:last]
    if not any(event.kind is OpKind.KERNEL for action in own for event in action.events):
        return None
    kept, left_out = _kept(own)
    device_end_us = max(action.end_us for action in own if action.events)
    # What was launched before may keep the device busy: that is no time of this iteration.
    begins_us = min(max(mark.start_us, own[0].busy_until_us), device_end_us)
    walks = []
    for row in range(1 + max(programs.values())):
        calls_us = sorted(action.call.start_us for action in own if programs[action.call.thread] == row)
        walks.append(_Walk(_paid(recording.overheads, calls_us), timing, mark.start_us, begins_us))
    for action in own:
        walk = walks[programs[action.call.thread]]
        if action.kind is OpKind.RECORD or action.kind is OpKind.WAIT:
            if action in kept:
                walk.order(action)
        elif action.events:
            walk.launch(action)
        else:
            walk.synchronise(action, kept=action in kept)
    main = walks[0]
    # Alone in its stream, whatever the host synchronises with is all there is.
    closed = bool(main.ops) and main.ops[-1].kind in _SYNCS
    closed = closed and (main.ops[-1].kind is OpKind.SYNC or device_end_us <= main.closed_us)
    if not closed:
        # A whole trace ends with its last call.
        end_us = max(mark.end_us, main.returned_us) if math.isfinite(mark.end_us) else main.returned_us
        main.close(end_us)
        main.closed_us = max(end_us, device_end_us + timing.sync_latency_us)
    ended_us = max(main.closed_us, *(walk.returned_us for walk in walks))
    threads = [main.ops, *(walk.ops for walk in walks[1:] if walk.ops)]
    return Iteration(threads, main.elapsed(begins_us, ended_us), closed, left_out)


def _called_us(action: Action) -> float:
    return action.call.start_us


def _paid(overheads: Sequence[HostCall], calls_us: Sequence[float]) -> list[HostCall]:
    """The profiler's own work that a host program paid for: it made no call meanwhile."""
    return [o for o in overheads if bisect_right(calls_us, o.start_us) == bisect_left(calls_us, o.end_us)]


def _kept(own: Sequence[Action]) -> tuple[set[Action], int]:
    """The records, waits and synchronisations of an iteration that mean something in it.

    A wait means something if the iteration records what it waits for, in another stream that it uses; a record if
    something waits for it.

    Returns:
        them, and how many waits there were for events that nothing in the iteration records.
    """
    streams = {action.stream for action in own if action.events}
    records = {action for action in own if action.kind is OpKind.RECORD and action.stream in streams}
    kept: set[Action] = set()
    left_out = 0
    for action in own:
        if action.kind is OpKind.SYNC or (action.kind is OpKind.SYNC_STREAM and action.stream in streams):
            kept.add(action)
        elif action.kind in (OpKind.WAIT, OpKind.SYNC_EVENT):
            record = action.record
            # Done before the iteration began, it has held nothing up.
            idle = record is not None and record.before_us <= own[0].busy_until_us
            if record is None or record not in records or (action.guessed and idle):
                left_out += not action.may_wait
            elif action.kind is OpKind.SYNC_EVENT or (action.stream in streams and action.stream != record.stream):
                kept |= {action, record}
    return kept, left_out


class _Walk:
    """Follows the host through its calls."""

    def __init__(self, overheads: Sequence[HostCall], timing: Timing, start_us: float, begins_us: float) -> None:
        self.ops: list[ImportedOp] = []
        self.returned_us = start_us
        """When the previous operation returned."""
        self.closed_us = start_us
        """When the last synchronisation returned, as recorded."""
        self._begins_us = begins_us
        self._carried_us = self._ahead_us = 0.0
        """Host time of calls that are no operation, for the next one, and how much of it before the device began."""
        self._overheads = [(o.start_us, o.end_us) for o in overheads]
        self._timing = timing

    def elapsed(self, start_us: float, end_us: float) -> float:
        """Host time from ``start_us`` to ``end_us`` without what the profiler took for itself."""
        lost = sum(max(0.0, min(end_us, end) - max(start_us, start)) for start, end in self._overheads)
        return max(0.0, end_us - start_us - lost)

    def launch(self, action: Action) -> None:
        """A launch; a copy that the call saw through to its end is followed by a synchronisation."""
        call = action.call
        if action.holds_its_call:
            issued = call.start_us
            if action.before_us <= call.start_us:
                issued = max(issued, action.start_us - self._timing.launch_latency_us)
            self._append(action.kind, action.stream, action, issued, issued)
            done_us = max(action.before_us, action.end_us)
            # A piece that was still under way is waited for: the host has that much less to do behind it.
            under_way = action.end_us > call.end_us
            seen = done_us + self._timing.sync_latency_us if under_way else self._seen(call, done_us)
            self._append(OpKind.SYNC_STREAM, action.stream, None, issued, seen)
            self.closed_us = max(call.end_us, action.end_us)
        else:
            self._append(action.kind, action.stream, action, min(call.end_us, action.returns_us), call.end_us)

    def order(self, action: Action) -> None:
        """A record of an event, or a stream's wait for one."""
        self._append(action.kind, action.stream, action, action.call.end_us, action.call.end_us)

    def synchronise(self, action: Action, kept: bool) -> None:
        """A synchronisation: it waits if the host could not know yet, when it called, that the device was done.

        One that is not ``kept`` waited for something of before the iteration: that takes no time.
        """
        call = action.call
        seen = self._seen(call, action.before_us)
        until, returned = (call.start_us, seen) if seen > call.start_us else (call.end_us, call.end_us)
        if kept:
            self._append(action.kind, action.stream, action, until, returned)
            self.closed_us = call.end_us
        else:
            self._pass(until, returned)

    def close(self, end_us: float) -> None:
        """A synchronisation with everything at ``end_us``."""
        self._append(OpKind.SYNC, None, None, end_us, end_us)

    def _seen(self, call: HostCall, done_us: float) -> float:
        """When a waiting call had seen that the device was done."""
        return min(call.end_us, done_us + self._timing.sync_latency_us)

    def _append(
        self, kind: OpKind, stream: int | None, action: Action | None, until_us: float, returned_us: float
    ) -> None:
        self._pass(until_us, returned_us)
        self.ops.append(ImportedOp(kind, self._carried_us, self._ahead_us, stream, action))
        self._carried_us = self._ahead_us = 0.0

    def _pass(self, until_us: float, returned_us: float) -> None:
        self._carried_us += self.elapsed(self.returned_us, until_us)
        self._ahead_us += self.elapsed(self.returned_us, min(until_us, self._begins_us))
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
    for t, ops in enumerate(first.threads if same else first.threads[:1]):
        for k, op in enumerate(ops if same else ops[:1]):
            excess = op.host_us - max(other.threads[t][k].host_us for other in others)
            if excess > SET_UP_US:
                op.host_us -= excess
                op.ahead_us = min(op.ahead_us, op.host_us)
                first.recorded_us -= excess if t == 0 else 0.0


def _sequence(iteration: Iteration) -> list[list[tuple[OpKind, str]]]:
    return [
        [(op.kind, op.action.events[0].name if op.action and op.action.events else "") for op in thread]
        for thread in iteration.threads
    ]


AS_RECORDED: Final = 1.005
"""An iteration that takes at most so many times as long alone as recorded has kept its pace."""
_HALVINGS: Final = 6


def leave_out_overlap(iteration: Iteration, alone_us: Callable[[], float]) -> float:
    """Shorten the host times of ``iteration`` by what passed behind the one before, as far as it keeps it up.

    Args:
        iteration: as recorded.
        alone_us: how long it takes alone, as it is when this is called.

    Returns:
        the host time that was left out, microseconds.
    """
    recorded = [(op, op.host_us) for op in iteration.ops if op.ahead_us > 0.0]
    if not recorded or alone_us() <= AS_RECORDED * iteration.recorded_us:
        return 0.0

    def shortened_us(share: float) -> float:
        for op, host_us in recorded:
            op.host_us = host_us - share * op.ahead_us
        return alone_us()

    # Where something else makes it longer, host time is kept that changes nothing.
    most_us = AS_RECORDED * max(iteration.recorded_us, shortened_us(1.0))
    low, high = 0.0, 1.0
    if shortened_us(low) <= most_us:
        return 0.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if shortened_us(middle) <= most_us else (middle, high)
    shortened_us(high)
    return high * sum(op.ahead_us for op, _ in recorded)
