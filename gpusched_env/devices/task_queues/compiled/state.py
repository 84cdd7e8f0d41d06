"""The tables of a run, and how they are filled when a form begins."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.task_queues.applications import Data
from gpusched_env.task_queues.form import MOST_FETCH, Form
from gpusched_env.task_queues.problem import TaskProblem
from gpusched_env.task_queues.timeline import LOG, QUEUE, TOTALS

NEVER: Final = 1 << 60
"""Times behind the end of all runs, ps."""
UNSET, COMING, LOOKING, PARKED, ROUND, WRITING = range(6)
"""What a worker's next event is: none; its first grab; a look at the queue; a look after others that found nothing; the
end of a round; a publication."""

MOST_KERNELS: Final = 1 << 20
"""That wait or run at a time; each has a task at least. Their rows are used again, in turn."""

Table = NDArray[np.void]


def _whole(*names: str) -> list[tuple[str, type]]:
    return [(name, np.int64) for name in names]


RULES: Final = np.dtype(
    _whole("kind", "grid", "workers", "warps", "block", "persistent", "synchronous", "fetch", "polls", "delta", "split")
    + _whole("opening_ps", "slot_ps", "push_ps", "write_ps", "poll_ps", "refresh_ps", "grab_ps", "atomic_ps")
    + _whole("host_launch_ps", "launch_ps", "copy_ps", "sync_ps", "back_ps")
    + [(name, np.float64) for name in ("damping", "epsilon", "ps_per_edge")]
)
"""The form, the machine and the application; switches as 0 and 1. ``split``: there are two queues."""
CORE: Final = np.dtype(
    _whole("now_ps", "finished", "memory_free_ps", "put_back", "logged", "live", "leaving", "base", "leaves")
    + _whole("read_ps", "active", "threshold", "empty", "kernels", "arrived", "head", "ended", "free")
    + _whole("failed_queue", "failed_worker")
)
"""``leaving``: another form waits; ``base``: where the form's first segment begins; ``leaves``: half of the tree."""
COUNTERS: Final = np.dtype(QUEUE.descr + _whole("start_free_ps", "alloc_free_ps", "written_free_ps", "new"))
"""Of a queue; ``new``: tasks that the present round has put at its back."""
WORKER: Final = np.dtype(
    _whole("next", "queue", "index", "limit", "count", "edges", "rounds", "round", "task", "slot", "since_ps")
    + _whole("fruitless", "threshold", "kernel", "first_0", "new_0", "first_1", "new_1")
)
"""``task``, ``slot``: of a warp's round; ``since_ps``: its last look that counts; ``first_*``, ``new_*``: what it is
writing to each queue."""
KERNEL: Final = np.dtype(_whole("queue", "next", "limit", "threshold", "arrives_ps", "running"))


class TaskState(NamedTuple):
    """All that changes during a run."""

    rules: Table
    core: Table
    totals: Table
    counters: Table
    items: NDArray[np.int64]
    workers: Table
    due: NDArray[np.int64]
    """A tree of the smallest: four times the time of each worker's next event, plus its rank."""
    owner: NDArray[np.int32]
    """Who has a segment, by its number since the form's beginning."""
    free: NDArray[np.int32]
    """Places without a block, in forms with launches; the last one is taken first."""
    edges_before: NDArray[np.int32]
    """(workers, tasks of a step + 1) of a block's step."""
    depth: NDArray[np.int64]
    """(workers, tasks of a step) the depth at which a task was taken, or what a colouring found out."""
    share: NDArray[np.float64]
    """(workers, tasks of a step) what each neighbour gets of a residual."""
    kernels: Table
    log: Table
    data: Data


def new_state(problem: TaskProblem) -> TaskState:
    """Of a problem, before its first form."""
    counters = np.zeros(2, COUNTERS)
    initial = problem.initial()
    items = np.zeros((2, problem.places), np.int64)
    items[0, : len(initial)] = initial
    for name in ("alloc", "count", "top", "end"):
        counters[name][0] = len(initial)
    return _of_form(
        problem,
        Form(),
        TaskState(
            rules=np.zeros(1, RULES),
            core=np.zeros(1, CORE),
            totals=np.zeros(1, TOTALS),
            counters=counters,
            items=items,
            workers=np.zeros(0, WORKER),
            due=np.zeros(0, np.int64),
            owner=np.zeros(0, np.int32),
            free=np.zeros(0, np.int32),
            edges_before=np.zeros((0, 0), np.int32),
            depth=np.zeros((0, 0), np.int64),
            share=np.zeros((0, 0)),
            kernels=np.empty(min(2 * problem.places + 1, MOST_KERNELS), KERNEL),
            log=np.zeros(problem.log, LOG),
            data=problem.data(),
        ),
    )


def with_form(problem: TaskProblem, form: Form, state: TaskState) -> TaskState:
    """The same run with the tables of another form."""
    return _of_form(problem, form, state)


def _of_form(problem: TaskProblem, form: Form, state: TaskState) -> TaskState:
    shape = problem.shape(form)
    workers, fetch = shape.workers, form.fetch
    leaves = 1 << max(1, (workers - 1).bit_length())
    state.rules[0] = _rules(problem, form)
    core = state.core[0]
    core["leaves"], core["base"], core["leaving"] = leaves, state.counters[0]["start"], 0
    core["active"], core["threshold"], core["empty"] = 0, form.threshold, 0
    core["kernels"] = core["arrived"] = core["head"] = core["ended"] = 0
    core["read_ps"], core["free"], core["live"] = NEVER, workers, min(shape.grid, workers)
    state.totals[0]["voted"] = state.totals[0]["idle"] = 0
    persistent = form.strategy == "persistent"
    return state._replace(
        workers=np.zeros(workers, WORKER),
        due=np.full(2 * leaves, 4 * NEVER, np.int64),
        owner=np.zeros(problem.places // fetch + 2 * workers + 2 if persistent else 0, np.int32),
        free=np.arange(workers, dtype=np.int32)[::-1].copy(),
        edges_before=np.empty((workers, MOST_FETCH + 1), np.int32),
        depth=np.empty((workers, MOST_FETCH), np.int64),
        share=np.empty((workers, MOST_FETCH)),
    )


def _rules(problem: TaskProblem, form: Form) -> tuple[Any, ...]:
    machine, shape, block = problem.machine, problem.shape(form), form.worker == "block"
    values = {name: getattr(machine, name) for name in RULES.names or () if hasattr(machine, name)}
    values |= {
        "kind": problem.kind,
        "grid": shape.grid,
        "workers": shape.workers,
        "warps": shape.warps,
        "block": block,
        "persistent": form.strategy == "persistent",
        "synchronous": form.strategy == "bulk-synchronous",
        "fetch": form.fetch,
        "polls": problem.polls_of(form),
        "delta": form.delta,
        "split": form.threshold > 0,
        "opening_ps": machine.load_ps if block else machine.vertex_ps,
        "push_ps": machine.push_ps if block else machine.warp_push_ps,
        "back_ps": machine.push_ps,
        "poll_ps": machine.poll_ps if block else machine.warp_poll_ps,
        "damping": problem.damping,
        "epsilon": problem.epsilon,
        "ps_per_edge": machine.ps_per_edge(len(problem.graph.degree)),
    }
    return tuple(values[name] for name in RULES.names or ())
