"""The hosts' and the links' part of the reference device: launches, copies of the queue's end, one form after another,
and what is on the way from one GPU to another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from gpusched_env.errors import DeadlockError, InputError
from gpusched_env.games.task_queues.applications import Data, receive
from gpusched_env.games.task_queues.device import FOREVER, Event, check_form, early_text, link_text, overflow_text
from gpusched_env.games.task_queues.devices.parts import TaskHost, TaskKernel, TaskWorker
from gpusched_env.games.task_queues.hardware.links import looked_at, sent_at, sent_of
from gpusched_env.games.task_queues.hardware.machine import TaskMachine, moved_ps, readable, served
from gpusched_env.games.task_queues.problem import STREAMS, Form, TaskProblem
from gpusched_env.scheduling.guards import OneThread, one_thread_at_a_time


class HostedForms(OneThread, ABC):
    """Forms that the hosts begin and end, one for each GPU; the workers are the subclass's."""

    problem: TaskProblem
    machine: TaskMachine
    form: Form
    now_ps: int
    finished: bool = True
    _hosts: list[TaskHost]
    _workers: list[TaskWorker]
    _live: int
    _sums: dict[str, int]
    _put_back: int
    _next_form: Form | None = None

    @abstractmethod
    def _note(self, event: Event, worker: int, a: int = 0, b: int = 0) -> None: ...

    @abstractmethod
    def _start_workers(self, at_ps: int) -> None: ...

    @abstractmethod
    def _block(self, worker: TaskWorker, kernel: TaskKernel) -> Any: ...

    @abstractmethod
    def _go_on(self, number: int) -> None: ...

    @one_thread_at_a_time
    def change(self, form: Form) -> None:
        if self.finished:
            raise InputError("change: the application has finished")
        check_form(self.problem, form)
        self._next_form = form

    def _start_form(self, form: Form, at_ps: int) -> None:
        """Start a form at ``at_ps``, a time of the hosts."""
        self.form, self._next_form = form, None
        self.shape = self.problem.shape(form)
        self._sums["voted"] = self._live = 0
        numbers = range(self.problem.gpus * self.shape.workers)
        self._workers = [TaskWorker(number, number // self.shape.workers) for number in numbers]
        self._lives: dict[int, Any] = {}
        for host in self._hosts:
            host.begin(form.threshold, self._workers)
        if form.strategy == "persistent":
            self._sums["kernels"] += self.problem.gpus
            self._start_workers(at_ps + self.machine.host_launch_ps + self.machine.launch_ps)
        else:
            self._all_read(at_ps + self.machine.copy_ps)

    def _all_read(self, at_ps: int) -> None:
        for host in self._hosts:
            host.read_ps = at_ps

    def _hosts_next(self) -> int:
        return min(host.next_ps for host in self._hosts)

    def _host_event(self) -> None:
        host = next(host for host in self._hosts if host.next_ps == self.now_ps)
        if host.arrival_ps == self.now_ps:
            kernel = host.kernels[host.arrived]
            host.arrived += 1
            self._note(Event.LAUNCH, -1 - host.gpu, kernel.number, kernel.limit - kernel.next)
            self._dispatch(host)
        else:
            self._read_end(host)

    def _read_end(self, host: TaskHost) -> None:
        """A copy of the queue's end is taken: launch what is new."""
        host.read_ps = FOREVER
        if self._next_form is not None:
            self._maybe_over()
            return
        self._sums["copies"] += 1
        known_ps = self.now_ps + self.machine.sync_ps
        queue, other = host.queues[host.active], host.queues[1 - host.active]
        if queue.end == queue.start and host.threshold and other.end > other.start:
            host.active, queue = 1 - host.active, other
            host.threshold += self.form.delta
        self._note(Event.COPY, -1 - host.gpu, queue.end, 2 * host.gpu + host.active)
        if queue.end > queue.start:
            host.empty = 0
            self._launch(host, known_ps + self.machine.host_launch_ps)
        elif self.form.strategy == "bulk-synchronous":
            self._maybe_over()
        else:
            polls = self.problem.polls_of(self.form)
            repairs = host.empty >= polls // 2
            # A repair of the end runs behind all blocks that wait for a place.
            host.empty += not (repairs and host.head < len(host.kernels))
            host.read_ps = known_ps + self.machine.copy_ps + repairs * self.machine.repair_ps
            if not self._sums["flying"] and all(one.empty >= polls for one in self._hosts):
                # They give up.
                self._all_read(FOREVER)
                self._maybe_over()

    def _launch(self, host: TaskHost, launched_ps: int) -> None:
        """Make a kernel of what is new in a queue."""
        queue = host.queues[host.active]
        number = len(host.kernels)
        arrives_ps = launched_ps + self.machine.launch_ps
        host.kernels.append(TaskKernel(number, host.active, queue.start, queue.end, host.threshold, arrives_ps))
        queue.start = queue.end
        self._sums["kernels"] += 1
        if self.form.strategy == "discrete":
            host.read_ps = launched_ps + self.machine.copy_ps

    def _dispatch(self, host: TaskHost) -> None:
        """Blocks of kernels in order, onto free places; a stream's kernel waits for the one before it."""
        while host.free and host.head < host.arrived:
            kernel = host.kernels[host.head]
            if host.head >= STREAMS and not host.kernels[host.head - STREAMS].over:
                return
            worker = self._workers[host.free.pop()]
            worker.queue, worker.threshold = kernel.queue, kernel.threshold
            worker.index, worker.limit = kernel.next, min(kernel.next + self.form.fetch, kernel.limit)
            kernel.next = worker.limit
            kernel.running += 1
            if kernel.next == kernel.limit:
                host.head += 1
            self._lives[worker.number] = self._block(worker, kernel)
            self._go_on(worker.number)

    def _maybe_over(self) -> None:
        """Maybe nothing runs, and nothing is on the way: then a level ends, or the form does."""
        if self._live or self._sums["flying"] or not all(host.rests for host in self._hosts):
            return
        self._form_over(self.now_ps)

    def _maybe_next_level(self) -> None:
        """Maybe nothing runs, and nothing is on the way: then a bulk-synchronous form goes on to the next level."""
        if not self._sums["flying"] and all(host.rests for host in self._hosts):
            self._all_read(self.now_ps + self.machine.sync_ps + self.machine.copy_ps)

    def _all_arrived(self) -> None:
        """A kernel has ended, or nothing is on the way any more."""
        if self.form.strategy == "bulk-synchronous":
            self._maybe_next_level()
        else:
            self._maybe_over()

    def _form_over(self, at_ps: int) -> None:
        """All workers have left: the application is done if no task is left, or goes on in another form."""
        known_ps = at_ps + self.machine.sync_ps
        self._note(Event.OVER, -1)
        held = sum(queue.alloc for host in self._hosts for queue in host.queues)
        left = held - self._put_back - self._sums["tasks"]
        if left and self._next_form is not None:
            back = self._put_tasks_back()
            self._sums["changes"] += 1
            self._note(Event.CHANGE, -1, back)
            self._start_form(self._next_form, known_ps + (self.machine.push_ps if back else 0))
            return
        if left and self.problem.relaunch:
            self._put_tasks_back()
            self._start_form(self.form, known_ps)
            return
        if left:
            raise DeadlockError(early_text(self.problem, self.form, at_ps, left))
        self.now_ps, self.finished = known_ps, True

    def _put_tasks_back(self) -> int:
        """Put what workers have taken and not begun at the back of a GPU's first queue, and then its second queue."""
        number = 0
        for host in self._hosts:
            own, other = host.queues
            mine = [worker for worker in self._workers if worker.gpu == host.gpu and worker.queue == 0]
            segments = [(own, worker.index, worker.limit) for worker in mine]
            back: list[int] = []
            for queue, index, limit in [*segments, (other, other.start, other.end)]:
                back += queue.items[index : index + readable(index, limit, queue.end)].tolist()
            own.start, other.start = min(own.start, own.end), other.end
            try:
                own.append(back)
            except IndexError:
                raise DeadlockError(overflow_text(self.problem, 2 * host.gpu, self.now_ps, -1)) from None
            number += len(back)
        self._put_back += number
        return number


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
    """Tasks that improve something, when it has landed."""


@dataclass
class DirectedLink:
    """The link from one GPU to another."""

    problem: TaskProblem
    origin: int
    owner: int
    free_ps: int = 0
    waiting: list[Sent] = field(default_factory=list)
    """Tasks in the aggregation queue."""
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
    _links: list[DirectedLink]

    def _links_next(self) -> tuple[int, DirectedLink | None]:
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

    def _link_event(self, link: DirectedLink) -> None:
        what = link.next_ps[1]
        if what == 0:
            self._land(link)
        elif what == 1:
            self._announce(link)
        else:
            self._note(Event.BATCH, -1 - link.origin, link.owner, link.look(self.now_ps))
            self._sums["sendings"] += 1

    def _land(self, link: DirectedLink) -> None:
        """Tasks change what their owner knows."""
        message = link.flying.popleft()
        problem = self.problem
        found = [receive(problem.kind, self.data, problem.epsilon, value, vertex) for vertex, value in message.sent]
        message.tasks = [task for task in found if task]
        link.landed.append(message)
        self._move(self._hosts[link.owner], len(message.sent))
        self._note(Event.LAND, -1 - link.owner, link.origin, len(message.tasks))

    def _announce(self, link: DirectedLink) -> None:
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
