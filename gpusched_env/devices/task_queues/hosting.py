"""The host's part of the reference device: launches, copies of the queue's end, and one form after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from gpusched_env.devices.task_queues.parts import TaskKernel, TaskQueue, TaskWorker
from gpusched_env.errors import DeadlockError, InputError
from gpusched_env.hardware.task_machine import TaskMachine
from gpusched_env.hardware.task_queues import readable
from gpusched_env.task_queues.device import FOREVER, check_form, early_text, overflow_text
from gpusched_env.task_queues.form import STREAMS, Form
from gpusched_env.task_queues.problem import TaskProblem
from gpusched_env.task_queues.timeline import Event


class HostedForms(ABC):
    """Forms that the host begins and ends; the workers are the subclass's."""

    problem: TaskProblem
    machine: TaskMachine
    form: Form
    now_ps: int
    finished: bool = True
    _queues: list[TaskQueue]
    _workers: list[TaskWorker]
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

    def change(self, form: Form) -> None:
        if self.finished:
            raise InputError("change: the application has finished")
        self._check(self.problem, form)
        self._next_form = form

    def _start_form(self, form: Form, at_ps: int) -> None:
        """From ``at_ps`` on, a time of the host."""
        self.form, self._next_form = form, None
        self.shape = self.problem.shape(form)
        self._sums["voted"] = 0
        self._active, self._threshold, self._empty = 0, form.threshold, 0
        self._kernels: list[TaskKernel] = []
        self._arrived = self._head = self._ended = 0
        self._gave_up = False
        self._read_ps = FOREVER
        if form.strategy == "persistent":
            self._sums["kernels"] += 1
            self._start_workers(at_ps + self.machine.host_launch_ps + self.machine.launch_ps)
        else:
            self._workers = [TaskWorker(number) for number in range(self.shape.workers)]
            self._lives: dict[int, Any] = {}
            self._free = list(range(self.shape.workers))[::-1]
            self._read_ps = at_ps + self.machine.copy_ps

    def _host_next(self) -> int:
        return min(self._read_ps, self._arrival_ps())

    def _arrival_ps(self) -> int:
        return self._kernels[self._arrived].arrives_ps if self._arrived < len(self._kernels) else FOREVER

    def _host_event(self) -> None:
        if self._arrival_ps() == self.now_ps:
            kernel = self._kernels[self._arrived]
            self._arrived += 1
            self._note(Event.LAUNCH, -1, kernel.number, kernel.limit - kernel.next)
            self._dispatch()
        else:
            self._read_end()

    def _read_end(self) -> None:
        """A copy of the queue's end is taken: launch what is new."""
        self._read_ps = FOREVER
        running = len(self._kernels) - self._ended
        if self._next_form is not None:
            if not running:
                self._form_over(self.now_ps)
            return
        self._sums["copies"] += 1
        known_ps = self.now_ps + self.machine.sync_ps
        queue, other = self._queues[self._active], self._queues[1 - self._active]
        if queue.end == queue.start and self._threshold and other.end > other.start:
            self._active, queue = 1 - self._active, other
            self._threshold += self.form.delta
        self._note(Event.COPY, -1, queue.end, self._active)
        if queue.end > queue.start:
            self._empty = 0
            self._launch(queue, known_ps + self.machine.host_launch_ps)
        elif self.form.strategy == "bulk-synchronous":
            self._form_over(self.now_ps)
        else:
            self._empty += 1
            if self._empty < self.problem.polls_of(self.form):
                self._read_ps = known_ps + self.machine.copy_ps
                return
            self._gave_up = True
            if not running:
                self._form_over(self.now_ps)

    def _launch(self, queue: TaskQueue, launched_ps: int) -> None:
        """What is new in a queue becomes a kernel."""
        number = len(self._kernels)
        arrives_ps = launched_ps + self.machine.launch_ps
        self._kernels.append(TaskKernel(number, self._active, queue.start, queue.end, self._threshold, arrives_ps))
        queue.start = queue.end
        self._sums["kernels"] += 1
        if self.form.strategy == "discrete":
            self._read_ps = launched_ps + self.machine.copy_ps

    def _dispatch(self) -> None:
        """Blocks of kernels in order, onto free places; a stream's kernel waits for the one before it."""
        while self._free and self._head < self._arrived:
            kernel = self._kernels[self._head]
            if self._head >= STREAMS and not self._kernels[self._head - STREAMS].over:
                return
            worker = self._workers[self._free.pop()]
            worker.queue, worker.threshold = kernel.queue, kernel.threshold
            worker.index, worker.limit = kernel.next, min(kernel.next + self.form.fetch, kernel.limit)
            kernel.next = worker.limit
            kernel.running += 1
            if kernel.next == kernel.limit:
                self._head += 1
            self._lives[worker.number] = self._block(worker, kernel)
            self._go_on(worker.number)

    def _kernel_over(self) -> None:
        self._ended += 1
        if self.form.strategy == "bulk-synchronous":
            self._read_ps = self.now_ps + self.machine.sync_ps + self.machine.copy_ps
        elif self._ended == len(self._kernels) and self._read_ps == FOREVER:
            self._form_over(self.now_ps)

    def _form_over(self, at_ps: int) -> None:
        """All workers have left: the application is done if no task is left, or goes on in another form."""
        known_ps = at_ps + self.machine.sync_ps
        self._note(Event.OVER, -1)
        left = sum(queue.alloc for queue in self._queues) - self._put_back - self._sums["tasks"]
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
        """What workers have taken and not begun goes to the back of the first queue, and so does the second queue."""
        own, other = self._queues
        segments = [(own, worker.index, worker.limit) for worker in self._workers if worker.queue == 0]
        back: list[int] = []
        for queue, index, limit in [*segments, (other, other.start, other.end)]:
            back += queue.items[index : index + readable(index, limit, queue.end)].tolist()
        own.start, other.start = min(own.start, own.end), other.end
        try:
            own.append(back)
        except IndexError:
            raise DeadlockError(overflow_text(self.problem, 0, self.now_ps, -1)) from None
        self._put_back += len(back)
        return len(back)
