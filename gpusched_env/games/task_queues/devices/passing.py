"""The links of the reference device: what is on the way from one GPU to another."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from gpusched_env.errors import DeadlockError
from gpusched_env.games.task_queues.applications import Data, receive
from gpusched_env.games.task_queues.device import FOREVER, link_text, overflow_text
from gpusched_env.games.task_queues.devices.hosting import HostedForms
from gpusched_env.games.task_queues.devices.parts import TaskHost, TaskWorker
from gpusched_env.games.task_queues.hardware.laws import moved_ps, served
from gpusched_env.games.task_queues.hardware.links import looked_at, sent_at, sent_of
from gpusched_env.games.task_queues.problem import TaskProblem
from gpusched_env.games.task_queues.timeline import Event

Sent = tuple[int, float]
"""A vertex, and the value that is sent to it."""


@dataclass
class Message:
    """Tasks that go over a link together."""

    sent: list[Sent]
    lands_ps: int
    announced_ps: int
    answered_ps: int
    tasks: list[int] = field(default_factory=list)
    """Those that improve something, when it has landed."""


@dataclass
class OneWay:
    """The link from one GPU to another."""

    problem: TaskProblem
    origin: int
    owner: int
    free_ps: int = 0
    waiting: list[Sent] = field(default_factory=list)
    """In the aggregation queue."""
    first_look_ps: int = FOREVER
    look_ps: int = FOREVER
    flying: deque[Message] = field(default_factory=deque)
    landed: deque[Message] = field(default_factory=deque)
    used: int = 0
    """Places: tasks that wait or are on the way."""

    def take(self, sent: list[Sent], now_ps: int) -> Message | None:
        """A worker has tasks for the owner; their message if they go at once.

        Raises:
            IndexError: there is no room.
        """
        if self.used + len(sent) > self.problem.link_places:
            raise IndexError
        self.used += len(sent)
        link = self.problem.link
        if link.batch is None:
            return self.depart(sent, now_ps)
        if not self.waiting:
            self.first_look_ps = looked_at(link.look_ps, now_ps)
        self.waiting += sent
        self._plan(now_ps)
        return None

    def look(self, now_ps: int) -> int:
        """The communication kernel sends; how many."""
        link = self.problem.link
        assert link.batch is not None
        count = sent_of(len(self.waiting), link.batch)
        going, self.waiting = self.waiting[:count], self.waiting[count:]
        self.depart(going, now_ps)
        self.first_look_ps = now_ps + link.look_ps
        self._plan(now_ps + 1)
        return count

    def _plan(self, now_ps: int) -> None:
        link = self.problem.link
        assert link.batch is not None
        self.look_ps = FOREVER
        if self.waiting:
            self.look_ps = sent_at(link.look_ps, self.first_look_ps, now_ps, len(self.waiting), link.batch, link.wait)

    def depart(self, sent: list[Sent], now_ps: int) -> Message:
        """Tasks go over the link, behind those before them."""
        times = self.problem.link_times
        self.free_ps = served(self.free_ps, now_ps, moved_ps(len(sent), times.task_ps))
        lands_ps, announced_ps = self.free_ps + times.lands_ps, self.free_ps + times.announced_ps
        self.flying.append(Message(sent, lands_ps, announced_ps, self.free_ps + times.answer_ps))
        return self.flying[-1]

    @property
    def next_ps(self) -> tuple[int, int]:
        """When something happens next, and what: 0, a landing; 1, an announcement; 2, a look."""
        lands_ps = self.flying[0].lands_ps if self.flying else FOREVER
        announced_ps = self.landed[0].announced_ps if self.landed else FOREVER
        return min((lands_ps, 0), (announced_ps, 1), (self.look_ps, 2))


class LinkedForms(HostedForms):
    """Forms whose workers send tasks to other GPUs."""

    data: Data
    _links: list[OneWay]

    def _links_next(self) -> tuple[int, OneWay | None]:
        """When something happens on a link next, and on which: of several the first."""
        link = min(self._links, key=lambda link: link.next_ps[0], default=None)
        return (link.next_ps[0], link) if link else (FOREVER, None)

    def _move(self, host: TaskHost, edges: int) -> None:
        """The memory of a GPU has to move the bytes of so many edges."""
        host.memory_free_ps = served(host.memory_free_ps, self.now_ps, moved_ps(edges, host.ps_per_edge))

    def _send(self, worker: TaskWorker, away: dict[int, list[Sent]]) -> tuple[list[Message], int]:
        """Tasks for other GPUs: those that go at once, and how many were put into aggregation queues."""
        messages: list[Message] = []
        collected = 0
        for owner, sent in sorted(away.items()):
            link = next(link for link in self._links if (link.origin, link.owner) == (worker.gpu, owner))
            self._note(Event.SEND, worker.number, owner, len(sent))
            try:
                message = link.take(sent, self.now_ps)
            except IndexError:
                raise DeadlockError(link_text(self.problem, worker.gpu, owner, self.now_ps)) from None
            self._sums["sent"] += len(sent)
            self._sums["flying"] += len(sent)
            if message:
                messages.append(message)
                self._sums["sendings"] += 1
            else:
                collected += len(sent)
        return messages, collected

    def _link_event(self, link: OneWay) -> None:
        what = link.next_ps[1]
        if what == 0:
            self._land(link)
        elif what == 1:
            self._announce(link)
        else:
            self._note(Event.BATCH, -1 - link.origin, link.owner, link.look(self.now_ps))
            self._sums["sendings"] += 1

    def _land(self, link: OneWay) -> None:
        """Tasks change what their owner knows."""
        message = link.flying.popleft()
        problem = self.problem
        found = [receive(problem.kind, self.data, problem.epsilon, value, vertex) for vertex, value in message.sent]
        message.tasks = [task for task in found if task]
        link.landed.append(message)
        self._move(self._hosts[link.owner], len(message.sent))
        self._note(Event.LAND, -1 - link.owner, link.origin, len(message.tasks))

    def _announce(self, link: OneWay) -> None:
        """Tasks that improve something can be read, at the back of the owner's queue."""
        message = link.landed.popleft()
        host = self._hosts[link.owner]
        queue = host.queues[host.active]
        if message.tasks:
            # Their host does not give up before it has looked anew.
            host.empty = 0
            try:
                first, _ = queue.reserve(message.tasks, 0, 0)
            except IndexError:
                number = 2 * link.owner + host.active
                raise DeadlockError(overflow_text(self.problem, number, self.now_ps, -1)) from None
            queue.publish(first, len(message.tasks), 0, 0)
        self._sums["pushed"] += len(message.tasks)
        self._sums["flying"] -= len(message.sent)
        link.used -= len(message.sent)
        self._note(Event.ANNOUNCE, -1 - link.owner, link.origin, queue.end)
        if not self._sums["flying"]:
            self._all_arrived()
