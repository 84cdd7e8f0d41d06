"""The scheduler's own streams, as launches of a window use them: which one takes a launch, and who is behind whom."""

from __future__ import annotations

from collections import deque

from gpusched_env.devices.reference.launch import Launch, State
from gpusched_env.devices.reference.setting import Setting
from gpusched_env.hardware.clock import PS_PER_US


class OwnStream:
    """A stream of the scheduler's."""

    def __init__(self) -> None:
        self.line: deque[Launch] = deque()
        """What was launched into it and has not ended, in order."""
        self.in_flight = 0
        """Launches from when they are launched until they are known to have ended."""
        self.thread_ps = 0
        """When the thread that launches them has launched the last one."""


class OwnStreams:
    """All of them, by row; without a window nothing uses them so."""

    def __init__(self, setting: Setting) -> None:
        problem = setting.problem
        self._setting = setting
        self._depth = 1 if problem.window is None else problem.window.depth
        self._streams = {row: OwnStream() for row, stream in enumerate(problem.streams) if stream.tenant < 0}

    def stream_for(self, launch: Launch) -> int:
        """The one that takes a pending launch: its own again; that of all that it waits for; of those with room the one
        with the least in flight. -1: none does."""
        if launch.preempted:
            return launch.stream
        rows = [row for row, stream in self._streams.items() if stream.in_flight < self._depth]
        if launch.waits:
            taken = {other.stream for other in launch.waits if other.state is not State.PENDING}
            pending = any(other.state is State.PENDING for other in launch.waits)
            rows = [row for row in rows if {row} == taken and not pending]
        return min(rows, key=lambda row: self._streams[row].in_flight, default=-1)

    def behind(self, launch: Launch) -> tuple[float, float, int]:
        """Of a pending launch of a window: profiled time left of what it would be behind in its stream, and of those
        of them that are behind all that it waits for, and how many pending launches wait for it; 0 of others."""
        if not launch.windowed:
            return 0.0, 0.0, 0
        row = self.stream_for(launch) if not launch.preempted else -1
        line = self._streams[row].line if row >= 0 else ()
        left_us = between_us = 0.0
        is_between = True
        for before in reversed(line):
            is_between = is_between and before not in launch.waits
            known = self._setting.problem.knowledge.kernels[before.op.identity]
            # Never measured: NaN, which is no more than 0.
            left_us += max(0.0, known.duration_us - before.elapsed_ps(self._setting.clock.now) / PS_PER_US)
            between_us = left_us if is_between else between_us
        return left_us, between_us, sum(other.state is State.PENDING for other in launch.waiters)

    def join(self, launch: Launch) -> None:
        """A launch waits for the end of the one before it in its stream, and with it for all it has to."""
        for other in launch.waits:
            other.waiters.remove(launch)
        launch.waits.clear()
        stream = self._streams[launch.stream]
        stream.in_flight += 1
        if stream.line:
            launch.wait_for(stream.line[-1])
        stream.line.append(launch)

    def launched_ps(self, launch: Launch, at_ps: int, latency_ps: int) -> int:
        """When the thread of its stream, free from ``at_ps`` on at the earliest, has launched it."""
        stream = self._streams[launch.stream]
        stream.thread_ps = max(at_ps, stream.thread_ps) + latency_ps
        return stream.thread_ps

    def leave(self, launch: Launch) -> Launch | None:
        """The first launch of its stream has ended, or has vanished; returns the next, which waits for it no more."""
        line = self._streams[launch.stream].line
        line.popleft()
        if not line:
            return None
        launch.waiters.remove(line[0])
        return line[0]

    def finish(self, launch: Launch) -> None:
        """The end of a launch is known."""
        self._streams[launch.stream].in_flight -= 1
