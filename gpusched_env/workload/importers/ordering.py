"""What the calls of a recording did to streams: which stream and which event, inferred where the profiler is silent.

Profilers record that an event was recorded or waited for, seldom which. What they say is taken; for the rest:

* A record is in the stream of the launch before it on its host thread (as Holistic Trace Analysis has it too). If that
  stream has nothing new since its last record, it is in the stream launched into last that has: branches that were
  forked are joined one after the other, with no launch between. Where the profiler saw waits and no record at all, each
  wait has one right before it.
* A wait is for the record before it on its thread (if it has none: on any), of those that no other event's wait has
  taken if events are numbered. PyTorch's ``wait_stream`` makes both calls, one after the other.
* A wait without a stream is in that of the next launch on its thread that goes to another stream than the record's, and
  to one that does not wait for the same work yet.
* The host waits for the last record before that had happened when the call returned; ``cudaStreamSynchronize`` for the
  stream of the launch before it, if that stream was done then, else for the one that was done last.
* Calls that may wait (allocations, and queries that a thread repeats within :data:`POLL_US`) have waited if what they
  may wait for was done between call and return, and their thread launches something.

An inferred wait is left out if the recorded times contradict it: what had to wait began earlier.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpusched_env.workload.importers.recording import (
    DeviceEvent,
    HostCall,
    OrderCall,
    Recording,
    launches_graph,
    may_wait,
)
from gpusched_env.workload.workload import OpKind

CLOCK_US = 0.01
"""Device times are compared no finer than this."""
LOOK = 4096
"""How many records and launches away what belongs together is looked for: no more than a thousand launches queue."""
POLL_US = 100.0
"""A loop that waits asks again within this time; whoever asks later has done something else."""


@dataclass(slots=True, eq=False)
class Action:
    """A host call with what it does on the device."""

    call: HostCall
    kind: OpKind
    stream: int | None
    """As recorded; ``None``: it has none, or it is unknown."""
    events: tuple[DeviceEvent, ...] = ()
    """Device work in order of its starts: one piece, or the nodes of a graph."""
    order: OrderCall | None = None
    """Of synchronisations, records and waits."""
    record: Action | None = None
    """The record that it waits for."""
    inferred: bool = False
    """Whether the recording left it open which record that is."""
    returns_us: float = math.inf
    """When the call would have returned without waiting for a place in the queue of pending launches."""
    busy_until_us: float = -math.inf
    """When the device was done with all that was launched before it."""
    before_us: float = -math.inf
    """When the device was done with what it follows: earlier work of the stream, or what is waited for."""

    @property
    def may_wait(self) -> bool:
        """Whether it is a synchronisation only where the times show it."""
        return not self.events and may_wait(self.call.name)

    @property
    def has_waited(self) -> bool:
        """Whether the times show it; one query alone returns at once."""
        shown = self.call.start_us < self.before_us <= self.call.end_us
        return shown and self.order is not None and (not self.queries or self.call is not self.order.call)

    @property
    def queries(self) -> bool:
        """Whether it asks whether something is done."""
        return self.may_wait and self.order is not None and self.order.kind is not OpKind.SYNC

    @property
    def start_us(self) -> float:
        """Start on the device."""
        return self.events[0].start_us

    @property
    def end_us(self) -> float:
        """End on the device."""
        return max(event.end_us for event in self.events)


def resolve(recording: Recording, launched: Iterable[tuple[HostCall, DeviceEvent]]) -> list[Action]:
    """Everything that the host had the device do, in order of the calls.

    Args:
        recording: what the profiler saw.
        launched: its device work with its launch calls.
    """
    device = _device_actions(launched)
    orders = [Action(order.call, order.kind, order.stream, order=order) for order in _with_records(recording.orders)]
    if len({action.stream for action in device}) == 1:
        for action in orders:
            # The one stream is all there is.
            action.kind = OpKind.SYNC if action.kind is OpKind.SYNC_STREAM else action.kind
    actions = sorted((*device, *orders), key=lambda a: (a.call.start_us, a.start_us if a.events else math.inf))
    launching = {action.call.thread for action in device}
    resolver = _Resolver(device)
    found = []
    for action in _one_wait_each(actions):
        resolver.take(action)
        if not action.may_wait or (action.call.thread in launching and action.has_waited):
            found.append(action)
    return found


def _with_records(orders: Sequence[OrderCall]) -> Iterator[OrderCall]:
    """The orders, with a record before each wait where the profiler saw none at all (PyTorch in 2022)."""
    saw_none = not any(order.kind is OpKind.RECORD for order in orders)
    for order in orders:
        if saw_none and order.kind is OpKind.WAIT:
            yield OrderCall(HostCall("unseen", order.call.start_us, 0.0, order.call.thread), OpKind.RECORD)
        yield order


def _one_wait_each(actions: Iterable[Action]) -> list[Action]:
    """Queries that a thread repeats, with nothing between them, become one call."""
    found = []
    last: dict[int, Action] = {}
    for action in actions:
        before = last.get(action.call.thread)
        if before is not None and before.queries and action.queries and before.kind is action.kind:
            first = before.call
            if action.call.start_us - first.end_us <= POLL_US:
                before.call = HostCall(first.name, first.start_us, action.call.end_us - first.start_us, first.thread)
                continue
        last[action.call.thread] = action
        found.append(action)
    return found


def _device_actions(launched: Iterable[tuple[HostCall, DeviceEvent]]) -> list[Action]:
    """Device work by launch. A graph runs in the stream of the node that starts first."""
    graphs: dict[HostCall, list[DeviceEvent]] = defaultdict(list)
    found = []
    for call, event in launched:
        if launches_graph(call.name):
            graphs[call].append(event)
        else:
            found.append(Action(call, event.kind, event.stream, (event,)))
    for call, nodes in graphs.items():
        nodes.sort(key=lambda node: (node.start_us, node.end_us))
        found.append(Action(call, OpKind.GRAPH, nodes[0].stream, tuple(nodes)))
    return sorted(found, key=lambda action: (action.call.start_us, action.start_us))


class _Resolver:
    """Follows the calls of all threads in time."""

    def __init__(self, device: list[Action]) -> None:
        self._launches: dict[int, list[Action]] = defaultdict(list)
        for action in device:
            self._launches[action.call.thread].append(action)
        self._starts = {t: [action.call.start_us for action in own] for t, own in self._launches.items()}
        self._last_stream: dict[int, int | None] = {}
        self._unrecorded: dict[int, dict[int | None, None]] = defaultdict(dict)
        """By thread: streams with launches since their last record, in order of the last launch."""
        self._stream_end: dict[int | None, float] = {}
        self._busy_until_us = -math.inf
        self._records: list[Action] = []
        self._own_records: dict[int, list[Action]] = defaultdict(list)
        """By thread."""
        self._by_number: dict[int, Action] = {}
        self._taken: dict[Action, int] = {}
        """Records by the event that waits name them by."""
        self._last_launch: dict[int | None, Action] = {}
        """By stream."""
        self._behind: dict[Action, Action | None] = {}
        """By record: the launch before it in its stream, if there is one."""
        self._waiting: dict[tuple[int | None, Action | None], set[int | None]] = defaultdict(set)
        """By the stream of a record and the launch before it: streams that wait for that."""

    def take(self, action: Action) -> None:
        """The next call."""
        thread = action.call.thread
        action.busy_until_us = self._busy_until_us
        if action.events:
            action.before_us = self._stream_end.get(action.stream, -math.inf)
            self._stream_end[action.stream] = max(action.before_us, action.end_us)
            self._busy_until_us = max(self._busy_until_us, action.end_us)
            self._last_stream[thread] = action.stream
            self._unrecorded[thread].pop(action.stream, None)
            self._unrecorded[thread][action.stream] = None
            self._last_launch[action.stream] = action
        elif action.kind is OpKind.RECORD:
            if action.stream is None:
                action.stream = self._recorded(thread)
            self._unrecorded[thread].pop(action.stream, None)
            action.before_us = self._stream_end.get(action.stream, -math.inf)
            self._behind[action] = self._last_launch.get(action.stream)
            self._records.append(action)
            self._own_records[thread].append(action)
            if action.order is not None and action.order.number >= 0:
                self._by_number[action.order.number] = action
        elif action.kind is OpKind.WAIT:
            self._wait(action)
        elif action.kind is OpKind.SYNC_EVENT:
            self._find_record(action, returned_us=action.call.end_us)
            action.before_us = action.record.before_us if action.record is not None else -math.inf
        elif action.kind is OpKind.SYNC_STREAM:
            if action.stream is None:
                action.stream = self._synchronised(action)
            action.before_us = self._stream_end.get(action.stream, -math.inf)
        else:
            action.before_us = action.busy_until_us

    def _recorded(self, thread: int) -> int | None:
        """Stream of a record of which that is unknown."""
        last = self._last_stream.get(thread)
        unrecorded = self._unrecorded[thread]
        return last if last in unrecorded else next(reversed(unrecorded), last)

    def _find_record(self, action: Action, returned_us: float = math.inf) -> None:
        order = action.order
        assert order is not None, "of orders alone"
        if order.record is not None:
            action.record = self._by_number.get(order.record)
            return
        action.inferred = True
        records = self._own_records.get(action.call.thread) or self._records
        for record in itertools.islice(reversed(records), LOOK):
            taken = self._taken.get(record) if order.event is not None else None
            if taken in (None, order.event) and record.before_us <= returned_us + CLOCK_US:
                action.record = record
                if order.event is not None:
                    self._taken[record] = order.event
                return

    def _wait(self, action: Action) -> None:
        self._find_record(action)
        record = action.record
        if record is None:
            return
        waiting_streams = self._waiting[record.stream, self._behind[record]]
        if action.stream is None:
            others = {record.stream} | waiting_streams
            waiting = next((launch for launch in self._later_launches(action) if launch.stream not in others), None)
            action.stream = None if waiting is None else waiting.stream
        else:
            waiting = next((launch for launch in self._later_launches(action) if launch.stream == action.stream), None)
        waiting_streams.add(action.stream)
        if action.inferred and waiting is not None and waiting.start_us < record.before_us - CLOCK_US:
            action.record = None

    def _later_launches(self, action: Action) -> Iterable[Action]:
        thread = action.call.thread
        own = self._launches.get(thread, [])
        first = bisect_right(self._starts.get(thread, []), action.call.start_us)
        return (own[i] for i in range(first, min(len(own), first + LOOK)))

    def _synchronised(self, action: Action) -> int | None:
        latest_us = action.call.end_us + CLOCK_US
        stream = self._last_stream.get(action.call.thread)
        if self._stream_end.get(stream, math.inf) <= latest_us:
            return stream
        done = [(end_us, s) for s, end_us in self._stream_end.items() if s is not None and end_us <= latest_us]
        return max(done)[1] if done else None


def usual_threads(recording: Recording) -> dict[int, int]:
    """By stream: the host thread that launches most of its work."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for event in recording.events:
        if event.call is not None:
            counts[event.stream][event.call.thread] += 1
    return {stream: count.most_common(1)[0][0] for stream, count in counts.items()}
