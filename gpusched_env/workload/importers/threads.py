"""Which host threads of a recording run side by side, and which take turns.

Threads take turns if no call or operator of one overlaps any of the other: so do the thread that calls PyTorch's
``backward`` and the one that runs it. Threads that take turns are one host program, in order of the calls; what passes
between them on the host counts as host time. Threads that overlap are host threads of their own. What they tell each
other on the host (a join, a queue) is not recorded: such waiting is host time too, and always takes as long.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Sequence

from gpusched_env.workload.importers.ordering import Action
from gpusched_env.workload.importers.recording import Recording

Interval = tuple[float, float]


def host_programs(recording: Recording, actions: Sequence[Action]) -> dict[int, int]:
    """The host program of each thread that does something with the device; 0 is that of the iterations' thread."""
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
        own = sorted(busy[thread])
        free = [row for row, taken in enumerate(programs) if not _overlap(taken, own)]
        if not free:
            programs.append([])
        row = free[0] if free else len(programs) - 1
        programs[row] = sorted((*programs[row], *own))
        found[thread] = row
    return found


def _overlap(one: Sequence[Interval], other: Sequence[Interval]) -> bool:
    """Whether an interval of ``one`` overlaps one of ``other``; both ascend."""
    until = [-math.inf, -math.inf]
    in_turn = heapq.merge(((*interval, 0) for interval in one), ((*interval, 1) for interval in other))
    for start, end, side in in_turn:
        if end > start and start < until[1 - side]:
            return True
        until[side] = max(until[side], end)
    return False
