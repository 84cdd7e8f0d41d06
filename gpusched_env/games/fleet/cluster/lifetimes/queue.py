"""Pods that wait, pods that run, and what happens next.

A pod that fits nowhere waits in a line. With :data:`OVERTAKING` each kind of pod has a line of its own: whoever fits
goes, of several the one that came first; nobody is overtaken by its own kind. So does Kubernetes, without priorities
and preemption. With :data:`IN_ORDER` there is one line: who comes later waits behind its first pod, also where there
would be room. A pod that goes makes room on one node; who waits is looked at then. Of several that go at an instant the
room of each is given before the next one goes.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from gpusched_env.compiling import procedure
from gpusched_env.games.fleet.cluster.gpus import fits
from gpusched_env.games.fleet.cluster.lifetimes.stream import JobStream
from gpusched_env.games.fleet.cluster.placing import place_pod, remove_pod
from gpusched_env.games.fleet.cluster.state import FRAGMENTED_MILLI, USED_MILLI

OVERTAKING, IN_ORDER = 0, 1
"""Rules of the queue."""
NOW_MS, END_MS, BIN_MS, RULE, NEXT, RUNNING, FREED, WAITING, WAITING_MILLI = range(9)
"""Places in the clock: times, the rule, the first pod that has not come, pods that run, the node on which room was
made, pods that wait, and thousandths of GPUs that these ask for."""
NO_NODE, ANY_NODE = -1, -2
"""In place of the node on which room was made."""
NOBODY, ROOM_MADE = -1, -2
"""In place of a pod: there is none; a pod has gone, and those who wait may be looked at."""
BIN_USED, BIN_FRAGMENTED, BIN_WAITING_MILLI, BIN_WAITING = range(4)
"""Columns of the bins."""
NEVER_MS: Final = 2**62


class QueueState(NamedTuple):
    """Who waits and who runs."""

    clock: Any
    end_ms: Any
    end_pod: Any
    """(pods,) a heap of those that run, the next to end on top; behind its end there is nothing."""
    node: Any
    gpus: Any
    """(pods,) the row of a pod's node, and the mask of its GPUs."""
    begins_ms: Any
    """(pods,) when it was placed; -1: not yet."""
    behind: Any
    """(pods,) who is next in its line, or :data:`NOBODY`."""
    first: Any
    last: Any
    """(lines,) of each line."""
    length: Any
    """(lines,) pods."""
    ended: Any
    ended_ms: Any
    """(kinds,) pods that have gone, and for how long they ran in all."""
    bins: Any
    """(bins, 4) integrals over time: thousandths of GPUs that are used, fragmented, waited for; pods that wait."""


class Live(NamedTuple):
    """A cluster that runs."""

    state: Any
    pods: Any
    typical: Any
    kept: Any
    """As :func:`~gpusched_env.games.fleet.cluster.placing.place_pod` has them."""
    stream: Any
    queue: Any


def empty_queue(stream: JobStream, kinds: int, rule: int, bin_ms: int, bins: int) -> QueueState:
    """Nobody has come. Time ends with the last bin."""
    pods, clock = len(stream.kinds), np.zeros(9, np.int64)
    clock[[END_MS, BIN_MS, RULE, FREED]] = bins * bin_ms, bin_ms, rule, NO_NODE
    lines = 1 if rule == IN_ORDER else kinds
    return QueueState(
        clock,
        **{name: np.zeros(pods, np.int64) for name in ("end_ms", "end_pod", "node", "gpus")},
        begins_ms=np.full(pods, -1),
        behind=np.full(pods, NOBODY),
        first=np.full(lines, NOBODY),
        last=np.full(lines, NOBODY),
        length=np.zeros(lines, np.int64),
        ended=np.zeros(kinds, np.int64),
        ended_ms=np.zeros(kinds, np.int64),
        bins=np.zeros((bins, 4)),
    )


@procedure
def next_pod(live: Any) -> int:
    """Let time go on until a pod is to be placed that has room somewhere; :data:`NOBODY`: time is over."""
    while True:
        pod = next_choice(live)
        if pod != ROOM_MADE:
            return pod
        pod = who_fits(live)
        if pod != NOBODY:
            return pod
        live.queue.clock[FREED] = NO_NODE


@procedure
def next_choice(live: Any) -> int:
    """Let time go on until a pod comes that has room, or until room is made (:data:`ROOM_MADE`).

    There it stays until nobody who waits is to be placed there, and :data:`FREED` is :data:`NO_NODE` again.
    :data:`NOBODY`: time is over.
    """
    clock = live.queue.clock
    while clock[FREED] == NO_NODE:
        ends_ms = live.queue.end_ms[0] if clock[RUNNING] > 0 else NEVER_MS
        comes_ms = live.stream.arrives_ms[clock[NEXT]] if clock[NEXT] < len(live.stream.kinds) else NEVER_MS
        at_ms = min(ends_ms, comes_ms)
        if at_ms >= clock[END_MS]:
            spend(live, clock[END_MS])
            return NOBODY
        spend(live, at_ms)
        if ends_ms <= comes_ms:
            end_first(live)
        else:
            pod = int(clock[NEXT])
            clock[NEXT] += 1
            if join(live, pod) and has_room(live, live.stream.kinds[pod]):
                return pod
    return ROOM_MADE


@procedure
def begin_pod(live: Any, pod: int, node: int, mask: int) -> None:
    """The first pod of its line is placed, and runs."""
    queue, kind = live.queue, live.stream.kinds[pod]
    leave(live, pod)
    place_pod(live.state, live.pods, live.typical, live.kept, node, kind, mask)
    queue.node[pod], queue.gpus[pod], queue.begins_ms[pod] = node, mask, queue.clock[NOW_MS]
    push(queue, queue.clock[NOW_MS] + live.stream.runs_ms[pod], pod)
    if queue.clock[RULE] == IN_ORDER and queue.clock[FREED] != NO_NODE:
        queue.clock[FREED] = ANY_NODE  # The next one of the line has not been looked at since it came.


@procedure
def end_first(live: Any) -> None:
    """The pod that ends next goes."""
    queue = live.queue
    pod = pop(queue)
    queue.clock[FREED] = queue.node[pod]
    kind = live.stream.kinds[pod]
    queue.ended[kind] += 1
    queue.ended_ms[kind] += queue.clock[NOW_MS] - queue.begins_ms[pod]
    remove_pod(live.state, live.pods, live.typical, live.kept, queue.node[pod], kind, queue.gpus[pod])


@procedure
def who_fits(live: Any) -> int:
    """Of those that are first in a line and have room where it was made, who came first."""
    queue, found = live.queue, NOBODY
    node = queue.clock[FREED]
    for line in range(len(queue.first)):
        pod = queue.first[line]
        if pod == NOBODY or (found != NOBODY and pod > found):
            continue
        kind = live.stream.kinds[pod]
        if has_room(live, kind) if node == ANY_NODE else fits(live.state, live.pods, node, kind):
            found = pod
    return found


@procedure
def has_room(live: Any, kind: int) -> bool:
    """Whether a kind of pod fits on any node."""
    node, nodes = 0, len(live.state.gpus)
    while node < nodes and not fits(live.state, live.pods, node, kind):
        node += 1
    return bool(node < nodes)


@procedure
def line_of(live: Any, pod: int) -> int:
    """The line of a pod."""
    return 0 if live.queue.clock[RULE] == IN_ORDER else live.stream.kinds[pod]


@procedure
def join(live: Any, pod: int) -> bool:
    """A pod goes to the end of its line; whether it is alone there."""
    queue, line = live.queue, line_of(live, pod)
    alone = queue.first[line] == NOBODY
    if alone:
        queue.first[line] = pod
    else:
        queue.behind[queue.last[line]] = pod
    queue.last[line] = pod
    queue.length[line] += 1
    queue.clock[WAITING] += 1
    queue.clock[WAITING_MILLI] += asked_milli(live, pod)
    return bool(alone)


@procedure
def leave(live: Any, pod: int) -> None:
    """The first of a line leaves it."""
    queue, line = live.queue, line_of(live, pod)
    queue.first[line] = queue.behind[pod]
    queue.length[line] -= 1
    queue.clock[WAITING] -= 1
    queue.clock[WAITING_MILLI] -= asked_milli(live, pod)


@procedure
def asked_milli(live: Any, pod: int) -> int:
    """Thousandths of GPUs that a pod asks for."""
    kind = live.stream.kinds[pod]
    return int(live.pods.gpus[kind] * live.pods.gpu_milli[kind])


@procedure
def spend(live: Any, until_ms: int) -> None:
    """Time goes on to ``until_ms`` with everything as it is."""
    clock, bins, totals = live.queue.clock, live.queue.bins, live.state.totals
    while clock[NOW_MS] < until_ms:
        place = clock[NOW_MS] // clock[BIN_MS]
        stop_ms = min(until_ms, (place + 1) * clock[BIN_MS])
        took_ms = stop_ms - clock[NOW_MS]
        bins[place, BIN_USED] += took_ms * totals[USED_MILLI]
        bins[place, BIN_FRAGMENTED] += took_ms * totals[FRAGMENTED_MILLI]
        bins[place, BIN_WAITING_MILLI] += took_ms * clock[WAITING_MILLI]
        bins[place, BIN_WAITING] += took_ms * clock[WAITING]
        clock[NOW_MS] = stop_ms


@procedure
def sooner(queue: Any, one: int, other: int) -> bool:
    """Whether one place of the heap ends before another; of equal ends, the pod that came first."""
    if queue.end_ms[one] != queue.end_ms[other]:
        return bool(queue.end_ms[one] < queue.end_ms[other])
    return bool(queue.end_pod[one] < queue.end_pod[other])


@procedure
def swap(queue: Any, one: int, other: int) -> None:
    """Exchange two places of the heap."""
    queue.end_ms[one], queue.end_ms[other] = queue.end_ms[other], queue.end_ms[one]
    queue.end_pod[one], queue.end_pod[other] = queue.end_pod[other], queue.end_pod[one]


@procedure
def push(queue: Any, end_ms: int, pod: int) -> None:
    """A pod runs until ``end_ms``."""
    place = queue.clock[RUNNING]
    queue.end_ms[place], queue.end_pod[place] = end_ms, pod
    queue.clock[RUNNING] += 1
    while place > 0 and sooner(queue, place, (place - 1) // 2):
        swap(queue, place, (place - 1) // 2)
        place = (place - 1) // 2


@procedure
def pop(queue: Any) -> int:
    """The pod that ends next runs no longer."""
    pod, size = queue.end_pod[0], queue.clock[RUNNING] - 1
    swap(queue, 0, size)
    queue.clock[RUNNING] = size
    place = 0
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and sooner(queue, child + 1, child):
            child += 1
        if not sooner(queue, child, place):
            break
        swap(queue, place, child)
        place = child
    return int(pod)
