"""What a profiler did not record of device work: what is left out of a program, and what is taken for it.

* Work that was launched before the recording began has no launch call, and a smaller number than every call, or its
  place in its stream is before all work that has one. It is taken to be launched before everything else: it belongs to
  no iteration, but what was launched later waited for it. An iteration that lacks launches for that reason is left out.
* Other work without a launch call was launched in the recording, and the record of the call was lost: its call is
  inferred (:mod:`~gpusched_env.workload.importers.program`).
* Work that begins and ends at time 0 has no times (CUPTI's mark). It takes as long as others of its kind, behind its
  call and the work before it.
* A launch that was issued, and the next node of a graph, start within microseconds on a device that does nothing. Where
  they start later (:data:`UNSEEN_US`), the device did something that the profiler did not record, or waited for
  something outside (a function of the host, another process). In its place is a memset of no bytes, which takes as long
  and keeps nothing busy.
* Registers that are not recorded are those of another kernel of that name, else :data:`UNKNOWN_REGISTERS`.
"""

from __future__ import annotations

import math
import re
import statistics
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from gpusched_env.errors import InputError
from gpusched_env.workload.importers.recording import DeviceEvent, HostCall, Recording, launches_graph
from gpusched_env.workload.workload import OpKind

UNKNOWN_REGISTERS: Final = 32
"""What a thread may have without limiting how many are resident: 65,536 registers for 2,048 threads."""

UNSEEN_US: Final = 100.0
"""A device that is idle so long has not just taken its time (no launch of seven real recordings took more than 12 us to
start; in an eighth, of which records are missing, more than half of an iteration are such gaps, of up to 65 ms)."""
UNSEEN: Final = "not recorded"
"""Name of the memsets in place of work that was not recorded."""

_COLLECTIVE = re.compile(r"nccl|rccl|nvshmem|cross_device_reduce", re.IGNORECASE)


def completed_recording(recording: Recording, numbers: Collection[int]) -> Recording:
    """A recording in which all work has times and registers, and what was launched before it is in no iteration.

    Args:
        recording: as it was read.
        numbers: those of all its calls, whatever they do.

    Raises:
        InputError: no kernel is left.
    """
    earlier = set(map(id, _earlier(recording.events, numbers)))
    launched = [event for event in recording.events if id(event) not in earlier]
    iterations = _whole(recording, launched) if earlier else recording.iterations
    timed = list(_timed(launched))
    if not any(event.shape is not None for event in timed):
        raise InputError(f"{recording.origin}: has no kernel that was launched in the recording; {recording.advice}")
    begun = max(0, len(recording.iterations) - len(iterations))
    before = list(_before(recording, earlier, timed))
    unseen = list(_unseen(before, timed))
    gaps_ms = sum(event.duration_us for event in unseen) / 1e3
    notes = {
        "kernels, copies and memsets launched before the recording left out": len(earlier),
        "iteration left out, which began before the recording": begun,
        "kernels, copies and memsets without times, as long as others of their kind": sum(map(_untimed, launched)),
        "of these left out, like no other": len(launched) - len(timed),
        f"kernels without registers, taken as others' or {UNKNOWN_REGISTERS} a thread": sum(map(_unlimited, timed)),
        "collectives as long as recorded: they wait for other GPUs, and cannot be replayed alone": sum(
            event.shape is not None and _COLLECTIVE.search(event.name) is not None for event in timed
        ),
        f"gaps, {gaps_ms:.4g} ms in all, in which the device did nothing that was recorded, though there was work: "
        "memsets of no bytes are in their place": len(unseen),
    }
    return replace(
        recording,
        events=tuple(_with_registers([*before, *timed, *unseen])),
        iterations=tuple(iterations),
        notes=(*recording.notes, *(f"{count} {what}" for what, count in notes.items() if count)),
    )


def _earlier(events: Sequence[DeviceEvent], numbers: Collection[int]) -> Iterator[DeviceEvent]:
    """Work that was launched before the recording.

    What has a number between those of the calls was launched in it, even if it is the first of its stream.
    """
    if not numbers:
        return
    first, last = min(numbers), max(numbers)
    began: dict[int, float] = {}
    for event in sorted(events, key=lambda event: event.start_us):
        if event.call is not None:
            began.setdefault(event.stream, event.start_us)
    first_us = min(began.values(), default=0.0)
    for event in events:
        if event.call is None:
            in_range = first <= event.number <= last
            known = event.number >= 0
            before = event.start_us < began.get(event.stream, first_us)
            if (known and event.number < first) or (before and not in_range):
                yield event


def _whole(recording: Recording, launched: Sequence[DeviceEvent]) -> Sequence[HostCall]:
    """The iterations but the first with launches, if that has fewer than every other; without any, what is recorded."""
    marks = recording.iterations or (HostCall("trace", _first_us(recording, launched), math.inf),)
    starts_us = sorted(event.call.start_us for event in launched if event.call is not None)
    counts = [bisect_left(starts_us, mark.end_us) - bisect_left(starts_us, mark.start_us) for mark in marks]
    begun = [place for place, count in enumerate(counts) if count]
    if len(begun) > 1 and counts[begun[0]] < min(counts[place] for place in begun[1:]):
        return marks[begun[1] :]
    return marks


def _first_us(recording: Recording, launched: Sequence[DeviceEvent]) -> float:
    """When the first call that does something with the device was made."""
    calls = (*(event.call for event in launched), *(order.call for order in recording.orders))
    return min((call.start_us for call in calls if call is not None), default=0.0)


def _before(recording: Recording, earlier: Collection[int], launched: Sequence[DeviceEvent]) -> Iterator[DeviceEvent]:
    """Work that was launched before the recording, as launched before all that is in it, by the first thread."""
    calls = [event.call for event in launched if event.call is not None]
    if earlier and calls:
        first = min(calls, key=lambda call: call.start_us)
        begin_us = min(_first_us(recording, launched), *(mark.start_us for mark in recording.iterations), math.inf)
        call = HostCall("before the recording", begin_us - 1.0, 0.0, first.thread)
        yield from (replace(event, call=call) for event in recording.events if id(event) in earlier)


def _unseen(before: Sequence[DeviceEvent], launched: Sequence[DeviceEvent]) -> Iterator[DeviceEvent]:
    """What the device did of the recording while it seems to have been idle, and was not waiting for the host.

    The next node of a graph does not wait for copies and collectives beside it, which leave it most of the device.
    """
    done_us = computed_us = -math.inf
    graphs_us: dict[HostCall, float] = {}
    """When each graph was done with what of it had started."""
    of_before = set(map(id, before))
    for event in sorted([*before, *launched], key=lambda event: event.start_us):
        call = event.call
        if call is not None and id(event) not in of_before and done_us > -math.inf:
            free_us = max(computed_us, graphs_us[call]) if call in graphs_us else max(done_us, call.end_us)
            if event.start_us - free_us > UNSEEN_US:
                own = call if launches_graph(call.name) else replace(call, duration_us=0.0)
                gap_us = event.start_us - free_us
                yield DeviceEvent(OpKind.MEMSET, UNSEEN, free_us, gap_us, event.stream, own, event.number)
        done_us = max(done_us, event.end_us)
        if event.shape is not None and not _COLLECTIVE.search(event.name):
            computed_us = max(computed_us, event.end_us)
        if call is not None and launches_graph(call.name):
            graphs_us[call] = max(graphs_us.get(call, event.end_us), event.end_us)


def _untimed(event: DeviceEvent) -> bool:
    return event.start_us == 0.0 == event.duration_us


def _timed(events: Sequence[DeviceEvent]) -> Iterator[DeviceEvent]:
    """The events, those without times with some; without those for which there are none."""
    if not any(map(_untimed, events)):
        yield from events
        return
    durations: dict[object, list[float]] = defaultdict(list)
    for event in events:
        if not _untimed(event):
            durations[_kind(event)].append(event.duration_us)
    ends_us: dict[int, float] = defaultdict(lambda: -math.inf)
    """When the last event of each stream has ended."""
    for event in sorted(events, key=lambda event: event.start_us if event.call is None else event.call.start_us):
        if _untimed(event):
            if event.call is None or _kind(event) not in durations:
                continue
            start_us = max(event.call.end_us, ends_us[event.stream])
            event = replace(event, start_us=start_us, duration_us=statistics.median(durations[_kind(event)]))
        ends_us[event.stream] = max(ends_us[event.stream], event.end_us)
        yield event


def _kind(event: DeviceEvent) -> object:
    return event.kind, event.name, event.shape, event.bytes


def _unlimited(event: DeviceEvent) -> bool:
    return event.shape is not None and event.shape.registers == 0


def _with_registers(events: Sequence[DeviceEvent]) -> Iterator[DeviceEvent]:
    known: dict[str, Counter[int]] = defaultdict(Counter)
    for event in events:
        if event.shape is not None and event.shape.registers:
            known[event.name][event.shape.registers] += 1
    for event in events:
        if event.shape is not None and not event.shape.registers:
            found = known.get(event.name)
            registers = found.most_common(1)[0][0] if found else UNKNOWN_REGISTERS
            event = replace(event, shape=replace(event.shape, registers=registers))
        yield event
