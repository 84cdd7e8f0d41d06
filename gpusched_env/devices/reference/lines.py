"""The streams of programs: what a host issues into one goes in order. What passes a window keeps no such order."""

from __future__ import annotations

from collections import defaultdict

from gpusched_env.devices.reference.launch import Launch
from gpusched_env.scenarios.program import HostOp


class Lines:
    """By stream of a program: its unfinished launches, in order of issue."""

    def __init__(self) -> None:
        self._lines: defaultdict[int, list[Launch]] = defaultdict(list)

    def join(self, launch: Launch) -> None:
        """A launch is issued: it waits for the one before it."""
        line = self._lines[launch.row]
        if line:
            launch.wait_for(line[-1])
        line.append(launch)

    def leave(self, launch: Launch) -> None:
        """A launch has finished or vanished: the one behind it is behind the one before it, if there is one."""
        line = self._lines[launch.row]
        place = line.index(launch)
        del line[place]
        if 0 < place < len(line):
            line[place].wait_for(line[place - 1])

    def follows(self, launch: Launch, before: Launch) -> bool:
        """Whether a launch waits for an unfinished one anyway: it comes before it in its program's stream."""
        both = isinstance(launch.op, HostOp) and isinstance(before.op, HostOp)
        return both and launch.row == before.row and self._lines[launch.row][0] is not launch
