"""Records of events that a profiler did not see: PyTorch's of 2022 saw waits of streams for events, but no record.

A launch that its stream and the host would have let start, and that started as soon as something of another stream had
ended, has waited for that: the record was behind it, and the wait was the last one before the launch. Of other waits
the record is taken to be just before the wait, as PyTorch's ``wait_stream`` makes both.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from gpusched_env.workload.importers.recording import HostCall, OrderCall
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.workload.importers.ordering import Action

UNSEEN: Final = "unseen"
"""Name of the calls that are taken to have made such records."""
AT_ONCE_US: Final = 10.0
"""What waits for another stream starts within this time of its end (recommenders on V100 and A100: 1 to 9 us)."""

_FIRST: Final = 1 << 32
"""Number of the first such record: those of calls are smaller."""
_LOOK: Final = 64
"""Waits and ends that are looked at for a launch."""


def with_records(orders: Sequence[OrderCall], launches: Sequence[Action]) -> Iterator[OrderCall]:
    """The orders, with a record for each wait if the profiler saw none at all.

    Args:
        orders: in any order.
        launches: what was launched, in order of the calls.
    """
    if any(order.kind is OpKind.RECORD for order in orders):
        yield from orders
        return
    shown = _shown(orders, launches)
    for row, order in enumerate(orders):
        if row in shown:
            yield shown[row].record
            order = replace(order, stream=shown[row].stream, record=shown[row].record.number)
        elif order.kind is OpKind.WAIT:
            yield OrderCall(HostCall(UNSEEN, order.call.start_us, 0.0, order.call.thread), OpKind.RECORD)
        yield order


class _Shown(NamedTuple):
    """What the times show of a wait."""

    record: OrderCall
    """What it waits for."""
    stream: int | None
    """Stream that waits."""


def _shown(orders: Sequence[OrderCall], launches: Sequence[Action]) -> Mapping[int, _Shown]:
    """What the times show, by the wait's place among the orders."""
    waits = sorted(
        (order.call.start_us, row)
        for row, order in enumerate(orders)
        if order.kind is OpKind.WAIT and order.stream is None
    )
    by_end = sorted(launches, key=lambda launch: launch.end_us)
    ends_us = [launch.end_us for launch in by_end]
    last: dict[int | None, Action] = {}
    """The last launch of each stream."""
    free_us: defaultdict[int | None, float] = defaultdict(lambda: -math.inf)
    """When each stream was done with its launches."""
    found: dict[int, _Shown] = {}
    for launch in launches:
        called_us = last[launch.stream].call.start_us if launch.stream in last else -math.inf
        could_us = max(launch.call.end_us, free_us[launch.stream])
        last[launch.stream] = launch
        free_us[launch.stream] = max(free_us[launch.stream], launch.end_us)
        if launch.start_us - could_us <= AT_ONCE_US:
            continue
        first, end = bisect_left(ends_us, launch.start_us - AT_ONCE_US), bisect_right(ends_us, launch.start_us)
        for before in reversed(by_end[max(first, end - _LOOK) : end]):
            if before.stream == launch.stream:
                continue
            since = _after(waits, max(called_us, before.call.start_us))
            until = _after(waits, launch.call.start_us)
            rows = [row for _, row in waits[max(since, until - _LOOK) : until] if row not in found]
            if rows:
                own = [row for row in rows if orders[row].call.thread == launch.call.thread]
                row = (own or rows)[-1]
                found[row] = _Shown(_record(_FIRST + row, orders[row], before, last[before.stream]), launch.stream)
                break
    return found


def _record(number: int, wait: OrderCall, before: Action, last: Action) -> OrderCall:
    """The record behind a launch: just before the wait, if that launch was the last of its stream."""
    at_us, thread = before.call.end_us, before.call.thread
    if before is last:
        at_us, thread = wait.call.start_us, wait.call.thread
    return OrderCall(HostCall(UNSEEN, at_us, 0.0, thread), OpKind.RECORD, number, before.stream)


def _after(waits: Sequence[tuple[float, int]], us: float) -> int:
    return bisect_right(waits, (us, math.inf))
