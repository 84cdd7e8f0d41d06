"""The hosts' part of the reference device: launches, copies of the queue's end, and one form after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from gpusched_env.errors import DeadlockError, InputError
from gpusched_env.games.task_queues.device import FOREVER, check_form, early_text, overflow_text
from gpusched_env.games.task_queues.devices.parts import TaskHost, TaskKernel, TaskWorker
from gpusched_env.games.task_queues.form import STREAMS, Form
from gpusched_env.games.task_queues.hardware.laws import readable
from gpusched_env.games.task_queues.hardware.machine import TaskMachine
from gpusched_env.games.task_queues.problem import TaskProblem
from gpusched_env.games.task_queues.timeline import Event
from gpusched_env.scheduling.one_thread import OneThread, alone


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

    def _check(self, problem: TaskProblem, form: Form) -> None:
        check_form(problem, form)

    @alone
    def change(self, form: Form) -> None:
        if self.finished:
            raise InputError("change: the application has finished")
        self._check(self.problem, form)
        self._next_form = form

    def _start_form(self, form: Form, at_ps: int) -> None:
        """From ``at_ps`` on, a time of the hosts."""
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
            host.empty += 1
            host.read_ps = known_ps + self.machine.copy_ps
            polls = self.problem.polls_of(self.form)
            if not self._sums["flying"] and all(one.empty >= polls for one in self._hosts):
                # They give up.
                self._all_read(FOREVER)
                self._maybe_over()

    def _launch(self, host: TaskHost, launched_ps: int) -> None:
        """What is new in a queue becomes a kernel."""
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
        """The same where a bulk-synchronous form goes on."""
        if not self._sums["flying"] and all(host.rests for host in self._hosts):
            self._all_read(self.now_ps + self.machine.sync_ps + self.machine.copy_ps)

    def _kernel_over(self, host: TaskHost) -> None:
        host.ended += 1
        self._all_arrived()

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
        """What workers have taken and not begun goes to the back of a GPU's first queue, and so does the second."""
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
