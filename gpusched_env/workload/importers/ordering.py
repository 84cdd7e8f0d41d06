"""What the calls of a recording did to streams, and which host threads run side by side.

Streams and events are inferred where the profiler is silent.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpusched_env.errors import InputError
from gpusched_env.workload.importers.recording import (
    DeviceEvent,
    HostCall,
    OrderCall,
    Recording,
    launches_graph,
    may_wait,
)
from gpusched_env.workload.importers.unseen import UNSEEN, with_records
from gpusched_env.workload.workload import OpKind

COPIES = (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST, OpKind.COPY_ON_DEVICE)
ONE_PIECE_BYTES = 65_536
"""The host does not wait for copies to the device that are no larger (CUDA C++ Programming Guide, *Concurrent Execution
between Host and Device*)."""
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
    """Stream as recorded; ``None``: it has none, or it is unknown."""
    events: tuple[DeviceEvent, ...] = ()
    """Device work in order of its starts: one piece, or the nodes of a graph."""
    order: OrderCall | None = None
    """What the recording says of a synchronisation, record or wait; ``None`` for other calls."""
    record: Action | None = None
    """The record that it waits for."""
    inferred: bool = False
    """Whether the recording left it open which record :attr:`record` is."""
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
    def guessed(self) -> bool:
        """Whether neither its record was seen, nor anything that has waited for it."""
        unseen = self.record is not None and self.record.call.name == UNSEEN
        return unseen and self.order is not None and self.order.record is None

    @property
    def holds_its_call(self) -> bool:
        """Whether its call returned with the end of a copy.

        A call that copies pageable memory moves it piece by piece. On the way to the device it returns when the last
        piece is in the driver's buffer, and still under way (CUDA Runtime API, *API synchronization behavior*).
        """
        if self.kind not in COPIES:
            return False
        copy = self.events[0]
        in_pieces = copy.pageable and (self.kind is OpKind.COPY_TO_HOST or copy.bytes > ONE_PIECE_BYTES)
        return self.end_us <= self.call.end_us or (in_pieces and self.start_us < self.call.end_us)

    @property
    def has_waited(self) -> bool:
        """Whether the times show that it has waited; one query alone returns at once."""
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


def resolved_actions(recording: Recording, launched: Iterable[tuple[HostCall, DeviceEvent]]) -> list[Action]:
    """Everything that the host had the device do, in order of the calls.

    Args:
        recording: what the profiler saw.
        launched: its device work with its launch calls.
    """
    device = _device_actions(launched)
    orders = [Action(o.call, o.kind, o.stream, order=o) for o in with_records(recording.orders, device)]
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
        """Streams with launches since their last record, by thread, in order of the last launch."""
        self._stream_end: dict[int | None, float] = {}
        self._busy_until_us = -math.inf
        self._records: list[Action] = []
        self._own_records: dict[int, list[Action]] = defaultdict(list)
        """Records by the thread that made them."""
        self._by_number: dict[int, Action] = {}
        self._taken: dict[Action, int] = {}
        """Records by the event that waits name them by."""
        self._last_launch: dict[int | None, Action] = {}
        """The last launch of each stream."""
        self._behind: dict[Action, Action | None] = {}
        """The launch before a record in its stream, if there is one, by record."""
        self._waiting: dict[tuple[int | None, Action | None], set[int | None]] = defaultdict(set)
        """Streams that wait for a record, by its stream and the launch before it."""

    def take(self, action: Action) -> None:
        """Follow the next call."""
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
            action.inferred = action.record is not None and action.record.call.name == UNSEEN
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
    """The host thread that launches most of a stream's work, by stream."""
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    for event in recording.events:
        if event.call is not None:
            counts[event.stream][event.call.thread] += 1
    return {stream: count.most_common(1)[0][0] for stream, count in counts.items()}


Interval = tuple[float, float]
BESIDE = 0.01
"""Share of the time of the thread that does less in which both may be busy (trainings of PyTorch: 0.0001 to 0.001)."""
MOST_PROGRAMS = 64
"""Host threads side by side: PyTorch has a few."""


def host_programs(recording: Recording, actions: Sequence[Action]) -> dict[int, int]:
    """The host program of each thread that does something with the device; 0 is that of the iterations' thread.

    Raises:
        InputError: there are more than :data:`MOST_PROGRAMS`.
    """
    first_us: dict[int, float] = {}
    busy: dict[int, list[Interval]] = defaultdict(list)
    for action in actions:
        first_us.setdefault(action.call.thread, action.call.start_us)
        busy[action.call.thread].append((action.call.start_us, action.call.end_us))
    if len(first_us) == 1:
        return dict.fromkeys(first_us, 0)
    for call in recording.host_work:
        if call.thread in first_us:
            busy[call.thread].append((call.start_us, call.end_us))
    main = next((mark.thread for mark in recording.iterations if mark.thread in first_us), None)
    programs: list[list[Interval]] = []
    found = {}
    for thread in sorted(first_us, key=lambda t: (t != main, first_us[t])):
        own = _covered(busy[thread])
        row = next((row for row, taken in enumerate(programs) if _take_turns(taken, own)), len(programs))
        if row == MOST_PROGRAMS:
            raise InputError(f"{recording.origin}: calls of more than {MOST_PROGRAMS} host threads overlap")
        if row == len(programs):
            programs.append([])
        programs[row] = _covered((*programs[row], *own))
        found[thread] = row
    return found


def _covered(intervals: Iterable[Interval]) -> list[Interval]:
    """The time that some intervals cover, as intervals apart from each other, in order."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif end > start:
            found.append((start, end))
    return found


def _take_turns(one: Sequence[Interval], other: Sequence[Interval]) -> bool:
    """Whether ``one`` and ``other``, both as :func:`_covered` has them, overlap no more than :data:`BESIDE`."""
    both_us = 0.0
    for start, end in other:
        for place in range(bisect_left(one, (end, -math.inf)) - 1, -1, -1):
            if one[place][1] <= start:
                break
            both_us += min(end, one[place][1]) - max(start, one[place][0])
    return both_us <= BESIDE * min(_length_us(one), _length_us(other))


def _length_us(intervals: Sequence[Interval]) -> float:
    return sum(end - start for start, end in intervals)
