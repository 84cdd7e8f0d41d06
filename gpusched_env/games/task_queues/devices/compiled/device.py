"""The compiled device of task queues, as Python sees it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import DeadlockError, InputError
from gpusched_env.games.task_queues.applications import Data
from gpusched_env.games.task_queues.device import (
    FOREVER,
    QUEUE,
    Event,
    check_form,
    early_text,
    link_text,
    overflow_text,
    vote_text,
)
from gpusched_env.games.task_queues.devices.compiled.loop import OVER, OVERFLOW, PAUSED, STUCK, launch, leave, proceed
from gpusched_env.games.task_queues.devices.compiled.state import TaskState, new_state, with_form
from gpusched_env.games.task_queues.problem import Form, TaskProblem
from gpusched_env.scheduling.guards import OneThread, one_thread_at_a_time


class CompiledTaskDevice(OneThread):
    """See :class:`gpusched_env.games.task_queues.device.TaskDevice`."""

    problem: TaskProblem
    form: Form
    state: TaskState
    finished = True
    _next_form: Form | None = None

    @one_thread_at_a_time
    def begin(self, problem: TaskProblem, form: Form) -> None:
        check_form(problem, form)
        self.problem, self.finished = problem, False
        self.state = new_state(problem)
        self._start_form(form, 0)

    def _start_form(self, form: Form, at_ps: int) -> None:
        self.form, self._next_form = form, None
        self.state = with_form(self.problem, form, self.state)
        launch(self.state, at_ps)

    @one_thread_at_a_time
    def advance(self, until_ps: int = FOREVER) -> bool:
        while not self.finished:
            status = proceed(self.state, until_ps)
            if status == PAUSED:
                break
            if status == STUCK:
                raise DeadlockError(vote_text(self.problem, self.form, self.time_ps, int(self.totals["voted"])))
            if status == OVERFLOW:
                core = self.state.core[0]
                queue, worker, link = (int(core[f"failed_{what}"]) for what in ("queue", "worker", "link"))
                if link >= 0:
                    raise DeadlockError(link_text(self.problem, *divmod(link, self.problem.gpus), self.time_ps))
                raise DeadlockError(overflow_text(self.problem, queue, self.time_ps, worker))
            assert status == OVER
            self._form_over()
        return self.finished

    @one_thread_at_a_time
    def change(self, form: Form) -> None:
        if self.finished:
            raise InputError("change: the application has finished")
        check_form(self.problem, form)
        if self._next_form is None:
            leave(self.state)
        self._next_form = form

    def _form_over(self) -> None:
        """All workers have left: the application is done if no task is left, or goes on in another form."""
        machine, core = self.problem.machine, self.state.core[0]
        known_ps = self.time_ps + machine.sync_ps
        left = int(self.state.counters["alloc"].sum() - core["put_back"] - self.totals["tasks"])
        if left and self._next_form is not None:
            back = self._put_tasks_back()
            self.totals["changes"] += 1
            self._note(Event.CHANGE, back)
            self._start_form(self._next_form, known_ps + (machine.push_ps if back else 0))
            return
        if left and self.problem.relaunch:
            self._put_tasks_back()
            self._start_form(self.form, known_ps)
            return
        if left:
            raise DeadlockError(early_text(self.problem, self.form, self.time_ps, left))
        core["now_ps"], self.finished = known_ps, True

    def _put_tasks_back(self) -> int:
        """Put what workers have taken and not begun at the back of a GPU's first queue, and then its second queue."""
        number = sum(self._put_back_of(gpu) for gpu in range(self.problem.gpus))
        self.state.core[0]["put_back"] += number
        return number

    def _put_back_of(self, gpu: int) -> int:
        row, items, workers = 2 * gpu, self.state.items, self.state.workers
        own, other = self.state.counters[row : row + 2]
        limits = np.minimum(workers["limit"], own["end"])
        held = np.flatnonzero((workers["queue"] == row) & (workers["index"] < limits))
        back = [items[row, workers["index"][worker] : limits[worker]] for worker in held]
        back.append(items[row + 1, other["start"] : other["end"]])
        tasks = np.concatenate(back)
        own["start"], other["start"] = min(own["start"], own["end"]), other["end"]
        first = int(own["alloc"])
        if first + len(tasks) > self.problem.places:
            raise DeadlockError(overflow_text(self.problem, row, self.time_ps, -1))
        items[row, first : first + len(tasks)] = tasks
        for name in ("alloc", "count", "top", "end"):
            own[name] = first + len(tasks)
        return len(tasks)

    def _note(self, event: Event, a: int) -> None:
        core = self.state.core[0]
        if core["logged"] < len(self.state.log):
            self.state.log[core["logged"]] = (core["now_ps"], event, -1, a, 0)
            core["logged"] += 1

    @property
    def time_ps(self) -> int:
        return int(self.state.core[0]["now_ps"])

    @property
    def totals(self) -> np.void:
        row: np.void = self.state.totals[0]
        return row

    @property
    def queues(self) -> NDArray[np.void]:
        found: NDArray[np.void] = self.state.counters[list(QUEUE.names or ())].astype(QUEUE)
        return found

    @property
    def items(self) -> NDArray[np.int64]:
        return self.state.items

    @property
    def data(self) -> Data:
        return self.state.data

    @property
    def log(self) -> NDArray[np.void]:
        return self.state.log[: int(self.state.core[0]["logged"])]
