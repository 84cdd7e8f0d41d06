"""Which host threads of a recording run side by side, and which take turns.

Threads take turns if their calls and operators do not overlap: so do the thread that calls PyTorch's ``backward`` and
the one that runs it. Where the gradient passes through the CPU each does a little while the other works: up to
:data:`BESIDE` of their time is no reason to part them. Threads that take turns are one host program, in order of the
calls; what passes between them on the host counts as host time. Threads that overlap are host threads of their own.
What they tell each other on the host (a join, a queue) is not recorded: such waiting is host time too, and always takes
as long.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence

from gpusched_env.errors import InputError
from gpusched_env.workload.importers.ordering import Action
from gpusched_env.workload.importers.recording import Recording

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
