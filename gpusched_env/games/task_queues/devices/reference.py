"""The reference device of task queues: every worker is a generator, every poll an event."""

from __future__ import annotations

import heapq
from collections.abc import Generator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import DeadlockError
from gpusched_env.games.task_queues.applications import (
    COLOURING,
    begin_task,
    inspect_neighbours,
    requeue_conflict,
    value_to_send,
    vertex_of,
    visit,
    write_colour,
)
from gpusched_env.games.task_queues.device import (
    FOREVER,
    LOG,
    QUEUE,
    TOTALS,
    Event,
    check_form,
    overflow_text,
    vote_text,
)
from gpusched_env.games.task_queues.devices.hosting import DirectedLink, LinkedForms, Sent
from gpusched_env.games.task_queues.devices.parts import (
    Round,
    TaskHost,
    TaskKernel,
    TaskQueue,
    TaskWorker,
    deal_to_block,
    deal_to_warp,
)
from gpusched_env.games.task_queues.hardware.machine import StepPrices, crowded, readable, served, slots_of
from gpusched_env.games.task_queues.problem import Form, TaskProblem
from gpusched_env.scheduling.guards import one_thread_at_a_time

WORK: Final = 1
LOOK: Final = 2
"""Ranks of what happens at one instant, behind the hosts and then the links: workers that write, workers that look at
the queue; among equals in order of workers."""
Life = Generator[tuple[int, int], None, None]
"""A worker: when it goes on, and with which rank."""


class ReferenceTaskDevice(LinkedForms):
    """See :class:`gpusched_env.games.task_queues.device.TaskDevice`."""

    @one_thread_at_a_time
    def begin(self, problem: TaskProblem, form: Form) -> None:
        check_form(problem, form)
        self.problem, self.machine = problem, problem.machine
        self.data = problem.data()
        gpus = range(problem.gpus)
        self.items: NDArray[np.int64] = np.zeros((2 * problem.gpus, problem.places), np.int64)
        self._queues = [TaskQueue(row) for row in self.items]
        self._hosts = [
            TaskHost(gpu, (self._queues[2 * gpu], self._queues[2 * gpu + 1]), problem.ps_per_edge[gpu]) for gpu in gpus
        ]
        for host, tasks in zip(self._hosts, problem.initial(), strict=True):
            host.queues[0].append(tasks.tolist())
        self._links = [DirectedLink(problem, origin, owner) for origin in gpus for owner in gpus if origin != owner]
        self.now_ps, self.finished = 0, False
        self._sums = dict.fromkeys(TOTALS.names or (), 0)
        self._rows: list[tuple[int, ...]] = []
        self._degree = problem.graph.degree.tolist()
        self._put_back = 0
        self._heap: list[tuple[int, int, int]] = []
        self._start_form(form, 0)

    @one_thread_at_a_time
    def advance(self, until_ps: int = FOREVER) -> bool:
        while not self.finished:
            host_ps = self._hosts_next()
            link_ps, link = self._links_next()
            next_ps = min(host_ps, link_ps, self._heap[0][0] if self._heap else FOREVER)
            if next_ps == FOREVER or self._nobody_comes(min(host_ps, link_ps)):
                raise DeadlockError(vote_text(self.problem, self.form, self.now_ps, self._sums["voted"]))
            if next_ps > until_ps:
                self.now_ps = until_ps
                break
            self.now_ps = next_ps
            if host_ps == next_ps:
                self._host_event()
            elif link and link_ps == next_ps:
                self._link_event(link)
            else:
                _, _, number = heapq.heappop(self._heap)
                self._go_on(number)
        return self.finished

    def _nobody_comes(self, other_ps: int) -> bool:
        """Whether all that ever happens is that workers poll which have voted."""
        if other_ps < FOREVER or self.shape.grid <= self.shape.workers or self._next_form is not None:
            return False
        if not self._sums["voted"] == len(self._workers) == self._sums["idle"]:
            return False
        # Those that will find something at their next poll go on.
        return not any(self._readable(worker) for worker in self._workers)

    def _readable(self, worker: TaskWorker) -> int:
        return readable(worker.index, worker.limit, self._hosts[worker.gpu].queues[0].end)

    @property
    def time_ps(self) -> int:
        return self.now_ps

    @property
    def totals(self) -> np.void:
        row: np.void = np.array([tuple(self._sums.values())], TOTALS)[0]
        return row

    @property
    def queues(self) -> NDArray[np.void]:
        return np.array([tuple(getattr(queue, name) for name in QUEUE.names or ()) for queue in self._queues], QUEUE)

    @property
    def log(self) -> NDArray[np.void]:
        return np.array(self._rows, LOG)

    def _note(self, event: Event, worker: int, a: int = 0, b: int = 0) -> None:
        if len(self._rows) < self.problem.log:
            self._rows.append((self.now_ps, event, worker, a, b))

    # ---- workers ---------------------------------------------------------------------------------

    def _go_on(self, number: int) -> None:
        for when_ps, rank in self._lives[number]:
            heapq.heappush(self._heap, (when_ps, rank, number))
            return

    def _start_workers(self, at_ps: int) -> None:
        """Start the workers of a persistent kernel."""
        resident = min(self.shape.grid, self.shape.workers)
        running = [worker for worker in self._workers if worker.number % self.shape.workers < resident]
        self._lives = {worker.number: self._persistent(worker, at_ps) for worker in running}
        self._live = len(running)
        for number in self._lives:
            self._go_on(number)

    def _persistent(self, worker: TaskWorker, at_ps: int) -> Life:
        """Grab, process, push, poll."""
        polls, poll_ps = self.problem.polls_of(self.form), self._prices.poll_ps
        yield at_ps, WORK
        yield self._grab(worker, self.now_ps), LOOK
        while self._next_form is None:
            count = self._readable(worker)
            if count:
                self._idle(worker, False)
                ready_ps = yield from self._step(worker, count)
                if worker.index == worker.limit:
                    yield self._grab(worker, ready_ps), LOOK
                else:
                    yield ready_ps + self.machine.refresh_ps, LOOK
                continue
            if self._sums["voted"] == self.problem.gpus * self.shape.grid and not self._sums["flying"]:
                break
            self._idle(worker, True)
            worker.fruitless += 1
            if worker.fruitless == polls:
                self._sums["voted"] += 1
                self._note(Event.VOTE, worker.number, self._sums["voted"])
            yield self.now_ps + poll_ps, LOOK
        self._idle(worker, False)
        self._note(Event.LEAVE, worker.number)
        self._live -= 1
        self._maybe_over()

    @property
    def _prices(self) -> StepPrices:
        return self.problem.prices(self.form)

    def _grab(self, worker: TaskWorker, ready_ps: int) -> int:
        """Take the next segment, whether it is written or not; when the worker has it."""
        queue = self._hosts[worker.gpu].queues[0]
        queue.start_free_ps = served(queue.start_free_ps, ready_ps, self.machine.atomic_ps)
        worker.index, worker.limit = queue.start, queue.start + self.form.fetch
        queue.start += self.form.fetch
        self._note(Event.GRAB, worker.number, worker.index)
        return queue.start_free_ps + self.machine.grab_ps

    def _idle(self, worker: TaskWorker, idle: bool) -> None:
        if worker.idle != idle:
            worker.idle = idle
            self._sums["idle"] += 1 if idle else -1
            if idle:
                self._note(Event.IDLE, worker.number, worker.index)

    def _block(self, worker: TaskWorker, kernel: TaskKernel) -> Life:
        """A block of a kernel with an end."""
        yield from self._step(worker, worker.limit - worker.index)
        host = self._hosts[worker.gpu]
        kernel.running -= 1
        host.free.append(worker.number)
        if kernel.over:
            host.ended += 1
            self._all_arrived()
        self._dispatch(host)

    # ---- steps -----------------------------------------------------------------------------------

    def _step(self, worker: TaskWorker, count: int) -> Generator[tuple[int, int], None, int]:
        """Process the next ``count`` tasks; gives when the worker can go on."""
        problem, data = self.problem, self.data
        queue = self._hosts[worker.gpu].queues[worker.queue]
        tasks = queue.items[worker.index : worker.index + count].tolist()
        self._note(Event.STEP, worker.number, worker.index, count)
        self._sums["steps"] += 1
        self._sums["tasks"] += count
        degrees = [self._degree[vertex_of(task)] for task in tasks]
        held = [begin_task(problem.kind, data, problem.damping, task) for task in tasks]
        block = self.form.worker == "block"
        ready_ps = self.now_ps
        for part in deal_to_block(degrees, self.shape.warps) if block else deal_to_warp(degrees):
            looked = [inspect_neighbours(data, tasks[i]) for i in part.ending] if problem.kind == COLOURING else []
            yield self._round_end(worker, part, ready_ps), WORK
            found: tuple[list[int], list[int]] = ([], [])
            away: dict[int, list[Sent]] = {}
            if problem.kind == COLOURING:
                for i, seen in zip(part.ending, looked, strict=True):
                    self._colour(tasks[i], seen, found[0])
            else:
                self._edges(worker, part, tasks, held, found, away)
            ready_ps = self.now_ps
            if found[0] or found[1] or away:
                ready_ps = yield from self._push(worker, part, found, away)
        worker.index += count
        self._sums["worked_ps"] = self.now_ps
        return ready_ps

    def _round_end(self, worker: TaskWorker, part: Round, ready_ps: int) -> int:
        host = self._hosts[worker.gpu]
        self._sums["edges"] += part.edges
        self._sums["rounds"] += 1
        self._move(host, part.edges)
        lone_ps = self.problem.slot_ps + part.opens * self._prices.opening_ps
        return max(ready_ps + self._crowded(worker, part, lone_ps), host.memory_free_ps)

    def _crowded(self, worker: TaskWorker, part: Round, lone_ps: int) -> int:
        return crowded(lone_ps, self._prices.crowding, part.edges, self.shape.warps, worker.number, self.now_ps)

    def _colour(self, task: int, looked: int, found: list[int]) -> None:
        data, vertex = self.data, vertex_of(task)
        pushed = [write_colour(data, task, looked)]
        if task < 0 and not looked:
            neighbours = data.neighbour[data.first[vertex] : data.first[vertex + 1]].tolist()
            pushed += [requeue_conflict(data, vertex, other) for other in neighbours]
        found.extend(task for task in pushed if task)

    def _edges(
        self,
        worker: TaskWorker,
        part: Round,
        tasks: list[int],
        held: list[tuple[int, float]],
        found: tuple[list[int], list[int]],
        away: dict[int, list[Sent]],
    ) -> None:
        problem, data = self.problem, self.data
        for i, low, high in part.pieces:
            depth, share = held[i]
            first = data.first[vertex_of(tasks[i])]
            for other in data.neighbour[first + low : first + high].tolist():
                if problem.gpus > 1 and data.home[other] != worker.gpu:
                    value = value_to_send(problem.kind, data, problem.epsilon, worker.gpu, depth, share, other)
                    if value >= 0.0:
                        away.setdefault(int(data.home[other]), []).append((other, value))
                    continue
                task = visit(problem.kind, data, problem.epsilon, depth, share, other)
                if task:
                    waits = worker.threshold > 0 and depth + 1 >= worker.threshold
                    found[1 - worker.queue if waits else worker.queue].append(task)

    def _push(
        self, worker: TaskWorker, part: Round, found: tuple[list[int], list[int]], away: dict[int, list[Sent]]
    ) -> Generator[tuple[int, int], None, int]:
        """Reserve, write, publish, and send to other GPUs; gives when the worker can go on."""
        atomic_ps, now_ps = self.machine.atomic_ps, self.now_ps
        queues = self._hosts[worker.gpu].queues
        places, done_ps = [0, 0], now_ps
        for number, tasks in enumerate(found):
            if tasks:
                try:
                    places[number], through_ps = queues[number].reserve(tasks, now_ps, atomic_ps)
                except IndexError:
                    queue = 2 * worker.gpu + number
                    raise DeadlockError(overflow_text(self.problem, queue, now_ps, worker.number)) from None
                done_ps = max(done_ps, through_ps)
                self._sums["pushed"] += len(tasks)
                self._note(Event.RESERVE, worker.number, places[number], len(tasks))
        messages, collected = self._send(worker, away)
        written = len(found[0]) + len(found[1]) + collected
        # Answers of other GPUs come before the push.
        done_ps = max(done_ps, *(message.answered_ps for message in messages)) if messages else done_ps
        if written:
            lone_ps = self._prices.push_ps + slots_of(written) * self.machine.write_ps
            done_ps += self._crowded(worker, part, lone_ps)
        if done_ps > now_ps:
            yield done_ps, WORK
        ready_ps = self.now_ps
        for number, tasks in enumerate(found):
            if tasks:
                through_ps = queues[number].publish(places[number], len(tasks), self.now_ps, atomic_ps)
                ready_ps = max(ready_ps, through_ps)
                self._note(Event.PUBLISH, worker.number, queues[number].end, len(tasks))
        fenced = any(message.tasks for message in messages)
        return ready_ps + (self.problem.link_times.fence_ps if fenced else 0)
